"""Compare service times at half of the server's capacity with those in pgbench's transaction log."""

from __future__ import annotations

from collections.abc import Iterator

from bench.generator import open_load
from bench.load import Load
from bench.pairs import Pairs, interleaved
from bench.pgbench import PEER
from bench.rows import Row
from bench.server import CLIENTS, Target

from pinchpoint.loadgen.load_schedule import session_numbers
from pinchpoint.loadgen.slots import SLOTS

_SECONDS = 4
_RATIO, _US = 0.02, 50.0
"""Allowed difference of the median and the 95th percentile: relative, and in microseconds."""
_MIDDLE = (50.0, 95.0)
_TAIL = (99.0, 99.9)


def rows(target: Target) -> Iterator[Row]:
    """Yield four percentiles at the same Poisson rate over the same number of connections."""
    rate_per_s = target.peer(_SECONDS).per_s / 2
    load = open_load(rate_per_s)
    clients = max(CLIENTS, len(session_numbers(load, 0, frozenset(range(SLOTS)))))
    found = interleaved(
        lambda: target.ours(load, _SECONDS), lambda: target.peer(_SECONDS, rate_per_s, clients)
    )
    for percent in _MIDDLE:
        yield middle(found, percent)
    for percent in _TAIL:
        yield tail(found, percent)


def middle(found: Pairs[Load], percent: float) -> Row:
    """Compare a percentile with the peer's; the allowance covers the different places of the two clocks."""
    ours, its, ratio = found.medians(lambda load: load.percentile_us(percent))
    allowed_us = its * _RATIO + _US
    met = abs(ours - its) <= allowed_us
    return Row(_name(percent), ours, "us", PEER, its, ratio, 1 + allowed_us / its, met=met)


def tail(found: Pairs[Load], percent: float) -> Row:
    """Compare a percentile with the range of the peer's own runs."""
    ours, its, ratio = found.medians(lambda load: load.percentile_us(percent))
    runs = [load.percentile_us(percent) for load in found.peer]
    met = min(runs) <= ours <= max(runs)
    note = f"pgbench against itself: {min(runs):.0f} to {max(runs):.0f} us"
    return Row(_name(percent), ours, "us", PEER, its, ratio, max(runs) / its, met=met, note=note)


def _name(percent: float) -> str:
    return f"p{percent:g} of the service time at half capacity"
