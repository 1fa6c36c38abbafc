"""Two runs of one farm at once would each measure the other: the second is told to wait."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import run_cli

from pinchpoint.base.errors import FarmUnavailable
from pinchpoint.farm.ready import ready_farm
from pinchpoint.plan import load_farm

FARM = """\
name: f
environment: test
endpoints: {nosql: {url: "valkey://127.0.0.1:1/0"}}
"""
PLAN = """\
name: p
scenarios: {burst: {use: nosql-burst, load: {model: closed, users: 1}}}
phases: {measure: 1s}
"""


def test_a_farm_is_driven_by_one_run_at_a_time(tmp_path: Path) -> None:
    """Also by its other names; once the first has ended, the next may."""
    farm, plan, other = tmp_path / "farm.yaml", tmp_path / "plan.yaml", tmp_path / "same.yaml"
    farm.write_text(FARM)
    plan.write_text(PLAN)
    other.symlink_to(farm)
    with ready_farm(load_farm(farm), print):
        done = run_cli("run", plan, "--farm", other, "--out", tmp_path / "runs")
        with (
            pytest.raises(FarmUnavailable, match="another run or probe is going on"),
            ready_farm(load_farm(farm), print),
        ):
            pass
    assert (done.returncode, done.stdout) == (5, "")
    assert "farm f (" in done.stderr
    assert "wait until it has ended" in done.stderr
    with ready_farm(load_farm(farm), print):
        pass
