"""What the commands answer to recorded runs, histories and probes stays byte for byte what was recorded."""

from __future__ import annotations

import pytest
from golden.ask import Answers, answers_of
from golden.checked import check, difference
from golden.groups import GROUPS

QUICK = [name for name, group in GROUPS.items() if group.every]


@pytest.fixture(scope="module")
def quick() -> Answers:
    """The answers of a fair part of each group, all by one process: to start one takes seconds."""
    return answers_of({name: GROUPS[name].quick() for name in QUICK})


@pytest.mark.timeout(600)
@pytest.mark.parametrize("group", QUICK)
def test_answers(quick: Answers, group: str) -> None:
    """Those of a fair part of the group."""
    check(group, quick[group])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("group", [name for name, group in GROUPS.items() if group.every != 1])
def test_all_answers(group: str) -> None:
    """Those of the whole group: minutes."""
    check(group, answers_of({group: GROUPS[group].names()})[group])


@pytest.mark.parametrize("group", GROUPS)
def test_each_answer_is_recorded_and_asked_for(group: str) -> None:
    """A run that nobody asks about, or an answer that nobody compares, is no safety."""
    assert set(GROUPS[group].recorded()) == set(GROUPS[group].names())


def test_a_difference_can_be_read() -> None:
    """One line of a hundred: that line, before and now."""
    lines = [f'"a{number}": {number},' for number in range(100)]
    text = difference("\n".join(lines), "\n".join([*lines[:50], '"a50": 51,', *lines[51:]]))
    assert '-"a50": 50,' in text
    assert '+"a50": 51,' in text
    assert len(text.splitlines()) < 10
