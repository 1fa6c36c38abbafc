"""Disks as a kind of resource: a device, all disks of a machine together, or a disk counted by a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from pinchpoint.analysis.flows import Flows, in_flight
from pinchpoint.analysis.resources.base import (
    Context,
    DiskMeasures,
    Least,
    LimitMode,
    Resource,
    ResourceKind,
    Resources,
    Suspicion,
    busy,
    waits_for,
)
from pinchpoint.analysis.resources.disk.advice import about_disk, measure_it
from pinchpoint.analysis.resources.disk.classify import disk_state, fell, ignored, judge_disk, not_waited_for
from pinchpoint.analysis.resources.disk.devices import find_disks
from pinchpoint.analysis.resources.disk.facts import (
    disk_facts,
    disk_witnesses,
    held_words,
    room_fact,
    share_words,
    shift_words,
    standing_fact,
)
from pinchpoint.analysis.resources.disk.machines import find_machine_disks
from pinchpoint.analysis.resources.disk.measures import (
    MINOR_SHARE,
    is_slow,
    kind_unknown,
    measure_disk,
    write_and_flush_s,
)
from pinchpoint.analysis.resources.disk.rate_response import COUNT_ERROR
from pinchpoint.analysis.resources.disk.types import limits_words
from pinchpoint.analysis.resources.disk.waits import most_waited
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.stations import MOST
from pinchpoint.analysis.thresholds import (
    DISK_OCCUPIED,
    HARDLY_WAITED_FOR,
    LARGE_IO_BYTES,
    MOSTLY_READS,
    NO_LATENCY_S,
    OWN_USE,
    REGULATOR_FLAT,
    STEADIER,
    UTILISATION,
    WAIT_SHARE,
    at_least,
    exceeds,
)
from pinchpoint.analysis.verdict import Advice, Bottleneck, Fact, Kind, Next
from pinchpoint.base import units
from pinchpoint.base.wording import listed
from pinchpoint.data.curve import expected_s
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.series import mean, spread

HALF = 0.5
SLOW_RANK = 0.9
"""Nearness of a disk that is slower than its role's limit: it ranks before disks with room."""
ONE_SESSION = 0.5
"""Mean number of I/Os in progress from which at least one is nearly always in progress."""
SLOWER = 2.0
"""A disk is slower than its probe from this multiple of the probed latency (our value)."""


class Disk(ResourceKind[DiskMeasures]):
    """Disks as a kind of resource; ``classify`` finds the kind of limit."""

    type = "disk"
    kind = "disk_cap"
    limit_modes: Mapping[Kind, LimitMode] = {
        "disk": "time",
        "disk_cap": "use",
        "disk_device": "rate",
        "disk_burst_exhausted": "rate",
        "disk_warm_up": "time",
        "disk_concurrency": "time",
        "disk_latency": "time",
    }
    candidate = "disk_latency"
    nearest = True
    delays_cpu = True
    own_series = True
    full_now = maybe_full = Least("busy", DISK_OCCUPIED)
    short = "the {role} disk of {tier}"
    placed = "the {role} disk of {tier}"
    waiting = ("outstanding I/Os", "disk.outstanding", units.count)
    measure = staticmethod(measure_disk)
    judge = staticmethod(judge_disk)
    facts = staticmethod(disk_facts)
    witnesses = staticmethod(disk_witnesses)
    standing = staticmethod(standing_fact)
    advise = staticmethod(about_disk)

    def discover(self, inputs: Inputs, flows: Flows, disks: Resources) -> Iterator[Resource]:
        """Disks with a role, and all disks of each machine whose caps are known."""
        own = [replace(disk, even=_evenly_asked(disk, flows)) for disk in find_disks(inputs)]
        yield from own
        yield from find_machine_disks(inputs, own)

    def clearly_unsuspected(self, resource: Resource, rows: Rows, flows: Flows) -> bool:
        """Whether the rate is steady, the disk often idle, and no scenario waits for it half of its time."""
        used = busy(resource, rows)
        often_idle = used is not None and used < WAIT_SHARE.value and resource.shift is None
        return often_idle and most_waited(resource, rows, flows) < WAIT_SHARE.value

    def innocent(self, resource: Resource, measures: DiskMeasures, flows: Flows) -> Suspicion:
        """A suspicion without evidence, with the state of the disk."""
        return replace(
            super().innocent(resource, measures, flows), disk=disk_state(resource, measures, flows)
        )

    def load_use(self, resource: Resource, measures: DiskMeasures, *, in_steps: bool) -> float | None:
        """Utilisation by the load; None if the database reports that hardly any session waits for it."""
        return None if _read_by_others(measures) else measures.use

    def room(self, suspicion: Suspicion, measures: DiskMeasures) -> Fact:
        """How near an unsaturated disk is to its limit, if a limit is known."""
        return room_fact(suspicion.resource, measures)

    def nearness(self, resource: Resource, measures: DiskMeasures) -> float:
        """How near the disk is to its declared limit. A slow disk ranks before disks that have room.

        Without a known limit, the smaller of I/O pressure and busy ratio counts: pressure is that of all
        disks together, and no operation waits for an idle disk.
        """
        if is_slow(resource, measures) and not not_waited_for(resource, measures):
            return SLOW_RANK
        if measures.use is not None:
            return min(1.0, measures.use)
        return min(measures.pressure or 0.0, 1.0 if measures.busy is None else measures.busy)

    def left(self, suspicion: Suspicion, measures: DiskMeasures) -> float | None:
        """The rate since burst credits ran out ÷ the mean rate; None if they did not run out."""
        shift = suspicion.resource.shift
        if suspicion.kind != "disk_burst_exhausted" or shift is None or not fell(shift):
            return None
        usual = measures.io if shift.of == "io" else measures.bytes
        return min(1.0, shift.after / usual) if usual else None

    def used_share(self, suspicion: Suspicion, measures: DiskMeasures) -> float | None:
        """Utilisation of the declared limit; None if the declaration is wrong or another limit applies."""
        return None if suspicion.contradicted or measures.held else measures.utilisation

    def waited_share(self, suspicion: Suspicion, measures: DiskMeasures, working: float) -> tuple[float, str]:
        """(share of the users' time spent waiting for the disk, in words)."""
        return waits_for(suspicion.disk.wait_ratio if suspicion.disk is not None else None, working)

    def explained(self, suspicion: Suspicion, suspicions: Iterable[Suspicion]) -> bool:
        """Whether the disk's evidence comes from the cap of its machine for all disks."""
        if suspicion.resource.whole is not None or suspicion.exact:
            return False
        machines = (other for other in suspicions if other.resource.whole is not None and other.exact)
        return any(other.resource.machine == suspicion.resource.machine for other in machines)

    def confidence_limits(
        self, suspicion: Suspicion, measures: DiskMeasures, context: Context
    ) -> Iterator[str]:
        """Sentences about other causes that would give the same figures."""
        resource = suspicion.resource
        if suspicion.kind == "disk":
            yield f"how it limits is not known: {kind_unknown(resource, context.rows).why}"
        if suspicion.contradicted:
            yield "the measurement contradicts the declared limit of the disk"
        if suspicion.not_waited_for:
            yield _unwaited(suspicion, measures)
        yield from _more_readers(suspicion, measures, context.flows)
        yield from _ambiguous(suspicion, measures)
        if len(resource.roles) > 1 and resource.whole is None:
            roles = ", ".join(f"{role.tier}.{role.role}" for role in resource.roles)
            yield f"one device serves several roles ({roles}): which role causes the I/O is not known"

    def beside(self, resource: Resource, first: Suspicion, context: Context) -> Iterator[str]:
        """A sentence if the disk may share a limit with another disk."""
        if first.resource.type == self.type:
            yield from _shared_limit(first.resource, resource, context.rows)

    def advise_on(self, suspect: Bottleneck, inputs: Inputs) -> Iterator[Advice]:
        """Advice to measure the limits of the disk, if none are declared."""
        place = (suspect.host, suspect.instance)
        role = next((disk for disk in inputs.disks if (disk.host, disk.device) == place), None)
        if role is not None and role.limits is None:
            yield measure_it(suspect.kind, f"{role.tier}.{role.role}", role.role)

    def deeper(self, resource: Resource, rows: Rows) -> str:
        """Utilisation of the declared limit in words, if it is high; else ""."""
        used = self.measure(resource, rows).utilisation
        if not at_least(used, OWN_USE):
            return ""
        whose = resource.whole or f"the {resource.role} disk of {resource.hosts[0]}"
        return f"{whose} is at {units.percent(used)} of its declared limit"

    def experiment(self, suspicion: Suspicion, rows: Rows) -> str:
        """An experiment that would show how the disk limits; "" if that is known."""
        return kind_unknown(suspicion.resource, rows).experiment if suspicion.kind == "disk" else ""

    def room_unknown(self, resource: Resource, rows: Rows, times: float) -> str:
        """The disk and the reason, if its limit is unknown and the disk would hardly idle; else ""."""
        if not resource.is_device or resource.limits is not None:
            return ""
        used = busy(resource, rows)
        if used is not None and used * times < DISK_OCCUPIED.value:
            return ""
        why = units.NOT_MEASURED if used is None else "its limit is not known"
        return f"the {resource.role} disk of {resource.roles[0].host} ({why})"

    def caveats(self, resource: Resource, rows: Rows) -> Iterator[str]:
        """Sentences if the disks exceed the machine's declared limit, or a disk is slower than its probe."""
        if resource.whole is not None:
            yield from _more_than_declared(resource, self.measure(resource, rows))
        elif resource.roles and resource.roles[0].curve:
            yield from _slower_than_probed(resource, self.measure(resource, rows))

    def owner(self, resource: Resource, measures: DiskMeasures) -> tuple[str | None, str | None]:
        """The tier and host of the disk's first role."""
        if resource.roles:
            return resource.roles[0].tier, resource.roles[0].host
        return super().owner(resource, measures)

    def name(self, resource: Resource, measures: DiskMeasures) -> str:
        """Name in plain words, such as ``the log disk of the sql tier (sql1, sdb)``."""
        tier, host = self.owner(resource, measures)
        if resource.whole:
            return f"the limit of the machine {host} for all its disks together ({resource.instance})"
        return f"the {resource.role} disk of the {tier} tier ({host}, {resource.instance})"

    def short_name(self, resource: Resource, measures: DiskMeasures) -> str:
        """Name of the disk in advice; for all disks of a machine together, the name of the machine."""
        if resource.whole is None:
            return super().short_name(resource, measures)
        limits = resource.limits
        caps = limits_words(limits.iops, limits.bytes_per_s) if limits else ""
        return f"the machine {resource.hosts[0]} ({resource.instance}: {caps} for all its disks)"

    def placed_of(self, one: Bottleneck | Next) -> str:
        """Name of the disk in a list; for all disks of a machine together, the name of the host."""
        if one.role is None:
            return f"all disks of {one.host} together ({one.instance})"
        return super().placed_of(one)

    def proof(self, suspicion: Suspicion, measures: DiskMeasures) -> str:
        """The figure that shows how the disk limits, in words."""
        whole = suspicion.resource.whole is not None
        others = [] if whole else [f"{role.tier} {role.role}" for role in suspicion.resource.roles[1:]]
        also = f" (the device also serves {listed(others)})" if others else ""
        way = "read" if (measures.reads_ratio or 0.0) > HALF else "write"
        each = units.seconds(
            measures.read_s if way == "read" else write_and_flush_s(suspicion.resource, measures)
        )
        state = suspicion.disk
        waits = f"{units.percent(state.wait_ratio)} of the time of {state.waiting}" if state else ""
        cap = held_words(suspicion.resource, measures)
        if state is not None and state.near_cap:
            limits = "declared limit" if suspicion.resource.baseline is None else "burst's limit"
            limits = "limit" if whole else limits
            cap = share_words(measures, f"its {limits}")
        moved = state is not None and (state.fell or state.rose)
        its = f"the disk's {shift_words(suspicion.resource)}" if moved else ""
        rate = units.per_second(measures.io)
        unknown = measures.utilisation is None and measures.responses["io"].slope is None
        below = "the disk may be at a limit that was not declared" if unknown else _BELOW
        proofs = {
            "disk": f"{cap if state is not None and state.near_cap else f'a {way} takes {each}'}, {waits}",
            "disk_cap": cap,
            "disk_burst_exhausted": f"{its or cap}: burst credits ran out",
            "disk_warm_up": f"{its}: the disk was still warming up",
            "disk_device": f"the disk does {rate}, {each} a {way}{_no_more(measures)}",
            "disk_concurrency": f"reads take {waits}: too few are issued at the same time"
            "; the disk could do more",
            "disk_latency": f"each {way} takes {each}, {waits}; {below}",
        }
        return proofs[suspicion.kind] + also

    def relief(self, resource: Resource) -> str:
        """The change that would relieve the disk, in words."""
        return "use a larger machine" if resource.whole else "put it on a faster disk"


_BELOW = "the disk is below its IOPS and bandwidth limits"


def _read_by_others(measures: DiskMeasures) -> bool:
    """Whether other work reads the disk: the database reports that hardly any session waits for its reads."""
    if measures.sessions is None or not at_least(measures.reads_ratio, MOSTLY_READS):
        return False
    reading = (measures.io or 0.0) * (measures.reads_ratio or 0.0) * (measures.read_s or 0.0)
    return reading >= ONE_SESSION and measures.sessions < HARDLY_WAITED_FOR.value * reading


def _shared_limit(first: Resource, other: Resource, rows: Rows) -> Iterator[str]:
    """A sentence if only the sum of two disks is as constant as under a cap.

    Disks with an evenly scheduled load are left out: the schedule alone makes their sum constant.
    """
    if first.whole is not None or other.whole is not None or first.even or other.even:
        return
    own, its = ((disk.columns["reads"] + disk.columns["writes"])[rows] for disk in (first, other))
    part, whole, flat = mean(its), mean(own + its), spread(own + its)
    alone = [one for one in (spread(own), spread(its)) if one is not None]
    if not part or not whole or part < MINOR_SHARE * whole or flat is None or len(alone) < 2:
        return
    if flat <= REGULATOR_FLAT.value and min(alone) >= STEADIER.value * flat:
        yield (
            f"the sum of its rate and that of the {other.role} disk of {other.hosts[0]} is constant at "
            f"{units.per_second(whole)}, but neither rate alone is: they may share a limit"
        )


def _more_than_declared(resource: Resource, measures: DiskMeasures) -> Iterator[str]:
    """A sentence if the disks of a machine exceed the machine's limit that farm.yaml declares."""
    if resource.limits is None or not exceeds(measures.utilisation):
        return
    done = limits_words(measures.io, measures.bytes)
    caps = limits_words(resource.limits.iops, resource.limits.bytes_per_s)
    yield (
        f"{resource.hosts[0]}: its disks did {done} together, more than {resource.instance} does ({caps}): "
        "correct its machine in farm.yaml, or how its disks are attached"
    )


def _slower_than_probed(resource: Resource, measures: DiskMeasures) -> Iterator[str]:
    """A sentence if an I/O takes far longer than in a probe of the same disk at the same queue depth."""
    if not measures.io or measures.outstanding is None:
        return
    each_s = measures.outstanding / measures.io
    expected = expected_s(resource.roles[0].curve, measures.outstanding)
    small = measures.size_bytes is None or measures.size_bytes <= LARGE_IO_BYTES.value
    if expected is not None and small and each_s > max(SLOWER * expected, NO_LATENCY_S.value):
        yield (
            f"{resource.roles[0].tier}.{resource.role}: an I/O takes {units.seconds(each_s)} with "
            f"{measures.outstanding:.2g} outstanding, where the probe in farm.yaml found "
            f"{units.seconds(expected)}: other load uses the disk, or the disk changed"
        )


def _evenly_asked(disk: Resource, flows: Flows) -> bool:
    """Whether all load of the disk's tiers follows an even schedule."""
    there = [flow for flow in flows if any(flow.share(tier) for tier in disk.tiers)]
    return bool(there) and all(flow.even for flow in there)


def _no_more(measures: DiskMeasures) -> str:
    """Words about the rate at other queue depths, as far as it was measured."""
    if measures.responses["io"].stays or measures.outstanding is None:
        return " at any queue depth"
    return f" with {units.count(measures.outstanding)} I/Os outstanding; the rate varies, unlike under a cap"


def _unwaited(first: Suspicion, measures: DiskMeasures) -> str:
    """Why a full disk is only a candidate, in words."""
    if first.disk is not None and ignored(measures, first.disk):
        return "its server reports almost no waits for it"
    return "writes to data files are mostly asynchronous: no work was seen to wait for them"


def _ambiguous(first: Suspicion, measures: DiskMeasures) -> Iterator[str]:
    """Sentences about other causes of the same I/O, so that the kind of limit is uncertain."""
    io = measures.responses["io"]
    if first.kind in {"disk_latency", "disk_concurrency", "disk_device"} and io.slope is None:
        yield "the queue depth did not change, so a cap of the disk cannot be excluded"
    if first.kind != "disk_cap":
        return
    held, declared = measures.responses[measures.binding], first.disk is not None and first.disk.near_cap
    few = REGULATOR_FLAT.value * held.count < COUNT_ERROR
    if not declared and held.flat and not held.any_size and (few or held.irregular):
        yield "a plain device can also be this steady, at few I/Os a second or at many slow ones"
    if not declared and held.by_large:
        yield "only larger I/Os, slower on any disk, show that a deeper queue does not raise the rate"
    if (
        declared
        and measures.held is None
        and not at_least(measures.utilisation, UTILISATION)
        and not held.queued
    ):
        yield "it is near its declared limit only while it has I/O to do, so slow I/Os cannot be excluded"
    taken = write_and_flush_s(first.resource, measures)
    if not first.exact and not io.queued and not at_least(taken, NO_LATENCY_S):
        yield "I/Os were issued one at a time, so their duration cannot be excluded as the limit"


def _more_readers(first: Suspicion, measures: DiskMeasures, flows: Flows) -> Iterator[str]:
    """A sentence if more reads than operations are in flight, on a disk whose waits are not reported."""
    if measures.sessions is not None or measures.log_waits is not None:
        return
    reads = (measures.io or 0.0) * (measures.reads_ratio or 0.0) * (measures.read_s or 0.0)
    there = in_flight(flows, *first.resource.tiers)
    if at_least(measures.reads_ratio, MOSTLY_READS) and there and reads > MOST * there:
        yield (
            f"{reads:.2g} reads, but only {there:.2g} operations, are in flight: other work or read-ahead "
            "reads"
        )
