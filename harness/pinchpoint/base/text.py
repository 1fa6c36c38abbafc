"""Text for a terminal: on one line, and wrapped."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Collection, Iterator, Sequence

PIPED, NARROWEST, WIDEST = 88, 40, 110
"""Columns of what goes to a file or a pipe; of a terminal at least and at most."""


def width() -> int:
    """Columns that text may take: the terminal's, as far as lines of that length are easy to read."""
    if not sys.stdout.isatty():
        return PIPED
    return max(NARROWEST, min(shutil.get_terminal_size().columns, WIDEST))


def wrapped(text: str, bullet: str = "") -> str:
    """Text as lines of at most ``width()``, without control characters; the first one after a bullet."""
    indent = " " * len(bullet)
    return textwrap.fill(
        one_line(text), width(), initial_indent=bullet, subsequent_indent=indent, break_on_hyphens=False
    )


def one_line(text: str) -> str:
    """On one line and without control characters: a name from the farm must not steer the terminal."""
    return " ".join("".join(each if each.isprintable() or each.isspace() else "?" for each in text).split())


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> Iterator[str]:
    """Rows as lines whose columns stand below each other, those numbered in ``right`` flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()
