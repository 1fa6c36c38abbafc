"""The commands' answers to recorded runs, histories and probes are byte for byte the recorded ones."""

from __future__ import annotations

import pytest
from golden.ask import Answers, answers_of
from golden.checked import check, difference
from golden.groups import GROUPS

QUICK = [name for name, group in GROUPS.items() if group.every]


@pytest.fixture(scope="module")
def quick() -> Answers:
    """Compute a part of each group's answers in one process, because a start takes seconds."""
    return answers_of({name: GROUPS[name].quick() for name in QUICK})


@pytest.mark.timeout(600)
@pytest.mark.parametrize("group", QUICK)
def test_answers(quick: Answers, group: str) -> None:
    """A part of the group's answers is the same as recorded."""
    check(group, quick[group])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("group", [name for name, group in GROUPS.items() if group.every != 1])
def test_all_answers(group: str) -> None:
    """All of the group's answers are the same as recorded. Takes minutes."""
    check(group, answers_of({group: GROUPS[group].names()})[group])


@pytest.mark.parametrize("group", GROUPS)
def test_each_answer_is_recorded_and_asked_for(group: str) -> None:
    """The recorded answers are exactly those that the group computes."""
    assert set(GROUPS[group].recorded()) == set(GROUPS[group].names())


def test_a_difference_can_be_read() -> None:
    """A difference in one of a hundred lines shows that line, before and now."""
    lines = [f'"a{number}": {number},' for number in range(100)]
    text = difference("\n".join(lines), "\n".join([*lines[:50], '"a50": 51,', *lines[51:]]))
    assert '-"a50": 50,' in text
    assert '+"a50": 51,' in text
    assert len(text.splitlines()) < 10
