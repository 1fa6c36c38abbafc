"""The verdict's advice and ``what-if`` give the same gain and interval for a change."""

from __future__ import annotations

import math

import pytest
from golden.groups import RUNS

from pinchpoint.analysis import analyse
from pinchpoint.forecast import predict
from pinchpoint.store.read import open_run

REAL = RUNS / "real"
CLOSE = 0.05
"""Accepted relative difference (our value), as the model queues and the next limit is a bound."""


@pytest.mark.parametrize("name", sorted(path.name for path in REAL.iterdir()))
def test_advice_and_what_if_give_one_gain(name: str) -> None:
    """The gains agree for each advice with settings of each stored run of a real farm.

    No gain exceeds the next resource's saturation by the verdict itself, and no headroom is negative.
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
