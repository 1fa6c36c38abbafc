"""Collector kind ``local`` on Windows: counters by PDH, facts about the machine by the remote script.

PDH is the interface that the Performance Monitor uses, with English names. ``win32pdh`` of ``pywin32`` is
passed in, so that this module can be imported without Windows. psutil is not used for disks, because its
times on Windows are whole seconds. It is used for processes, for which it is exact.
"""

from __future__ import annotations

import importlib
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import psutil

from pinchpoint_collectors.common.powershell import POWERSHELL, encoded, line_of
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.options import tier_processes
from pinchpoint_collectors.processes import Process
from pinchpoint_collectors.record import Collector, NotMeasured, Processes, Sample, Watch
from pinchpoint_collectors.value import Value
from pinchpoint_collectors.windows.counters import COUNTERS, Counter, instance_of
from pinchpoint_collectors.windows.disks import is_watched
from pinchpoint_collectors.windows.machine import WindowsMachine, not_measured, role_places
from pinchpoint_collectors.windows.openssh import LOADER
from pinchpoint_collectors.windows.reading import TUNNELS, with_ratio
from pinchpoint_collectors.windows.script import BOTH_DIRECTIONS, SQL_SERVER, request, script
from pinchpoint_collectors.windows.tiers import NOT_OF_A_TIER, PER_S, WindowsTier, plain, with_true_parents

DEFAULT_SQL_INSTANCE = "MSSQLSERVER"
"""Name in the registry of SQL Server's instance without a name."""

_PRESENT = "Current Disk Queue Length"
"""Counter that needs no second reading. It shows which disks exist."""
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
"""Objects with instances, all of which are read."""


class Pdh(Protocol):
    """The used part of ``win32pdh`` (mhammond.github.io/pywin32/win32pdh.html)."""

    PDH_FMT_DOUBLE: int

    def OpenQuery(self) -> Any:  # noqa: N802 - pywin32's name
        """Open a query."""

    def AddEnglishCounter(self, query: Any, path: str) -> Any:  # noqa: N802 - pywin32's name
        """Add a counter to the query. Raises pywin32's error if the path does not exist."""

    def CollectQueryData(self, query: Any) -> None:  # noqa: N802 - pywin32's name
        """Read all counters of the query once."""

    def GetFormattedCounterValue(self, counter: Any, form: int) -> tuple[int, float]:  # noqa: N802 - likewise
        """Return type and value. Raises if two readings are needed and there was only one."""

    def GetFormattedCounterArray(self, counter: Any, form: int) -> dict[str, float]:  # noqa: N802 - likewise
        """Return instance -> value."""

    def CloseQuery(self, query: Any) -> None:  # noqa: N802 - pywin32's name
        """Close the query."""


@dataclass(frozen=True, slots=True)
class _Handle:
    """One counter of the query.

    Attributes:
        object: name of the object in the table of counters.
        counter: PDH's handle.
        means: metric of the counter.
        weight: PDH's handle of the rate that weights a mean; None: no mean.
        sql_instance: prefix of the instance; "" if none is needed.
    """

    object: str
    counter: Any
    means: Counter
    weight: Any
    sql_instance: str


class PdhCounters:
    """All known counters of this machine.

    Args:
        pdh: ``win32pdh``.
        error: exception that it raises (``pywintypes.error``).
        sql_instances: instances of SQL Server in the registry.
    """

    def __init__(self, pdh: Pdh, error: type[Exception], sql_instances: Sequence[str] = ()) -> None:
        self._pdh = pdh
        self._error = error
        self._query = pdh.OpenQuery()
        self.missing: list[tuple[str, str]] = []
        """Metric and reason for each object that every Windows should have, and this one lacks."""
        self._handles = list(self._add(sql_instances))
        self._present = {
            name: self._counter(name, name, _PRESENT) for name in ("LogicalDisk", "PhysicalDisk")
        }
        self._seen: dict[int, dict[str, None]] = {}

    def collect(self) -> None:
        """Read all counters once. Raises pywin32's error."""
        self._pdh.CollectQueryData(self._query)

    def instances(self, name: str) -> list[str]:
        """Return the instances of ``LogicalDisk`` or ``PhysicalDisk`` at the last reading."""
        handle = self._present[name]
        result = self._formatted(name, handle) if handle is not None else None
        return [one for one in result or {} if instance_of(name, one) is not None]

    def values(self, interval_s: float) -> Iterator[Value]:
        """Yield values of the last two readings; null if PDH has no value.

        Args:
            interval_s: seconds between the readings; 0 at the first, which gives only values that need no
                difference.
        """
        for at, handle in enumerate(self._handles):
            result = self._formatted(handle.object, handle.counter) or {}
            rates = self._formatted(handle.object, handle.weight) if handle.weight is not None else None
            seen = self._seen.setdefault(at, {})
            seen.update(dict.fromkeys(result))
            for name in seen:
                instance = instance_of(handle.object, name)
                if instance is None or (handle.object == "Network Interface" and TUNNELS.match(instance)):
                    continue
                place = f"{handle.sql_instance}/{instance}" if handle.sql_instance else instance
                shown = result.get(name)
                if shown is None:  # the device was removed meanwhile
                    yield Value(handle.means.metric, place, None)
                else:
                    yield _value(handle.means, place, shown, (rates or {}).get(name), interval_s)

    def close(self) -> None:
        """Close the query. A second call does nothing."""
        query, self._query = self._query, None
        if query is not None:
            self._pdh.CloseQuery(query)

    def _add(self, sql_instances: Sequence[str]) -> Iterator[_Handle]:
        for name, counters in COUNTERS.items():
            if name == "Processor":
                continue  # covers one group of 64 processors only
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
        """Return PDH's handle; None if this machine has no such counter."""
        instances = "(*)" if name in _INSTANCED else ""
        try:
            return self._pdh.AddEnglishCounter(self._query, rf"\{shown}{instances}\{counter}")
        except self._error:  # no such object or counter here: `missing` lists those that should exist
            return None

    def _formatted(self, name: str, handle: Any) -> Mapping[str, float] | None:
        """Return instance -> value; None if PDH has no value."""
        try:
            if name in _INSTANCED:
                return self._pdh.GetFormattedCounterArray(handle, self._pdh.PDH_FMT_DOUBLE)
            return {"": self._pdh.GetFormattedCounterValue(handle, self._pdh.PDH_FMT_DOUBLE)[1]}
        except self._error:  # one reading where two are needed, or the instance has gone
            return None


def _objects(name: str, sql_instances: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Return the prefix of the instances, and the name of the object on this machine."""
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
        return Value(means.metric, instance, None, weight)  # without operations, Windows reports 0
    return Value(means.metric, instance, max(0.0, shown * means.scale + means.offset), weight)


_ASKED = ["pid", "ppid", "name", "create_time", "cpu_times", "num_threads"]


def processes_here() -> dict[int, Process]:
    """Return id -> process, for processes whose times this user may read.

    CPU time and starts are in 100 ns.
    """
    result = {}
    for one in psutil.process_iter(_ASKED):
        answer = one.info
        times, begun = answer["cpu_times"], answer["create_time"]
        # a process of another user, or the idle process
        if times is None or begun is None or not answer["pid"]:
            continue
        own = round((times.user + times.system) * PER_S)
        result[one.pid] = Process(
            one.pid,
            answer["ppid"] or 0,
            plain(answer["name"] or ""),
            round(begun * PER_S),
            answer["num_threads"] or 1,
            own,
            0,
        )
    return with_true_parents(result)


def roots_here(wanted: Processes, there: Mapping[int, Process]) -> list[Process]:
    """Return the root processes of a tier: by id, by program name, or by the port that they listen on."""
    if wanted.pids:
        return [there[pid] for pid in wanted.pids if pid in there]
    if wanted.names:
        names = set(map(plain, wanted.names))
        return [one for one in there.values() if one.name in names]
    listening = {
        each.pid
        for each in psutil.net_connections("tcp")
        if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr.port == wanted.port
    }
    return [there[pid] for pid in listening if pid is not None and pid in there]


def nothing_runs(tier: str, wanted: Processes) -> NotMeasured:
    """Return the reason if no process of a tier exists, or this user may not see it."""
    if wanted.pids:
        sought = f"id {', '.join(map(str, wanted.pids))}"
    elif wanted.names:
        sought = f"name {', '.join(wanted.names)}"
    else:
        sought = f"TCP port {wanted.port}"
    return NotMeasured(
        "cpu.busy_ratio",
        f"tier:{tier}",
        f"no process with the {sought} is seen",
        "start it before the run, or run Pinchpoint as an administrator: others' processes may be hidden",
    )


_FACTS_S = 60.0
_WHERE = "collector 'local'"


def connect(watches: Sequence[Watch]) -> Collector:
    """Return the collector of this machine.

    Raises ``CollectorError`` without pywin32, or for a missing disk.
    """
    try:
        pdh = importlib.import_module("win32pdh")
        error = importlib.import_module("pywintypes").error
    except ImportError as missing:
        raise CollectorError(
            f"{_WHERE}: on Windows it needs pywin32, which is not installed here ({missing}); run: pip "
            "install pinchpoint-collectors[windows]"
        ) from missing
    machine = ask_machine()
    sql_instances = [str(one["instance"]) for one in machine.sql_servers if one.get("instance")]
    return LocalWindows(watches, pdh, error, machine, sql_instances)


def ask_machine() -> WindowsMachine:
    """Return facts about this machine from PowerShell. ``Machine.unknown`` lists what is not available."""
    machine = WindowsMachine()
    lines = [LOADER, encoded(script()), request((), 0)]
    try:
        done = subprocess.run(
            POWERSHELL.split(),
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            text=True,
            encoding="ascii",
            errors="replace",
            timeout=_FACTS_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        machine.unknown["host"] = f"PowerShell could not be asked: {error}"
        return machine
    for text in done.stdout.splitlines():
        line = line_of(text)
        if line is not None and line["kind"] != "end":
            machine.take(line)
    if not machine.said and "host" not in machine.unknown:
        answer = " ".join(done.stderr.split())[-300:] or "it did not say why"
        machine.unknown["host"] = f"PowerShell reported nothing: {answer}"
    return machine


class LocalWindows:
    """This machine under the names of all its hosts (see ``record.Collector``).

    Args:
        watches: hosts of the farm on this machine.
        pdh: ``win32pdh``.
        error: exception that it raises.
        machine: facts about the machine.
        sql_instances: instances of SQL Server in the registry.

    Raises:
        CollectorError: a disk does not exist, or PDH cannot be read.
    """

    def __init__(
        self,
        watches: Sequence[Watch],
        pdh: Pdh,
        error: type[Exception],
        machine: WindowsMachine,
        sql_instances: Sequence[str] = (),
    ) -> None:
        self._watches = tuple(watches)
        self._error = error
        self._machine = machine
        self._counters = PdhCounters(pdh, error, sql_instances)
        self._read_ns: int | None = None
        try:
            self._collect()
            storage = machine.storage
            storage.logical, storage.physical = self._disks("LogicalDisk"), self._disks("PhysicalDisk")
            self._places = {watch.host: role_places(watch, storage, _WHERE) for watch in watches}
        except BaseException:
            self.close()
            raise
        self._devices = {place.device for places in self._places.values() for place in places.values()}
        self._processes: dict[int, Process] | None = None
        self._tiers = {
            watch.host: (WindowsTier(watch.tier), wanted)
            for watch in watches
            if (wanted := tier_processes(watch)) is not None
        }

    def read(self) -> Sequence[Sample]:
        self._collect()
        time_ns, now_ns = time.time_ns(), time.monotonic_ns()
        interval_s = 0.0 if self._read_ns is None else (now_ns - self._read_ns) / 1e9
        self._read_ns = now_ns
        result = with_ratio(self._counters.values(interval_s), self._machine.memory_bytes)
        samples = [
            Sample(time_ns, interval_s, watch.host, *value)
            for value in result
            if is_watched(value.instance, self._devices)
            for watch in self._watches
        ]
        return [*samples, *self._of_tiers(time_ns, interval_s)] if self._tiers else samples

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        return {
            watch.host: {
                **self._machine.host(watch.tier, self._places[watch.host], self._devices),
                "not_measured": self._missing(watch),
            }
            for watch in self._watches
        }

    def close(self) -> None:
        self._counters.close()

    def _of_tiers(self, time_ns: int, interval_s: float) -> Iterator[Sample]:
        before, self._processes = self._processes, processes_here()
        for host, (tier, wanted) in self._tiers.items():
            first = roots_here(wanted, self._processes)
            values = tier.values(first, self._processes, before, interval_s, self._machine.cores)
            for value in values:
                yield Sample(time_ns, interval_s, host, *value)

    def _collect(self) -> None:
        try:
            self._counters.collect()
        except self._error as error:
            raise CollectorError(
                f"{_WHERE}: Windows' counters cannot be read ({error}); rebuild them as an administrator: "
                "lodctr /R, then winmgmt /resyncperf"
            ) from error

    def _disks(self, name: str) -> tuple[str, ...]:
        return tuple(self._counters.instances(name))

    def _missing(self, watch: Watch) -> list[dict[str, Any]]:
        result = list(not_measured(self._machine, (), (), self._places[watch.host].items()))
        result += [asdict(NotMeasured(metric, "", why, None)) for metric, why in self._counters.missing]
        result.append(asdict(NotMeasured("net.errors_per_s", "", "PDH shows totals of errors only", None)))
        if watch.host in self._tiers:
            _, wanted = self._tiers[watch.host]
            result.append(asdict(NOT_OF_A_TIER))
            if not roots_here(wanted, processes_here()):
                result.append(asdict(nothing_runs(watch.tier, wanted)))
        return result
