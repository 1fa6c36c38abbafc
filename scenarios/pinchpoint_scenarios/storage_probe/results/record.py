"""Contract of result files: the result of each cell, and facts about the machine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from pinchpoint_collectors.common.legible import ForeignFileError

from ..cell import Cell, CellFigures


@dataclass(frozen=True, slots=True)
class CellResult:
    """One measurement of one cell.

    Attributes:
        cell: cell that was measured.
        measured: figures of the cell; None if the cell was not measured.
        started: start time, without a time zone if the file contains none; None: not reported.
        failed: reason why the cell was not measured; None if it was measured.
    """

    cell: Cell
    measured: CellFigures | None
    started: datetime | None = None
    failed: str | None = None


@dataclass(slots=True)
class ResultFile:
    """The contents of one result file.

    Attributes:
        tool: name of the tool.
        version: version of the tool; None: not reported.
        results: results in the order of the file.
        host: name of the machine; None: not reported.
        paths: files or disks that the tool read and wrote, as the tool names them.
        size_bytes: size of the tool's test file in bytes; None: not reported.
        notes: remarks on the validity of the results.
    """

    tool: str
    version: str | None
    results: list[CellResult] = field(default_factory=list)
    host: str | None = None
    paths: list[str] = field(default_factory=list)
    size_bytes: int | None = None
    notes: list[str] = field(default_factory=list)

    def note(self, sentence: str) -> None:
        """Add a note, unless it exists already."""
        if sentence not in self.notes:
            self.notes.append(sentence)


class ResultKind(Protocol):
    """One format of result files, as ``--kind`` names it."""

    name: str
    says: str
    """Short description for the list of kinds."""
    suite: str
    """Name of the suite with the same cells; without such a suite, the name of the kind."""

    def recognises(self, head: str) -> bool:
        """Return whether a file is of this kind. ``head`` is its first few thousand characters."""
        ...

    def read(self, text: str) -> ResultFile:
        """Read the whole file. Raises ``ForeignFileError`` with the line."""
        ...


NO_DIRECT = (
    "{what}: the page cache was not bypassed ({how}), so memory may have been measured instead of the disk"
)
LIMITED = "the tool was limited to {rate}, so it does not show what the disk can do"


def percentiles(values_s: Mapping[float, float], many: int, longest_s: float | None) -> dict[int, int]:
    """Return latency in ns -> number of I/Os, so that the result has the given percentiles.

    Args:
        values_s: percentage of the I/Os -> latency in seconds that they did not exceed.
        many: number of all I/Os.
        longest_s: latency in seconds of the I/Os beyond the last percentile; None: not reported.
    """
    result: dict[int, int] = {}
    before = 0
    shares = {round(percent / 100, 12): value_s for percent, value_s in values_s.items()}
    if shares and max(shares) < 1:
        shares[1.0] = shares[max(shares)] if longest_s is None else longest_s
    for share, value_s in sorted(shares.items()):
        until = min(many, math.ceil(share * many))
        if until > before:
            place = round(value_s * 1e9)
            result[place] = result.get(place, 0) + until - before
            before = until
    return result


_LARGEST = 1e18
_MOST_OUTSTANDING = 2**31


def number(text: object, what: str, line: int | None = None) -> float:
    """Convert text to a number from 0 on. Raises ``ForeignFileError``."""
    try:
        value = float(text) if isinstance(text, str | int | float) else math.nan
    except (ValueError, OverflowError):
        value = math.nan
    if not 0 <= value <= _LARGEST:
        raise ForeignFileError(
            f"{what}: found {'nothing' if text is None else repr(str(text)[:60])}; allowed: a number from 0 "
            "on. The file is damaged or was edited: export it again",
            line,
        )
    return value


def whole(text: object, what: str, line: int | None = None) -> int:
    """Convert text to a number without a fraction. Raises ``ForeignFileError``."""
    return int(number(text, what, line))


def queue_depth(outstanding: int, line: int | None = None) -> int | None:
    """Return the queue depth over all threads; None for 0, which means not reported.

    Raises ``ForeignFileError`` if the number is too large.
    """
    if outstanding >= _MOST_OUTSTANDING:
        raise ForeignFileError(
            f"found {outstanding:,} outstanding I/Os; allowed: below {_MOST_OUTSTANDING:,}. The file is "
            "damaged: export it again",
            line,
        )
    return outstanding or None
