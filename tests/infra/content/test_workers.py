"""Tests of work in several processes: order, look-ahead and failures."""

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
    before = psutil.Process().children()  # child processes that other tests share
    with Workers(CORES) as several:
        yield several
    assert not set(psutil.Process().children()) - set(before)


def test_results_come_in_the_order_of_the_parts_and_not_too_far_ahead(workers: Workers) -> None:
    """Results come in the order of the parts; parts are made only shortly before they are needed."""
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
    """Results that a caller does not read are not mixed with those of the next work."""
    with closing(workers.each(operator.neg, range(1000))) as some:
        assert list(islice(some, 3)) == [0, -1, -2]
    assert list(workers.each(abs, range(-9, 0))) == list(range(9, 0, -1))


def test_small_work_and_one_core_need_no_process() -> None:
    """Small work, or work on one core, runs in this process."""
    before = psutil.Process().children()  # servers that other tests share
    with Workers({0}) as one, Workers(CORES) as several:
        assert list(one.each(abs, [-1, -2])) == [1, 2]
        assert list(several.each(abs, [-1, -2], worth_it=False)) == [1, 2]
        assert psutil.Process().children() == before


def test_failures_are_sentences(workers: Workers, capfd: pytest.CaptureFixture[str]) -> None:
    """An error in a child process is named, its traceback is in the log, and a killed child is reported."""
    with pytest.raises(ContentError, match="could not be read: FileNotFoundError"):
        list(workers.each(os.stat, [Path("/nowhere/at/all")]))
    assert "Traceback" in capfd.readouterr().err
    with pytest.raises(ContentError, match=r"ended by itself \(exit status 3\)"):
        list(workers.each(os._exit, [3]))


def test_parts() -> None:
    """Parts have the given length; the last may be shorter, and none is empty."""
    assert list(parts(range(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(parts([], 3)) == []
