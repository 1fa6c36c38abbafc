"""The parts of a farm that a user can change: disks, cores, machines, interfaces, threads, waits.

Each part becomes a station of the model (``network.py``). A setting changes the fields of a part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pinchpoint.analysis.model.network import Commit, Queue, Station
from pinchpoint.data.curve import Curve
from pinchpoint.data.inputs import Limits

UNQUEUED_S = 0.001
"""Seconds of an I/O without a queue, assumed for a disk that was measured only at its limit.

The value is the round trip to networked storage (a P10 at queue depth 1); ``sql.log.latency`` sets another
value.
"""

MOST_OF_OTHERS = 0.5
"""Maximum share of cores that other processes keep: a fair scheduler leaves them half of contended cores.
Other processes use idle cores freely."""

ByScenario = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class DiskPart:
    """A disk that operations wait for, or may wait for after a change.

    Attributes:
        key: key of the resource.
        name: name of the disk, in words.
        target: name in settings, such as ``sql.log``.
        host: name of the disk's host.
        profile: catalogue entry of the disk type; None without one.
        stripes: number of striped disks.
        attached: the machine limit that counts the I/O of the disk.
        caps: limits of the disk in I/Os and bytes per second.
        io: by scenario, I/Os per operation.
        bytes: by scenario, bytes per operation.
        others_io: I/Os per second that do not depend on the load.
        others_bytes: bytes per second that do not depend on the load.
        each_s: seconds per waited-for I/O without a queue; None if not measured.
        seen_s: measured seconds per waited-for I/O; None if not measured.
        waits: by scenario, number of consecutive I/Os that an operation waits for; empty: none.
        waited_s: by scenario, measured seconds that an operation waits for the disk, including its queue.
        commits: for a log, commits per operation by scenario; empty for other disks.
        writes_per_flush: for a log, number of consecutive writes in a flush.
        writes_beside: for a log, writes per flush that the flush does not wait for, but that the cap counts.
        flush_more_s: for a log, seconds of a flush besides its writes: the overhead of the server.
        write_bytes: for a log, bytes per write.
        bursts: for a log, whether the cap lets I/Os through at full speed for a while, and then none.
        curve: time of an I/O by the number of outstanding I/Os, if a probe measured it; None: ``each_s``
            applies.
        at_limit: whether the disk was measured only at a limit, so that its latency includes a queue.
        assumed: whether ``each_s`` is an assumption, because no probe measured it (``limits.latency`` in
            farm.yaml).
        seen: whether the cap was measured, in I/Os or bytes, and not declared.
        queued: whether I/Os queue without a known cap, so that the measured time may be latency or queue
            time.
        small: whether consecutive writes fall within one stripe.
        at_once: whether all users wait for one batch (an index commit). Each I/O of the batch takes the
            spacing of the cap, or ``each_s`` if longer.
        unseen: why a change of the disk cannot be predicted, although its cap limits throughput; else "".
    """

    key: str
    name: str
    target: str
    host: str
    profile: str | None
    stripes: int
    attached: str
    caps: Limits
    io: ByScenario
    bytes: ByScenario
    each_s: float | None
    seen_s: float | None
    waits: ByScenario
    waited_s: ByScenario
    commits: ByScenario
    writes_per_flush: float = 0.0
    writes_beside: float = 0.0
    flush_more_s: float = 0.0
    write_bytes: float = 0.0
    bursts: bool = False
    curve: Curve | None = None
    at_limit: bool = False
    assumed: bool = False
    seen: bool = False
    queued: bool = False
    small: bool = False
    at_once: bool = False
    unseen: str = ""
    others_io: float = 0.0
    others_bytes: float = 0.0

    def stations(self) -> Iterator[Station]:
        """This part as stations of the model."""
        if self.commits:
            flush_s = self.writes_per_flush * (self.each_s or 0.0) + self.flush_more_s
            counted = self.writes_per_flush + self.writes_beside
            pace_s = counted * self.caps.share(1.0, self.write_bytes)
            yield Commit(self.key, flush_s, self.commits, pace_s, self.bursts)
            return
        demand = {name: self.caps.share(self.io[name], self.bytes[name]) for name in self.io}
        queued = () if self.at_once else self.waits
        yield Queue(
            self.key,
            demand,
            stay_s={name: demand[name] if name in queued else 0.0 for name in demand},
            delay_s={name: count * self._each_s(name) for name, count in self.waits.items()},
            curve=self.curve,
            io=self.io,
            waits=self.waits,
            regulated=True,
            base_ratio=self.caps.share(self.others_io, self.others_bytes),
        )

    def _each_s(self, scenario: str) -> float:
        """Seconds per waited-for I/O of a scenario, without the queue of a cap."""
        each_s, io = self.each_s or 0.0, self.io.get(scenario, 0.0)
        if not self.at_once or not io:
            return each_s
        return max(each_s, self.caps.share(1.0, self.bytes[scenario] / io))


@dataclass(frozen=True, slots=True)
class CoresPart:
    """Cores of one or several tiers, or the CPU allowance of one tier.

    Attributes:
        key: key of the resource.
        name: name of the cores, in words.
        tiers: the tiers that use the cores.
        host: name of the first host with the cores.
        cores: number of cores.
        cpu_s: by scenario, CPU seconds per operation.
        waited: by scenario, share of the CPU time for which operations wait here; a tier with an allowance
            waits there instead.
        others_ratio: share of the cores that other processes use.
        allowance: whether the cores are the allowance of one tier in a shared pool.
    """

    key: str
    name: str
    tiers: tuple[str, ...]
    host: str
    cores: float
    cpu_s: ByScenario
    waited: ByScenario
    others_ratio: float = 0.0
    allowance: bool = False

    def stations(self) -> Iterator[Station]:
        """This part as a station of the model."""
        base_ratio = min(self.others_ratio, MOST_OF_OTHERS)
        stay = {name: each * self.waited.get(name, 1.0) for name, each in self.cpu_s.items()}
        yield Queue(self.key, self.cpu_s, stay, servers=self.cores, base_ratio=base_ratio)


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit on throughput without a queue: a machine's limits, an interface, one thread.

    Attributes:
        key: key of the resource.
        name: name of the resource, in words.
        machine: machine type, for the limits of a machine; else None.
        hosts: names of the hosts with this limit.
        tiers: the tiers that use the resource.
        demand_s: by scenario, seconds of full use that one operation needs.
        caps: limits of a machine; None for other resources.
        io: for a machine, I/Os per operation by scenario.
        bytes: for a machine, bytes per operation by scenario.
        target: name in settings (``sql.network``) of a limiting interface or thread; else "".
        size: capacity: bytes per second of an interface, 1 for a thread.
        assumes: the assumption behind a higher capacity, as a sentence.
        waited_s: by scenario, seconds that an operation waits for the resource while it limits throughput.
    """

    key: str
    name: str
    machine: str | None
    hosts: tuple[str, ...]
    tiers: tuple[str, ...]
    demand_s: ByScenario
    caps: Limits | None = None
    io: ByScenario | None = None
    bytes: ByScenario | None = None
    target: str = ""
    size: float | None = None
    assumes: str = ""
    waited_s: ByScenario = field(default_factory=dict)

    def sized(self, size: float) -> Bound:
        """The same limit with another capacity."""
        less = (self.size or size) / size
        return replace(self, size=size, demand_s={name: each * less for name, each in self.demand_s.items()})

    def stations(self) -> Iterator[Station]:
        """This part as a station of the model."""
        demand = self.demand_s
        if self.caps is not None and self.io is not None and self.bytes is not None:
            demand = {name: self.caps.share(self.io[name], self.bytes[name]) for name in self.io}
        yield Queue(self.key, demand, regulated=True)


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait without a queue in the model: for a system outside of the farm, or for a lock.

    Attributes:
        key: key of the resource.
        name: name of the resource, in words.
        target: name in settings, such as ``web.delay`` or ``sql.lock``.
        each_s: seconds per wait.
        waits: by scenario, waits per operation.
        assumes: the assumption behind a shorter wait, as a sentence.
    """

    key: str
    name: str
    target: str
    each_s: float
    waits: ByScenario
    assumes: str

    @property
    def waited_s(self) -> ByScenario:
        """By scenario, seconds that an operation waits."""
        return {name: count * self.each_s for name, count in self.waits.items()}

    def stations(self) -> Iterator[Station]:
        """This part as a station of the model."""
        yield Queue(self.key, {}, delay_s=self.waited_s)


Part = DiskPart | CoresPart | Bound | Wait
