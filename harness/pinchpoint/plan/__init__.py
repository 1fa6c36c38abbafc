"""Reads and validates farm.yaml and plan.yaml; the result is frozen records that all later code uses."""

from pinchpoint.base.redact import redacted, redacted_text
from pinchpoint.plan.compare import Compare
from pinchpoint.plan.embedded import BuiltDisk, Content, Delay, Embedded
from pinchpoint.plan.endpoints import Endpoints, EndpointSpec, expand
from pinchpoint.plan.farm import Collect, DeclaredLimits, Farm, FarmDisk, FarmHost, Tier
from pinchpoint.plan.files import expand_all, load, load_farm, load_plan
from pinchpoint.plan.guard import guard, guard_proof
from pinchpoint.plan.load_model import Burst, Closed, Load, Open, Ramp, Soak, Steps
from pinchpoint.plan.plan import (
    MeasurePhase,
    Objective,
    Phases,
    Plan,
    ScenarioPlan,
    ServerObjective,
    SilenceRule,
    StopRule,
    ending_scenarios,
    with_phases,
)
from pinchpoint.plan.prove import CPU, ENDPOINT, Allowed

__all__ = [
    "CPU",
    "ENDPOINT",
    "Allowed",
    "BuiltDisk",
    "Burst",
    "Closed",
    "Collect",
    "Compare",
    "Content",
    "DeclaredLimits",
    "Delay",
    "Embedded",
    "EndpointSpec",
    "Endpoints",
    "Farm",
    "FarmDisk",
    "FarmHost",
    "Load",
    "MeasurePhase",
    "Objective",
    "Open",
    "Phases",
    "Plan",
    "Ramp",
    "ScenarioPlan",
    "ServerObjective",
    "SilenceRule",
    "Soak",
    "Steps",
    "StopRule",
    "Tier",
    "ending_scenarios",
    "expand",
    "expand_all",
    "guard",
    "guard_proof",
    "load",
    "load_farm",
    "load_plan",
    "redacted",
    "redacted_text",
    "with_phases",
]
