"""Compare commits per second on a fast disk, and client CPU per commit: ``log_append`` and pgbench."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bench.generator import closed
from bench.load import Load
from bench.pairs import Pairs, interleaved
from bench.pgbench import PEER
from bench.rows import Row
from bench.server import CLIENTS, Target

_SECONDS = 3
_CPU_GOAL = 1.1
_RATE_GOALS = {"on": 0.95, "off": 0.95}


def rows(target: Target) -> Iterator[Row]:
    """Yield the rows with ``synchronous_commit`` on, then off."""
    for synchronous, goal in _RATE_GOALS.items():
        found = measured(replace(target, synchronous=synchronous))
        if synchronous == "on":
            yield _cpu(found, "client CPU per log_append", _CPU_GOAL)
        else:
            yield _cpu(found, "client CPU per log_append, commits not waited for", _CPU_GOAL)
        yield rate(found, f"commits/s, free disk, synchronous_commit {synchronous}", goal)


def measured(target: Target, seconds: int = _SECONDS) -> Pairs[Load]:
    """Measure eight connections, each with one operation at a time."""
    return interleaved(lambda: target.ours(closed(CLIENTS), seconds), lambda: target.peer(seconds))


def rate(found: Pairs[Load], name: str, goal: float) -> Row:
    """Return the row of commits per second."""
    ours, its, ratio = found.medians(lambda load: load.per_s)
    return Row(name, ours, "1/s", PEER, its, ratio, goal, at_most=False, met=ratio >= goal)


def _cpu(found: Pairs[Load], name: str, goal: float) -> Row:
    ours, its, ratio = found.medians(lambda load: load.cpu_us)
    return Row(name, ours, "us", PEER, its, ratio, goal, met=ratio <= goal)
