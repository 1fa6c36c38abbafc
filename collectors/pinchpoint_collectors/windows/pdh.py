"""This machine's counters by PDH, which the Performance Monitor itself uses; names are the English ones.

``pywin32``'s ``win32pdh`` is handed in, so that nothing here needs Windows to be imported. psutil is no
substitute: its disk times on Windows are whole seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pinchpoint_collectors.value import Value
from pinchpoint_collectors.windows.classes import BOTH_DIRECTIONS, SQL_SERVER
from pinchpoint_collectors.windows.counters import COUNTERS, Counter, instance_of
from pinchpoint_collectors.windows.reading import TUNNELS

DEFAULT_SQL_INSTANCE = "MSSQLSERVER"
"""What the registry calls the instance of SQL Server that has no name."""

_PRESENT = "Current Disk Queue Length"
"""A count that needs no second reading: it tells which disks there are."""
ALWAYS = ("LogicalDisk", "PhysicalDisk", "Processor Information", "Memory", "System", "Network Interface")
"""Objects that every Windows has."""
_INSTANCED = (
    "LogicalDisk",
    "PhysicalDisk",
    "Processor Information",
    "Network Interface",
    "SQLServer:Databases",
    "SQLServer:Locks",
    "Search Gatherer Projects - SharePointServerSearch",
)
"""Objects that have instances; all of them are read."""


class Pdh(Protocol):
    """What is used of ``win32pdh`` (mhammond.github.io/pywin32/win32pdh.html)."""

    PDH_FMT_DOUBLE: int

    def OpenQuery(self) -> Any:  # noqa: N802 - pywin32's name
        """A query."""

    def AddEnglishCounter(self, query: Any, path: str) -> Any:  # noqa: N802 - pywin32's name
        """A counter of the query; raises pywin32's error where there is none of that path."""

    def CollectQueryData(self, query: Any) -> None:  # noqa: N802 - pywin32's name
        """Read all counters of the query once."""

    def GetFormattedCounterValue(self, counter: Any, form: int) -> tuple[int, float]:  # noqa: N802 - likewise
        """(type, value); raises where two readings are needed and there was one."""

    def GetFormattedCounterArray(self, counter: Any, form: int) -> dict[str, float]:  # noqa: N802 - likewise
        """Instance -> value."""

    def CloseQuery(self, query: Any) -> None:  # noqa: N802 - pywin32's name
        """Give it back."""


@dataclass(frozen=True, slots=True)
class _Handle:
    """One counter of the query.

    Attributes:
        object: as the table of counters calls it.
        counter: PDH's own handle.
        means: what it becomes.
        weight: PDH's handle of the rate that a mean is weighted by; None: it is no mean.
        sql_instance: put before the instance; "" where there is no need to.
    """

    object: str
    counter: Any
    means: Counter
    weight: Any
    sql_instance: str


class PdhCounters:
    """All counters of this machine that are understood.

    Args:
        pdh: ``win32pdh``.
        error: what it raises (``pywintypes.error``).
        sql_instances: of SQL Server, as the registry has them.
    """

    def __init__(self, pdh: Pdh, error: type[Exception], sql_instances: Sequence[str] = ()) -> None:
        self._pdh = pdh
        self._error = error
        self._query = pdh.OpenQuery()
        self.missing: list[tuple[str, str]] = []
        """(metric, why) of what every Windows has, and this one does not."""
        self._handles = list(self._add(sql_instances))
        self._present = {
            name: self._counter(name, name, _PRESENT) for name in ("LogicalDisk", "PhysicalDisk")
        }
        self._seen: dict[int, dict[str, None]] = {}

    def collect(self) -> None:
        """Read everything once. Raises pywin32's error."""
        self._pdh.CollectQueryData(self._query)

    def instances(self, name: str) -> list[str]:
        """The instances of ``LogicalDisk`` or ``PhysicalDisk`` at the last reading."""
        handle = self._present[name]
        found = self._formatted(name, handle) if handle is not None else None
        return [one for one in found or {} if instance_of(name, one) is not None]

    def values(self, interval_s: float) -> Iterator[Value]:
        """What the last two readings say; null where PDH has no value.

        Args:
            interval_s: between them; 0 at the first: then only what needs no difference is told.
        """
        for at, handle in enumerate(self._handles):
            found = self._formatted(handle.object, handle.counter) or {}
            rates = self._formatted(handle.object, handle.weight) if handle.weight is not None else None
            seen = self._seen.setdefault(at, {})
            seen.update(dict.fromkeys(found))
            for name in seen:
                instance = instance_of(handle.object, name)
                if instance is None or (handle.object == "Network Interface" and TUNNELS.match(instance)):
                    continue
                place = f"{handle.sql_instance}/{instance}" if handle.sql_instance else instance
                shown = found.get(name)
                if shown is None:  # it was taken away while we watched
                    yield Value(handle.means.metric, place, None)
                else:
                    yield _value(handle.means, place, shown, _rate(rates, name), interval_s)

    def close(self) -> None:
        """Give the query back. Safe to call twice."""
        query, self._query = self._query, None
        if query is not None:
            self._pdh.CloseQuery(query)

    def _add(self, sql_instances: Sequence[str]) -> Iterator[_Handle]:
        for name, counters in COUNTERS.items():
            if name == "Processor":
                continue  # one group of 64 processors only
            for instance, shown in _objects(name, sql_instances):
                yield from self._add_object(name, shown, counters, instance)

    def _add_object(
        self, name: str, shown: str, counters: Mapping[str, Counter], sql_instance: str
    ) -> Iterator[_Handle]:
        taken: set[str] = set()
        for counter, means in sorted(counters.items(), key=lambda one: one[1].rank):
            if means.metric in taken or means.metric in BOTH_DIRECTIONS:
                continue
            handle = self._counter(name, shown, counter)
            if handle is None:
                continue
            taken.add(means.metric)
            weight = self._counter(name, shown, means.weight) if means.weight else None
            yield _Handle(name, handle, means, weight, sql_instance)
        if name in ALWAYS:
            lacking = {means.metric for means in counters.values()} - taken - set(BOTH_DIRECTIONS)
            self.missing += [
                (metric, f"Windows has no counter of {name} for it") for metric in sorted(lacking)
            ]

    def _counter(self, name: str, shown: str, counter: str) -> Any:
        """PDH's handle; None where this machine has no such counter."""
        instances = "(*)" if name in _INSTANCED else ""
        try:
            return self._pdh.AddEnglishCounter(self._query, rf"\{shown}{instances}\{counter}")
        except self._error:  # no such object or counter here: `missing` tells of those that should be
            return None

    def _formatted(self, name: str, handle: Any) -> Mapping[str, float] | None:
        """Instance -> value; None where PDH has none."""
        try:
            if name in _INSTANCED:
                return self._pdh.GetFormattedCounterArray(handle, self._pdh.PDH_FMT_DOUBLE)
            return {"": self._pdh.GetFormattedCounterValue(handle, self._pdh.PDH_FMT_DOUBLE)[1]}
        except self._error:  # one reading where two are needed, or no instance any more
            return None


def _objects(name: str, sql_instances: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(what is put before its instances, the object as this machine calls it)."""
    if not name.startswith(SQL_SERVER):
        yield "", name
        return
    for instance in sql_instances:
        if instance.upper() == DEFAULT_SQL_INSTANCE:
            yield "", name
        else:
            ours = instance if len(sql_instances) > 1 else ""
            yield ours, f"MSSQL${instance}:{name.removeprefix(SQL_SERVER)}"


def _value(means: Counter, instance: str, shown: float, rate: float | None, interval_s: float) -> Value:
    weight = None if rate is None else max(0.0, rate) * interval_s
    if means.weight and not weight:
        return Value(means.metric, instance, None, weight)  # of no operation Windows says 0
    return Value(means.metric, instance, max(0.0, shown * means.scale + means.offset), weight)


def _rate(rates: Mapping[str, float] | None, name: str) -> float | None:
    return rates.get(name) if rates else None
