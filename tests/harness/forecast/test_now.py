"""Each scenario's present throughput is one figure in verdict, terminal, report and ``what-if``."""

from __future__ import annotations

import re

import pytest
from golden.groups import RUNS
from harness.report.example import screen

from pinchpoint.analysis import analyse
from pinchpoint.base import units
from pinchpoint.forecast import predict
from pinchpoint.report import registry
from pinchpoint.report.report import gather
from pinchpoint.store.read import open_run

NAMES = sorted(path.name for path in (RUNS / "real").iterdir())
QUICK = ("data-burst-exhausted", "data-floor-40ms", "healthy-bursts", "log-cap-310", "pool-sql-bursts")
"""Runs whose present throughput differs from the mean over the measure phase, and one in steps."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NAMES]
)
def test_throughput_now_is_one_figure(name: str) -> None:
    """The figure is the same everywhere for the stored runs of real farms."""
    run = open_run(RUNS / "real" / name)
    verdict = analyse(run)
    now, content = {one: row["now_per_s"] for one, row in verdict.scenarios.items()}, verdict.to_json()
    said = re.sub(r"\s+", " ", screen(content))
    report = registry.FORMATS["md"](gather(run, content))
    for scenario, per_s in now.items():
        assert per_s is None or f"{units.per_second(per_s)} of {scenario}" in said
        assert per_s is None or f"| {units.per_second(per_s)} |" in report
    head = verdict.headroom
    if head.scenario is not None:
        assert head.now_per_s == pytest.approx(now[head.scenario])
    if verdict.outcome != "invalid":
        for one in predict(run, ()).scenarios:
            assert one.now_per_s == pytest.approx(now[one.scenario])
