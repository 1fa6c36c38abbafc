"""The contract of a result file: what it holds for each cell, and what it says of the machine."""

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
        cell: what was measured.
        measured: its figures; None if ``failed`` says why there are none.
        started: when, without a zone where the file names none; None: not reported.
        failed: why it is not measured.
    """

    cell: Cell
    measured: CellFigures | None
    started: datetime | None = None
    failed: str | None = None


@dataclass(slots=True)
class ResultFile:
    """What one file holds.

    Attributes:
        tool: the program, as people call it.
        version: its version; None: not reported.
        results: in the file's order.
        host: the machine; None: not reported.
        paths: the files or disks that were read and written, as the tool names them.
        size_bytes: size of the file; None: not reported.
        notes: what a reader must know.
    """

    tool: str
    version: str | None
    results: list[CellResult] = field(default_factory=list)
    host: str | None = None
    paths: list[str] = field(default_factory=list)
    size_bytes: int | None = None
    notes: list[str] = field(default_factory=list)

    def note(self, sentence: str) -> None:
        """Say it once."""
        if sentence not in self.notes:
            self.notes.append(sentence)


class ResultKind(Protocol):
    """One kind of result file, as ``--kind`` names it."""

    name: str
    says: str
    """What it is, in a few words, for the list of kinds."""
    suite: str
    """The suite with the same cells; where none has them, the kind's own name."""

    def recognises(self, head: str) -> bool:
        """Whether a file that begins so (its first few thousand characters) is of this kind."""
        ...

    def read(self, text: str) -> ResultFile:
        """The whole file. Raises ``ForeignFileError`` with the line."""
        ...


NO_DIRECT = (
    "{what}: the page cache was not bypassed ({how}), so memory may have been measured instead of the disk"
)
LIMITED = "the tool was limited to {rate}, so it does not show what the disk can do"


def percentiles(values_s: Mapping[float, float], many: int, longest_s: float | None) -> dict[int, int]:
    """Latency in ns -> how many I/Os, of which the listed percentiles are those that the tool reports.

    Args:
        values_s: per cent of the I/Os -> the seconds within which they ended.
        many: I/Os in all.
        longest_s: what those beyond the last percentile took; None: not reported.
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
    """A figure from 0 on. Raises ``ForeignFileError``."""
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
    """A number without a fraction. Raises ``ForeignFileError``."""
    return int(number(text, what, line))


def queue_depth(outstanding: int, line: int | None = None) -> int | None:
    """The queue depth over all threads; None for 0, which is not reported. Raises ``ForeignFileError``."""
    if outstanding >= _MOST_OUTSTANDING:
        raise ForeignFileError(
            f"found {outstanding:,} outstanding I/Os; allowed: below {_MOST_OUTSTANDING:,}. The file is "
            "damaged: export it again",
            line,
        )
    return outstanding or None
