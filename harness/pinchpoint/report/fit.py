"""Whether text fits a box, measured with the letters of a font, so that nothing exceeds a slide."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from pinchpoint.report.libraries import library

WIDER = 1.18
"""Largest ratio of the widths of the used fonts and the measured one."""
LINE = 1.22
"""Height of a line ÷ size of its letters."""
_MEASURED_PT = 100


@cache
def _font() -> Any:
    return library("PIL.ImageFont", "--format pdf, pptx and xlsx").load_default(_MEASURED_PT)


@cache
def _letter(letter: str) -> float:
    """The width of a letter in ems; a letter that the font lacks is a square."""
    width: float = _font().getlength(letter) / _MEASURED_PT
    return max(width, 1.0 if ord(letter) > 0x2E7F else 0.55 if ord(letter) > 0x24F else 0.0)


def wide(text: str, size_pt: float) -> float:
    """Largest width of a text on one line, in points."""
    return sum(map(_letter, text)) * size_pt * WIDER


def lines(text: str, size_pt: float, width_pt: float) -> int:
    """Number of lines of a text; a word longer than a line is broken."""
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
    """Height of paragraphs, in points."""
    return sum(lines(text, size_pt, width_pt) * size_pt * LINE + gap_pt for text in texts)


def fitted(
    texts: Sequence[str], box_pt: tuple[float, float], sizes: Sequence[float], gap_pt: float = 0.0
) -> tuple[float, list[str]]:
    """The largest size at which paragraphs fit a box; at the smallest they are shortened until they do."""
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
    """The begin of a text, cut at the end of a word if one is near."""
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
    """Widths of columns: the width of each one's longest word, and a share of the rest.

    Args:
        texts: of each column.
        size_pt: of the letters.
        room_pt: width of all columns.
        edge_pt: left and right of a column's text together.
        wider: width ratio of bold letters.
        longest: a word with more letters may be broken.
        most_pt: no text needs more.
        filled: whether the whole width is used.
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
