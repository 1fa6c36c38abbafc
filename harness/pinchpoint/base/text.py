"""Formats text for a terminal: on one line, wrapped, or in columns."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence

_UNIT = re.compile(r"(\d) (%|[mµ]?s\b|min\b|h\b|[kMGT]i?B\b|B\b|IOPS\b|cores?\b)")
"""Space between a number and its unit, at which a line must not break."""

PIPED, NARROWEST, WIDEST = 88, 40, 110
"""Text width of a file or pipe, and smallest and largest text width of a terminal, in columns."""


def width() -> int:
    """Return the number of columns for text: the width of the terminal, limited to a readable width."""
    if not sys.stdout.isatty():
        return PIPED
    return max(NARROWEST, min(shutil.get_terminal_size().columns, WIDEST))


def wrapped(text: str, bullet: str = "") -> str:
    """Return text as lines of at most ``width()`` columns, without control characters, after a bullet."""
    indent = " " * len(bullet)
    whole = _UNIT.sub("\\1\u00a0\\2", one_line(text))
    lines = textwrap.fill(
        whole, width(), initial_indent=bullet, subsequent_indent=indent, break_on_hyphens=False
    )
    return lines.replace("\u00a0", " ")


def titled(title: str, texts: Iterable[str], bullet: str = "  - ") -> str:
    """Return a title with texts as bullets below it; "" if there are no texts."""
    lines = [wrapped(text, bullet) for text in texts]
    return "\n".join([title, *lines]) if lines else ""


def one_line(text: str) -> str:
    """Return text on one line without control characters, so that a name cannot control the terminal."""
    return " ".join(without_controls(text).split())


def without_controls(text: str) -> str:
    """Return the text with question marks for control characters, including those for the text direction."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each.isspace() else "?" for each in text)


def escaped_bytes(text: str) -> str:
    """Return a name with its invalid UTF-8 bytes escaped, for use in a document."""
    return text.encode("utf-8", "backslashreplace").decode()


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> Iterator[str]:
    """Yield rows as lines with aligned columns. The columns in ``right`` are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def fitted(rows: Sequence[Sequence[str]], right: Collection[int] = (), indent: str = "") -> Iterator[str]:
    """Yield rows as lines with aligned columns within ``width()``.

    If the table is too wide, each name is on a line of its own. A repeated name is printed once.
    """
    lines = [f"{indent}{line}" for line in aligned(rows, right)]
    if max(map(len, lines)) <= width() or len(rows[0]) < 2:
        yield from lines
        return
    below = aligned([row[1:] for row in rows], {place - 1 for place in right if place})
    before = None
    for row, cells in zip(rows, below, strict=True):
        if row[0] != before:
            yield wrapped(row[0], indent)
        before = row[0]
        yield f"{indent}  {cells}"
