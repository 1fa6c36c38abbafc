"""Two terminals and one farm: the first has the farm, and the second waits or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import end, run_cli, start_cli, until

from pinchpoint.base.errors import FarmUnavailable
from pinchpoint.farm.embedded import down, embedded_farm, status
from pinchpoint.farm.ready import ready_farm
from pinchpoint.plan import load_farm

pytestmark = pytest.mark.farm


def test_a_run_leaves_up_what_another_command_was_starting(tmp_path: Path) -> None:
    """A run waits for a farm that another command starts, uses it, and leaves it up."""
    file = tmp_path / "farm.yaml"
    file.write_text("{name: f, environment: test, embedded: {tiers: [nosql]}}")
    farm = load_farm(file)
    said: list[str] = []
    with start_cli("farm", "up", file) as terminal:
        try:
            until(lambda: status(farm.identity).state == "starting", process=terminal)
            with embedded_farm(farm, said.append) as found:
                assert found.state == "up"
            exit_status, out, err = end(terminal)
            assert (exit_status, f"farm {found.farm_id}: up" in out) == (0, True), err
            assert status(farm.identity).state == "up"
            assert "farm f is being started by another command: it is used, and left up" in said
        finally:
            down(farm.identity)


def test_a_run_ends_what_it_launched(tmp_path: Path) -> None:
    """A run stops the farm it started, also after a failure."""
    file = tmp_path / "farm.yaml"
    file.write_text("{name: f, environment: test, embedded: {tiers: [nosql]}}")
    farm = load_farm(file)
    said: list[str] = []
    with pytest.raises(ZeroDivisionError), embedded_farm(farm, said.append):
        raise ZeroDivisionError
    assert status(farm.identity).state == "down"
    assert said[-1] == "stopping farm f"


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
    """A farm runs one run at a time, under any of its names."""
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
