"""The example of disk arrays is runnable."""

from __future__ import annotations

from pathlib import Path

import pytest

from pinchpoint.plan import load

EXAMPLE = Path(__file__).parents[3] / "infra" / "examples" / "stripes"


@pytest.mark.parametrize("number", [1, 2, 4, 8])
def test_each_farm_declares_what_its_stripes_allow(number: int) -> None:
    """Plan and farms are valid, and each disk's limit is one stripe's times the stripes."""
    farm, plan = load(EXAMPLE / f"farm-{number}.yaml", EXAMPLE / "plan.yaml")
    assert plan.scenarios["burst"].use == "nosql-burst"
    assert farm.embedded is not None
    assert farm.embedded.disks["nosql.data"].stripes == number
    limits = farm.tiers["nosql"].hosts["nosql1"].disks["data"].resolved_limits
    assert limits is not None
    assert limits.bytes_per_s == 2e6 * number


@pytest.mark.parametrize("level", [1, 4, 5, 6, 10])
def test_each_level_is_built_as_its_name_says(level: int) -> None:
    farm, _ = load(EXAMPLE / f"raid-{level}.yaml", EXAMPLE / "plan.yaml")
    assert farm.embedded is not None
    assert farm.name == f"raid-{level}"
    disk = farm.embedded.disks["nosql.data"]
    assert (disk.raid, disk.stripes) == (level, 2 if level == 1 else 4)
