"""Something that can be used up, as columns of what was measured about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pinchpoint.analysis.movement import Movement
from pinchpoint.analysis.pace import Pace
from pinchpoint.data.inputs import DiskRole, Host, Limits
from pinchpoint.data.series import Floats, Key

COMMIT_ROLES = ("log", "wal", "journal")
ROLE_ORDER = (*COMMIT_ROLES, "data", "tempdb", "index", "content", "os")
"""A device with several roles is named after the one that operations wait for first."""
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
