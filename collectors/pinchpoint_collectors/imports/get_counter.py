r"""Reads output of PowerShell's ``Get-Counter``, printed or written by ``Export-Csv`` in either form.

``Get-Counter ... | Export-Csv`` has one row per reading, with all counters in one cell (``Readings``), as
alternating paths and values. ``(Get-Counter ...).CounterSamples | Export-Csv`` has one row per counter and
reading (``Path``, ``CookedValue``). Paths are in lower case, and times are local, in the format of the
culture. The first reading begins the recording, as in Performance Monitor's logs.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports import perfmon
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.text import ALLOWED_POWERSHELL_DATES, POWERSHELL_DATES, zone_of
from pinchpoint_collectors.imports.times import Dates, LocalClock, ReadingTimes
from pinchpoint_collectors.record import Sample

_SETS = frozenset({"Timestamp", "Readings"})
_SINGLE = frozenset({"Timestamp", "Path", "CookedValue"})
_PRINTED = re.compile(r"\S+\s+CounterSamples\s*")
"""Header of the output without Export-Csv."""
_DRIVE = re.compile(r"(?<![^\W\d_])[a-z]:(?=[^(]*\))")
Cell = tuple[str, str]
"""Path of a counter and its value."""


class GetCounter:
    """Import format ``get-counter``."""

    name = "get-counter"
    says = "PowerShell's counters (Get-Counter ..., with Export-Csv or as it prints them)"

    def recognises(self, head: str) -> bool:
        """Return whether the file is recognised by the columns of either shape."""
        first = next((line for line in head.splitlines() if _is_content(line)), "")
        header = set(re.split(r'[",;\t]+', first))
        return header >= _SETS or header >= _SINGLE or _PRINTED.fullmatch(first) is not None

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per known counter and reading (see ``Format.read``)."""
        text = list(lines)
        first = next(filter(_is_content, text), "")
        rows = list(_printed(text) if _PRINTED.fullmatch(first) else _rows(text, facts))
        dates = Dates([row["Timestamp"] for _, row in rows], POWERSHELL_DATES, facts)
        readings: list[tuple[int, datetime, dict[str, str]]] = []
        for line, row in rows:
            local = _local(row["Timestamp"], dates, line)
            if not readings or readings[-1][1] != local:
                readings.append((line, local, {}))
            readings[-1][2].update(_reported(row, line))
        paths = list(dict.fromkeys(path for _, _, cells in readings for path in cells))
        pace = ReadingTimes()
        clock = LocalClock(zone_of(settings, facts), 0.0, pace, facts)
        table = (
            (line, local, ["", *(cells.get(path, "") for path in paths)]) for line, local, cells in readings
        )
        columns = perfmon.columns_of(paths, settings.names, facts)
        yield from perfmon.samples(columns, table, clock, pace, facts)


def _is_content(line: str) -> bool:
    """Return whether a line is neither blank nor the type line of Windows PowerShell above the header."""
    return bool(line.strip("\ufeff \r\n")) and not line.lstrip("\ufeff").startswith("#TYPE")


def _printed(lines: Iterable[str]) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the rows of output without Export-Csv.

    A path ends with a colon, and its value is in the next line.
    """
    time, begin, path = "", 0, ""
    for line, text in enumerate(lines, 1):
        plain = text.strip()
        if path.endswith(":") and plain:
            yield begin, {"Timestamp": time, "Readings": f"{path}\n{plain}"}
            path = ""
        elif "\\\\" in plain or path:
            before, _, rest = plain.partition("\\\\")
            time, begin = (before.strip(), line) if before.strip() and rest else (time, begin)
            path = f"{path}{plain}" if path else f"\\\\{rest}"


def _rows(lines: Iterable[str], facts: FileFacts) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield line and column -> cell of each row. An incomplete last row is left out."""
    numbered = [(line, text) for line, text in enumerate(lines, 1) if text.strip()]
    begin = next((at for at, (_, text) in enumerate(numbered) if _is_content(text)), None)
    if begin is None:
        raise ForeignFileError("it contains no header line; export the counters again")
    header_text = numbered[begin][1]
    reader = csv.reader(
        (text.replace("\0", "") for _, text in numbered[begin:]),
        delimiter=max(",;\t", key=header_text.count),
    )
    damage: ForeignFileError | None = None
    header: Sequence[str] = ()
    try:
        for row in reader:
            line = numbered[begin + reader.line_num - 1][0]
            if damage is not None:
                raise damage
            if not header:
                header = [cell.strip("\ufeff ") for cell in row]
            elif len(row) != len(header):
                damage = ForeignFileError(
                    f"found {len(row)} cells; allowed: {len(header)}, one for each name of the header "
                    f"({', '.join(header)[:60]}); remove the row, or export the counters again",
                    line,
                )
            else:
                yield line, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise ForeignFileError(
            f"not a line of a CSV: {error}; export the counters again", reader.line_num
        ) from error
    if not (set(header) >= _SETS or set(header) >= _SINGLE):
        raise ForeignFileError(
            f"found the columns {', '.join(header)[:80]}; allowed: Timestamp and Readings (Get-Counter | "
            "Export-Csv), or Timestamp, Path and CookedValue (of its CounterSamples)"
        )
    if damage is not None:
        facts.note("the last row is truncated and was ignored")


def _reported(row: Mapping[str, str], line: int) -> Iterator[Cell]:
    """Return the values of a row. A status other than 0 means that a value could not be read."""
    if "Path" in row:
        cells = [(row["Path"], row["CookedValue"] if row.get("Status", "0") in {"0", ""} else "")]
    else:
        texts = [text.strip() for text in row["Readings"].splitlines() if text.strip()]
        if len(texts) % 2:
            raise ForeignFileError(
                f"found {len(texts)} lines in Readings; allowed: a counter's path and its value in turn; "
                "remove the row, or export the counters again",
                line,
            )
        cells = [
            (path.removesuffix(":").rstrip(), value)
            for path, value in zip(texts[::2], texts[1::2], strict=True)
        ]
    yield from ((_DRIVE.sub(lambda drive: drive[0].upper(), path), value) for path, value in cells)


def _local(text: str, dates: Dates, line: int) -> datetime:
    try:
        moment = dates.read(text)
    except ValueError as error:
        raise ForeignFileError(f"found the time {text[:40]!r}; {ALLOWED_POWERSHELL_DATES}", line) from error
    return moment.replace(tzinfo=None)
