"""Reads MySQL's lists of sessions: the process list, and InnoDB's monitor, printed once or repeatedly.

Sessions are counted at the time of each output. Nothing is known about the time between two outputs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.text import LastLine, zone_of
from pinchpoint_collectors.imports.times import LEAST_S, Dates, numbered_s, zoned_s
from pinchpoint_collectors.record import Sample

_LIST = re.compile(
    r"\|?\s*Id\s*[|\t]\s*User\s*[|\t]\s*Host\s*[|\t]\s*db\s*[|\t]\s*Command\s*[|\t]\s*Time\b.*", re.IGNORECASE
)
_MONITOR = re.compile(r"(?P<time>\d[\d-]+\s+\d{1,2}:\d\d:\d\d)\b.*INNODB MONITOR OUTPUT\s*")
_TIMES = ("%Y-%m-%d %H:%M:%S", "%y%m%d %H:%M:%S")
_PENDING = re.compile(r"Pending normal aio reads:\s*(?:\[)?(?P<reads>\d+)")
_LOCKS, _ACTIVE, _READS = "db.lock_waiters", "db.sessions_active", "Data:pending reads"
Counts = Counter[tuple[str, str]]


class MysqlSessions:
    """Import format ``mysql-sessions``."""

    name = "mysql-sessions"
    says = "MySQL's process list (SHOW FULL PROCESSLIST) or InnoDB's monitor (SHOW ENGINE INNODB STATUS)"

    def recognises(self, head: str) -> bool:
        """Return whether the start has the column names of the list, or the title of the monitor."""
        lines = head.lstrip("\ufeff").splitlines()[:_BEGIN]
        return any(_LIST.fullmatch(line.strip()) or _MONITOR.fullmatch(line.strip()) for line in lines)

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per count and output (see ``Format.read``)."""
        times: list[str] = []
        outputs: list[Counts] = []
        columns: list[str] = []
        for _, text in LastLine(facts).lines(lines):
            plain = text.strip()
            if _LIST.fullmatch(plain):
                columns = _cells(plain)
                outputs.append(Counter({(_LOCKS, ""): 0, (_ACTIVE, ""): 0}))
            elif monitor := _MONITOR.fullmatch(plain):
                times.append(" ".join(monitor["time"].split()))
                outputs.append(Counter({(_LOCKS, ""): 0}))
            elif outputs:
                outputs[-1].update(_of_list(plain, columns) if columns else _of_monitor(plain))
        facts.facts("")
        yield from _samples(outputs, times, settings, facts)


_BEGIN = 10
"""Number of lines within which the recognised line must be."""


def _cells(text: str) -> list[str]:
    mark = "|" if "|" in text else "\t"
    return [cell.strip() for cell in text.strip("|").split(mark)]


def _of_list(text: str, columns: list[str]) -> Counts:
    """Return whether a session works, and whether it waits for a lock.

    The list does not show InnoDB's locks.
    """
    row = dict(zip((name.casefold() for name in columns), _cells(text), strict=False))
    if row.get("command") not in {"Query", "Execute"}:
        return Counter()
    locked = "lock" in row.get("state", "").casefold()
    return Counter({(_ACTIVE, ""): 1, **({(_LOCKS, ""): 1} if locked else {})})


def _of_monitor(text: str) -> Counts:
    if text.startswith("LOCK WAIT "):
        return Counter({(_LOCKS, ""): 1})
    pending = _PENDING.match(text)
    return Counter({("db.sessions_waiting", _READS): int(pending["reads"])}) if pending else Counter()


def _samples(
    outputs: list[Counts], times: list[str], settings: Settings, facts: FileFacts
) -> Iterator[Sample]:
    """Yield samples. Each output covers the time since the previous one, and the first a moment."""
    if len(times) == len(outputs):
        dates, zone = Dates(times, _TIMES, facts), zone_of(settings, facts)
        at_s = [zoned_s(dates.read(time), zone, None) for time in times]
    else:
        start_s, every_s = numbered_s(settings, facts)
        at_s = [start_s + number * every_s for number in range(len(outputs))]
    before_s = None
    for time_s, counts in zip(at_s, outputs, strict=True):
        covered_s = LEAST_S if before_s is None or time_s <= before_s else time_s - before_s
        before_s = time_s
        for (metric, instance), count in counts.items():
            yield Sample(round(time_s * 1e9), covered_s, "", metric, instance, float(count), None)
