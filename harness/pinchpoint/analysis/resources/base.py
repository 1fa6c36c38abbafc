"""Something with a limit, as columns of what was measured about it; what each kind of it answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar

from pinchpoint.analysis.flows import Flows
from pinchpoint.analysis.resources.disk.rate_response import RateResponse
from pinchpoint.analysis.resources.disk.service_time import ServiceTimeModel
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import UTILISATION, WAIT_SHARE, Threshold, at_least
from pinchpoint.analysis.verdict import Advice, Bottleneck, Fact, Kind, Next
from pinchpoint.base import units
from pinchpoint.data.inputs import DiskRole, Host, Inputs, Limits
from pinchpoint.data.series import Floats, Key, mean

if TYPE_CHECKING:
    from pinchpoint.analysis.advice_inputs import AdviceInputs

GENERATOR = "generator"
"""Among the tiers that use a pool of cores, the load generators."""
USE = "use:"
"""How the columns of a pool of cores begin with how much of it a tier, or ``GENERATOR``, uses."""

ResourceType = Literal[
    "cpu", "allowance", "thread", "disk", "dependency", "lock", "memory", "network", "pool"
]


@dataclass(frozen=True, slots=True)
class DiskShift:
    """A disk's rate and outstanding I/Os before and after a change of level.

    Attributes:
        of: ``io`` or ``bytes``.
        spread: of the rate after the change.
        busy_before: share of the time with I/O in progress; 1 if not measured.
        busy_after: likewise.
        usual_mix_before: the rate in the seconds with the usual mix of reads and writes; None if there are
            too few of those.
        usual_mix_after: likewise.
        other_before: the other of ``io`` and ``bytes``; 0 if it was not measured.
        other_after: likewise.
    """

    of: Literal["io", "bytes"]
    before: float
    after: float
    spread: float | None
    outstanding_before: float
    outstanding_after: float
    busy_before: float
    busy_after: float
    usual_mix_before: float | None
    usual_mix_after: float | None
    other_before: float
    other_after: float


@dataclass(frozen=True, slots=True)
class Resource:
    """Something with a limit.

    Attributes:
        key: unique in the run.
        type: ``cpu`` a pool of cores, ``allowance`` a tier's own share of cores, ``thread``, ``disk``,
            ``dependency`` what users wait for outside of what is watched, ``lock`` a database's locks,
            ``memory`` of a tier or a machine, ``network`` an interface, ``pool`` a server's connections.
        machine: where it is.
        hosts: the hosts that use it, the reporting one first: one for each tier; then
            the others.
        tiers: the tiers that use it, in the same order.
        instance: cores ("0,1"), thread name, device, source or endpoint, kind of lock, interface.
        cores: how many cores a pool has; None if that is not known.
        roles: a device's roles, the first as in ``ROLE_ORDER``.
        limits: the declared caps, None where withheld; of what lives on burst credits its burst's.
        baseline: the declared caps without burst credits, of a disk with credits; else None.
        commit_path: whether commits wait for this device: it holds a log, or the data of a tier without one.
        even: whether a disk is asked in an even schedule that was kept: its rate is flat by that alone.
        shift: how a disk's I/O, or else its bytes, changed its level in the window; None if it did not.
        service_time: what a disk's time goes with, over all load levels where there are several; None where
            unknown.
        responses: how a disk's I/O (``io``) and ``bytes`` move when what is outstanding does
            (``measures.settle``).
        whole: of all disks of a machine together, the machine's type; None for one device.
        scenario: whose users wait for a dependency.
        step_s: seconds that a disk's value of a step covers: a step's, or those between two readings.
        columns: one value per step of the window, NaN = not measured.
        views: the series on which rests what the server itself says of it (``stores``); of an interface that
            of its fuller direction.
        reported_by: of a disk that is not measured, metric -> the database's series of it (``managed``).
    """

    key: str
    type: ResourceType
    machine: str
    hosts: tuple[str, ...]
    tiers: tuple[str, ...]
    instance: str
    cores: int | None = None
    roles: tuple[DiskRole, ...] = ()
    limits: Limits | None = None
    baseline: Limits | None = None
    commit_path: bool = False
    even: bool = False
    shift: DiskShift | None = None
    service_time: ServiceTimeModel | None = None
    responses: Mapping[str, RateResponse] = field(default_factory=dict)
    whole: str | None = None
    scenario: str = ""
    step_s: float = 1.0
    columns: Mapping[str, Floats] = field(default_factory=dict)
    views: tuple[Key, ...] = ()
    reported_by: Mapping[str, Key] = field(default_factory=dict)

    @property
    def by_database(self) -> bool:
        """Whether its I/O, or a part of it, is what a database counts, as nothing reads the device."""
        return any(not role.seen for role in self.roles)

    @property
    def users(self) -> tuple[str, ...]:
        """The tiers, and ``GENERATOR``, that use a pool of cores or may use it; empty for other resources."""
        return tuple(name.removeprefix(USE) for name in self.columns if name.startswith(USE))

    @property
    def is_device(self) -> bool:
        """Whether it is a disk with a role: a device, or what a database counts of one."""
        return bool(self.roles) and self.whole is None

    @property
    def role(self) -> str | None:
        """The first role of a device; None for all disks of a machine together."""
        return self.roles[0].role if self.roles and self.whole is None else None


Resources = tuple[Resource, ...]


def placed(hosts: Iterable[Host]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(their names, their tiers) in the order in which a resource has them."""
    firsts: dict[str, Host] = {}
    others = [host for host in hosts if firsts.setdefault(host.tier, host) is not host]
    return tuple(host.name for host in (*firsts.values(), *others)), tuple(firsts)


def on_host(
    host: Host,
    type_: ResourceType,
    key: str,
    instance: str,
    columns: Mapping[str, Floats],
    *,
    cores: int | None = None,
    views: tuple[Key, ...] = (),
) -> Resource:
    """A resource of one host and its tier."""
    return Resource(
        key=key,
        type=type_,
        machine=host.machine,
        hosts=(host.name,),
        tiers=(host.tier,),
        instance=instance,
        cores=cores,
        columns=columns,
        views=views,
    )


def mean_of(resource: Resource, column: str, rows: Rows) -> float | None:
    """The mean of one of its columns over the rows; None if it was not measured, or has none such."""
    values = resource.columns.get(column)
    return None if values is None else mean(values[rows])


def busy(resource: Resource, rows: Rows) -> float | None:
    """The mean busy ratio of a CPU or a disk over the rows; None if it was not measured."""
    return mean_of(resource, "busy", rows)


# ---- what a resource's columns come to over a choice of rows, so that resamples are judged the same


@dataclass(frozen=True, slots=True)
class CpuMeasures:
    """A pool of cores, an allowance or a thread. All None if not measured.

    Attributes:
        busy: mean busy ratio.
        pool: of a thread or an allowance, the busy ratio of the cores around it.
        pressure: share of the time in which processes waited for CPU.
        seen: share of the rows with a value.
        uses: tier (or ``GENERATOR``) → share of the pool's busy time.
        witness: of a thread, the share of the time it was at work, as its server says itself.
        quota: whether an allowance is less than the cores it is of.
    """

    busy: float | None
    pool: float | None
    pressure: float | None
    seen: float
    uses: Mapping[str, float]
    witness: float | None = None
    quota: bool = False

    @property
    def use(self) -> float | None:
        """How much of it is used.

        For a thread at most its server's busy time, because the kernel also counts spinning and child
        processes.
        """
        if self.busy is None or self.witness is None:
            return self.busy
        return min(self.busy, self.witness)

    @property
    def waiting(self) -> float | None:
        """The number of operations that wait for it."""
        return self.pressure


@dataclass(frozen=True, slots=True)
class DiskMeasures:
    """One device. All None if not measured.

    Attributes:
        io: data I/Os per second (the kernel's count where data I/O is not known).
        bytes: bytes per second.
        utilisation: max(I/O ÷ cap, bytes ÷ cap), as the cloud platform recorded it, else of the declared cap;
            None if neither is known.
        recorded: whether the platform recorded it.
        credits_used: the share of the burst credits of ``binding`` that is spent, as it recorded it.
        binding: ``io`` or ``bytes``: which of the two is at its declared cap, or limited, or nearer
            to its cap.
        responses: how each of the two moves when the outstanding count does.
        outstanding: mean number of I/Os in progress.
        busy: share of the time with at least one I/O in progress. 1 does not mean saturation.
        reads_ratio: reads ÷ all I/O.
        read_s: mean latency of a read, weighted by operations.
        write_s: likewise of a write.
        flush_s: likewise of a flush.
        pressure: share of the time in which processes waited for I/O, any device.
        sessions: of the database's sessions, how many waited for this device, as it says itself.
        log_waits: the share of a store's work, or of its writes' time, that is waiting for its log, likewise.
        often_read: whether it was read often enough to say how it limits (``disk.measures.often_read``).
    """

    io: float | None
    bytes: float | None
    utilisation: float | None
    binding: str
    responses: Mapping[str, RateResponse]
    outstanding: float | None
    busy: float | None
    reads_ratio: float | None
    read_s: float | None
    write_s: float | None
    flush_s: float | None
    pressure: float | None
    sessions: float | None
    log_waits: float | None = None
    often_read: bool = True
    recorded: bool = False
    credits_used: float | None = None

    @property
    def spread(self) -> float | None:
        """The spread of the binding rate."""
        return self.responses[self.binding].spread

    @property
    def level(self) -> float | None:
        """The binding rate: its level if it is limited, else its mean."""
        if self.held == self.binding:
            return self.responses[self.binding].level
        return self.mean

    @property
    def mean(self) -> float | None:
        """The mean of the binding rate, which ``utilisation`` is of."""
        return self.io if self.binding == "io" else self.bytes

    @property
    def held(self) -> str | None:
        """``io`` or ``bytes``, whichever is as constant as only a limiter makes it; of both the flatter.

        Where all I/Os are of one size both are the same: it is counted in I/Os then.
        """
        spreads = {name: one.spread or 0.0 for name, one in self.responses.items() if one.regulated}
        return min(spreads, key=lambda name: (round(spreads[name], 4), name != "io"), default=None)

    @property
    def size_bytes(self) -> float | None:
        """Mean size of one I/O."""
        return self.bytes / self.io if self.io and self.bytes is not None else None

    @property
    def uses(self) -> Mapping[str, float]:
        """The use by each tier: empty, as it is not measured."""
        return {}

    @property
    def use(self) -> float | None:
        """How much of its declared cap is used."""
        return self.utilisation

    @property
    def waiting(self) -> float | None:
        """The number of operations that wait for it."""
        return self.outstanding


@dataclass(frozen=True, slots=True)
class ShareMeasures:
    """A dependency, a lock, memory, an interface, a pool of connections. All None if not measured.

    Attributes:
        used: the share of it that is in use: for a dependency the share of users that wait for it, for a lock
            the share of the time in which sessions wait for it.
        witness: what another source says of that: of a dependency the share of it in which the tier behind it
            has nothing to do; of a lock the share of the operations that wait; of memory the share of what
            disks read that had been in memory before; of connections the share of operations refused; of
            threads and tickets the share of operations that wait for one.
        own: the most that the tier behind it uses of its own CPU and disks; of threads and tickets the share
            of them whose holders wait for something else; of a lock the share of the sessions without a wait
            for one, its holders among them, that waits for a disk.
        each_s: how long an operation waits for it.
        pressure: of memory, the share of the time in which processes waited for it.
    """

    used: float | None
    witness: float | None
    own: float | None = None
    each_s: float | None = None
    pressure: float | None = None

    @property
    def uses(self) -> Mapping[str, float]:
        """The use by each tier: empty, as it is not measured."""
        return {}

    @property
    def use(self) -> float | None:
        """How much of it is used."""
        return self.used

    @property
    def waiting(self) -> float | None:
        """The number of operations that wait for it."""
        return self.witness


Measures = CpuMeasures | DiskMeasures | ShareMeasures


@dataclass(frozen=True, slots=True)
class NoSingleCause:
    """Why no one is named though something is saturated.

    Attributes:
        why: in words.
        experiment: what would show; "" where it is the usual one for such suspects.
    """

    why: str
    experiment: str = ""


# ---- what speaks against a resource ----------------------------------------------------------------


class Least(NamedTuple):
    """A condition for suspecting a resource: the mean of a column reaches a limit."""

    column: str
    limit: Threshold


@dataclass(frozen=True, slots=True)
class DiskState:
    """The yes-or-no questions about a disk that its evidence and its kind of limit rest on.

    Attributes:
        occupied: hardly ever idle, or not known, or waited for, or pacing those who wait.
        at_cap: within 3 % of the declared cap, and limited there: constant, whatever the size of I/Os.
        uneven: its I/Os end as unevenly as a device's.
        used: what it does ÷ its declared cap, while it has something to do.
        near_cap: at 90 % of the declared cap or more, not beyond it, and nothing says that it could do more.
        beyond_cap: the rate was above the declared cap, so the declaration is wrong.
        regulated: flat as only a regulator is, while latency moves.
        fell: its rate fell and stayed lower although the queue did not: burst credits ran out.
        spent: the platform reports that its burst credits are spent.
        rose: its rate rose although the queue did not: it is still warming up.
        slow: latency above the limit of its role.
        device: has a queue, and more outstanding I/O brings no higher rate; or slow, and as uneven as a
        device. wait_ratio: waiting for this disk ÷ the time of the operations of a pressed scenario.
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
    spent: bool
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
        """Whether the resource is at its maximum."""
        held = self.near_cap or self.regulated or self.device
        return (self.occupied and held) or self.fell or self.rose


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A resource with evidence against it.

    Attributes:
        kind: how it limits.
        evidence: the kinds of evidence, ``E1`` to ``E4``.
        found: what was measured.
        disk: a disk's answers, None for anything else.
        exact: it stands at its declared cap, or at its quota.
        contradicted: the measurement contradicts the declared cap.
        not_waited_for: nothing is known to wait for it, as its writes are mostly asynchronous, or because
            its server reports that nothing waits.
        grown: what several load levels say of it, ``E2`` and ``E3``.
        outrun: evidence against it, in words: throughput rose above its calculated maximum.
    """

    resource: Resource
    kind: Kind
    evidence: frozenset[str]
    found: Measures
    disk: DiskState | None = None
    exact: bool = False
    contradicted: bool = False
    not_waited_for: bool = False
    grown: tuple[Fact, ...] = ()
    outrun: str = ""


@dataclass(frozen=True, slots=True)
class Context:
    """The other resources and suspects of the run in which a resource is named.

    Attributes:
        inputs: what was measured.
        resources: all there are.
        rows: of the stage that is judged.
        flows: of the scenarios.
    """

    inputs: Inputs
    resources: Resources
    rows: Rows
    flows: Flows


Waiting = tuple[str, str, Callable[[float], str]]
LimitMode = Literal["use", "rate", "time"]
"""How a limit limits: at the end of its use; by all that it can do; by the time that it takes."""
M = TypeVar("M", CpuMeasures, DiskMeasures, ShareMeasures)


class ChangeableLimit(NamedTuple):
    """What ``what-if`` may change of a resource that limits and is no queue of the model.

    Attributes:
        setting: ``sql.lock``.
        size: how much of it there is: bytes per second of an interface; None of what takes time.
        each_s: of what takes time, how long one wait is; None: as long as an operation waits.
        waiting: by scenario, operations that wait for it at any time.
        assumes: what a change of it takes for granted.
    """

    setting: str
    size: float | None
    each_s: float | None
    waiting: Mapping[str, float]
    assumes: str


class ResourceKind(ABC, Generic[M]):
    """What every kind of resource answers: how it is found, measured, judged, called, and what relieves it.

    Attributes:
        type: of its resources.
        kind: its kind when saturated; for a disk ``classify`` finds the kind of limit.
        limit_modes: every kind of limit that it can have, with the way in which that limits.
        candidate: its kind in the list of candidates of an inconclusive run; None: not listed.
        nearest: whether one that nothing speaks against is listed when it is the nearest to its limit.
        yields: whether it is named only where CPU, memory, disks and interfaces have room: it says that
            something else limits throughput (docs/rules.md).
        explains_disks: whether want of it keeps disks busy, so that it ranks before them.
        delays_cpu: whether it ranks before a CPU at the same depth, which it delays.
        takes_cpu: whether waiting for it may be waiting for CPU time that the hypervisor took.
        own_series: whether waits for it are measured for it alone, and not only for the whole host.
        full_now: the value from which on it is at its limit in a single step; None if a step does not show
        it. maybe_full: the value from which on it may be, as clocks and readings may differ by a second.
        short: its name in advice, with ``{instance}``, ``{tier}`` and ``{host}``.
        placed: its name in a list of the verdict, likewise.
        least: what must be so for anything to speak against it; None if one column does not show it.
        waiting: what waits for it: words, metric, how its figures are written; None if nothing does.
        grows: whether its use grows with throughput until it is saturated.
        limit: the use from which on it is called saturated.
    """

    type: ResourceType
    kind: Kind
    limit_modes: Mapping[Kind, LimitMode]
    limit = UTILISATION
    least: Least | None = None
    waiting: Waiting | None = None
    grows = True
    candidate: Kind | None = None
    nearest = False
    yields = False
    explains_disks = False
    delays_cpu = False
    takes_cpu = True
    own_series = False
    full_now: Least | None = None
    maybe_full: Least | None = None
    short = ""
    placed = ""

    @property
    def reported(self) -> str:
        """The resource of a finding in verdict.json."""
        return self.type

    @abstractmethod
    def discover(self, inputs: Inputs, flows: Flows, disks: Resources) -> Iterator[Resource]:
        """Every resource of this kind with samples in the run; ``disks``: those with a role."""

    def clearly_unsuspected(self, resource: Resource, rows: Rows, flows: Flows) -> bool:
        """Whether it is plain by one or two columns that nothing speaks against it; ``judge`` would agree."""
        return self.least is not None and not at_least(
            mean_of(resource, self.least.column, rows), self.least.limit
        )

    @abstractmethod
    def measure(self, resource: Resource, rows: Rows) -> M:
        """The figures of a resource over those rows of the window."""

    @abstractmethod
    def judge(self, resource: Resource, measures: M, flows: Flows) -> Suspicion | None:
        """The evidence against it; None if there is none."""

    def innocent(self, resource: Resource, measures: M, flows: Flows) -> Suspicion:
        """The same of one that nothing speaks against."""
        return Suspicion(resource, self.kind, frozenset(), measures)

    def excused(self, measures: M) -> str:
        """Why it is no limit though it is used that much, in words; "" where it is one."""
        return ""

    @abstractmethod
    def facts(self, suspicion: Suspicion, measures: M) -> Iterator[Fact]:
        """The evidence as sentences, the strongest first."""

    @abstractmethod
    def witnesses(self, suspicion: Suspicion, measures: M) -> Iterator[Fact]:
        """The evidence from a second source."""

    def own_use(self, resource: Resource, rows: Rows) -> float | None:
        """How much of it the farm itself uses, where that leaves no room for what yields; None elsewhere."""
        return None

    def load_use(self, resource: Resource, measures: M, *, in_steps: bool) -> float | None:
        """How much of it the load uses; None if that does not show at what load it ends.

        Args:
            resource: one of these.
            measures: what was measured.
            in_steps: whether there are several levels of the load.
        """
        return measures.use if self.grows else None

    def room(self, suspicion: Suspicion, measures: M) -> Fact | None:
        """How near one that is not saturated is to a limit; None if its first fact says that."""
        return None

    def nearness(self, resource: Resource, measures: M) -> float:
        """How near a candidate is to a limit, in an inconclusive run."""
        return measures.use or 0.0

    def left(self, suspicion: Suspicion, measures: M) -> float | None:
        """Throughput from now on ÷ its mean, where what it can do fell; None if it did not."""
        return None

    def used_share(self, suspicion: Suspicion, measures: M) -> float | None:
        """The utilisation of a resource with a known capacity; None for others."""
        return None

    def waited_share(self, suspicion: Suspicion, measures: M, working: float) -> tuple[float, str]:
        """(the share of users' time in which they wait for it, in words): all of it where not known.

        Args:
            suspicion: what limits by the time it takes.
            measures: what was measured.
            working: the share of users' time with an operation in progress; the rest is think time.
        """
        return waits_for(None, working)

    def held(self, resource: Resource, measures: M, rows: Rows, flows: Flows) -> ChangeableLimit | None:
        """The setting of ``what-if`` for a limiting resource; None if it is a queue of the model."""
        return None

    def is_part_of(self, resource: Resource, first: Resource) -> bool:
        """Whether its limit is a part of that of another resource, which is the bottleneck."""
        return False

    def explained(self, suspicion: Suspicion, suspicions: Iterable[Suspicion]) -> bool:
        """Whether what is seen of it is the doing of another suspect."""
        return False

    def felt(
        self,
        suspicion: Suspicion,
        measures: M,
        disks: Iterable[Resource],
        rows: Rows,
        flows: Flows,
    ) -> bool:
        """Whether what speaks against it costs time."""
        return True

    def unseen(self, resources: Iterable[Resource], flows: Flows) -> bool:
        """Whether operations may wait for one of these that was not measured."""
        return False

    def confidence_limits(self, suspicion: Suspicion, measures: M, context: Context) -> Iterator[str]:
        """Why its evidence justifies only low confidence, in sentences."""
        yield from ()

    def beside(self, resource: Resource, first: Suspicion, context: Context) -> Iterator[str]:
        """Why this resource casts doubt on the named one, in sentences."""
        yield from ()

    def deeper(self, resource: Resource, rows: Rows) -> str:
        """Why an upstream resource may wait for this one, in words; "" without evidence."""
        return ""

    def why_not_named(self, suspicion: Suspicion, measures: M, inputs: Inputs) -> NoSingleCause | None:
        """Why it cannot be named, however often resamples name it; None if it can."""
        return None

    def experiment(self, suspicion: Suspicion, rows: Rows) -> str:
        """An experiment that would give more evidence where confidence is low; "" if none would."""
        return ""

    def room_unknown(self, resource: Resource, rows: Rows, times: float) -> str:
        """An assumption about its room behind a gain, with the reason; "" if the room is known or irrelevant.

        Args:
            resource: one of these.
            rows: of the stage that is judged.
            times: throughput then ÷ throughput now.
        """
        return ""

    def caveats(self, resource: Resource, rows: Rows) -> Iterator[str]:
        """Warnings about the resource that a reader must know beside the verdict."""
        yield from ()

    def standing(self, resource: Resource, measures: M) -> Fact:
        """The figure that is shown for a resource that is not suspected."""
        first = next(self.facts(Suspicion(resource, self.kind, frozenset(), measures), measures))
        return replace(first, evidence="context")

    def owner(self, resource: Resource, measures: M) -> tuple[str | None, str | None]:
        """(tier, host) to blame."""
        return next(iter(resource.tiers), None), next(iter(resource.hosts), None)

    @abstractmethod
    def name(self, resource: Resource, measures: M) -> str:
        """In plain words: ``the log disk of the sql tier (sql1)``."""

    def short_name(self, resource: Resource, measures: M) -> str:
        """In the words of advice: ``the index disk of search``, ``the CPU of sql``."""
        tier, host = self.owner(resource, measures)
        return self.short.format(
            instance=resource.instance.removeprefix("thread:"), role=resource.role, tier=tier, host=host
        )

    def place(self, suspect: Bottleneck) -> str:
        """Among candidates: ``the log disk of sql``."""
        return self.placed_of(suspect)

    def placed_of(self, one: Bottleneck | Next) -> str:
        """``placed`` with its names."""
        return self.placed.format(
            instance=one.instance.removeprefix("thread:"), role=one.role, tier=one.tier, host=one.host
        )

    @abstractmethod
    def advise(self, basis: AdviceInputs, measures: M) -> Iterator[Advice]:
        """Advice for a resource that is the bottleneck, the most useful first."""

    def advise_on(self, suspect: Bottleneck, inputs: Inputs) -> Iterator[Advice]:
        """The measurements that would confirm or exclude a candidate."""
        yield from ()

    @abstractmethod
    def proof(self, suspicion: Suspicion, measures: M) -> str:
        """The figure that shows that it is saturated, in words."""

    @abstractmethod
    def relief(self, resource: Resource) -> str:
        """The change that would relieve it."""


def waits_for(share: float | None, working: float) -> tuple[float, str]:
    """(the share of users' time, in words) of what takes this share of operations' time.

    Args:
        share: None if that is not known: all of it.
        working: the share of users' time with an operation in progress; the rest is think time.
    """
    thinks = "" if working >= 1 else f", and users think {units.percent(1 - working)} of theirs"
    if share is None:
        return working, f"if operations wait for nothing else{thinks}"
    return share * working, f"operations wait for it {units.percent(share)} of their time{thinks}"


def compared(
    text: str, metric: str, value: float | None, place: tuple[str, str], evidence: str, limit: Threshold
) -> Fact:
    """A sentence with its number and threshold; ``place``: host and instance of the series."""
    return Fact(text, metric, value, *place, evidence, limit.value, limit.source, limit.says)
