"""The records of plan.yaml (DESIGN.md section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from pinchpoint.loadgen.locustfile import is_locustfile, scenario_class
from pinchpoint.plan.problems import Unfit
from pinchpoint.plan.record import (
    FileContext,
    Name,
    PerSecond,
    Ratio,
    Record,
    Seconds,
    only_one,
    resolved,
)
from pinchpoint.plan.units import DURATION, RATE

DEFAULT_WARM_UP_S = 5.0
"""Connections are open and caches touched after some seconds; a plan that needs more says so."""


class Closed(Record):
    """A fixed number of users, each starting its next operation when the last one has ended.

    Attributes:
        users: how many there are at once.
        think_s: how long each waits between two operations.
    """

    model: Literal["closed"]
    users: int = Field(ge=1, le=100_000, description="the number of users, such as 32")
    think_s: Seconds = Field(default=0.0, alias="think", ge=0)


class Open(Record):
    """Operations that arrive at a rate, whether or not the earlier ones have ended.

    Attributes:
        rate_per_s: arrivals per second.
        arrivals: ``poisson`` (independent of one another) or ``constant`` (evenly spaced).
    """

    model: Literal["open"]
    rate_per_s: PerSecond = Field(alias="rate", gt=0, description=RATE)
    arrivals: Literal["poisson", "constant"] = "poisson"


class Burst(Record):
    """Arrivals at a base rate, with bursts at a peak rate; each period ends with its burst.

    Attributes:
        base_per_s: arrivals per second between the bursts; may be 0.
        peak_per_s: arrivals per second in a burst.
        every_s: seconds from one burst's beginning to the next one's.
        for_s: seconds a burst lasts.
    """

    model: Literal["burst"]
    base_per_s: PerSecond = Field(alias="base", ge=0, description=RATE)
    peak_per_s: PerSecond = Field(alias="peak", gt=0, description=RATE)
    every_s: Seconds = Field(alias="every", gt=0, description=DURATION)
    for_s: Seconds = Field(alias="for", gt=0, description=DURATION)

    @model_validator(mode="after")
    def _bursts_stand_out(self) -> Self:
        if self.peak_per_s <= self.base_per_s:
            raise Unfit("a peak that is not above the base", "needed: a higher peak, or the load model open")
        if self.for_s >= self.every_s:
            raise Unfit("bursts that last as long as their period", "needed: for shorter than every")
        return self


Load = Annotated[Closed | Open | Burst, Field(discriminator="model")]


class ScenarioPlan(Record):
    """One scenario of a plan.

    Attributes:
        use: the scenario's name in the scenarios' registry, or the path of a locustfile.
        load: how much of it.
        params: its parameters as given; ``use``'s ``params_model`` has accepted them.
    """

    use: str = Field(description="the scenario to use, such as sql-mix")
    load: Load = Field(description="the load, such as {model: closed, users: 8}")
    params: Mapping[str, Any] = Field(default_factory=dict)

    @field_validator("use")
    @classmethod
    def _locustfiles_place(cls, use: str, info: ValidationInfo) -> str:
        """A locustfile's path starts in the plan's folder."""
        if is_locustfile(use) and isinstance(info.context, FileContext):
            return str(resolved(Path(use), info.context.directory).resolve())
        return use


class Measure(Record):
    """How long is measured.

    Attributes:
        at_most_s: the time measured; where ``until`` is set, the longest.
        at_least_s: where ``until`` is set, the shortest: other scenarios may need longer than a small crawl.
        until: ``"done"``: measuring ends with the scenarios that end by themselves.
    """

    at_most_s: Seconds = Field(alias="at_most", gt=0, description=DURATION)
    at_least_s: Seconds = Field(default=0.0, alias="at_least", ge=0)
    until: Literal["done"] | None = Field(description="done, or write the duration alone (measure: 10m)")

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, value: object, info: ValidationInfo) -> object:
        """In a file a duration alone will do; in JSON ``until`` is left out where it is not set."""
        if isinstance(info.context, FileContext):
            return {"at_most": value, "until": None} if isinstance(value, str | int | float) else value
        return {"until": None, **value} if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _least_below_most(self) -> Self:
        if self.at_least_s > self.at_most_s:
            raise Unfit("at_least is longer than at_most", "needed: at_least no longer than at_most")
        return self


class Phases(Record):
    """The phases of a run, in seconds."""

    warm_up_s: Seconds = Field(default=DEFAULT_WARM_UP_S, alias="warm_up", ge=0)
    measure: Measure = Field(description=f"{DURATION}; or {{until: done, at_most: 12h}}")
    cool_down_s: Seconds = Field(default=0.0, alias="cool_down", ge=0)


class Objective(Record):
    """One thing a scenario has to achieve; exactly one of the figures is set.

    Attributes:
        scenario: its name in the plan.
        p50_s, p95_s, p99_s: at most this time for that share of its operations.
        errors_ratio: at most this share of operations that fail.
        throughput_per_s: at least so many operations per second.
    """

    scenario: str = Field(description="the name of a scenario of this plan")
    p50_s: Seconds | None = Field(default=None, alias="p50", gt=0)
    p95_s: Seconds | None = Field(default=None, alias="p95", gt=0)
    p99_s: Seconds | None = Field(default=None, alias="p99", gt=0)
    errors_ratio: Ratio | None = Field(default=None, alias="errors", ge=0, le=1)
    throughput_per_s: PerSecond | None = Field(default=None, alias="throughput", gt=0)

    @model_validator(mode="after")
    def _one_figure(self) -> Self:
        figures = {"p50": self.p50_s, "p95": self.p95_s, "p99": self.p99_s}
        figures |= {"errors": self.errors_ratio, "throughput": self.throughput_per_s}
        only_one(figures)
        if all(figure is None for figure in figures.values()):
            raise Unfit("an objective without a figure", f"needed: one of {', '.join(figures)}")
        return self


class Plan(Record):
    """Which scenarios run, at what load, for how long, with which objectives.

    Attributes:
        name: its name.
        seed: decides everything random.
        scenarios: name in the plan -> scenario.
        phases: how long.
        objectives: what has to be achieved.
    """

    name: Name = Field(description="the plan's name")
    seed: int = Field(default=1, ge=0, lt=2**63)
    scenarios: Mapping[Name, ScenarioPlan] = Field(min_length=1, description="the scenarios to run, by name")
    phases: Phases = Field(description="how long, such as {warm_up: 5s, measure: 1m}")
    objectives: tuple[Objective, ...] = Field(default=(), strict=False)


def ending_scenarios(plan: Plan) -> list[str]:
    """The names of the plan's scenarios that end by themselves (a crawl)."""
    return [name for name, planned in plan.scenarios.items() if scenario_class(planned.use).ends]
