"""Reads text output of ``pidstat``: CPU time of processes (``-t``: of threads), and waits for I/O.

Only active tasks are listed. Tasks that were listed before and are missing now were idle. Processes of one
name are one figure, a share of the machine's cores. For threads of one name the busiest counts, as a share of
one core. ``%wait`` is the time that a task waited for a CPU; its sum over tasks is the mean number of waiting
threads. ``iodelay`` (``-d``) is the time that processes waited for I/O in clock ticks; the process that
waited longest represents the pressure on I/O.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.sysstat import TEXT, note_machine, text_block
from pinchpoint_collectors.imports.text import DayClock, LastLine, cells, number
from pinchpoint_collectors.record import Sample

_ROW = re.compile(r"(?P<time>#\s+Time|\d{1,2}:\d\d:\d\d(?: [AP]M)?|\d{9,})\s+(?P<rest>\S.*)")
_BUSY, _WAIT, _DELAY, _FAULTS, _NAME = "%CPU", "%wait", "iodelay", "majflt/s", "Command"
_TICKS_PER_S = 100.0
"""Ticks per second of the kernel's clock, in user space."""
_THREAD = "|__"


class Pidstat:
    """Import format ``pidstat``."""

    name = "pidstat"
    says = "pidstat's text (pidstat -u 5 720, with -t of threads, or -d)"

    def recognises(self, head: str) -> bool:
        """Return whether the file is recognised by sysstat's first line, and the column of commands."""
        if not TEXT.match(head):
            return False
        rows = filter(None, map(_ROW.fullmatch, map(str.strip, head.splitlines())))
        return any(row["rest"].split()[-1] == _NAME for row in rows)

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per name and reading (see ``Format.read``)."""
        tasks: _Tasks | None = None
        last = LastLine(facts)
        for line, text in last.lines(lines):
            if begin := TEXT.match(text):
                if tasks is not None:
                    yield from tasks.end()
                tasks = _Tasks(text_block(begin), settings, facts)
            elif tasks is not None and (row := _ROW.fullmatch(text.strip())):
                yield from last.kept(tasks.samples(row["time"], row["rest"], line))
        if tasks is not None:
            yield from tasks.end()
            if not tasks.is_used:
                raise ForeignFileError("Pinchpoint uses none of its tables; record pidstat -u -t, -d or -r")
        facts.note("only the CPU time of processes and their waits were used; the rest was ignored")


def _is_used(columns: Sequence[str]) -> bool:
    return not {_BUSY, _DELAY, _FAULTS}.isdisjoint(columns)


class _Tasks:
    """The readings after one first line.

    Args:
        machine: block of JSON from the first line.
        settings: user's options (see ``record.Settings``).
        found: receives facts (see ``record.FileFacts``).
    """

    def __init__(self, machine: Mapping[str, Any], settings: Settings, facts: FileFacts) -> None:
        self._machine = machine
        self._host = note_machine(machine, facts)
        self._clock = DayClock(machine["date"], settings, facts)
        self._columns: Sequence[str] = ()
        self._before_s: float | None = None
        self._time_s: float | None = None
        self._values: dict[str, float] = {}
        self._known: dict[str, None] = {}
        self._waiting: float | None = None
        self.is_used = False
        self._delays_s: list[float] | None = None
        self._faults: float | None = None

    def samples(self, time: str, rest: str, line: int) -> Iterator[Sample]:
        """Return the samples of the reading that a line ends, if it ends one. Raises ``ForeignFileError``."""
        words = rest.split()
        if words[-1] == _NAME and words[0] in {"UID", "USER"}:
            yield from self._begin(time, words, line)
        elif _is_used(self._columns):
            row = cells(self._columns, rest.split(None, len(self._columns) - 1), line)
            time_s = self._utc_s(time, line)
            if time_s != self._time_s:
                yield from self.end()
                self._time_s = time_s
            self._add(row, line)

    def _begin(self, time: str, columns: Sequence[str], line: int) -> Iterator[Sample]:
        """Begin a table, which follows the time of the previous reading (except with ``-h``)."""
        if _is_used(columns):
            self.is_used = True
            yield from self.end()
            if not time.startswith("#"):
                self._before_s = self._utc_s(time, line)
        self._columns = columns

    def _add(self, row: Mapping[str, str], line: int) -> None:
        is_thread = row[_NAME].startswith(_THREAD)
        if _DELAY in row:
            ticks = number(row[_DELAY], _DELAY, line) if not is_thread else None
            self._delays_s = [*(self._delays_s or ()), (ticks or 0.0) / _TICKS_PER_S]
        if _FAULTS in row and not is_thread:
            self._faults = (self._faults or 0.0) + (number(row[_FAULTS], _FAULTS, line) or 0.0)
        if _BUSY not in row:
            return
        busy = number(row[_BUSY], _BUSY, line)
        name = f"{'thread' if is_thread else 'process'}:{row[_NAME].removeprefix(_THREAD)}"
        self._known[name] = None
        if busy is not None:
            before = self._values.get(name, 0.0)
            self._values[name] = max(before, busy / 100) if is_thread else before + busy / 100
        wait = number(row[_WAIT], _WAIT, line) if _WAIT in row and not is_thread else None
        if wait is not None:
            self._waiting = (self._waiting or 0.0) + wait / 100

    def end(self) -> Iterator[Sample]:
        """Return the samples of the current reading, if its interval is known."""
        before_s, time_s = self._before_s, self._time_s
        if time_s is not None and before_s is not None and time_s > before_s:
            at_ns, interval_s = round(time_s * 1e9), time_s - before_s
            cores = self._machine["number-of-cpus"]
            for name in self._known if _BUSY in self._columns else ():
                of = 1 if name.startswith("thread:") else cores
                if of:
                    value = self._values.get(name, 0.0) / of
                    yield Sample(at_ns, interval_s, self._host, "cpu.busy_ratio", name, value, None)
            if self._waiting is not None:
                yield Sample(at_ns, interval_s, self._host, "cpu.waiting_threads", "", self._waiting, None)
            if self._delays_s is not None:
                waited, longest = sum(self._delays_s) / interval_s, min(max(self._delays_s) / interval_s, 1.0)
                yield Sample(at_ns, interval_s, self._host, "cpu.blocked_threads", "", waited, None)
                yield Sample(at_ns, interval_s, self._host, "pressure.io_ratio", "", longest, None)
            if self._faults is not None:
                yield Sample(at_ns, interval_s, self._host, "mem.major_faults_per_s", "", self._faults, None)
        if time_s is not None:
            self._before_s = time_s
        self._time_s, self._waiting, self._delays_s, self._faults = None, None, None, None
        self._values.clear()

    def _utc_s(self, time: str, line: int) -> float:
        return float(time) if time.isdigit() else self._clock.utc_s(time, line)
