"""Reads output of ``sadf -d`` from sar's daily files: tables with semicolons, each with a line of names.

A row has the machine, its interval in seconds, its time, and the cells of ``sar``. The machine type is
missing, so pages of 4 KiB are assumed, as on x86.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo

from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports import sar
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.text import LastLine, cells, number, zone_of
from pinchpoint_collectors.record import Sample

_BEGINS = "# hostname;interval;timestamp"
_HOST, _INTERVAL, _TIME = "# hostname", "interval", "timestamp"
_MACHINE = {"machine": "x86_64"}


class SadfCsv:
    """Import format ``sadf-csv``."""

    name = "sadf-csv"
    says = "sar's daily file as tables with semicolons (sadf -d FILE -- -A)"

    def recognises(self, head: str) -> bool:
        """Return whether the file is recognised by the first line."""
        return head.lstrip("\ufeff").startswith(_BEGINS)

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per value (see ``Format.read``)."""
        columns: tuple[str, ...] = ()
        tables: dict[str, bool] = {}
        last = LastLine(facts)
        for line, text in last.lines(lines):
            words = text.strip("\ufeff\r\n ").split(";")
            if words[0].startswith("#"):
                if not text.lstrip("\ufeff").startswith(_BEGINS):
                    raise ForeignFileError(f"found {text[:40]!r}; allowed: {_BEGINS}; export again", line)
                columns = tuple(words)
                tables[" ".join(words[3:])] = sar.is_used(columns)
            elif sar.is_used(columns) and "LINUX-RESTART" not in words[-1]:
                yield from last.kept(_samples(columns, words, line, settings, facts))
        sar.refuse_unused(tables)


def _samples(
    columns: tuple[str, ...], words: list[str], line: int, settings: Settings, facts: FileFacts
) -> Iterator[Sample]:
    row = dict(cells(columns, words, line))
    host, time_s = row.pop(_HOST), _time_s(row.pop(_TIME), line, settings, facts)
    interval_s = number(row.pop(_INTERVAL), _INTERVAL, line) or -math.inf
    facts.facts(host).update(os="Linux")
    if interval_s > 0:  # the first record after a restart covers no time
        for metric, instance, value, weight in sar.reported(row, _MACHINE, interval_s, line, facts):
            yield Sample(round(time_s * 1e9), interval_s, host, metric, instance, value, weight)


def _time_s(text: str, line: int, settings: Settings, facts: FileFacts) -> float:
    """Return the time of a row: UTC, local time (-T, -t), or seconds since 1970 (-U)."""
    plain = text.removesuffix(" UTC")
    if plain.isdigit():
        return float(plain)
    try:
        moment = datetime.fromisoformat(plain)
    except ValueError as error:
        raise ForeignFileError(
            f"found the time {text[:40]!r}; allowed: YYYY-MM-DD HH:MM:SS UTC, as sadf -d writes it", line
        ) from error
    zone: tzinfo = UTC if plain != text else zone_of(settings, facts)
    return moment.replace(tzinfo=zone).timestamp()
