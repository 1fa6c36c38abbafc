"""Calculates whether text fits into a box, by the letter widths of a font, so that no text leaves a slide."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from pinchpoint.report.libraries import library

WIDER = 1.18
"""Largest ratio of the letter width of the used fonts to that of the measured font."""
LINE = 1.22
"""Line height ÷ font size."""
_MEASURED_PT = 100


@cache
def _font() -> Any:
    return library("PIL.ImageFont", "--format pdf, pptx and xlsx").load_default(_MEASURED_PT)


@cache
def _letter(letter: str) -> float:
    """Return the width of a letter in ems. A letter that the font lacks counts as a square."""
    width: float = _font().getlength(letter) / _MEASURED_PT
    return max(width, 1.0 if ord(letter) > 0x2E7F else 0.55 if ord(letter) > 0x24F else 0.0)


def wide(text: str, size_pt: float) -> float:
    """Return the largest width of a text on one line, in points."""
    return sum(map(_letter, text)) * size_pt * WIDER


def lines(text: str, size_pt: float, width_pt: float) -> int:
    """Return the number of lines of a text. A word longer than a line is broken."""
    count, room = 1, width_pt
    for word in text.split(" "):
        long = wide(f"{word} ", size_pt)
        if long <= room:
            room -= long
            continue
        if room < width_pt:
            count, room = count + 1, width_pt
        while long > width_pt:
            count, long = count + 1, long - width_pt
        room -= long
    return count


def tall(texts: Sequence[str], size_pt: float, width_pt: float, gap_pt: float = 0.0) -> float:
    """Return the height of paragraphs, in points."""
    return sum(lines(text, size_pt, width_pt) * size_pt * LINE + gap_pt for text in texts)


def fitted(
    texts: Sequence[str], box_pt: tuple[float, float], sizes: Sequence[float], gap_pt: float = 0.0
) -> tuple[float, list[str]]:
    """Return the largest font size at which the paragraphs fit into a box, and the paragraphs.

    If the smallest size is still too large, the longest paragraphs are shortened until all fit.
    """
    width, height = box_pt
    for size in sizes:
        if tall(texts, size, width, gap_pt) <= height:
            return size, list(texts)
    size, kept = sizes[-1], list(texts)
    while kept and tall(kept, size, width, gap_pt) > height:
        longest = max(range(len(kept)), key=lambda at: len(kept[at]))
        if len(kept[longest]) > _SHORTEST:
            kept[longest] = shortened(kept[longest], len(kept[longest]) * 3 // 4)
        else:
            kept.pop()
    return size, kept


_SHORTEST = 24


def shortened(text: str, letters: int) -> str:
    """Return the start of a text with at most ``letters`` letters, cut at the end of a word if possible."""
    if len(text) <= letters:
        return text
    cut = text[:letters]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut[letters // 2 :] else cut}…"


def widths(
    texts: Sequence[Sequence[str]],
    size_pt: float,
    room_pt: float,
    *,
    edge_pt: float,
    wider: float = 1.0,
    longest: int | None = None,
    most_pt: float = float("inf"),
    filled: bool = True,
) -> list[float]:
    """Return the column widths in points: at least the longest word of each column, plus a share of the rest.

    Args:
        texts: texts of each column.
        size_pt: font size in points.
        room_pt: total width of all columns in points.
        edge_pt: left and right margin of a cell together, in points.
        wider: width of bold letters ÷ width of regular letters.
        longest: number of letters above which a word may be broken; None: no word is broken.
        most_pt: largest width of the text of a column in points.
        filled: whether columns are widened to use the total width.
    """
    wanted = [min(max(wide(text, size_pt) for text in column) * wider, most_pt) + edge_pt for column in texts]
    if sum(wanted) <= room_pt:
        return [width + filled * (room_pt - sum(wanted)) / len(wanted) for width in wanted]
    words = [[word[:longest] for text in column for word in text.split() or [""]] for column in texts]
    least = [max(wide(word, size_pt) for word in column) * wider + edge_pt for column in words]
    needed = [min(width, room_pt / len(least)) for width in least]
    more = [max(0.0, width - need) for width, need in zip(wanted, needed, strict=True)]
    share = (room_pt - sum(needed)) / sum(more)
    return [need + share * extra for need, extra in zip(needed, more, strict=True)]
