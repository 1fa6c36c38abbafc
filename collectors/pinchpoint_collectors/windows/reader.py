"""Converts the output of a machine's script to samples with the machine's own times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pinchpoint_collectors.common.powershell import Line
from pinchpoint_collectors.record import Incident, Sample
from pinchpoint_collectors.remote.clock import WARN_OFFSET_S, HostClock
from pinchpoint_collectors.value import Value
from pinchpoint_collectors.windows.counters import TOTAL
from pinchpoint_collectors.windows.disks import is_watched
from pinchpoint_collectors.windows.machine import WindowsMachine
from pinchpoint_collectors.windows.reading import (
    ClassRows,
    CounterClass,
    class_of,
    interval_s,
    not_read,
    rows_of,
    values,
    with_ratio,
)
from pinchpoint_collectors.windows.script import CounterObject, unix_ns
from pinchpoint_collectors.windows.stream import Arrived
from pinchpoint_collectors.windows.tiers import WindowsTiers

KIND = "windows"
_GAP_INTERVALS = 2.5
_NS = 1_000_000_000
_STEP_NS = 15_625_000
"""Largest step of Windows' clock in ns: it is updated 64 times a second."""
_BUSY = "it was too busy to read itself in time; what was read covers all of it"
_OF_READINGS = ("rows", "failed", "ready", "time")


@dataclass(slots=True)
class _Session:
    """The state of one link. A new link starts with a new state.

    Attributes:
        number: number of the link.
        classes: class -> counters.
        widths: class -> number of columns of its rows.
        before: class -> last rows.
        read_ns: end of the last reading in ns by the local clock.
        reading: number of the last reading.
        cpu_s: CPU seconds of the script up to then.
    """

    number: int
    classes: dict[str, CounterClass] = field(default_factory=dict)
    widths: dict[str, int] = field(default_factory=dict)
    before: dict[str, ClassRows] = field(default_factory=dict)
    read_ns: int | None = None
    reading: int = 0
    cpu_s: float | None = None


class ScriptReader:
    """Processes the lines of a machine in the order of their arrival.

    Args:
        hosts: names under which samples are reported.
        wanted: classes that the script was asked for.
        every_s: seconds between two readings.
        tiers: tiers that are only a part of the machine.

    Attributes:
        machine: facts about the machine, as far as reported.
        clock: clock of the machine.
        devices: watched devices: volumes without letter or folder only if they have a role, and all others.
        measured: whether there were two complete readings over one link.
        incidents: events that were not taken yet.
        lost: why the last link was lost; "" if none was lost, or the reason is unknown.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        wanted: Sequence[CounterObject],
        every_s: float,
        tiers: WindowsTiers | None = None,
    ) -> None:
        self.machine = WindowsMachine()
        self.clock = HostClock()
        self.devices: frozenset[str | None] = frozenset()
        self.measured = False
        self.incidents: list[Incident] = []
        self.lost = ""
        self._hosts = tuple(hosts)
        self._wanted = tuple(wanted)
        self._every_s = every_s
        self._tiers = tiers or WindowsTiers({})
        self._session = _Session(0)
        self._waiting: list[tuple[int, Arrived]] = []
        self._reported_ns: int | None = None
        self._warned = False

    @property
    def has_read(self) -> bool:
        """Return whether there was a complete reading over this link."""
        return self._session.reading > 0

    @property
    def classes(self) -> list[CounterClass]:
        """Return the requested classes that this machine has."""
        return list(self._session.classes.values())

    def samples(self, lines: Sequence[tuple[int, Arrived]]) -> list[Sample]:
        """Return the samples in lines, each with the number of its link.

        Samples are held back until the offset of the machine's clock is known, because they have its times.
        """
        for _, arrived in lines:
            if arrived.line["kind"] == "time":
                self._observe(int(arrived.line["asked"]), int(arrived.line["utc"]), arrived.received_ns)
        self._waiting += lines
        if not self.clock.known:
            return []
        waiting, self._waiting = self._waiting, []
        samples: list[Sample] = []
        for number, arrived in waiting:
            if number != self._session.number:
                self._session, self.machine = _Session(number), WindowsMachine()
                self._tiers.begin_anew()
            samples += self._line(arrived.line)
        return samples

    def _line(self, line: Line) -> list[Sample]:
        kind, session = line["kind"], self._session
        known = line.get("class") in session.classes
        if self._tiers.takes(line):
            return self._of_tiers(line)
        if kind == "class":
            counted = class_of(line, self._wanted)
            if counted is not None:
                session.classes[counted.name] = counted
                session.widths[counted.name] = len(str(line["columns"]).split(","))
        elif kind == "rows" and known:
            return self._rows(line)
        elif kind == "failed" and known:
            name = line["class"]
            lost = not_read(session.classes[name], session.before.get(name), only_instance=self._only())
            return self._fanned(int(line["utc"]), self._every_s, lost)
        elif kind == "reading":
            return self._reading(line)
        elif kind not in _OF_READINGS:
            self.machine.take(line)
        return []

    def _rows(self, line: Line) -> list[Sample]:
        session, name = self._session, line["class"]
        counted, before = session.classes[name], session.before.get(name)
        after = session.before[name] = rows_of(line, session.widths[name])
        storage = self.machine.storage
        if counted.wanted.object == "LogicalDisk":
            storage.logical = _disks(after)
        elif counted.wanted.object == "PhysicalDisk":
            storage.physical = _disks(after)
        passed_s = 0.0
        if before is not None:
            steady_s = interval_s(before, after)
            passed_s = (after.utc - before.utc) / 1e7 if steady_s is None else steady_s
        if passed_s < 0:  # the machine was restarted, so the last rows are of no use
            before, passed_s = None, 0.0
        if before is None and self._reported_ns is not None:
            return []  # the first reading after a gap covers no time, and would be an instant among seconds
        result = values(counted, before, after, only_instance=self._only())
        return self._fanned(after.utc, passed_s, result)

    def _of_tiers(self, line: Line) -> list[Sample]:
        """Yield samples of tiers from a line about processes; none if the line covers no time after a gap."""
        result, interval_s, begins = self._tiers.take(line, self.machine.cores)
        if begins and self._reported_ns is not None:
            return []
        time_ns = self._ours(int(line["utc"])) if result else 0
        covered_s = self._every_s if interval_s is None else interval_s
        return [Sample(time_ns, covered_s, host, *value) for host, value in result]

    def _reading(self, line: Line) -> list[Sample]:
        """Process the end of a reading: its cost on the machine, and whether earlier readings are missing."""
        session, now_ns = self._session, self._ours(int(line["utc"]))
        spent_s = float(line["cpu_s"])
        cost_s = None if session.cpu_s is None else spent_s - session.cpu_s
        interval = 0.0 if session.read_ns is None else (now_ns - session.read_ns) / _NS
        self._report_gap(now_ns, same_link=session.read_ns is not None)
        session.reading, session.read_ns, session.cpu_s = int(line["number"]), now_ns, spent_s
        self._reported_ns = now_ns
        if cost_s is None:
            return []
        self.measured = True
        return [
            Sample(now_ns, interval, host, "collector.cpu_s", f"{KIND}/host", cost_s) for host in self._hosts
        ]

    def _report_gap(self, now_ns: int, *, same_link: bool) -> None:
        if self._reported_ns is None:
            return
        passed_s = (now_ns - self._reported_ns) / _NS
        if same_link and passed_s < _GAP_INTERVALS * self._every_s:
            return
        missed = max(1, round(passed_s / self._every_s) - 1)
        why = _BUSY if same_link else self.lost or "the link was lost"
        self.incidents.append(Incident.gap(self._reported_ns, now_ns, missed, self._every_s, why))

    def _observe(self, asked_ns: int, stamp: int, received_ns: int) -> None:
        """Record the time of the machine.

        It is at some point of its clock's step, so half a step adds to the error.
        """
        half_ns = _STEP_NS // 2
        self.clock.observe(asked_ns - half_ns, unix_ns(stamp) + half_ns, received_ns + half_ns)
        offset_s, error_s = self.clock.offset_ns / _NS, self.clock.error_ns / _NS
        far = abs(offset_s) - error_s > WARN_OFFSET_S
        if far and not self._warned:
            self.incidents.append(Incident("clock_offset", {"offset_s": offset_s, "error_s": error_s}))
        self._warned = far

    def _ours(self, stamp: int) -> int:
        return self.clock.to_ours(unix_ns(stamp) + _STEP_NS // 2)

    def _fanned(self, stamp: int, passed_s: float, found: Iterable[Value]) -> list[Sample]:
        """Yield samples under the names of all hosts on this machine."""
        time_ns = self._ours(stamp)
        return [
            Sample(time_ns, passed_s, host, *value)
            for value in with_ratio(found, self.machine.memory_bytes)
            if is_watched(value.instance, self.devices)
            for host in self._hosts
        ]

    def _only(self) -> bool:
        """Return whether there is at most one instance of SQL Server."""
        result = {one.sql_instance for one in self._session.classes.values()} - {None}
        return len(result) <= 1


def _disks(rows: ClassRows) -> tuple[str, ...]:
    return tuple(name for name in rows.by_name if name.casefold() != TOTAL)
