"""Text for a terminal: on one line, and wrapped."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence

_UNIT = re.compile(r"(\d) (%|[mµ]?s\b|min\b|h\b|[kMGT]i?B\b|B\b|IOPS\b|cores?\b)")
"""A figure and its unit stay on one line."""

PIPED, NARROWEST, WIDEST = 88, 40, 110
"""Columns of output to a file or pipe; smallest and largest width of a terminal."""


def width() -> int:
    """Number of columns for text: the terminal's width, up to a width that is easy to read."""
    if not sys.stdout.isatty():
        return PIPED
    return max(NARROWEST, min(shutil.get_terminal_size().columns, WIDEST))


def wrapped(text: str, bullet: str = "") -> str:
    """Text as lines of at most ``width()``, without control characters; the first one after a bullet."""
    indent = " " * len(bullet)
    whole = _UNIT.sub("\\1\u00a0\\2", one_line(text))
    lines = textwrap.fill(
        whole, width(), initial_indent=bullet, subsequent_indent=indent, break_on_hyphens=False
    )
    return lines.replace("\u00a0", " ")


def titled(title: str, texts: Iterable[str], bullet: str = "  - ") -> str:
    """A title and texts with bullets below it; "" without texts."""
    lines = [wrapped(text, bullet) for text in texts]
    return "\n".join([title, *lines]) if lines else ""


def one_line(text: str) -> str:
    """One line without control characters: a name from the farm must not control the terminal."""
    return " ".join(without_controls(text).split())


def without_controls(text: str) -> str:
    """The text with question marks for control characters, including those for the text direction."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each.isspace() else "?" for each in text)


def escaped_bytes(text: str) -> str:
    """A name with bytes that are not UTF-8, escaped for a document."""
    return text.encode("utf-8", "backslashreplace").decode()


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> Iterator[str]:
    """Rows as lines with aligned columns; those in ``right`` are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def fitted(rows: Sequence[Sequence[str]], right: Collection[int] = (), indent: str = "") -> Iterator[str]:
    """The same within ``width()``: of a table that is wider, each name is on a line of its own, once."""
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
