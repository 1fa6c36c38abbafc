"""Finds a tier's processes on Windows by name, service or command line, with their children.

The counters are those of ``Win32_PerfRawData_PerfProc_Process``
(learn.microsoft.com/previous-versions/aa394323(v=vs.85)). The name of an instance is that of its program,
with a number after ``#`` that another process gets when one of them ends. A process is therefore identified
by its id and its start. ``PercentProcessorTime`` counts 100 ns of CPU time (PERF_100NSEC_TIMER).
``ElapsedTime`` contains the start (PERF_ELAPSED_TIME, technet.microsoft.com/library/cc977698: (D0 - N0) / F,
where N0 is the value read).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from pinchpoint_collectors.common.powershell import Line
from pinchpoint_collectors.processes import Members, Process, children
from pinchpoint_collectors.record import NotMeasured
from pinchpoint_collectors.value import Value
from pinchpoint_collectors.windows.machine import REBUILD
from pinchpoint_collectors.windows.reading import ClassRows, rows_of
from pinchpoint_collectors.windows.script import PATTERN, PROPERTIES, ProcessSelector

PER_S = 10_000_000
"""Units of CPU time and starts per second: 100 ns."""
NOT_OF_A_TIER = NotMeasured(
    "cpu.busy_ratio",
    "thread:*",
    "threads have no names in Windows' counters, and to read them takes all threads of the machine",
    None,
)

_SUFFIX = re.compile(r"#\d+$|\.exe$", re.IGNORECASE)


def plain(name: str) -> str:
    """Return a program's name for comparison: ``sqlservr``, ``SQLSERVR.EXE`` and ``sqlservr#1`` are equal."""
    return _SUFFIX.sub("", _SUFFIX.sub("", name.strip())).casefold()


def table_of(rows: ClassRows, columns: Iterable[str]) -> dict[int, Process]:
    """Return id -> process, with CPU time and starts in 100 ns.

    Args:
        rows: rows of the class.
        columns: properties in the order of the rows.
    """
    places = {column: at for at, column in enumerate(columns)}
    result = {}
    for name, row in rows.by_name.items():
        values = [row.cells[places[one]] if one in places else None for one in PROPERTIES]
        pid, parent, start, own, threads = values
        if not pid or start is None or own is None:  # the sum of all processes and the idle process have none
            continue
        # "Process V2" and a setting of the registry put the id behind the name.
        program = re.sub(rf"[:_]{pid}$", "", name)
        result[pid] = Process(pid, parent or 0, plain(program), start, threads or 1, own, 0)
    return with_true_parents(result)


def with_true_parents(process: Mapping[int, Process]) -> dict[int, Process]:
    """Return the table without parents that have ended and whose ids were reused.

    No process is older than its parent.
    """

    def true(one: Process) -> int:
        parent = process.get(one.parent)
        return one.parent if parent is not None and parent.start <= one.start else 0

    return {pid: one._replace(parent=true(one)) for pid, one in process.items()}


class WindowsTier:
    """The processes of one tier, from reading to reading.

    The CPU time that a process used between its last reading and its end is lost, because Windows adds it to
    no other process.

    Args:
        name: name of the tier.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._members = Members()

    @property
    def found(self) -> bool:
        """Return whether the tier had any process at the last reading."""
        return bool(self._members.now)

    def values(
        self,
        roots: Iterable[Process],
        table: Mapping[int, Process],
        before: Mapping[int, Process] | None,
        interval_s: float,
        cores: int | None,
    ) -> Iterator[Value]:
        """Yield the CPU use of the tier since the last reading.

        Args:
            roots: root processes of the tier.
            table: all processes now, with CPU time in 100 ns.
            before: all processes at the last reading; None at the first.
            interval_s: seconds between the readings.
            cores: number of cores of the machine; None: not reported.
        """
        self._members.follow(roots, table, children(table.values()))
        there = cores if self._members.now else None
        instance = f"tier:{self.name}"
        yield Value("cpu.cores", instance, there)
        if before is None or interval_s <= 0:
            return
        used = self._members.used_ticks(before)
        yield Value("cpu.busy_ratio", instance, used / (there * interval_s * PER_S) if there else None)


def roots(
    sought: ProcessSelector, table: Mapping[int, Process], value: Mapping[str, Collection[int]]
) -> list[Process]:
    """Return the selected processes.

    Args:
        sought: selection.
        table: all processes.
        value: text -> ids, of services and command lines, as reported by the machine.
    """
    if sought.what == "process":
        names = set(map(plain, sought.texts))
        return [one for one in table.values() if one.name in names]
    return [table[pid] for text in sought.texts for pid in value.get(text, ()) if pid in table]


def missing(tier: str, sought: ProcessSelector, why: str | None) -> NotMeasured:
    """Return the reason if a tier has no process. ``why`` is the machine's own message, if any."""
    remedy = {
        "process": "start it before the run, or give `process:` a name as `Get-Process` shows it",
        "service": "start it before the run, or give `service:` a name as `Get-Service` shows it; "
        "others than administrators may not be shown any",
        "command_line": "start it before the run; others' command lines are seen by administrators only",
    }
    result = f"nothing runs there with the {sought}" + (f" ({why})" if why else "")
    return NotMeasured("cpu.busy_ratio", f"tier:{tier}", result, remedy[sought.what])


class TierReadings(NamedTuple):
    """The values of tiers in one line.

    Attributes:
        values: host and value.
        interval_s: seconds that the values cover, 0 at a first reading; None: they could not be read.
        begins: whether this is the first reading over a link.
    """

    values: list[tuple[str, Value]]
    interval_s: float | None = 0.0
    begins: bool = False


class WindowsTiers:
    """The tiers of one machine, from reading to reading.

    Args:
        sought: host -> name of its tier, and selection of its root processes.
    """

    def __init__(self, sought: Mapping[str, tuple[str, ProcessSelector]]) -> None:
        self._sought = {host: each for host, (_, each) in sought.items()}
        self._tiers = {host: WindowsTier(tier) for host, (tier, _) in sought.items()}
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the last reading, because it came over another link."""
        self._columns: tuple[str, ...] = ()
        self._found: dict[tuple[str, str], tuple[int, ...]] = {}
        self._why: dict[tuple[str, str], str] = {}
        self._before: dict[int, Process] | None = None
        self._before_at = 0

    def takes(self, line: Line) -> bool:
        """Return whether a line describes processes."""
        return line["kind"] == "found" or line.get("class") == PATTERN

    def take(self, line: Line, cores: int | None) -> TierReadings:
        """Process such a line; ``cores`` is the number of cores.

        Raises ``CollectorError`` if it is damaged.
        """
        kind = line["kind"]
        if kind == "found":
            self._take_found(line)
        elif kind == "class":
            self._columns = tuple(str(line["columns"]).split(","))
        elif kind == "rows":
            return self._take_rows(line, cores)
        elif kind == "failed":
            self._before = None
            lost = [
                (host, Value(metric, f"tier:{tier.name}", None))
                for host, tier in self._tiers.items()
                for metric in ("cpu.cores", "cpu.busy_ratio")
            ]
            return TierReadings(lost, None)
        return TierReadings([])

    def missing(self, host: str) -> Iterator[NotMeasured]:
        """Return the metrics of a host's tier that are not measured."""
        tier, sought = self._tiers.get(host), self._sought.get(host)
        if tier is None or sought is None:
            return
        yield NOT_OF_A_TIER
        if not self._columns:
            why = "Windows has no counters of processes: they are damaged, or this user may not see them"
            yield NotMeasured("cpu.busy_ratio", f"tier:{tier.name}", why, REBUILD)
        elif not tier.found:
            lines = [
                self._why[sought.what, text] for text in sought.texts if (sought.what, text) in self._why
            ]
            yield missing(tier.name, sought, lines[0] if lines else None)

    def _take_found(self, line: Line) -> None:
        name = str(line["what"]), str(line["text"])
        self._found[name] = tuple(int(pid) for pid in str(line["processes"]).split(",") if pid)
        self._why.pop(name, None)
        if line.get("why"):
            self._why[name] = str(line["why"])

    def _take_rows(self, line: Line, cores: int | None) -> TierReadings:
        rows = rows_of(line, len(self._columns))
        table = table_of(rows, self._columns)
        at = max((row.sys_time for row in rows.by_name.values()), default=0)
        before, passed_s = self._before, (at - self._before_at) / PER_S
        self._before, self._before_at = table, at
        if passed_s <= 0:  # the machine's clock was set back
            before = None
        values = []
        for host, tier in self._tiers.items():
            sought = self._sought[host]
            result = {text: self._found.get((sought.what, text), ()) for text in sought.texts}
            first = roots(sought, table, result)
            interval_s = passed_s if before is not None else 0.0
            values += [(host, one) for one in tier.values(first, table, before, interval_s, cores)]
        return TierReadings(values, passed_s if before is not None else 0.0, begins=before is None)
