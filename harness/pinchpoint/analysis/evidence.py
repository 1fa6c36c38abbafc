"""Step 4: the kinds of evidence that a resource is used up.

At one load level E2 (a queue that grows with load) and E3 (the ceiling is near the observed maximum) cannot
be had: both need several levels. E1 and E4 can. Where no cap of a disk is known there is no utilisation;
then latency beyond the role's limit stands in E1's place, with no more than medium confidence.
"""

from __future__ import annotations

from dataclasses import dataclass

from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.measures import CpuMeasures, DiskMeasures
from pinchpoint.analysis.resources.base import DiskShift, Resource
from pinchpoint.analysis.slowness import is_slow, overwhelmed, write_and_flush_s
from pinchpoint.analysis.thresholds import (
    BACKLOG,
    CAP_MATCH,
    DISK_OCCUPIED,
    DISK_SHIFT,
    FLAT,
    MOSTLY_BUSY,
    MOSTLY_READS,
    NO_LATENCY_S,
    PRESSURE,
    SEEN,
    THREAD_BUSY,
    UTILISATION,
    WAIT_SHARE,
    WAITING_IO,
    Threshold,
    at_least,
    at_most,
    exceeds,
)
from pinchpoint.analysis.waits import waited

HALF = 0.5


@dataclass(frozen=True, slots=True)
class DiskState:
    """The yes-or-no questions about a disk that evidence and signature share.

    Attributes:
        occupied: hardly ever idle, or not known, or waited for, or pacing those who wait.
        at_cap: within 3 % of the declared cap, and held there: flat, or whatever the size of I/Os.
        uneven: its I/Os end as unevenly as a device's.
        used: what it does ÷ its declared cap, while it has something to do.
        near_cap: at 90 % of the declared cap or more, not beyond it, and nothing says that it could do more.
        beyond_cap: more than the declared cap was done: the declaration does not hold.
        regulated: flat as only a regulator is, while latency moves.
        fell: its level fell and held there, though no less was waiting: burst credits ran out.
        rose: its level rose though no more was waiting: it is still warming up.
        slow: latency above the limit of its role.
        device: with a queue, and more outstanding I/O brings no more I/O; or slow, as uneven as a device.
        wait_ratio: waiting for this disk ÷ the time of the operations of a pressed scenario.
        waiting: that scenario.
        late: operations wait for this disk most of their time, and its latency is not excellent.
        concurrency: operations wait for reads that are issued too few at a time: more would be served.
    """

    occupied: bool
    at_cap: bool
    uneven: bool
    used: float | None
    near_cap: bool
    beyond_cap: bool
    regulated: bool
    fell: bool
    rose: bool
    slow: bool
    device: bool
    wait_ratio: float | None
    waiting: str | None
    late: bool
    concurrency: bool

    @property
    def waited_for(self) -> bool:
        """Whether operations of a pressed scenario spend half of their time or more on this disk."""
        return at_least(self.wait_ratio, WAIT_SHARE)

    @property
    def full(self) -> bool:
        """It can do no more than it does."""
        held = self.near_cap or self.regulated or self.device
        return (self.occupied and held) or self.fell or self.rose


def cpu_evidence(resource: Resource, found: CpuMeasures) -> frozenset[str]:
    """E1 from the busy ratio, E4 from CPU pressure."""
    if found.busy is None or found.busy < cpu_limit(resource).value:
        return frozenset()
    if resource.type != "cpu" and not _stands_out(found):
        return frozenset()
    if at_leisure(resource, found):
        return frozenset()
    return frozenset({"E1", "E4"} if cpu_witness(resource, found) else {"E1"})


def cpu_witness(resource: Resource, found: CpuMeasures) -> bool:
    """Whether pressure, or of a thread its server, says as well that it is used up.

    Pressure of the whole machine can witness for a pool, and for a quota, whose tasks then wait for CPU; one
    thread at its limit makes nobody else wait, but its server knows how long it was at work.
    """
    if resource.type == "thread":
        return at_least(found.witness, THREAD_BUSY)
    return (resource.type == "cpu" or found.quota) and at_least(found.pressure, PRESSURE)


def cpu_limit(resource: Resource) -> Threshold:
    """From which busy ratio on this resource is used up."""
    return THREAD_BUSY if resource.type == "thread" else UTILISATION


def at_leisure(resource: Resource, found: CpuMeasures) -> bool:
    """Whether a server says that its one thread had work for less than nine tenths of the time.

    What kept a core busy is then no limit: a child that writes a snapshot, a thread that spins while it waits
    for work (METHOD, section 2: the utilisation is what the server says, never the host's CPU).
    """
    return resource.type == "thread" and found.witness is not None and found.witness < UTILISATION.value


def _stands_out(found: CpuMeasures) -> bool:
    """A thread or an allowance is a limit of its own only where the cores around it are not used up.

    A quota below the cores is one in any case: full cores would not have let the tier reach it. Where
    nobody saw the cores, the thread is taken for one: that its host was not seen lowers confidence.
    """
    room = found.pool is None or found.pool < UTILISATION.value
    return found.seen >= SEEN.value and (room or found.quota)


def disk_state(resource: Resource, found: DiskMeasures, flows: tuple[Flow, ...]) -> DiskState:
    """Answer the questions of ``DiskState``."""
    wait, scenario = waited(resource, found, flows)
    reading = at_least(found.reads_ratio, MOSTLY_READS) and not resource.commit_path
    return state_of(resource, found, wait, scenario, reading=reading)


def state_of(
    resource: Resource, found: DiskMeasures, wait: float | None, scenario: str | None, *, reading: bool
) -> DiskState:
    """The same where it is known already who waits for the disk.

    Args:
        resource: the disk.
        found: what was measured.
        wait: the share of its time that ``scenario`` waits for it; None where nobody presses it.
        scenario: who waits.
        reading: whether who issues an I/O waits for it and could issue more of them at once.
    """
    flat, io, waited_for = found.spread, found.moves["io"], at_least(wait, WAIT_SHARE)
    used = _used(found, waited_for=waited_for)
    beyond = _beyond(found.utilisation, used)
    # Few large I/Os make seconds uneven by one of them, and smaller ones are more of them in a second; that
    # their size moves no bytes tells more than either.
    any_size = found.moves[found.binding].any_size
    near = used is not None and not beyond and used >= UTILISATION.value and (any_size or not io.follows)
    held = at_most(flat, FLAT) or any_size
    at_cap = near and used is not None and used >= 1 - CAP_MATCH.value and held
    slow = is_slow(resource, found)
    queue = at_least(found.outstanding, WAITING_IO)
    unknown = io.slope is None and found.held is None
    uneven = unknown and io.irregular is not False
    durable = write_and_flush_s(resource, found)
    # One that paces I/Os sent one at a time idles while the sender prepares the next.
    paced = found.held is not None and bool(wait) and at_least(found.busy, WAIT_SHARE)
    return DiskState(
        occupied=found.busy is None or found.busy >= DISK_OCCUPIED.value or waited_for or paced,
        at_cap=at_cap,
        uneven=found.moves[found.binding].irregular is True,
        used=used,
        near_cap=near,
        beyond_cap=beyond,
        regulated=found.held is not None,
        fell=fell(resource.shift) and not _of_another_size(resource.shift, found),
        rose=_rose(resource.shift),
        slow=slow,
        device=queue and ((io.stays and (slow or waited_for)) or (uneven and overwhelmed(resource, found))),
        wait_ratio=wait,
        waiting=scenario,
        late=waited_for and (slow or (not reading and at_least(durable, NO_LATENCY_S))),
        concurrency=reading
        and waited_for
        and not slow
        and (io.follows or (unknown and not (queue and uneven))),
    )


def _used(found: DiskMeasures, *, waited_for: bool) -> float | None:
    """How much of its cap a disk does; one that is waited for, while it has something to do.

    Who waits for it and then works on what it wrote leaves it idle meanwhile: it does all it may.
    """
    if found.utilisation is None or not waited_for or not at_least(found.busy, WAIT_SHARE):
        return found.utilisation
    return found.utilisation / min(1.0, found.busy or 1.0)


def _beyond(done: float | None, used: float | None) -> bool:
    """More than the cap was done, or would have been by far with the disk busy all the time.

    That it never idles while it is held is known within a tenth: a regulator lets idle time be made up for.
    """
    if done is None or used is None:
        return False
    return exceeds(done) or used > 1 / UTILISATION.value


def disk_evidence(found: DiskMeasures, state: DiskState) -> frozenset[str]:
    """E1 from the cap, a flat top, a slow device or the wait for it; E4 from I/O pressure or who waits."""
    if not (state.full or state.concurrency or state.late):
        return frozenset()
    waited = state.waited_for or at_least(found.backlog, BACKLOG)
    witness = at_least(found.pressure, PRESSURE) or waited
    return frozenset({"E1", "E4"} if witness else {"E1"})


def fell(shift: DiskShift | None) -> bool:
    """The rate fell and held, the disk mostly busy; what was outstanding fell by less than half as much."""
    if shift is None or shift.after > shift.before * (1 - DISK_SHIFT.value):
        return False
    held = shift.busy_after >= MOSTLY_BUSY.value and at_most(shift.spread, FLAT)
    return held and -_moved(shift) < HALF * (1 - shift.after / shift.before)


def _of_another_size(shift: DiskShift | None, found: DiskMeasures) -> bool:
    """Whether it is I/Os' size that changed: the other of I/O and bytes is held, and stayed where it was."""
    if shift is None or not shift.other_before:
        return False
    other = "bytes" if shift.of == "io" else "io"
    stayed = abs(shift.other_after / shift.other_before - 1) < DISK_SHIFT.value
    return stayed and found.moves[other].regulated


def _rose(shift: DiskShift | None) -> bool:
    """The rate rose; what was outstanding rose by less than half as much; the disk was mostly busy before.

    Then it did all it could; one that has become fast enough may idle while users prepare what comes next.
    Of the same work: when a checkpoint ends, more reads get done though the disk is as fast as before, so
    only seconds of the usual mix are compared; more of smaller I/Os are no more bytes, and larger ones no
    more I/Os.
    """
    if shift is None or shift.alike_before is None or shift.alike_after is None:
        return False
    least = 1 + DISK_SHIFT.value
    rose = shift.after >= shift.before * least and shift.alike_after >= shift.alike_before * least
    busy = shift.busy_before >= MOSTLY_BUSY.value
    both = shift.other_after >= shift.other_before * least or not shift.other_before
    return rose and busy and both and _moved(shift) < HALF * (shift.after / shift.before - 1)


def _moved(shift: DiskShift) -> float:
    """The relative change of what was outstanding; all of it where nothing was at first."""
    if shift.outstanding_before == 0:
        return 1.0
    return shift.outstanding_after / shift.outstanding_before - 1
