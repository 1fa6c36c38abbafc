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
"""Columns of what goes to a file or a pipe; of a terminal at least and at most."""


def width() -> int:
    """Columns that text may take: the terminal's, as far as lines of that length are easy to read."""
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
    """A title and the texts below it, each behind its bullet; "" without any."""
    lines = [wrapped(text, bullet) for text in texts]
    return "\n".join([title, *lines]) if lines else ""


def one_line(text: str) -> str:
    """On one line and without control characters: a name from the farm must not steer the terminal."""
    return " ".join(without_controls(text).split())


def without_controls(text: str) -> str:
    """Question marks for control characters, those that turn the direction of a line among them."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each.isspace() else "?" for each in text)


def escaped_bytes(text: str) -> str:
    """A name of bytes that are no UTF-8 as a document can hold it: each of them escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> Iterator[str]:
    """Rows as lines whose columns stand below each other, those numbered in ``right`` flush right."""
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
