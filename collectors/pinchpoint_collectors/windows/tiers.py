"""The tiers of one Windows machine that are only part of it, from the lines that tell of processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pinchpoint_collectors.common.powershell import Line
from pinchpoint_collectors.processes import Process
from pinchpoint_collectors.record import NotMeasured
from pinchpoint_collectors.value import Value
from pinchpoint_collectors.windows.machine import REBUILD
from pinchpoint_collectors.windows.processes import (
    NOT_OF_A_TIER,
    PER_S,
    WindowsTier,
    missing,
    roots,
    table_of,
)
from pinchpoint_collectors.windows.reading import rows_of
from pinchpoint_collectors.windows.sought import PATTERN, Sought


class Taken(NamedTuple):
    """What a line says of the tiers.

    Attributes:
        values: (host, value).
        interval_s: what they cover, 0 at a first reading; None: they could not be read.
        begins: whether it is the first reading of a link.
    """

    values: list[tuple[str, Value]]
    interval_s: float | None = 0.0
    begins: bool = False


class Tiers:
    """From reading to reading.

    Args:
        sought: host -> (its tier's name, which processes it begins with).
    """

    def __init__(self, sought: Mapping[str, tuple[str, Sought]]) -> None:
        self._sought = {host: each for host, (_, each) in sought.items()}
        self._tiers = {host: WindowsTier(tier) for host, (tier, _) in sought.items()}
        self.begin_anew()

    def begin_anew(self) -> None:
        """Another link: what was known from the one before is of no use."""
        self._columns: tuple[str, ...] = ()
        self._found: dict[tuple[str, str], tuple[int, ...]] = {}
        self._why: dict[tuple[str, str], str] = {}
        self._before: dict[int, Process] | None = None
        self._before_at = 0

    def takes(self, line: Line) -> bool:
        """Whether a line tells of processes."""
        return line["kind"] == "found" or line.get("class") == PATTERN

    def take(self, line: Line, cores: int | None) -> Taken:
        """One such line; ``cores``: of the machine. Raises ``CollectorError`` for one that is damaged."""
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
            return Taken(lost, None)
        return Taken([])

    def missing(self, host: str) -> Iterator[NotMeasured]:
        """What is not measured of a host's tier."""
        tier, sought = self._tiers.get(host), self._sought.get(host)
        if tier is None or sought is None:
            return
        yield NOT_OF_A_TIER
        if not self._columns:
            why = "Windows has no counters of processes: they are damaged, or this user may not see them"
            yield NotMeasured("cpu.busy_ratio", f"tier:{tier.name}", why, REBUILD)
        elif not tier.found:
            said = [self._why[sought.what, text] for text in sought.texts if (sought.what, text) in self._why]
            yield missing(tier.name, sought, said[0] if said else None)

    def _take_found(self, line: Line) -> None:
        name = str(line["what"]), str(line["text"])
        self._found[name] = tuple(int(pid) for pid in str(line["processes"]).split(",") if pid)
        self._why.pop(name, None)
        if line.get("why"):
            self._why[name] = str(line["why"])

    def _take_rows(self, line: Line, cores: int | None) -> Taken:
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
            found = {text: self._found.get((sought.what, text), ()) for text in sought.texts}
            first = roots(sought, table, found)
            interval_s = passed_s if before is not None else 0.0
            values += [(host, one) for one in tier.values(first, table, before, interval_s, cores)]
        return Taken(values, passed_s if before is not None else 0.0, begins=before is None)
