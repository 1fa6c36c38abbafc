"""The scenarios of a plan: in the form that travels to load generators, and as drivers."""

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
    """The plan's scenarios in the form that travels: see ``Assignment.scenarios``."""
    return {
        name: {
            "use": planned.use,
            "params": dict(planned.params),
            "load": planned.load.to_json(),
            # Work that ends is done over and over, or, where the plan measures until it is done, as often as
            # the least time to measure asks for.
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

    Raises ``InputError`` where plan and farm do not go together: a crawl has no database on this server.
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
