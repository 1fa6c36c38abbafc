"""One gain per change: the verdict's advice and ``what-if`` give the same figure and interval."""

from __future__ import annotations

import math

import pytest
from golden.groups import RUNS

from pinchpoint.analysis import analyse
from pinchpoint.forecast import predict
from pinchpoint.store.read import open_run

REAL = RUNS / "real"
CLOSE = 0.05
"""The model queues, and what limits next is a bound: both round otherwise (our value)."""


@pytest.mark.parametrize("name", sorted(path.name for path in REAL.iterdir()))
def test_advice_and_what_if_give_one_gain(name: str) -> None:
    """Of each kept run of a real farm, for each advice that names its settings.

    No gain goes beyond where the next resource is saturated, as the verdict says itself, and no headroom is
    negative.
    """
    run = open_run(REAL / name)
    verdict = analyse(run)
    assert verdict.headroom_ratio is None or verdict.headroom_ratio >= 0
    most = verdict.next.gain_ratio * (1 + CLOSE) + CLOSE if verdict.next else math.inf
    for advice in (one for one in verdict.advice if one.set):
        assert advice.gain_ratio is not None
        assert advice.gain_ratio <= most
        asked = predict(run, advice.set)
        [same] = [one for one in asked.scenarios if one.scenario == advice.scenario]
        assert advice.gain_ratio == same.ratio - 1
        assert advice.interval_ratio == (same.low_ratio - 1, same.high_ratio - 1)
        assert same.ratio == max(one.ratio for one in asked.scenarios)
