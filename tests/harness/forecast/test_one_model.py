"""One gain per change: the verdict's advice and ``what-if`` give the same figure and interval."""

from __future__ import annotations

import pytest
from golden.groups import RUNS

from pinchpoint.analysis import analyse
from pinchpoint.forecast import predict
from pinchpoint.store.read import open_run

REAL = RUNS / "real"


@pytest.mark.parametrize("name", sorted(path.name for path in REAL.iterdir()))
def test_advice_and_what_if_give_one_gain(name: str) -> None:
    """Of each kept run of a real farm, for each advice that names its settings."""
    run = open_run(REAL / name)
    for advice in (one for one in analyse(run).advice if one.set):
        asked = predict(run, advice.set)
        [same] = [one for one in asked.scenarios if one.scenario == advice.scenario]
        assert advice.gain_ratio == same.ratio - 1
        assert advice.interval_ratio == (same.low_ratio - 1, same.high_ratio - 1)
        assert same.ratio == max(one.ratio for one in asked.scenarios)
