"""Tests of the registry of scenarios."""

from __future__ import annotations

import pytest

from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.registry import SCENARIOS, scenario


def test_the_scenarios_are_there_and_say_what_they_need() -> None:
    """Each scenario has the name, needs and effects with which a plan is validated."""
    assert {use: set(kind.needs) for use, kind in SCENARIOS.items()} == {
        "full-crawl": {"sql", "search"},
        "sql-mix": {"sql"},
        "nosql-burst": {"nosql"},
        "storage-probe": set(),
        "sql-script": {"sql"},
        "sql-replay": {"sql"},
    }
    assert all(kind.writes for kind in SCENARIOS.values())


def test_every_scenario_runs_without_params() -> None:
    """No parameter is required."""
    for kind in SCENARIOS.values():
        kind.params_model()


def test_each_is_the_scenario_of_its_name() -> None:
    """Each registered class has the name under which it is registered."""
    assert all(kind.use == use for use, kind in SCENARIOS.items())


def test_an_unknown_name_lists_all_and_the_nearest() -> None:
    """An unknown name's error lists all names and the nearest."""
    with pytest.raises(ScenarioError) as caught:
        scenario("sqlmix")
    assert str(caught.value) == (
        "unknown scenario 'sqlmix'; allowed: full-crawl, nosql-burst, sql-mix, sql-replay, sql-script, "
        "storage-probe; nearest: sql-mix"
    )
