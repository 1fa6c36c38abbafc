"""How a test compares golden answers: byte for byte, and a difference that can be read."""

from __future__ import annotations

import difflib

from golden.ask import answers_of
from golden.groups import GROUPS

LINES = 60
"""Of each difference that are shown."""


def differences(group: str) -> dict[str, str]:
    """Name of each answer that is not as recorded -> unified diff."""
    before, now = GROUPS[group].recorded(), answers_of(group)
    return {
        name: difference(before.get(name, ""), now.get(name, ""))
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    }


def difference(before: str, now: str) -> str:
    """Unified diff of two texts, its first lines."""
    lines = list(
        difflib.unified_diff(before.splitlines(), now.splitlines(), "recorded", "now", n=2, lineterm="")
    )
    more = [f"... and {len(lines) - LINES} more lines"] if len(lines) > LINES else []
    return "\n".join([*lines[:LINES], *more])


def check(group: str) -> None:
    """Fail with the differences of the first answers that are not as recorded."""
    found = differences(group)
    shown = "\n".join(f"=== {group}: {name}\n{text}" for name, text in list(found.items())[:5])
    again = f"(meant? `make golden GROUPS={group}` records anew)"
    assert not found, f"{len(found)} answers of {group!r} differ {again}:\n{shown}"
