"""Verdicts, explanations, comparisons, predictions and trends stay byte for byte what was recorded."""

from __future__ import annotations

import pytest
from golden.checked import check, difference
from golden.groups import GROUPS, runs_of


@pytest.mark.parametrize("group", ["synthetic", pytest.param("synthetic_more", marks=pytest.mark.slow)])
def test_verdicts(group: str) -> None:
    """verdict.json and ``--explain`` of each recorded run."""
    assert len(runs_of(group)) == len(GROUPS[group].recorded())
    check(group)


def test_a_difference_can_be_read() -> None:
    """One line of a hundred: that line, before and now."""
    lines = [f'"a{number}": {number},' for number in range(100)]
    text = difference("\n".join(lines), "\n".join([*lines[:50], '"a50": 51,', *lines[51:]]))
    assert '-"a50": 50,' in text
    assert '+"a50": 51,' in text
    assert len(text.splitlines()) < 10


@pytest.mark.parametrize("name", GROUPS)
def test_every_group_is_recorded(name: str) -> None:
    """A group without answers would agree with anything."""
    assert GROUPS[name].recorded()
