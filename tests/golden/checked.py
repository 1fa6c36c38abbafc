"""Compare golden answers byte for byte and report a readable difference."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from golden.groups import GROUPS

ANSWERS, LINES = 5, 60
"""Maximum number of differences shown, and of lines per difference."""


def difference(before: str, now: str) -> str:
    """Return the first lines of the unified diff of two texts."""
    lines = list(
        difflib.unified_diff(before.splitlines(), now.splitlines(), "recorded", "now", n=2, lineterm="")
    )
    more = [f"... and {len(lines) - LINES} more lines"] if len(lines) > LINES else []
    return "\n".join([*lines[:LINES], *more])


def check(group: str, now: Mapping[str, str]) -> None:
    """Fail with the differences between the answers and the recorded ones."""
    before = GROUPS[group].recorded()
    unlike = [name for name in now if before.get(name) != now[name]]
    shown = [
        f"=== {group}: {name}\n{difference(before.get(name, ''), now[name])}" for name in unlike[:ANSWERS]
    ]
    again = f"`make golden GROUPS={group}` records anew what is meant to change"
    assert not unlike, "\n".join([f"{len(unlike)} of {len(now)} answers differ; {again}", *shown])
