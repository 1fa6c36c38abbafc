"""The parts of a farm that a user can change: disks, cores, machines, interfaces, threads, waits.

Each becomes a station of the model (``network.py``); what a setting changes is a field here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pinchpoint.analysis.model.network import Commit, Queue, Station
from pinchpoint.data.curve import Curve
from pinchpoint.data.inputs import Limits

UNQUEUED_S = 0.001
"""The time of an I/O without a queue, assumed for a disk that was measured only at its limit.

It is the round trip to networked storage (a P10's at queue depth 1); ``sql.log.latency`` sets another value.
"""

MOST_OF_OTHERS = 0.5
"""Other processes use idle cores; a fair scheduler leaves them half of contended cores."""

ByScenario = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class DiskPart:
    """A disk that operations wait for, or may wait for after a change.

    Attributes:
        key: the resource's.
        name: in words.
        target: ``sql.log``.
        host: its host.
        profile: its declared catalogue entry; None without one.
        stripes: number of striped disks.
        attached: the machine's limit that its I/O counts against.
        caps: its limits.
        io: by scenario, I/Os per operation.
        bytes: by scenario, bytes per operation.
        others_io: I/Os per second that do not depend on the load.
        others_bytes: their bytes per second.
        each_s: time of a waited-for I/O without a queue; None if not measured.
        seen_s: measured time of an I/O.
        waits: by scenario, number of consecutive I/Os that an operation waits for; empty: none.
        waited_s: by scenario, an operation's measured wait for it, including its queue.
        commits: for a log, commits per operation by scenario; empty for other disks.
        writes_per_flush: for a log, number of consecutive writes in a flush.
        writes_beside: for a log, writes per flush that the flush does not wait for; a cap counts them.
        flush_more_s: for a log, a flush's time besides its writes: the server's own overhead.
        write_bytes: for a log, the size of a write.
        bursts: for a log, whether its cap lets I/Os through at full speed for a while, and then none.
        curve: time of an I/O at this number of outstanding ones, if a probe measured it; else ``each_s``.
        at_limit: whether it was measured only at a limit, so that its latency includes a queue.
        assumed: whether ``each_s`` is an assumption, because no probe measured it (``limits.latency`` in
            farm.yaml).
        seen: whether its cap is not declared but was measured, in I/Os or bytes.
        queued: whether I/O waits behind I/O without a known cap: the measured time may be latency or
            queueing.
        small: whether consecutive writes fall within one stripe.
        at_once: whether all users wait for one batch (an index commit), so that each of its I/Os takes the
            spacing of the cap, or ``each_s`` if longer.
        unseen: why it cannot be changed, although its cap limits throughput; "": it can.
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
        """Time of a waited-for I/O without the queue of a cap."""
        each_s, io = self.each_s or 0.0, self.io.get(scenario, 0.0)
        if not self.at_once or not io:
            return each_s
        return max(each_s, self.caps.share(1.0, self.bytes[scenario] / io))


@dataclass(frozen=True, slots=True)
class CoresPart:
    """Cores of one or several tiers, or one tier's allowance of them.

    Attributes:
        key: the resource's.
        name: in words.
        tiers: the tiers that use them.
        host: the first host with them.
        cores: how many.
        cpu_s: by scenario, CPU seconds per operation.
        waited: share of the CPU time for which operations wait here: a tier with an allowance waits there.
        others_ratio: share of the cores that other processes use.
        allowance: whether this is one tier's allowance of shared cores.
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
        key: the resource's.
        name: in words.
        machine: type of the machine for a machine's limits; else None.
        hosts: the hosts with it.
        tiers: the tiers that use it.
        demand_s: by scenario, an operation's demand (share x seconds).
        caps: a machine's limits; None otherwise.
        io: of a machine, by scenario, I/Os per operation.
        bytes: of a machine, by scenario, bytes per operation.
        target: its name in settings, for an interface or a thread that limits: ``sql.network``; else "".
        size: its capacity: bytes per second of an interface, 1 for a thread.
        assumes: the assumption behind more capacity.
        waited_s: by scenario, an operation's wait for it while it limits.
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
        """The same limit at another size."""
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
    """A wait without a queue in the model: a system outside of the farm, or a lock.

    Attributes:
        key: the resource's.
        name: in words.
        target: its name in settings: ``web.delay``, ``sql.lock``.
        each_s: time of one wait.
        waits: by scenario, waits per operation.
        assumes: the assumption behind a shorter wait.
    """

    key: str
    name: str
    target: str
    each_s: float
    waits: ByScenario
    assumes: str

    @property
    def waited_s(self) -> ByScenario:
        """The time that an operation of each scenario waits for it."""
        return {name: count * self.each_s for name, count in self.waits.items()}

    def stations(self) -> Iterator[Station]:
        """This part as a station of the model."""
        yield Queue(self.key, {}, delay_s=self.waited_s)


Part = DiskPart | CoresPart | Bound | Wait
