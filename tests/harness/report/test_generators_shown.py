"""The picture of an invalid run marks the load generators that limited it."""

from __future__ import annotations

import pytest
from harness.analysis.build import Build
from harness.report.example import suspect, verdict

from pinchpoint.data.timeaxis import clock_of
from pinchpoint.report.picture import LIMITS, picture


@pytest.mark.parametrize(
    ("host", "instance", "marked"),
    [
        ("generator1", "", {"generator1"}),
        ("generator2", "", {"generator2", "generator3"}),
        ("", "orders", {"generator3"}),
        ("", "", {"generator1", "generator2", "generator3"}),
    ],
    ids=["by name", "sharing a core", "by scenario", "nobody by name"],
)
def test_only_the_generators_that_limited_a_run_are_marked(
    host: str, instance: str, marked: set[str]
) -> None:
    """A gate marks its worker, or the workers of its late scenario, or else all workers."""
    build = Build().host("sql1", "sql")
    build.manifest["generators"] = [
        {"worker": "generator1", "cores": [0]},
        {"worker": "generator2", "cores": [1]},
        {"worker": "generator3", "cores": [1]},
    ]
    for number, scenario in enumerate(("crawl", "burst", "orders"), 1):
        build.metric(f"generator{number}", "generator.cpu_ratio", 0.3)
        build.metric(f"generator{number}", "generator.users", 8.0, scenario)
    fact = suspect()["evidence"][0] | {"host": host, "instance": instance}
    blame = suspect(kind="generator", tier=None, host=host or None, resource="generator", evidence=[fact])
    run = build.run()
    machines = picture(run, verdict(outcome="invalid", bottleneck=blame), clock_of(run))
    boxes = [box for machine in machines if machine.outside for box in machine.boxes]
    assert {box.host for box in boxes if box.resources[0].mark == LIMITS} == marked
