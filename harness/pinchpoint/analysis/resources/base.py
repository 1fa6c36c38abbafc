"""A resource with its limit and measured columns, and the interface that each kind of resource implements."""

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
"""Name of the load generators among the tiers that use a pool of cores."""
USE = "use:"
"""Prefix of the columns of a pool of cores that hold the use by a tier or by ``GENERATOR``."""

ResourceType = Literal[
    "cpu", "allowance", "thread", "disk", "dependency", "lock", "memory", "network", "pool"
]


@dataclass(frozen=True, slots=True)
class DiskShift:
    """The rate and the outstanding I/Os of a disk before and after a change of its rate level.

    Attributes:
        of: the rate that changed, ``io`` or ``bytes``.
        spread: spread of the rate after the change (``series.spread``); None if unknown.
        busy_before: share of the time with I/O in progress before the change; 1 if not measured.
        busy_after: share of the time with I/O in progress after the change; 1 if not measured.
        usual_mix_before: rate before the change in the seconds with the usual mix of reads and writes; None
            if these seconds are too few.
        usual_mix_after: rate after the change in the seconds with the usual mix; None if these seconds are
            too few.
        other_before: before the change, the rate that ``of`` does not name (``io`` or ``bytes``); 0 if not
            measured.
        other_after: after the change, the rate that ``of`` does not name; 0 if not measured.
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
    """A resource with a limit, and its measured columns.

    Attributes:
        key: key of the resource, unique in the run.
        type: ``cpu``: a pool of cores; ``allowance``: a tier's CPU limit; ``thread``: one thread; ``disk``;
            ``dependency``: a wait outside of the measured farm; ``lock``: the locks of a database;
            ``memory``: of a tier or a machine; ``network``: an interface; ``pool``: connections, threads or
            tickets of a server.
        machine: name of the machine.
        hosts: the hosts that use the resource: first one host of each tier, then the others.
        tiers: the tiers that use the resource, in the order of the first hosts.
        instance: cores ("0,1"), thread name, device, source or endpoint, kind of lock, or interface.
        cores: number of cores of a pool; None if unknown.
        roles: roles of a device, in the order of ``ROLE_ORDER``.
        limits: the declared caps, None if withheld; for a disk on burst credits, the caps of the burst.
        baseline: for a disk on burst credits, the declared caps without credits; else None.
        commit_path: whether commits wait for this device, because it has a log, or the data of a tier without
            a log.
        even: whether all load of a disk followed an even schedule, so that a constant rate shows no limit.
        shift: change of level of the disk's I/O rate, or else of its byte rate; None without a change.
        service_time: whether the time of a disk depends on I/Os or on bytes, over all load levels; None if
            unknown.
        responses: by rate (``io``, ``bytes``), how the rate of a disk changes with its outstanding I/Os
            (``measures.settle``).
        whole: machine type, for all disks of a machine together; None for one device.
        scenario: for a dependency, the scenario whose users wait.
        step_s: seconds that one value of a disk covers: one step, or the time between two readings.
        columns: by name, one value per step of the window; NaN = not measured.
        views: the series of the server's own reports about the resource (``stores``); for an interface, the
            series of its fuller direction.
        reported_by: for a disk that is not measured, metric -> the database's series of that metric
            (``managed``).
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
        """Whether a database counts the I/O of the disk, or a part of it, because no collector reads it."""
        return any(not role.seen for role in self.roles)

    @property
    def users(self) -> tuple[str, ...]:
        """The tiers, and ``GENERATOR``, that use a pool of cores or may use it; empty for other resources."""
        return tuple(name.removeprefix(USE) for name in self.columns if name.startswith(USE))

    @property
    def is_device(self) -> bool:
        """Whether the resource is one disk with a role, measured at the device or counted by a database."""
        return bool(self.roles) and self.whole is None

    @property
    def role(self) -> str | None:
        """The first role of a device; None for all disks of a machine together."""
        return self.roles[0].role if self.roles and self.whole is None else None


Resources = tuple[Resource, ...]


def placed(hosts: Iterable[Host]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(names, tiers) of these hosts, in the order of ``Resource.hosts`` and ``Resource.tiers``."""
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
    """A resource of one host and the host's tier."""
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
    """The mean of a column over these rows; None if the resource has no such column or no values."""
    values = resource.columns.get(column)
    return None if values is None else mean(values[rows])


def busy(resource: Resource, rows: Rows) -> float | None:
    """The mean busy ratio of a CPU or a disk over these rows; None if not measured."""
    return mean_of(resource, "busy", rows)


# ---- measurements of a resource over chosen rows (resamples choose other rows) --------------------


@dataclass(frozen=True, slots=True)
class CpuMeasures:
    """Means of a pool of cores, a CPU allowance or a thread; None: not measured.

    Attributes:
        busy: mean busy ratio.
        pool: for a thread or an allowance, the busy ratio of the cores that it runs on.
        pressure: share of the time in which processes waited for CPU.
        seen: share of the rows with a measured value.
        uses: by tier (or ``GENERATOR``), its share of the pool's busy time.
        witness: for a thread, share of the time that it was at work, as reported by its server.
        quota: whether an allowance is smaller than the cores that it runs on.
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
        """Utilisation of the CPU resource; None if not measured.

        For a thread, the utilisation is at most the busy time that its server reports, because the kernel
        also counts spinning and child processes.
        """
        if self.busy is None or self.witness is None:
            return self.busy
        return min(self.busy, self.witness)

    @property
    def waiting(self) -> float | None:
        """Share of the time in which processes waited for CPU."""
        return self.pressure


@dataclass(frozen=True, slots=True)
class DiskMeasures:
    """Measurements of one disk; None: not measured.

    Attributes:
        io: data I/Os per second; all I/Os of the kernel if data I/O is not known.
        bytes: bytes per second.
        utilisation: max(I/O ÷ cap, bytes ÷ cap), as recorded by the cloud platform, else for the declared
            cap; None if neither is known.
        recorded: whether the platform recorded ``utilisation``.
        credits_used: spent share of the burst credits for the rate ``binding``, as recorded by the platform.
        binding: ``io`` or ``bytes``: the rate that is at its declared cap, or limited, or nearer to its cap.
        responses: by rate (``io``, ``bytes``), how the rate changes with the outstanding I/Os.
        outstanding: mean number of I/Os in progress.
        busy: share of the time with at least one I/O in progress; 1 does not mean saturation.
        reads_ratio: reads ÷ all I/O.
        read_s: mean seconds per read, weighted by operations.
        write_s: mean seconds per write, weighted by operations.
        flush_s: mean seconds per flush, weighted by operations.
        pressure: share of the time in which processes waited for I/O on any device.
        sessions: mean number of database sessions that waited for this device, as reported by the database.
        log_waits: share of a store's working time, or of its write time, spent waiting for its log, as
            reported by the store.
        often_read: whether the disk was read often enough to show how it limits
            (``disk.measures.often_read``).
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
        """Spread of the binding rate."""
        return self.responses[self.binding].spread

    @property
    def level(self) -> float | None:
        """The binding rate: its median if the rate is limited, else its mean."""
        if self.held == self.binding:
            return self.responses[self.binding].level
        return self.mean

    @property
    def mean(self) -> float | None:
        """Mean of the binding rate, to which ``utilisation`` refers."""
        return self.io if self.binding == "io" else self.bytes

    @property
    def held(self) -> str | None:
        """``io`` or ``bytes``, whichever is as constant as only a limiter makes it; of both, the steadier.

        With I/Os of one size, both rates are equally constant: the result is then ``io``. None: neither is
        constant.
        """
        spreads = {name: one.spread or 0.0 for name, one in self.responses.items() if one.regulated}
        return min(spreads, key=lambda name: (round(spreads[name], 4), name != "io"), default=None)

    @property
    def size_bytes(self) -> float | None:
        """Mean bytes per I/O."""
        return self.bytes / self.io if self.io and self.bytes is not None else None

    @property
    def uses(self) -> Mapping[str, float]:
        """Use of the disk by tier: empty, because it is not measured."""
        return {}

    @property
    def use(self) -> float | None:
        """Utilisation of the disk's cap."""
        return self.utilisation

    @property
    def waiting(self) -> float | None:
        """Mean number of outstanding I/Os."""
        return self.outstanding


@dataclass(frozen=True, slots=True)
class ShareMeasures:
    """Measurements of a dependency, a lock, memory, an interface or a pool; None: not measured.

    Attributes:
        used: for a dependency, share of the users that wait for it; for a lock, share of the time in which
            sessions wait for it; for others, share in use.
        witness: figure of a second source. For a dependency: share of the wait in which the called tier is
            idle. For a lock: share of operations that wait. For memory: share of disk reads that read evicted
            data again. For connections: share of operations refused. For threads and tickets: share of
            operations that wait for one.
        own: for a dependency, the highest utilisation of the called tier's own CPU and disks; for threads and
            tickets, share of holders that wait for something else; for a lock, share of the sessions without
            a lock wait, lock holders included, that wait for a disk.
        each_s: seconds that an operation waits for the resource.
        pressure: for memory, share of the time in which processes waited for memory.
    """

    used: float | None
    witness: float | None
    own: float | None = None
    each_s: float | None = None
    pressure: float | None = None

    @property
    def uses(self) -> Mapping[str, float]:
        """Use of the resource by tier: empty, because it is not measured."""
        return {}

    @property
    def use(self) -> float | None:
        """Share of the resource in use, or of users or time with a wait (``used``)."""
        return self.used

    @property
    def waiting(self) -> float | None:
        """The figure of a second source (``witness``), such as the share of operations with a lock wait."""
        return self.witness


Measures = CpuMeasures | DiskMeasures | ShareMeasures


@dataclass(frozen=True, slots=True)
class NoSingleCause:
    """The reason why no bottleneck is named although a resource is saturated.

    Attributes:
        why: the reason, in words.
        experiment: an experiment that would show the cause; "" for the usual experiment.
    """

    why: str
    experiment: str = ""


# ---- evidence against a resource -------------------------------------------------------------------


class Least(NamedTuple):
    """A condition for suspecting a resource: the mean of a column reaches a limit."""

    column: str
    limit: Threshold


@dataclass(frozen=True, slots=True)
class DiskState:
    """Facts about a disk, from which its evidence and its kind of limit follow.

    Attributes:
        occupied: whether the disk is hardly ever idle, or its busy time is unknown, or operations mostly wait
            for it, or a regulator delays its I/Os.
        at_cap: whether the rate is within 3 % of the declared cap, and either constant or the same for any
            I/O size.
        uneven: whether I/Os complete as irregularly as on a plain device.
        used: utilisation of the declared cap; for a disk that operations wait for, while the disk is busy.
        near_cap: whether the rate is at 90 % of the declared cap or more, not above the cap, and more
            outstanding I/O does not raise it.
        beyond_cap: whether the rate exceeds the declared cap, so that the declaration is wrong.
        regulated: whether the rate is as constant as only a regulator makes it while latency varies, or the
            same for any I/O size.
        fell: whether the rate fell and stayed lower although the queue did not: burst credits ran out.
        spent: whether the platform reports that the burst credits are spent.
        rose: whether the rate rose although the queue did not: the disk was warming up.
        slow: whether latency is above the limit for the disk's role.
        device: whether I/Os queue, and more of them bring no higher rate of a slow or waited-for disk; or
            whether I/Os queue, complete irregularly and take too long by PAL's rule. ``wait_ratio`` is the
            share of the time that operations of a pressed scenario wait for this disk.
        waiting: the scenario of ``wait_ratio``.
        late: whether operations wait for this disk most of their time, and its latency is not very low.
        concurrency: whether operations wait for reads, and too few reads are issued at a time: the disk could
            serve more.
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
        """Whether operations of a pressed scenario wait for this disk for half of their time or more."""
        return at_least(self.wait_ratio, WAIT_SHARE)

    @property
    def full(self) -> bool:
        """Whether the disk is at its maximum rate."""
        held = self.near_cap or self.regulated or self.device
        return (self.occupied and held) or self.fell or self.rose


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A resource with evidence that it limits throughput.

    Attributes:
        kind: kind of bottleneck.
        evidence: kinds of evidence, ``E1`` to ``E4``.
        found: measurements of the resource.
        disk: state of a disk; None for other resources.
        exact: whether the resource is exactly at its declared cap or quota.
        contradicted: whether the measurement contradicts the declared cap.
        not_waited_for: whether no operation is known to wait for the resource, because its writes are mostly
            asynchronous or its server reports no waits.
        grown: evidence from several load levels, ``E2`` and ``E3``.
        outrun: counter-evidence, in words: throughput rose above the calculated maximum of the resource.
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
        inputs: measurements of the run.
        resources: all resources of the run.
        rows: the steps of the judged stage.
        flows: flows of the scenarios.
    """

    inputs: Inputs
    resources: Resources
    rows: Rows
    flows: Flows


Waiting = tuple[str, str, Callable[[float], str]]
LimitMode = Literal["use", "rate", "time"]
"""How a limit acts on throughput: by full use, by a maximum rate, or by the time that the resource takes."""
M = TypeVar("M", CpuMeasures, DiskMeasures, ShareMeasures)


class ChangeableLimit(NamedTuple):
    """What ``what-if`` may change of a limiting resource that has no queue in the model.

    Attributes:
        setting: name of the setting, such as ``sql.lock``.
        size: capacity, such as bytes per second of an interface; None for a wait.
        each_s: for a wait, seconds of one wait; None: the whole wait of an operation.
        waiting: by scenario, mean number of operations that wait for the resource.
        assumes: assumption behind the change, in words.
    """

    setting: str
    size: float | None
    each_s: float | None
    waiting: Mapping[str, float]
    assumes: str


class ResourceKind(ABC, Generic[M]):
    """A kind of resource: how it is found, measured, judged and named, and what relieves it.

    Attributes:
        type: type of its resources.
        kind: kind of bottleneck when saturated; for a disk, ``classify`` finds the kind.
        limit_modes: for each kind of limit, how it acts on throughput.
        candidate: kind in the list of candidates of an inconclusive run; None: not listed.
        nearest: whether a resource without evidence is listed if it is the nearest to its limit.
        yields: whether the resource is named only if CPU, memory, disks and interfaces have room, because its
            saturation may be the effect of another limit (docs/rules.md).
        explains_disks: whether a shortage of the resource keeps disks busy, so that it ranks before disks.
        delays_cpu: whether the resource delays a CPU, so that it ranks before a CPU at the same depth.
        takes_cpu: whether a wait for the resource may be a wait for CPU time that the hypervisor took.
        own_series: whether waits are measured for the resource alone, and not only for the whole host.
        full_now: the condition by which a single step shows the resource at its limit; None if a step cannot
            show it. ``maybe_full`` is the weaker condition for a possible limit, because clocks and readings
            may differ by a second.
        short: name in advice, with the placeholders ``{instance}``, ``{tier}`` and ``{host}``.
        placed: name in a list of the verdict, with the same placeholders.
        least: condition without which there is no evidence; None if one column does not show it.
        waiting: (words, metric, formatter) of the figure for waits for the resource; None without such a
            figure.
        grows: whether utilisation grows with throughput until the resource is saturated.
        limit: utilisation from which the resource is saturated.
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
        """The value of ``resource`` in a finding of verdict.json."""
        return self.type

    @abstractmethod
    def discover(self, inputs: Inputs, flows: Flows, disks: Resources) -> Iterator[Resource]:
        """Find every resource of this kind with samples in the run. ``disks``: the disks with a role."""

    def clearly_unsuspected(self, resource: Resource, rows: Rows, flows: Flows) -> bool:
        """Whether one or two columns already show that ``judge`` would find no evidence."""
        return self.least is not None and not at_least(
            mean_of(resource, self.least.column, rows), self.least.limit
        )

    @abstractmethod
    def measure(self, resource: Resource, rows: Rows) -> M:
        """Measurements of a resource over these rows of the window."""

    @abstractmethod
    def judge(self, resource: Resource, measures: M, flows: Flows) -> Suspicion | None:
        """The evidence that a resource limits throughput; None if there is none."""

    def innocent(self, resource: Resource, measures: M, flows: Flows) -> Suspicion:
        """A suspicion without evidence, for a resource that ``judge`` does not suspect."""
        return Suspicion(resource, self.kind, frozenset(), measures)

    def excused(self, measures: M) -> str:
        """Why a resource with high utilisation is no limit, in words; "" if it is a limit."""
        return ""

    @abstractmethod
    def facts(self, suspicion: Suspicion, measures: M) -> Iterator[Fact]:
        """The evidence as sentences, the strongest first."""

    @abstractmethod
    def witnesses(self, suspicion: Suspicion, measures: M) -> Iterator[Fact]:
        """The evidence from a second source."""

    def own_use(self, resource: Resource, rows: Rows) -> float | None:
        """Utilisation by the farm itself, which must be low before a ``yields`` kind is named; else None."""
        return None

    def load_use(self, resource: Resource, measures: M, *, in_steps: bool) -> float | None:
        """Utilisation by the load; None if it does not show at which load the resource saturates.

        Args:
            resource: a resource of this kind.
            measures: measurements of the resource.
            in_steps: whether the run has several load levels.
        """
        return measures.use if self.grows else None

    def room(self, suspicion: Suspicion, measures: M) -> Fact | None:
        """How near an unsaturated resource is to its limit; None if its first fact shows that."""
        return None

    def nearness(self, resource: Resource, measures: M) -> float:
        """How near a candidate of an inconclusive run is to a limit, as a ratio."""
        return measures.use or 0.0

    def left(self, suspicion: Suspicion, measures: M) -> float | None:
        """Throughput from now on ÷ mean throughput, if the capacity of the resource fell; else None."""
        return None

    def used_share(self, suspicion: Suspicion, measures: M) -> float | None:
        """Utilisation of a resource with a known capacity; None for other resources."""
        return None

    def waited_share(self, suspicion: Suspicion, measures: M, working: float) -> tuple[float, str]:
        """(share of the users' time spent waiting for the resource, in words); if unknown, all their time.

        Args:
            suspicion: a resource that limits by the time it takes.
            measures: measurements of the resource.
            working: the share of users' time with an operation in progress; the rest is think time.
        """
        return waits_for(None, working)

    def held(self, resource: Resource, measures: M, rows: Rows, flows: Flows) -> ChangeableLimit | None:
        """What ``what-if`` may change of a limiting resource; None if the model has a queue for it."""
        return None

    def is_part_of(self, resource: Resource, first: Resource) -> bool:
        """Whether the limit of ``resource`` is a part of the limit of ``first``, the bottleneck."""
        return False

    def explained(self, suspicion: Suspicion, suspicions: Iterable[Suspicion]) -> bool:
        """Whether another suspect explains the evidence against this one."""
        return False

    def felt(
        self,
        suspicion: Suspicion,
        measures: M,
        disks: Iterable[Resource],
        rows: Rows,
        flows: Flows,
    ) -> bool:
        """Whether operations lose time because of the suspected resource."""
        return True

    def unseen(self, resources: Iterable[Resource], flows: Flows) -> bool:
        """Whether operations may wait for a resource of this kind that was not measured."""
        return False

    def confidence_limits(self, suspicion: Suspicion, measures: M, context: Context) -> Iterator[str]:
        """Sentences that say why the evidence justifies only low confidence."""
        yield from ()

    def beside(self, resource: Resource, first: Suspicion, context: Context) -> Iterator[str]:
        """Sentences that say why this resource casts doubt on the named one."""
        yield from ()

    def deeper(self, resource: Resource, rows: Rows) -> str:
        """Words that say why an upstream resource may wait for this one; "" without evidence."""
        return ""

    def why_not_named(self, suspicion: Suspicion, measures: M, inputs: Inputs) -> NoSingleCause | None:
        """Why a resource cannot be named, however often resamples name it; None if it can."""
        return None

    def experiment(self, suspicion: Suspicion, rows: Rows) -> str:
        """An experiment that would give more evidence if confidence is low; "" if none would."""
        return ""

    def room_unknown(self, resource: Resource, rows: Rows, times: float) -> str:
        """Name of the resource, and why its room is unknown, if a gain depends on that; "" otherwise.

        Args:
            resource: a resource of this kind.
            rows: the steps of the judged stage.
            times: predicted throughput ÷ present throughput.
        """
        return ""

    def caveats(self, resource: Resource, rows: Rows) -> Iterator[str]:
        """Warnings about the resource, to be shown beside the verdict."""
        yield from ()

    def standing(self, resource: Resource, measures: M) -> Fact:
        """The fact that is shown for a resource that is not suspected."""
        first = next(self.facts(Suspicion(resource, self.kind, frozenset(), measures), measures))
        return replace(first, evidence="context")

    def owner(self, resource: Resource, measures: M) -> tuple[str | None, str | None]:
        """(tier, host) that the verdict names for the resource."""
        return next(iter(resource.tiers), None), next(iter(resource.hosts), None)

    @abstractmethod
    def name(self, resource: Resource, measures: M) -> str:
        """Name in plain words, such as ``the log disk of the sql tier (sql1)``."""

    def short_name(self, resource: Resource, measures: M) -> str:
        """Name in advice, such as ``the index disk of search`` or ``the CPU of sql``."""
        tier, host = self.owner(resource, measures)
        return self.short.format(
            instance=resource.instance.removeprefix("thread:"), role=resource.role, tier=tier, host=host
        )

    def place(self, suspect: Bottleneck) -> str:
        """Name among candidates, such as ``the log disk of sql``."""
        return self.placed_of(suspect)

    def placed_of(self, one: Bottleneck | Next) -> str:
        """``placed`` with its placeholders filled in."""
        return self.placed.format(
            instance=one.instance.removeprefix("thread:"), role=one.role, tier=one.tier, host=one.host
        )

    @abstractmethod
    def advise(self, basis: AdviceInputs, measures: M) -> Iterator[Advice]:
        """Advice for a resource that is the bottleneck, the most useful first."""

    def advise_on(self, suspect: Bottleneck, inputs: Inputs) -> Iterator[Advice]:
        """Measurements that would confirm or exclude a candidate."""
        yield from ()

    @abstractmethod
    def proof(self, suspicion: Suspicion, measures: M) -> str:
        """The figure that shows the saturation, in words."""

    @abstractmethod
    def relief(self, resource: Resource) -> str:
        """The change that would relieve the resource, in words."""


def waits_for(share: float | None, working: float) -> tuple[float, str]:
    """(share of the users' time spent waiting for a resource, that share in words).

    Args:
        share: share of the operations' time spent waiting; None: unknown, taken as all of it.
        working: the share of users' time with an operation in progress; the rest is think time.
    """
    thinks = "" if working >= 1 else f", and users think {units.percent(1 - working)} of theirs"
    if share is None:
        return working, f"if operations wait for nothing else{thinks}"
    return share * working, f"operations wait for it {units.percent(share)} of their time{thinks}"


def compared(
    text: str, metric: str, value: float | None, place: tuple[str, str], evidence: str, limit: Threshold
) -> Fact:
    """A fact with its sentence, number and threshold. ``place`` is (host, instance) of the series."""
    return Fact(text, metric, value, *place, evidence, limit.value, limit.source, limit.says)
