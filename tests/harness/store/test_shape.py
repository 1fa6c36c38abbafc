"""The form of a manifest: what is not as Pinchpoint writes it is named by its field."""

from __future__ import annotations

from typing import Any

import pytest
from harness.analysis.build import Build

from pinchpoint.plan import load_model
from pinchpoint.store.shape import LOADS, faults

OPEN = {"model": "open", "rate_per_s": 5.0, "arrivals": "poisson"}
MODELS = "allowed: closed, open, soak, burst, ramp, steps"


@pytest.mark.parametrize(
    ("scenarios", "found"),
    [
        ({"orders": {"use": "sql-mix"}}, "plan.scenarios.orders.load: missing"),
        ({"orders": None}, "plan.scenarios.orders: missing"),
        ({"orders": {"load": 5}}, "plan.scenarios.orders.load: found a number; allowed: an object"),
        ([], "plan.scenarios: found a list; allowed: an object"),
        ({"a": {"load": {"model": "waves"}}}, f"plan.scenarios.a.load.model: found 'waves'; {MODELS}"),
        ({"a": {"load": {"model": ["open"]}}}, f"plan.scenarios.a.load.model: found ['open']; {MODELS}"),
        ({"a": {"load": {"model": "closed"}}}, "plan.scenarios.a.load.users: missing"),
        ({"a": {"load": {**OPEN, "rate_per_s": None}}}, "plan.scenarios.a.load.rate_per_s: missing"),
    ],
)
def test_a_scenario_without_its_load_is_a_fault(scenarios: Any, found: str) -> None:
    """Each reader of a manifest takes what was planned for there: a report would end in a traceback."""
    assert list(faults({"plan": {"scenarios": scenarios}})) == [found]


def test_every_load_model_and_no_plan_at_all_are_as_written() -> None:
    """What was imported has no plan; of what was run each load says how much it was."""
    build = Build().closed("a", "sql-mix", 1).open("b", "sql-mix", 5).soak("c", "sql-mix", 5)
    build.ramp("d", "sql-mix", 9, 5).burst("e", 1, 5, 30, 5)
    manifests: list[dict[str, Any]] = [{}, {"plan": None}, {"plan": {}}, {"plan": {"scenarios": {}}}]
    for manifest in (build.manifest, *manifests):
        assert list(faults(manifest)) == []


def test_what_a_load_says_is_what_a_plan_asks_for() -> None:
    """The store reads manifests without the plan's records, whose library takes its time to load."""
    records = {name: getattr(load_model, name.capitalize()).model_fields for name in LOADS}
    for name, needed in LOADS.items():
        asked = {field for field, info in records[name].items() if info.is_required()} - {"model"}
        assert asked <= set(needed) <= set(records[name]), name
