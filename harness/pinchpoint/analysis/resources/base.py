"""Something that can be used up, as columns of what was measured about it; what each kind of it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.movement import Movement
from pinchpoint.analysis.pace import Pace
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import Threshold
from pinchpoint.analysis.verdict import Fact, Kind
from pinchpoint.base import units
from pinchpoint.data.inputs import DiskRole, Host, Inputs, Limits
from pinchpoint.data.series import Floats, Key, mean

GENERATOR = "generator"
"""Among the tiers that use a pool of cores, the load generators."""
USE = "use:"
"""How the columns of a pool of cores begin that tell how much of it a tier, or ``GENERATOR``, uses."""

ResourceType = Literal[
    "cpu", "allowance", "thread", "disk", "dependency", "lock", "memory", "network", "pool"
]


@dataclass(frozen=True, slots=True)
class DiskShift:
    """A disk's rate before and after a change of level, and what was outstanding meanwhile.

    Attributes:
        of: ``io`` or ``bytes``.
        spread: of the rate after the change.
        busy_before: share of the time with I/O going on; 1 where that was not measured.
        busy_after: likewise.
        alike_before: the same rate in seconds of the usual mix of reads and writes alone; None where there
            are too few of those.
        alike_after: likewise.
        other_before: the other of ``io`` and ``bytes``; 0 where it was not measured.
        other_after: likewise.
        fell_back: by how much of the highest level until then it fell at most, told from parts of five steps
            of that mix.
    """

    of: Literal["io", "bytes"]
    before: float
    after: float
    spread: float | None
    outstanding_before: float
    outstanding_after: float
    busy_before: float
    busy_after: float
    alike_before: float | None
    alike_after: float | None
    other_before: float
    other_after: float
    fell_back: float = 0.0


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that can be used up.

    Attributes:
        key: unique in the run.
        type: ``cpu`` a pool of cores, ``allowance`` a tier's own share of cores, ``thread``, ``disk``,
            ``dependency`` what users wait for outside of what is watched, ``lock`` a database's locks,
            ``memory`` of a tier or a machine, ``network`` an interface, ``pool`` a server's connections.
        machine: where it is.
        hosts: the hosts that use it, the reporting one first: as many as there are tiers, one of each; then
            the others.
        tiers: the tiers that use it, in the same order.
        instance: cores ("0,1"), thread name, device, source or endpoint, kind of lock, interface.
        cores: how many cores a pool has; None where that is not known.
        roles: a device's roles, the first as in ``ROLE_ORDER``.
        limits: the declared caps, None where withheld; of what lives on burst credits its burst's.
        baseline: of what lives on burst credits the declared caps, which hold without them; else None.
        commit_path: whether commits wait for this device: it holds a log, or the data of a tier without one.
        even: whether a disk is asked in an even schedule that was kept: its rate is flat by that alone.
        shift: how a disk's I/O, or else its bytes, changed its level in the window; None where it did not.
        pace: what a disk's time goes with, over all load levels where there are several; None where unknown.
        moves: how a disk's I/O (``io``) and ``bytes`` move when what is outstanding does
            (``measures.settle``).
        whole: of all disks of a machine together, the machine's type; None for one device.
        scenario: whose users wait for a dependency.
        step_s: seconds that a disk's value of a step tells of: a step's, or those between two readings.
        columns: one value per step of the window, NaN = not measured.
        views: the series on which rests what the server itself says of it (``stores``); of an interface that
            of its fuller direction.
        told_by: of a disk nobody looked at, its metric -> the database's series that tells it (``managed``).
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
    pace: Pace | None = None
    moves: Mapping[str, Movement] = field(default_factory=dict)
    whole: str | None = None
    scenario: str = ""
    step_s: float = 1.0
    columns: Mapping[str, Floats] = field(default_factory=dict)
    views: tuple[Key, ...] = ()
    told_by: Mapping[str, Key] = field(default_factory=dict)

    @property
    def by_database(self) -> bool:
        """Whether its I/O, or a part of it, is what a database counts, as nobody looks at the device."""
        return any(not role.seen for role in self.roles)

    @property
    def users(self) -> tuple[str, ...]:
        """Of a pool of cores those who use it, or may: tiers and ``GENERATOR``; of anything else nobody."""
        return tuple(name.removeprefix(USE) for name in self.columns if name.startswith(USE))

    @property
    def role(self) -> str | None:
        """The first role of a device; all disks of a machine together have none."""
        return self.roles[0].role if self.roles and self.whole is None else None


def placed(hosts: Iterable[Host]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(their names, their tiers) in the order in which a resource has them."""
    firsts: dict[str, Host] = {}
    others = [host for host in hosts if firsts.setdefault(host.tier, host) is not host]
    return tuple(host.name for host in (*firsts.values(), *others)), tuple(firsts)


def mean_of(resource: Resource, column: str, rows: Rows) -> float | None:
    """The mean of one of its columns over the rows; None where it was not measured, or has none such."""
    values = resource.columns.get(column)
    return None if values is None else mean(values[rows])


# ---- what is neither CPU nor disk ---------------------------------------------------------------

OF_OPERATIONS = "operations.service"
"""What is told by how many operations there were, and how long they took."""


@dataclass(frozen=True, slots=True)
class ShareMeasures:
    """A dependency, a lock, memory, an interface, a pool of connections. All None where not measured.

    Attributes:
        used: the share of it that is in use: of a dependency the share of the users that it holds, of a lock
            the share of the time in which somebody waits for it.
        witness: what somebody else sees of that: of a dependency the share of it in which the tier behind it
            has nothing to do; of a lock the share of the operations that wait; of memory the share of what
            disks read that had been in memory before; of connections the share of operations refused; of
            threads and tickets the share of operations that wait for one.
        own: the most that the tier behind it uses of its own CPU and disks; of threads and tickets the share
            of them whose holders wait for something else; of a lock the share of the sessions without a wait
            for one, its holders among them, that waits for a disk.
        each_s: how long an operation waits for it.
        pressure: of memory, the share of the time somebody waited for it.
    """

    used: float | None
    witness: float | None
    own: float | None = None
    each_s: float | None = None
    pressure: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the figures by which a shared resource is judged.

    Attributes:
        of: the figure among what was measured.
        says: a sentence with ``{}`` for it.
        metric: the series it rests on.
        limit: what it is compared with.
        evidence: the kind of evidence it is where it reaches its limit.
        required: whether nothing speaks against the resource where it does not.
        excuses: whether nothing speaks against the resource where it does.
        below: whether it is to be no more than the limit.
        instance: of the series.
        host: likewise; None: the first that the resource is on.
        show: how it is written.
    """

    of: Callable[[ShareMeasures], float | None]
    says: str
    metric: str
    limit: Threshold
    evidence: Literal["E1", "E4", "context"] = "context"
    required: bool = False
    excuses: bool = False
    below: bool = False
    instance: str = ""
    host: str | None = None
    show: Callable[[float | None], str] = units.percent

    def reached(self, found: ShareMeasures) -> bool:
        """Whether it was measured and reaches its limit."""
        value = self.of(found)
        if value is None:
            return False
        return value < self.limit.value if self.below else value >= self.limit.value


class Shared:
    """A kind of resource that is neither CPU nor disk; each module of this package has one.

    Attributes:
        kind: what it is called when it is used up.
        least: the column, and the limit its mean reaches, before anything speaks against such a resource;
            None where one column does not tell.
        called: its name, with ``{instance}``, ``{host}`` and ``{where}`` (`` of the sql tier (sql1)``).
        shown: what shows that it is used up, with ``{used}``, ``{witness}``, ``{each_s}`` and ``{scenario}``.
        relief: what would relieve it.
        waiting: what waits for it, in words, and the metric that says so; None where nothing does.
        grows: whether its use grows with throughput until it is used up.
    """

    kind: Kind
    least: tuple[str, Threshold] | None = None
    called: str
    shown: str
    relief: str
    waiting: tuple[str, str] | None = None
    grows = False

    def discover(
        self, inputs: Inputs, flows: tuple[Flow, ...], disks: tuple[Resource, ...]
    ) -> Iterator[Resource]:
        """Every one of which the run tells something."""
        raise NotImplementedError

    def figures(self, resource: Resource) -> tuple[Figure, ...]:
        """What it is judged by, the strongest first."""
        raise NotImplementedError

    def waited_for(self, resource: Resource, found: ShareMeasures, flows: tuple[Flow, ...]) -> bool:
        """Whether whoever waits for it, if anybody does, presses the farm."""
        return any(flow.pressed and flow.share(tier) > 0 for flow in flows for tier in resource.tiers)

    def name(self, resource: Resource) -> str:
        """In plain words."""
        tier, host = next(iter(resource.tiers), ""), next(iter(resource.hosts), "")
        where = f" of the {tier} tier ({host})" if tier else ""
        return self.called.format(where=where, host=host, instance=resource.instance)

    def proof(self, resource: Resource, found: ShareMeasures) -> str:
        """The figure that shows that it is used up, in words."""
        used, witness, each = units.percent(found.used), units.percent(found.witness), found.each_s
        each_s = units.seconds(each)
        return self.shown.format(used=used, witness=witness, each_s=each_s, scenario=resource.scenario)

    def evidence(self, resource: Resource, found: ShareMeasures, flows: tuple[Flow, ...]) -> frozenset[str]:
        """E1 from its use, E4 from who else sees that; none unless all that is required holds."""
        figures = self.figures(resource)
        held = all(one.reached(found) for one in figures if one.required)
        excused = any(one.reached(found) for one in figures if one.excuses)
        if excused or not held or not self.waited_for(resource, found, flows):
            return frozenset()
        return frozenset(one.evidence for one in figures if one.reached(found)) - {"context"}

    def facts(self, resource: Resource, found: ShareMeasures) -> tuple[Fact, ...]:
        """The evidence as sentences, the strongest first; what was not measured is left out."""
        return tuple(_facts(self.figures(resource), resource, found))

    def witnesses(self, resource: Resource, found: ShareMeasures) -> tuple[Fact, ...]:
        """What somebody else says of it."""
        others = (one for one in self.figures(resource)[1:] if one.evidence != "context")
        return tuple(_facts(others, resource, found))


def _facts(figures: Iterable[Figure], resource: Resource, found: ShareMeasures) -> Iterator[Fact]:
    for one in figures:
        value = one.of(found)
        if value is None:
            continue
        host = next(iter(resource.hosts), "") if one.host is None else one.host
        of_load = one.metric.startswith("operations.")
        yield Fact(
            fact=one.says.format(one.show(value)),
            metric=one.metric,
            value=value,
            host="" if of_load else host,
            instance=resource.scenario if of_load else one.instance,
            evidence=one.evidence if one.required or one.reached(found) else "context",
            threshold=one.limit.value,
            source=one.limit.source,
            rule=one.limit.says,
        )
