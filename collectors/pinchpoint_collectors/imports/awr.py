"""Reads Oracle's AWR and Statspack reports in text form: waits of sessions, and the CPU of the host.

A report is one reading that covers the time between two snapshots. Seconds waited per second are waiting
sessions, by Little's law.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

from pinchpoint_collectors.common import numerals
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.text import LastLine, zone_of
from pinchpoint_collectors.imports.times import zoned_s
from pinchpoint_collectors.record import Sample

_FIRST = re.compile(r"[\ufeff\s]*(?:WORKLOAD REPOSITORY (?:PDB )?report|STATSPACK report)", re.IGNORECASE)
_SNAPSHOT = re.compile(
    r"(?P<which>Begin|End) Snap:\s+\d+\s+(?P<time>\d{1,2}-\w{3}-\d{2,4} \d\d:\d\d:\d\d)\b", re.IGNORECASE
)
_TIMES = ("%d-%b-%y %H:%M:%S", "%d-%b-%Y %H:%M:%S")
_HOST = re.compile(r"(?P<host>\S+)\s+\S.*?\s(?P<cpus>\d+)(?:\s+\d+){0,2}\s+[\d.]+\s*")
_ABOVE = {
    "host": re.compile(r"Host Name\s.*CPUs|Host\s+Name:", re.IGNORECASE),
    "events": re.compile(r"(Top \S+ .*Events|Foreground Wait Events)\b", re.IGNORECASE),
    "cpu": re.compile(r"Host CPU\b", re.IGNORECASE),
}
"""Section -> heading above it."""
_EVENT = re.compile(r"(?P<event>\S.*?\S)\s{2,}[\d,]+\s+(?P<seconds>[\d,.]+[KMG]?)\s.*")
_SCALES = {"K": 1e3, "M": 1e6, "G": 1e9}

_EVENTS = (
    (r"enq: |row cache lock|library cache lock", "Lock"),
    (r"log file (sync|parallel write|switch)|log buffer space", "Log"),
    (
        r"db file |direct path (read|write)(?! temp)|control file |read by other session|free buffer waits",
        "Data",
    ),
    (r"direct path (read|write) temp", "Temp"),
    (r"buffer busy|latch|cursor: |library cache|gc buffer busy", "Latch"),
    (r"SQL\*Net .*dblink", "External"),
    (r"SQL\*Net ", "Client"),
    (r"gc |LNS |LGWR-LNS|Data Guard", "Replica"),
)
"""Begin of an event's name -> wait."""


class Awr:
    """Import format ``awr``."""

    name = "awr"
    says = "Oracle's AWR or Statspack report, as text"

    def recognises(self, head: str) -> bool:
        """Return whether the file is recognised by its title."""
        return _FIRST.match(head) is not None

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per kind of wait and share of CPU (see ``Format.read``)."""
        report = _Report()
        for _, text in LastLine(facts).lines(lines):
            report.add(text.strip())
        begin, end = (report.times.get(name) for name in ("begin", "end"))
        if begin is None or end is None or end <= begin:
            raise ForeignFileError("it has no times of its snapshots (Begin Snap, End Snap); print it again")
        if not report.waited_s and not report.cpu:
            raise ForeignFileError(
                "it has neither its top events nor the host's CPU; print it again, as text"
            )
        facts.facts(report.host).update({"cores": report.cores} if report.cores else {})
        zone = zone_of(settings, facts)
        begin_s, end_s = (zoned_s(moment, zone, None) for moment in (begin, end))
        interval_s, at_ns = end_s - begin_s, round(end_s * 1e9)
        figures = {where: seconds / interval_s for where, seconds in report.waited_s.items()}
        for (metric, instance), value in {**figures, **report.cpu}.items():
            yield Sample(at_ns, interval_s, report.host, metric, instance, value, None)


class _Report:
    """What was read of a report up to now."""

    def __init__(self) -> None:
        self.times: dict[str, datetime] = {}
        self.host = ""
        self.cores = 0
        self.waited_s: Counter[tuple[str, str]] = Counter()
        self.cpu: dict[tuple[str, str], float] = {}
        self._section = ""
        self._names: list[str] = []

    def add(self, text: str) -> None:
        """Read a line. Raises ``ForeignFileError``."""
        if snapshot := _SNAPSHOT.match(text):
            self.times[snapshot["which"].casefold()] = _moment(snapshot["time"])
            return
        section = next((name for name, above in _ABOVE.items() if above.match(text)), "")
        if section:
            self._section, self._names = section, []
        elif self._section == "host" and (machine := _HOST.fullmatch(text)):
            self.host, self.cores, self._section = machine["host"], int(machine["cpus"]), ""
        elif self._section == "events" and (event := _EVENT.fullmatch(text)):
            if where := _place(event["event"]):
                self.waited_s[where] += round(_number(event["seconds"]))
        elif self._section == "cpu":
            self._cpu(text)

    def _cpu(self, text: str) -> None:
        if "%idle" in text.casefold():
            self._names = re.findall(r"%\w+", text.casefold())
        elif self._names and text[:1].isdigit():
            cells = map(_number, text.split()[-len(self._names) :])
            shares = dict(zip(self._names, cells, strict=False))
            self._section = ""
            self.cpu["cpu.busy_ratio", ""] = max(0.0, 1 - shares.get("%idle", 100.0) / 100)
            if "%wio" in shares:
                self.cpu["cpu.wait_ratio", ""] = shares["%wio"] / 100


def _moment(text: str) -> datetime:
    for format_ in _TIMES:
        with contextlib.suppress(ValueError):
            return datetime.strptime(text, format_)  # noqa: DTZ007 -- local time; ``read`` gives it its zone
    raise ForeignFileError(f"found the time {text!r}; allowed: 20-Nov-26 09:00:00, as Oracle prints it")


def _number(text: str) -> float:
    plain = text.replace(",", "")
    try:
        return numerals.strict(plain.rstrip("KMG")) * _SCALES.get(plain[-1:], 1.0)
    except ValueError as error:
        raise ForeignFileError(f"found {text[:40]!r} where a number should be; print it again") from error


def _place(event: str) -> tuple[str, str] | None:
    """Return metric and instance of an event; None if it is no wait for a resource."""
    kind = next((kind for begins, kind in _EVENTS if re.match(begins, event)), None)
    if kind is None:
        return None
    return ("db.lock_waiters", "") if kind == "Lock" else ("db.sessions_waiting", f"{kind}:{event}")
