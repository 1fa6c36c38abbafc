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

It is the round trip to networked storage (a P10's at queue depth 1); ``sql.log.latency`` sets another.
"""

MOST_OF_OTHERS = 0.5
"""Other processes use idle cores; of contended cores a fair scheduler leaves them half."""

ByScenario = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class DiskPart:
    """A disk that operations wait for, or may come to wait for.

    Attributes:
        key: the resource's.
        name: in words.
        target: ``sql.log``.
        host: its host.
        profile: the entry of the catalogue it is declared to be; None if none is.
        stripes: how many of that are striped.
        attached: which of its machine's caps its I/O counts to.
        caps: what it lets through.
        io: by scenario, I/Os per operation.
        bytes: by scenario, bytes per operation.
        others_io: I/Os per second that come whatever the load.
        others_bytes: their bytes per second.
        each_s: how long one of the I/Os that are waited for takes when no other waits before it; None where
            that was not measured.
        seen_s: how long one took.
        waits: by scenario, how many of them an operation waits for, one after the other; empty: none.
        waited_s: by scenario, how long an operation was seen to wait for it, its queue included.
        commits: for a log, commits per operation by scenario; empty for other disks.
        writes_per_flush: of a log, how many writes come one after the other in a flush.
        writes_beside: of a log, writes for each flush that it does not wait for; a cap counts them.
        flush_more_s: of a log, what a flush takes beside its writes: the server's own way there and back.
        write_bytes: of a log, the size of one.
        bursts: of a log, whether its cap lets I/Os through as fast as they come for a while, and then none.
        curve: what one of the I/Os takes with this many outstanding, where a probe found it; else ``each_s``.
        at_limit: it was seen only at a limit, so that what was seen of its latency is that of a queue.
        assumed: ``each_s`` had to be assumed: no probe found it (``limits.latency`` in farm.yaml).
        seen: its cap is not declared: it was seen to end there, by I/Os or by bytes.
        queued: I/O waits behind I/O, and no cap is known: what was seen may be latency, or a queue's time.
        small: its writes follow each other within one stripe.
        at_once: what is waited for is one batch for all (an index commit), so that each I/O of it takes what
            the cap lets through in between, or ``each_s`` where that is longer.
        unseen: why it cannot be changed, though what it lets through ends throughput; "": it can.
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
        """How long one of the I/Os takes that are waited for without the queue of a cap."""
        each_s, io = self.each_s or 0.0, self.io.get(scenario, 0.0)
        if not self.at_once or not io:
            return each_s
        return max(each_s, self.caps.share(1.0, self.bytes[scenario] / io))


@dataclass(frozen=True, slots=True)
class CoresPart:
    """Cores that one or several tiers use, or what one tier is allowed of them.

    Attributes:
        key: the resource's.
        name: in words.
        tiers: those that use it.
        host: the first that has it.
        cores: how many.
        cpu_s: by scenario, CPU seconds per operation.
        waited: of that the share that is waited for here: a tier with an allowance waits there.
        others_ratio: of the cores is used by others than the tiers.
        allowance: it is what one tier may use of cores that others use, too.
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
    """A limit on throughput without a queue before it: a machine's caps, an interface, one thread.

    Attributes:
        key: the resource's.
        name: in words.
        machine: of a machine's caps, its type; else None.
        hosts: those that have it.
        tiers: those that use it.
        demand_s: by scenario, the share of it times seconds that an operation takes.
        caps: of a machine; None of anything else.
        io: of a machine, by scenario, I/Os per operation.
        bytes: of a machine, by scenario, bytes per operation.
        target: what a setting calls it, of an interface or a thread that limits: ``sql.network``; else "".
        size: how much of it there is: bytes per second of an interface, 1 of a thread.
        assumes: what more of it takes for granted.
        waited_s: by scenario, how long an operation waits for it while it limits.
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
        target: what a setting calls it: ``web.delay``, ``sql.lock``.
        each_s: how long one wait takes.
        waits: by scenario, waits per operation.
        assumes: what a shorter one takes for granted.
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
