"""The example of stripes can be run as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from pinchpoint.plan import load

EXAMPLE = Path(__file__).parents[3] / "infra" / "examples" / "stripes"


@pytest.mark.parametrize("number", [1, 2, 4, 8])
def test_each_farm_declares_what_its_stripes_allow(number: int) -> None:
    """Plan and farm are valid, and the limit of the disk is that of one stripe times their number."""
    farm, plan = load(EXAMPLE / f"farm-{number}.yaml", EXAMPLE / "plan.yaml")
    assert plan.scenarios["burst"].use == "nosql-burst"
    assert farm.embedded is not None
    assert farm.embedded.disks["nosql.data"].stripes == number
    limits = farm.tiers["nosql"].hosts["nosql1"].disks["data"].resolved_limits
    assert limits is not None
    assert limits.bytes_per_s == 2e6 * number
