"""Work shared out between processes: its order, its bounds, its failures."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import psutil
import pytest

from pinchpoint_infra.content import ContentError
from pinchpoint_infra.content.processes import Workers, parts

CORES = os.sched_getaffinity(0)


@pytest.fixture
def workers() -> Iterator[Workers]:
    if len(CORES) < 2:
        pytest.skip("one core: no processes are started there")
    before = psutil.Process().children()  # what other tests share
    with Workers(CORES) as several:
        yield several
    assert not set(psutil.Process().children()) - set(before)


def test_results_come_in_the_order_of_the_parts_and_not_too_far_ahead(workers: Workers) -> None:
    """However long each takes; what is not wanted yet is not even made."""
    made = []

    def numbers() -> Iterator[int]:
        for number in range(200):
            made.append(number)
            yield number % 7 * 300

    found = workers.each(math.factorial, numbers())
    assert next(found) == 1
    assert len(made) < 50
    assert list(found) == [math.factorial(number % 7 * 300) for number in range(1, 200)]


def test_who_has_enough_can_go_on_with_something_else(workers: Workers) -> None:
    """Results nobody waits for are not taken for those of the next work."""
    with closing(workers.each(operator.neg, range(1000))) as some:
        assert list(islice(some, 3)) == [0, -1, -2]
    assert list(workers.each(abs, range(-9, 0))) == list(range(9, 0, -1))


def test_small_work_and_one_core_need_no_process() -> None:
    """It is done here."""
    before = psutil.Process().children()  # servers that other tests share
    with Workers({0}) as one, Workers(CORES) as several:
        assert list(one.each(abs, [-1, -2])) == [1, 2]
        assert list(several.each(abs, [-1, -2], worth_it=False)) == [1, 2]
        assert psutil.Process().children() == before


def test_failures_are_sentences(workers: Workers, capfd: pytest.CaptureFixture[str]) -> None:
    """What goes wrong in a process is told by name; its trace is in its log; one that is killed is missed."""
    with pytest.raises(ContentError, match="could not be read: FileNotFoundError"):
        list(workers.each(os.stat, [Path("/nowhere/at/all")]))
    assert "Traceback" in capfd.readouterr().err
    with pytest.raises(ContentError, match=r"ended by itself \(exit status 3\)"):
        list(workers.each(os._exit, [3]))


def test_parts() -> None:
    """Lists of so many, the last one shorter, none of them empty."""
    assert list(parts(range(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(parts([], 3)) == []
