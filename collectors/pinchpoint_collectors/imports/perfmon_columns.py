"""Which columns of a perfmon log are used, and what each becomes; what the header tells of its machines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pinchpoint_collectors.imports.perfmon_counters import (
    COUNTERS,
    TOTAL,
    Counter,
    CounterPath,
    instance_of,
    sql_instance,
    taken_apart,
)
from pinchpoint_collectors.imports.perfmon_names import LANGUAGES, english
from pinchpoint_collectors.imports.record import ForeignFileError, Found

_DRIVE = re.compile(r"[A-Za-z]:")
_DISKS = ("LogicalDisk", "PhysicalDisk")
SIZE_OF_MEMORY = {
    "metric": "mem.available_ratio",
    "instance": "",
    "why": "Windows' counters do not say how much memory there is",
    "remedy": "say it: --memory HOST=SIZE",
}
SHOWN = 3
"""So many names are shown where there may be hundreds."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column as a series.

    Attributes:
        at: its place in a row, the time being at 0.
        path: as in the header.
        weight_at: where the rate is that a mean is weighted by; None: it is no mean, or that was not logged.
        instant: see ``Counter``.
    """

    at: int
    path: str
    host: str
    metric: str
    instance: str
    scale: float
    offset: float
    weight_at: int | None
    instant: bool


@dataclass(frozen=True, slots=True)
class _Known:
    at: int
    path: str
    place: CounterPath
    object: str
    counter: str
    means: Counter
    instance: str


def columns_of(paths: Sequence[str], names: Mapping[str, frozenset[int]], found: Found) -> tuple[Column, ...]:
    """The columns that are understood; ``found`` is told of cores and of what was left out.

    Args:
        paths: the header's cells after the first.
        names: counter names by the registry, where they were given.
        found: see ``record.Found``.

    Raises:
        ForeignFileError: none is understood.
    """
    known = _with_servers(list(_known(paths, names)))
    if not known:
        shown = "; ".join(path for path in paths[:SHOWN]) or "no counter at all"
        raise ForeignFileError(
            f"no counter is known by its name; found {shown}; names are known in {', '.join(LANGUAGES)}; of "
            "another language give Windows' own list with --names (on that system, in PowerShell: "
            "(Get-ItemProperty 'HKLM:\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Perflib\\"
            "CurrentLanguage').Counter > names.txt), or say what the columns are: --kind csv --map MAPPING",
            1,
        )
    for host in dict.fromkeys(one.place.host for one in known):
        found.facts(host).update(os="Windows", data_io="kernel")
    for host in dict.fromkeys(one.place.host for one in known if one.means.metric == "mem.available_bytes"):
        found.facts(host)["not_measured"] = [dict(SIZE_OF_MEMORY)]
    used = _without_same_disks(_first_of_each(known), found)
    places = {(one.place.host, one.object, one.place.instance, one.counter): one.at for one in known}
    columns = tuple(_column(one, places) for one in used)
    _cores(columns, found)
    _left_out(paths, known, found)
    return columns


def _known(paths: Iterable[str], names: Mapping[str, frozenset[int]]) -> Iterator[_Known]:
    for at, path in enumerate(paths, 1):
        place = taken_apart(path)
        ours = english(place.object, place.counter, names) if place else None
        if place and ours and not place.instance.casefold().endswith(f",{TOTAL}"):  # of one NUMA node
            means = COUNTERS[ours[0]][ours[1]]
            yield _Known(at, path, place, *ours, means, _instance(ours[0], place.instance))


def _with_servers(known: Sequence[_Known]) -> list[_Known]:
    """Where a machine has several SQL Servers, all but the default one put their name before the instance."""
    servers: dict[str, set[str | None]] = {}
    for one in known:
        servers.setdefault(one.place.host, set()).add(sql_instance(one.place.object))
    return [
        replace(one, instance=f"{server}/{one.instance}")
        if (server := sql_instance(one.place.object)) and len(servers[one.place.host] - {None}) > 1
        else one
        for one in known
    ]


def _first_of_each(known: Iterable[_Known]) -> list[_Known]:
    """Of several counters for one series, such as Available Bytes and MBytes, the one of lowest rank."""
    best: dict[tuple[str, str, str], _Known] = {}
    for one in known:
        key = one.place.host, one.means.metric, one.instance
        if key not in best or one.means.rank < best[key].means.rank:
            best[key] = one
    return list(best.values())


def _instance(name: str, instance: str) -> str:
    """The instance as ours: a whole machine is ``""``, cores are numbered, drives are as they are."""
    ours = instance_of(name, instance)
    return instance.strip() if ours is None else ours  # sums are left out elsewhere, and told


def _without_same_disks(known: Sequence[_Known], found: Found) -> list[_Known]:
    """Without the sum of all disks, which hides each, and with what drives and the disks below tell once."""
    disks = [one for one in known if one.object in _DISKS]
    each = [one for one in disks if one.place.instance.casefold() != TOTAL]
    for host in {one.place.host for one in disks} - {one.place.host for one in each}:
        found.note(
            f"of the disks of {host or 'the machine'} only _Total was logged, which hides the slow one among "
            "the others: log \\LogicalDisk(*)\\*"
        )
    kept = {one.at: one for one in _told_once(each, found)}
    return [kept.get(one.at, one) for one in known if one.object not in _DISKS or one.at in kept]


def _told_once(disks: Sequence[_Known], found: Found) -> Iterator[_Known]:
    """The columns of disks without those of physical ones ("1 L: M:") whose drives show the same I/O."""
    drives: dict[tuple[str, str], dict[str, _Known]] = {}
    physical: dict[tuple[str, str], list[_Known]] = {}
    for one in disks:
        host, name = one.place.host, one.place.instance
        if one.object == "LogicalDisk":
            drives.setdefault((host, name.upper()), {})[one.means.metric] = one
            yield one
        else:
            physical.setdefault((host, name), []).append(one)
    for (host, name), columns in physical.items():
        above = [drives.get((host, letter.upper()), {}) for letter in _DRIVE.findall(name)]
        yield from _beside(columns, above, f"PhysicalDisk {name}{host and f' of {host}'}", found)


def _beside(
    columns: Sequence[_Known], above: Sequence[Mapping[str, _Known]], whose: str, found: Found
) -> Iterator[_Known]:
    """What of a physical disk its drives do not tell; that of a single drive is put under its name."""
    if not above or not all(above):
        yield from columns
        return
    more = [one for one in columns if any(one.means.metric not in drive for drive in above)]
    names = ", ".join(one.counter for one in more[:SHOWN]) + (", ..." if len(more) > SHOWN else "")
    if not more:
        found.note(f"{whose}: left out, as its drives show the same I/O")
    elif len(above) == 1:
        drive = next(iter(above[0].values())).instance
        found.note(
            f"{whose}: {names} were not logged of LogicalDisk {drive}, and taken for it; the rest was "
            "left out, as it shows the same I/O"
        )
        yield from (replace(one, instance=drive) for one in more)
    else:
        found.note(
            f"{whose}: {names} were not logged of each of its drives, so it stands beside them and shows "
            "their I/O once more: log \\LogicalDisk(*)\\*"
        )
        yield from columns


def _column(one: _Known, places: Mapping[tuple[str, str, str, str], int]) -> Column:
    weighs = one.means.weight
    place = one.place
    return Column(
        at=one.at,
        path=one.path,
        host=place.host,
        metric=one.means.metric,
        instance=one.instance,
        scale=one.means.scale,
        offset=one.means.offset,
        weight_at=places.get((place.host, one.object, place.instance, weighs)) if weighs else None,
        instant=one.means.instant,
    )


def _cores(columns: Iterable[Column], found: Found) -> None:
    """How many cores each machine has, where they were logged one by one."""
    cores: dict[str, list[str]] = {}
    for column in columns:
        if column.metric == "cpu.busy_ratio" and column.instance:
            cores.setdefault(column.host, []).append(column.instance)
    for host, names in cores.items():
        facts = found.facts(host)
        facts["cores"] = len(names)
        if all(name.isdecimal() for name in names):
            facts["usable_cores"] = sorted(map(int, names))


def _left_out(paths: Sequence[str], known: Sequence[_Known], found: Found) -> None:
    used = {one.at for one in known}
    rest = [path for at, path in enumerate(paths, 1) if at not in used]
    if rest:
        found.note(
            f"{len(rest)} of {len(paths)} counters have no counterpart here and were left out, "
            f"such as {rest[0]}"
        )
