"""Compare two generators, each on a core of its own, with one generator; the scenario does nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator

from bench.generator import closed, generate
from bench.load import Load
from bench.pairs import interleaved
from bench.rows import Row

_NAME = "two pinned workers on a null driver"
_GOAL = 1.9
_SECONDS = 2
_USERS = 8


def rows() -> Iterator[Row]:
    """Yield the one row; on a single core it has no value and a note with the reason."""
    cores = sorted(os.sched_getaffinity(0))[-2:]
    if len(cores) < 2:
        yield Row(_NAME, None, "1/s", goal=_GOAL, at_most=False, met=False, note="needs two cores")
        return
    found = interleaved(lambda: _null(cores), lambda: _null(cores[-1:]))
    two, one, ratio = found.medians(lambda load: load.per_s)
    yield Row(_NAME, two, "1/s", "one", one, ratio, _GOAL, at_most=False, met=ratio >= _GOAL)


def _null(cores: list[int]) -> Load:
    users = closed(_USERS * len(cores))
    return generate(users, seconds=_SECONDS, cores=cores, use="null", module="bench.null_generator")
