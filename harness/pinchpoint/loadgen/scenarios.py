"""Converts the scenarios of a plan to the JSON form for load generators, and to drivers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pinchpoint.base.errors import InputError
from pinchpoint.plan import Plan, expand
from pinchpoint.plan.arrivals import (
    scenario_seed,
)
from pinchpoint.plan.locustfile import scenario_class
from pinchpoint_scenarios.contract import Scenario, ScenarioContext
from pinchpoint_scenarios.errors import ScenarioError


def planned_scenarios(plan: Plan) -> dict[str, dict[str, Any]]:
    """The plan's scenarios in their JSON form: see ``Assignment.scenarios``."""
    return {
        name: {
            "use": planned.use,
            "params": dict(planned.params),
            "load": planned.load.to_json(),
            # Work that ends is repeated as long as the load lasts. If the plan measures until the work is
            # done, the work is repeated only for the least time to measure.
            "repeat_s": plan.phases.measure.at_least_s if plan.phases.measure.until else None,
        }
        for name, planned in plan.scenarios.items()
    }


def make_scenario(  # noqa: PLR0913 - a context's parts, by name where they are rare
    name: str,
    given: Mapping[str, Any],
    endpoints: Mapping[str, Mapping[str, str]],
    seed: int,
    worker: int,
    workers: int,
    event: Callable[..., None],
    *,
    resume: bool = False,
    take_over: bool = False,
    reset_index: tuple[str, ...] = (),
) -> Scenario:
    """The driver of one of the plan's scenarios (``Assignment.scenarios``), with secrets expanded.

    Raises ``InputError`` if plan and farm do not fit: for example a crawl without a database on this server.
    """
    use = scenario_class(given["use"])
    context = ScenarioContext(
        name=name,
        endpoints={key: expand(key, value) for key, value in endpoints.items()},
        params=use.params_model.model_validate(given["params"]),
        seed=scenario_seed(seed, name),
        worker=worker,
        workers=workers,
        repeat_s=given["repeat_s"],
        event=event,
        resume=resume,
        take_over=take_over,
        reset_index=reset_index,
    )
    try:
        return use(context)
    except ScenarioError as error:
        raise InputError(f"scenarios.{name}: {error}") from error
