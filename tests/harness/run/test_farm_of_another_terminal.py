"""A farm that another terminal's `farm up` is just starting belongs to that one, whoever waits for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import end, start_cli, until

from pinchpoint.farm.embedded import down, embedded_farm, status
from pinchpoint.plan import load_farm

pytestmark = pytest.mark.farm


def test_a_run_leaves_up_what_another_command_was_starting(tmp_path: Path) -> None:
    """It waits for it, uses it and leaves it up, and says so."""
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
    """Also where what was done with the farm failed."""
    file = tmp_path / "farm.yaml"
    file.write_text("{name: f, environment: test, embedded: {tiers: [nosql]}}")
    farm = load_farm(file)
    said: list[str] = []
    with pytest.raises(ZeroDivisionError), embedded_farm(farm, said.append):
        raise ZeroDivisionError
    assert status(farm.identity).state == "down"
    assert said[-1] == "stopping farm f"
