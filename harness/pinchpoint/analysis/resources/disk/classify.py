"""Finds the evidence that a disk is saturated, and the kind of its limit (docs/rules.md).

E2 (a queue that grows with load) and E3 (the ceiling is near the highest throughput) need several load
levels; one level gives E1 and E4. Without a known cap a disk has no utilisation. Latency above the limit of
the disk's role then replaces E1, with medium confidence at most.
"""

from __future__ import annotations

from pinchpoint.analysis.flows import Flows
from pinchpoint.analysis.resources.base import (
    DiskMeasures,
    DiskShift,
    DiskState,
    Resource,
    Suspicion,
)
from pinchpoint.analysis.resources.disk.measures import is_slow, overwhelmed, write_and_flush_s
from pinchpoint.analysis.resources.disk.waits import waited
from pinchpoint.analysis.thresholds import (
    CAP_MATCH,
    DISK_OCCUPIED,
    DISK_SHIFT,
    FLAT,
    HARDLY_WAITED_FOR,
    MOSTLY_BUSY,
    MOSTLY_READS,
    NO_LATENCY_S,
    PRESSURE,
    UTILISATION,
    WAIT_SHARE,
    WAITING_IO,
    at_least,
    at_most,
    exceeds,
)
from pinchpoint.analysis.verdict import Kind

HALF = 0.5


AT_A_LEVEL = ("disk_cap", "disk_device")
"""Kinds that are compared with a declared limit. Burst credits exceed that limit by design."""

SATURATED = ("disk_cap", "disk_burst_exhausted")
"""Kinds that are reported even if no session waits, because the disk is at its cap. A slow disk matters only
if sessions wait for it."""


def disk_state(resource: Resource, measures: DiskMeasures, flows: Flows) -> DiskState:
    """The state of a disk, with the scenario that waits for it most."""
    wait, scenario = waited(resource, measures, flows)
    reading = at_least(measures.reads_ratio, MOSTLY_READS) and not resource.commit_path
    return state_of(resource, measures, wait, scenario, reading=reading)


def state_of(
    resource: Resource, measures: DiskMeasures, wait: float | None, scenario: str | None, *, reading: bool
) -> DiskState:
    """The state of a disk if the scenario that waits for it is already known.

    Args:
        resource: the disk.
        measures: measurements of the disk.
        wait: share of the time of ``scenario`` spent waiting for the disk; None if no scenario is pressed.
        scenario: the scenario that waits most.
        reading: whether the issuer of an I/O waits for it and could issue several at once.
    """
    flat, io, waited_for = measures.spread, measures.responses["io"], at_least(wait, WAIT_SHARE)
    used = _used(measures, waited_for=waited_for)
    beyond = _beyond(measures.utilisation, used)
    # A few large I/Os make seconds differ by one I/O, and smaller I/Os give a higher count per second. A byte
    # rate that is the same for any I/O size is stronger evidence than such variation.
    any_size = measures.responses[measures.binding].any_size
    # A share that the platform recorded refers to the platform's own limit, whatever the measured rate.
    certain = any_size or measures.recorded
    near = used is not None and not beyond and used >= UTILISATION.value and (certain or not io.follows)
    held = at_most(flat, FLAT) or certain
    at_cap = near and used is not None and used >= 1 - CAP_MATCH.value and held
    slow = is_slow(resource, measures)
    queue = at_least(measures.outstanding, WAITING_IO)
    unknown = io.slope is None and measures.held is None
    uneven = unknown and io.irregular is not False
    durable = write_and_flush_s(resource, measures)
    # A disk whose regulator delays I/Os sent one at a time idles while the sender prepares the next I/O.
    paced = measures.held is not None and bool(wait) and at_least(measures.busy, WAIT_SHARE)
    return DiskState(
        occupied=measures.busy is None or measures.busy >= DISK_OCCUPIED.value or waited_for or paced,
        at_cap=at_cap,
        uneven=measures.responses[measures.binding].irregular is True,
        used=used,
        near_cap=near,
        beyond_cap=beyond,
        regulated=measures.held is not None,
        fell=fell(resource.shift) and not _of_another_size(resource.shift, measures),
        spent=measures.credits_used is not None and measures.credits_used >= 1 - CAP_MATCH.value,
        rose=_rose(resource.shift),
        slow=slow,
        device=queue
        and ((io.stays and (slow or waited_for)) or (uneven and overwhelmed(resource, measures))),
        wait_ratio=wait,
        waiting=scenario,
        late=waited_for and (slow or (not reading and at_least(durable, NO_LATENCY_S))),
        concurrency=reading
        and waited_for
        and not slow
        and (io.follows or (unknown and not (queue and uneven))),
    )


def _used(measures: DiskMeasures, *, waited_for: bool) -> float | None:
    """Utilisation of a disk's cap; for a disk that operations wait for, while the disk is busy.

    A client that waits for the disk and then processes the result leaves the disk idle meanwhile, even at its
    cap.
    """
    if measures.utilisation is None or not waited_for or not at_least(measures.busy, WAIT_SHARE):
        return measures.utilisation
    return measures.utilisation / min(1.0, measures.busy or 1.0)


def _beyond(done: float | None, used: float | None) -> bool:
    """Whether the rate exceeds the cap, or would clearly exceed it if the disk were always busy.

    The idle time of a disk at its cap is known to within a tenth, because a limiter lets a disk catch up
    after idle time.
    """
    if done is None or used is None:
        return False
    return exceeds(done) or used > 1 / UTILISATION.value


def disk_evidence(measures: DiskMeasures, state: DiskState) -> frozenset[str]:
    """E1 for a cap, a slow device or waits for the disk; E4 for I/O pressure or a scenario that waits."""
    if not (state.full or state.concurrency or state.late):
        return frozenset()
    witness = at_least(measures.pressure, PRESSURE) or state.waited_for
    return frozenset({"E1", "E4"} if witness else {"E1"})


def fell(shift: DiskShift | None) -> bool:
    """Whether the rate of a busy disk fell and stayed lower, and its queue fell by less than half as much."""
    if shift is None or shift.after > shift.before * (1 - DISK_SHIFT.value):
        return False
    held = shift.busy_after >= MOSTLY_BUSY.value and at_most(shift.spread, FLAT)
    return held and -_moved(shift) < HALF * (1 - shift.after / shift.before)


def _of_another_size(shift: DiskShift | None, measures: DiskMeasures) -> bool:
    """Whether only the size of I/Os changed: the other rate (I/O or bytes) stayed constant."""
    if shift is None or not shift.other_before:
        return False
    other = "bytes" if shift.of == "io" else "io"
    stayed = abs(shift.other_after / shift.other_before - 1) < DISK_SHIFT.value
    return stayed and measures.responses[other].regulated


def _rose(shift: DiskShift | None) -> bool:
    """Whether the rate of a mostly busy disk rose, and its queue rose by less than half as much.

    A disk that was mostly busy before did all it could; after the rise it may idle while users prepare the
    next I/O. Only seconds with the usual mix of reads and writes are compared: when a checkpoint ends, more
    reads complete although the disk is not faster. Both I/Os and bytes must rise: smaller I/Os raise only the
    count, and larger I/Os only the bytes.
    """
    if shift is None or shift.usual_mix_before is None or shift.usual_mix_after is None:
        return False
    least = 1 + DISK_SHIFT.value
    rose = shift.after >= shift.before * least
    rose = rose and shift.usual_mix_after >= shift.usual_mix_before * least
    busy = shift.busy_before >= MOSTLY_BUSY.value
    both = shift.other_after >= shift.other_before * least or not shift.other_before
    return rose and busy and both and _moved(shift) < HALF * (shift.after / shift.before - 1)


def _moved(shift: DiskShift) -> float:
    """Relative change of the number of outstanding I/Os; 1 if none were outstanding before."""
    if shift.outstanding_before == 0:
        return 1.0
    return shift.outstanding_after / shift.outstanding_before - 1


def judge_disk(resource: Resource, measures: DiskMeasures, flows: Flows) -> Suspicion | None:
    """The evidence that a disk limits throughput; None if there is none."""
    state = disk_state(resource, measures, flows)
    evidence = disk_evidence(measures, state)
    if not evidence:
        return None
    if resource.whole is not None and not (state.occupied and state.near_cap):
        return None  # for all disks of a machine, only the cap of the machine counts
    kind = cap_kind(state) if resource.whole is not None else _kind(measures, state)
    if state.wait_ratio is None and (kind not in SATURATED or not_waited_for(resource, measures)):
        return None
    below = measures.utilisation is not None and not (state.near_cap or state.beyond_cap)
    return Suspicion(
        resource=resource,
        kind=kind,
        evidence=evidence,
        found=measures,
        disk=state,
        exact=state.at_cap,
        contradicted=kind in AT_A_LEVEL and (state.beyond_cap or (kind == "disk_cap" and below)),
        not_waited_for=(not_waited_for(resource, measures) and not state.waited_for)
        or ignored(measures, state),
    )


def _kind(measures: DiskMeasures, state: DiskState) -> Kind:
    """The kind of limit; ``disk`` if there were too few readings, or if a cap could look the same."""
    kind = disk_kind(state)
    unclear = kind in {"disk_latency", "disk_concurrency"} and _may_be_capped(measures, state)
    return "disk" if unclear or not measures.often_read else kind


def _may_be_capped(measures: DiskMeasures, state: DiskState) -> bool:
    """Whether a cap could look the same: the queue depth was constant, and no declared limit is far above.

    By Little's law, latency is the number of outstanding I/Os ÷ throughput on any disk. A declared limit is
    far above from twice the rate on, because a declaration may be wrong by a factor of two.
    """
    far = (
        measures.utilisation is not None
        and not state.beyond_cap
        and measures.utilisation < HALF * UTILISATION.value
    )
    return (
        measures.responses["io"].slope is None and measures.responses["io"].irregular is not True and not far
    )


def disk_kind(state: DiskState) -> Kind:
    """The kind of limit: the first row of the table of kinds (docs/rules.md) that matches."""
    # A change of level comes first, because the steady part of such a run looks like a disk at its cap.
    if state.fell:
        return "disk_burst_exhausted"
    if state.rose:
        return "disk_warm_up"
    below = state.uneven and state.device and not state.at_cap
    if state.regulated or (state.near_cap and not below):
        return cap_kind(state)
    if state.device:
        return "disk_device"
    return "disk_concurrency" if state.concurrency else "disk_latency"


def cap_kind(state: DiskState) -> Kind:
    """The kind of a disk at its cap. With spent burst credits, the cap was higher before."""
    return "disk_burst_exhausted" if state.spent else "disk_cap"


def ignored(measures: DiskMeasures, state: DiskState) -> bool:
    """Whether the server reports that hardly any operation waits for the disk, so that other work uses it."""
    asked = measures.sessions is not None or measures.log_waits is not None
    return asked and state.wait_ratio is not None and state.wait_ratio < HARDLY_WAITED_FOR.value


def not_waited_for(resource: Resource, measures: DiskMeasures) -> bool:
    """Whether the disk mostly gets writes to data files, which are asynchronous (docs/rules.md).

    Such a disk counts only if operations wait for it.
    """
    only_data = all(role.role == "data" for role in resource.roles) and not resource.commit_path
    return only_data and (measures.reads_ratio is None or measures.reads_ratio < 1 / 2)
