"""The memory in the picture of a farm: the machine's, and a tier's own where it has a limit."""

from __future__ import annotations

import pytest
from harness.analysis.build import Build
from harness.report.example import suspect, verdict

from pinchpoint.data.timeaxis import clock_of
from pinchpoint.report.picture import FIRST, picture


@pytest.mark.parametrize("tiers", [("sql",), ("sql", "web")], ids=["alone", "beside another tier"])
def test_a_tier_with_a_limit_of_its_own_shows_what_is_left_of_that(tiers: tuple[str, ...]) -> None:
    """With 94 % of the machine's memory and 4 % of the tier's limit free, the tier is marked."""
    build = Build()
    for tier in tiers:
        build.host(f"{tier}1", tier).metric(f"{tier}1", "mem.available_ratio", 0.94, noise=0.0)
    build.metric("sql1", "mem.available_ratio", 0.04, "tier:sql", noise=0.0)
    run = build.run()
    blame = suspect(kind="memory", tier="sql", host="sql1", resource="memory", instance="tier:sql", role=None)
    (machine,) = picture(run, verdict(bottleneck=blame), clock_of(run))
    shown = {box.tier: [one for one in box.resources if one.name == "memory"] for box in machine.boxes}
    (own,) = shown["sql"]
    assert (own.state, own.mark, own.words) == ("saturated", FIRST, "4 % of its own limit available at least")
    if len(tiers) > 1:
        assert not shown["web"]
        (whole,) = (one for one in machine.resources if one.name == "memory")
        assert (whole.state, whole.mark, whole.words) == ("fine", "", "94 % available at least")
