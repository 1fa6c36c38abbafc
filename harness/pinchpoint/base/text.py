"""Text for a terminal: on one line, and wrapped."""

from __future__ import annotations

import textwrap

WIDTH = 88


def wrapped(text: str, bullet: str = "") -> str:
    """Text as lines of at most 88 columns, without control characters; the first one after a bullet."""
    indent = " " * len(bullet)
    return textwrap.fill(
        one_line(text), WIDTH, initial_indent=bullet, subsequent_indent=indent, break_on_hyphens=False
    )


def one_line(text: str) -> str:
    """On one line and without control characters: a name from the farm must not steer the terminal."""
    return " ".join("".join(each if each.isprintable() or each.isspace() else "?" for each in text).split())
