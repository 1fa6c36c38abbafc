"""Refuses to run scenarios that write on a production farm."""

from __future__ import annotations

from pinchpoint.base.errors import GuardError
from pinchpoint.plan.farm import Farm
from pinchpoint.plan.locustfile import scenario_class
from pinchpoint.plan.plan import Plan


def guard(farm: Farm, plan: Plan) -> None:
    """Raise ``GuardError`` if the farm is production and a scenario of the plan writes."""
    if farm.environment != "production":
        return
    writing = [
        f"{name} ({planned.use})"
        for name, planned in plan.scenarios.items()
        if scenario_class(planned.use).writes
    ]
    if writing:
        raise GuardError(
            f"farm {farm.name} is production, and these scenarios of plan {plan.name} write to it: "
            f"{', '.join(writing)}; nothing was started. "
            "Run them on a copy of the farm, whose farm.yaml says environment: staging or test"
        )


def guard_proof(farm: Farm) -> None:
    """Raise ``GuardError`` if the farm is production, because ``--prove`` makes resources slower."""
    if farm.environment == "production":
        raise GuardError(
            f"farm {farm.name} is production: --prove would make a part of it slower on purpose; nothing was "
            "started. Leave out --prove, or run on a copy whose farm.yaml says environment: staging or test"
        )
