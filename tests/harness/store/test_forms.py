"""The structure of a manifest and of an event: a deviation is named by its field."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from harness.analysis.build import Build

from pinchpoint.base.errors import InputError
from pinchpoint.plan import load_model
from pinchpoint.store import document, forms

OPEN = {"model": "open", "rate_per_s": 5.0, "arrivals": "poisson"}


def reported(content: Any, form: Any = forms.Manifest) -> list[str]:
    """Return the message about a document without its remedy."""
    try:
        document.parsed(json.dumps(content).encode(), form, "FILE", "copy it anew")
    except InputError as error:
        *problems, remedy = str(error).splitlines()
        assert remedy == "FILE: this is not as this version of Pinchpoint writes it; copy it anew"
        return [problem.removeprefix("FILE: ") for problem in problems]
    return []


@pytest.mark.parametrize(
    ("scenarios", "found"),
    [
        ({"orders": {"use": "sql-mix"}}, "plan.scenarios.orders.load: missing"),
        ({"orders": None}, "plan.scenarios.orders: found null; allowed: an object"),
        ({"orders": {"load": 5}}, "plan.scenarios.orders.load: found 5; allowed: an object"),
        ([], "plan.scenarios: found a list; allowed: an object"),
        ({"a": {"load": {"model": "closed"}}}, "plan.scenarios.a.load.users: missing"),
        (
            {"a": {"load": {**OPEN, "rate_per_s": None}}},
            "plan.scenarios.a.load.rate_per_s: found null; allowed: a number",
        ),
        (
            {"a": {"load": {**OPEN, "rate_per_s": float("inf")}}},
            "cannot be read as JSON: expected value at line 1 column",
        ),
        (
            {"a": {"load": {**OPEN, "rate_per_s": 10**30}}},
            "plan.scenarios.a.load.rate_per_s: found a number of more than 64 bits",
        ),
    ],
)
def test_a_scenario_without_its_load_is_a_fault(scenarios: Any, found: str) -> None:
    """A scenario without its load is an error, since every reader of a manifest needs it."""
    manifest = {**Build().manifest, "plan": {"scenarios": scenarios}}
    if found.startswith("cannot"):
        with pytest.raises(InputError, match=found):
            document.parsed(json.dumps(manifest).encode(), forms.Manifest, "FILE", "")
    else:
        (line,) = reported(manifest)
        assert line.startswith(found)


def test_an_unknown_load_model_is_told_with_those_that_are_known() -> None:
    """An unknown load model gives one line with the known ones."""
    for model in ("waves", ["open"], None):
        (line,) = reported({**Build().manifest, "plan": {"scenarios": {"a": {"load": {"model": model}}}}})
        assert line.startswith("plan.scenarios.a.load.model: found "), line
        assert all(name in line for name in ("closed", "open", "soak", "burst", "ramp", "steps"))


def test_every_load_model_and_no_plan_at_all_are_as_written() -> None:
    """Every load model is accepted, and so is an import without a plan."""
    build = Build().closed("a", "sql-mix", 1).open("b", "sql-mix", 5).soak("c", "sql-mix", 5)
    build.ramp("d", "sql-mix", 9, 5).burst("e", 1, 5, 30, 5)
    plans: list[dict[str, Any]] = [build.manifest["plan"], {}, {"scenarios": {}}]
    for plan in plans:
        assert reported({**build.manifest, "plan": plan}) == []


def test_what_a_load_says_is_what_a_plan_asks_for() -> None:
    """The store requires of a load what the plan's records require."""
    for form in (
        forms.StoredClosed,
        forms.StoredOpen,
        forms.StoredBurst,
        forms.StoredRamp,
        forms.StoredSteps,
    ):
        for name in get_args(form.model_fields["model"].annotation):
            fields = getattr(load_model, name.capitalize()).model_fields
            asked = {field for field, info in fields.items() if info.is_required()}
            needed = {field for field, info in form.model_fields.items() if info.is_required()}
            assert asked <= needed <= set(fields), name
            assert set(form.model_fields) <= set(fields) | {"arrivals"}, name


@pytest.mark.parametrize(
    ("event", "found"),
    [
        ({"time": "2026-01-01T00:00:00Z", "event": "guard"}, "why: missing"),
        ({"time": "soon", "event": "x"}, 'time: found "soon"; allowed: a time such as 2026-01-01T00:00:00Z'),
        (5, "all of it: found 5; allowed: an object"),
    ],
)
def test_an_event_has_a_time_a_name_and_what_its_readers_take(event: Any, found: str) -> None:
    assert reported(event, forms.event_form) == [found]
