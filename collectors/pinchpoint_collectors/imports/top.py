"""Reads output of ``top -b -d 5``: its summary lines, and tasks that wait for I/O or saturate a core.

The first screen covers the time since boot and is left out. Screens have only the time of day. A task in
state D waits for I/O. For threads (``-H``) the busiest of each name is one figure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.sysstat import KIB, Reported, available_of, cpu_values, scaled, total
from pinchpoint_collectors.imports.text import DayClock, LastLine, cells, number
from pinchpoint_collectors.imports.times import ReadingTimes, begin_of
from pinchpoint_collectors.record import Sample

_TOP = re.compile(r"[\ufeff\s]*top - (?P<clock>\d\d:\d\d:\d\d) up ")
_CPU = re.compile(r"%?Cpu\(s\): *(?P<figures>.*)")
_MEMORY = re.compile(r"(?P<unit>[KMGT]iB )?(?P<what>Mem|Swap) ?: *(?P<figures>.*)")
_FIGURE = re.compile(r"(?P<value>-?[\d.]+)(?: |%|(?P<unit>[kmg]) )(?P<name>[A-Za-z/]+(?: Mem)?)")
_TASKS = re.compile(r"(?P<kind>Tasks|Threads): .*?(?P<running>\d+) running")
_CPU_NAMES = {"us": "user", "sy": "system", "ni": "nice", "id": "idle", "wa": "iowait", "st": "steal"}
_UNITS = {"": KIB, "k": KIB, "K": KIB, "M": KIB**2, "m": KIB**2, "G": KIB**3, "g": KIB**3, "T": KIB**4}


@dataclass(slots=True)
class _Screen:
    """One screen.

    Attributes:
        clock: time of day.
        line: number of its first line.
        cpu: percentages by the names of sysstat.
        memory: bytes by top's names; of the swap line only what concerns memory.
        running: number of tasks that run or wait for a core.
        columns: columns of the list.
        blocked: number of tasks that wait for I/O; None without a task list.
        threads: name -> share of a core of its busiest thread.
    """

    clock: str
    line: int
    cpu: dict[str, float | None] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)
    running: float | None = None
    has_threads: bool = False
    columns: list[str] = field(default_factory=list)
    blocked: int | None = None
    threads: dict[str, float] = field(default_factory=dict)


class Top:
    """Import format ``top``."""

    name = "top"
    says = "top's text in batch mode (top -b -d 5 -n 720)"

    def recognises(self, head: str) -> bool:
        """Return whether the file is recognised by the first line."""
        return _TOP.match(head) is not None

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per value (see ``Format.read``)."""
        facts.facts("").update(os="Linux")
        day = f"{begin_of(settings, facts):%Y-%m-%d}"
        clock, pace = DayClock(day, settings, facts), ReadingTimes()
        last_s: float | None = None
        for screen in _screens(lines, facts):
            time_s = clock.utc_s(screen.clock, screen.line)
            if last_s is not None and time_s > last_s:
                interval_s = pace.covered_s(last_s, time_s)
                for metric, instance, value, weight in _values(screen, facts):
                    yield Sample(round(time_s * 1e9), interval_s, "", metric, instance, value, weight)
            last_s = time_s
        pace.report(facts)
        facts.note("the first screen covers the time since boot and was ignored")


def _screens(lines: Iterable[str], facts: FileFacts) -> Iterator[_Screen]:
    screen: _Screen | None = None
    last = LastLine(facts)
    for line, text in last.lines(lines):
        if begin := _TOP.match(text):
            if screen is not None:
                yield screen
            screen = _Screen(begin["clock"], line)
        elif screen is not None:
            try:
                _add(screen, text.strip(), line)
            except ForeignFileError as error:
                last.damaged(error)
    if screen is not None and screen.columns:  # otherwise the screen is incomplete
        yield screen


def _add(screen: _Screen, text: str, line: int) -> None:
    if cpu := _CPU.match(text):
        screen.cpu = {
            _CPU_NAMES.get(one["name"], one["name"]): number(one["value"], one["name"], line)
            for one in _figures(cpu, line)
        }
    elif memory := _MEMORY.match(text):
        screen.memory |= _memory(memory, line)
    elif tasks := _TASKS.match(text):
        screen.has_threads = tasks["kind"] == "Threads"
        screen.running = float(tasks["running"])
    elif text.startswith("PID "):
        screen.columns, screen.blocked = text.split(), 0
    elif screen.columns and text:
        task = cells(screen.columns, text.split(None, len(screen.columns) - 1), line)
        screen.blocked = (screen.blocked or 0) + (task.get("S") == "D")
        busy = number(task["%CPU"], "%CPU", line) if screen.has_threads and "%CPU" in task else None
        if busy is not None:
            name = f"thread:{task[screen.columns[-1]]}"
            screen.threads[name] = max(screen.threads.get(name, 0.0), busy / 100)


def _figures(row: re.Match[str], line: int) -> Iterator[re.Match[str]]:
    """Return the figures of a line with their names. Raises ``ForeignFileError`` for other contents."""
    text = row["figures"].replace("+", " ")
    if rest := _FIGURE.sub("", f"{text} ").strip(" ,."):
        raise ForeignFileError(
            f"found {rest[:40]!r}; allowed: figures with their names, as top prints them; remove the screen",
            line,
        )
    yield from _FIGURE.finditer(text)


def _memory(memory: re.Match[str], line: int) -> Mapping[str, float]:
    """Return bytes by name. Some memory figures are at the end of the swap line."""
    result = {}
    for one in _figures(memory, line):
        value = number(one["value"], one["name"], line)
        unit = _UNITS[(one["unit"] or memory["unit"] or "")[:1]]
        if value is not None and (memory["what"] == "Mem" or one["name"] in {"cached", "avail Mem"}):
            result[one["name"]] = value * unit
    return result


def _values(screen: _Screen, facts: FileFacts) -> Iterator[Reported]:
    if screen.cpu:
        yield from ((metric, "", value, None) for metric, value in cpu_values(screen.cpu))
    yield "cpu.run_queue", "", screen.running, None
    if screen.blocked is not None:
        yield "cpu.blocked_threads", "", float(screen.blocked), None
    yield from (("cpu.busy_ratio", name, value, None) for name, value in screen.threads.items())
    held = screen.memory
    cached = held.get("buff/cache", total(held.get("buffers"), held.get("cached")))
    available = available_of(held.get("avail Mem"), held.get("free"), cached, facts)
    if size := held.get("total"):
        yield "mem.available_bytes", "", available, None
        yield "mem.available_ratio", "", scaled(available, 1 / size), None
