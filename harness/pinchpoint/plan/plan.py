"""Defines the records of plan.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, ValidationInfo, field_validator, model_validator

from pinchpoint.base.errors import InputError
from pinchpoint.base.objects import JsonObject
from pinchpoint.plan.compare import Compare
from pinchpoint.plan.load_model import Load
from pinchpoint.plan.locustfile import is_locustfile, scenario_class
from pinchpoint.plan.metrics import MORE_IS_BETTER, OPERATION_METRICS, SAMPLE_METRICS, SERVER_FIGURES
from pinchpoint.plan.problems import BadValue, quoted, unknown
from pinchpoint.plan.production import FIGURES
from pinchpoint.plan.record import (
    FileContext,
    Name,
    PerSecond,
    Ratio,
    Seconds,
    StrictRecord,
    in_file,
    only_one,
    resolved,
    with_places,
)
from pinchpoint.plan.units import DURATION, DURATION_FORM, byte_rate, duration, found, rate, ratio, size
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.registry import SCENARIOS

_PARSERS: Mapping[str, Callable[[object], float]] = {
    "_bytes_per_s": byte_rate,
    "_per_s": rate,
    "_bytes": size,
    "_ratio": ratio,
    "_s": duration,
}
"""The end of a metric's name -> the parser of its limit; a metric with another end is a count."""


def _limit(metric: str, value: object) -> float:
    """The value of a limit in base units, from text with the unit of its metric or from a number."""
    parse = next((parse for ending, parse in _PARSERS.items() if metric.endswith(ending)), None)
    if isinstance(value, int | float) and not isinstance(value, bool) and parse is not ratio:
        return float(value)
    if parse is None:
        raise BadValue(f"found {found(value)}", f"allowed: a number, as {metric} is a count")
    return float(parse(value))


class StopRule(StrictRecord):
    """A limit at which the run stops (exit status 4).

    Attributes:
        metric: such as ``error_ratio``, ``response_p95_s`` or ``disk.write_latency_s``.
        above, below: the limit with its unit, such as ``5%`` or ``500ms``; exactly one of the two.
        for_s: how long the limit must be exceeded, such as ``30s``.
        scenario: only operations of this scenario.
        host, tier, role: only this host, tier or disk role.
    """

    metric: str = Field(description="a metric such as error_ratio or disk.write_latency_s")
    above: float | None = None
    below: float | None = None
    for_s: Seconds = Field(alias="for", ge=1, description=DURATION)
    scenario: str | None = None
    host: str | None = None
    tier: str | None = None
    role: str | None = None

    @field_validator("metric")
    @classmethod
    def _known(cls, metric: str) -> str:
        names = sorted((*OPERATION_METRICS, *SAMPLE_METRICS))
        if metric not in names:
            raise unknown("metric", metric, names)
        return metric

    @field_validator("above", "below", mode="before", json_schema_input_type=float | str)
    @classmethod
    def _in_its_unit(cls, value: object, info: ValidationInfo) -> object:
        """The limit in base units; a limit in a file must have the metric's unit, or would never apply."""
        if not isinstance(info.context, FileContext):
            return value
        metric = info.data.get("metric")  # missing if the metric is invalid, which is a problem of its own
        return None if metric is None else _limit(metric, value)

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        only_one({"above": self.above, "below": self.below})
        if self.above is None and self.below is None:
            raise BadValue("a rule without a limit", "needed: above or below")
        if self.of_operations and (self.host or self.tier or self.role):
            raise BadValue(f"{self.metric} of a host", "allowed: scenario; operations belong to scenarios")
        if not self.of_operations and self.scenario:
            raise BadValue(
                f"{self.metric} of a scenario", "allowed: host, tier, role; samples belong to hosts"
            )
        if self.role and not self.metric.startswith("disk."):
            raise BadValue(f"{self.metric} of a role", "allowed: host, tier; roles are those of disks")
        return self

    @property
    def of_operations(self) -> bool:
        """Whether the metric is one of operations and not one of hosts."""
        return self.metric in OPERATION_METRICS

    def broken_by(self, value: float) -> bool:
        """Whether a value is above ``above`` or below ``below``."""
        if self.above is not None:
            return value > self.above
        return self.below is not None and value < self.below


class SilenceRule(StrictRecord):
    """A silence at which the run stops (exit status 4).

    Attributes:
        silent: ``operations``: no operation completes; ``collectors``: a collector gives no reading.
        for_s: how long it must be silent, such as ``30s``.
        scenario: only operations of this scenario; without it, those of all together.
        host, tier: only collectors of this host or tier.
    """

    silent: Literal["operations", "collectors"] = Field(description="operations, or collectors")
    for_s: Seconds = Field(alias="for", ge=1, description=DURATION)
    scenario: str | None = None
    host: str | None = None
    tier: str | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.silent == "operations" and (self.host or self.tier):
            raise BadValue("operations of a host", "allowed: scenario; operations belong to scenarios")
        if self.silent == "collectors" and self.scenario:
            raise BadValue("collectors of a scenario", "allowed: host, tier; collectors belong to hosts")
        return self


def _rule_of(value: object) -> str:
    """The name of the record for a rule's data: ``SilenceRule`` or ``StopRule``."""
    silent = isinstance(value, SilenceRule) or (isinstance(value, Mapping) and "silent" in value)
    return (SilenceRule if silent else StopRule).__name__


AnyRule = Annotated[
    Annotated[StopRule, Tag(StopRule.__name__)] | Annotated[SilenceRule, Tag(SilenceRule.__name__)],
    Discriminator(_rule_of),
]


AUTO_WARM_UP_S = 120.0
"""The longest warm-up if its end is detected."""
DEFAULT_WARM_UP_S = 5.0
"""Connections are open and caches warm after some seconds; a plan that needs a longer warm-up declares it."""


class ScenarioPlan(StrictRecord):
    """One scenario of a plan.

    Attributes:
        use: a scenario, such as ``sql-mix``, or the path of a locustfile.
        load: the load model, such as ``{model: open, rate: 200/s}``.
        params: the parameters of the scenario, such as ``{preset: log-heavy}``.
    """

    use: str = Field(description="the scenario to use, such as sql-mix")
    load: Load = Field(description="the load, such as {model: closed, users: 8}")
    params: JsonObject = Field(default_factory=dict)

    @field_validator("use")
    @classmethod
    def _locustfiles_place(cls, use: str, info: ValidationInfo) -> str:
        """The path of a locustfile, resolved relative to the plan's folder."""
        if is_locustfile(use) and isinstance(info.context, FileContext):
            return str(resolved(Path(use), info.context.directory).resolve())
        return use

    @field_validator("params")
    @classmethod
    def _files_places(cls, params: JsonObject, info: ValidationInfo) -> JsonObject:
        """Parameters with the paths of the user's files resolved relative to the plan's folder."""
        use = info.data.get("use")
        if isinstance(info.context, FileContext) and isinstance(use, str) and use in SCENARIOS:
            with suppress(ScenarioError):  # the checks report that the scenario cannot be imported
                return with_places(SCENARIOS[use].params_model, params, info.context.directory)
        return params


class MeasurePhase(StrictRecord):
    """How long the run measures.

    Attributes:
        at_most_s: the longest time.
        at_least_s: the shortest time; a crawl that ends before it starts again.
        until: ``done``: until the crawl has ended. A fixed time is written alone: ``measure: 10m``.
    """

    short_form = DURATION_FORM

    at_most_s: Seconds = Field(alias="at_most", gt=0, description=DURATION)
    at_least_s: Seconds = Field(default=0.0, alias="at_least", ge=0)
    until: Literal["done"] | None = Field(description="done, or write the duration alone (measure: 10m)")

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, value: object, info: ValidationInfo) -> object:
        """The data of a measure phase with all fields.

        A file may give only a duration, and JSON leaves out ``until`` if it is not set.
        """
        if isinstance(info.context, FileContext):
            return {"at_most": value, "until": None} if isinstance(value, str | int | float) else value
        return {"until": None, **value} if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _least_below_most(self) -> Self:
        if self.at_least_s > self.at_most_s:
            raise BadValue("at_least is longer than at_most", "needed: at_least no longer than at_most")
        return self


class WarmUp(StrictRecord):
    """How long the load runs before the measurement.

    Attributes:
        at_most_s: the time, or with ``auto`` the longest time.
        auto: ``warm_up: auto`` ends it when throughput and response times have settled.
    """

    at_most_s: float = Field(default=DEFAULT_WARM_UP_S, ge=0)
    auto: bool = False


def _warm_up(value: object) -> object:
    if value == "auto":
        return {"at_most_s": AUTO_WARM_UP_S, "auto": True}
    try:
        return {"at_most_s": duration(value)}
    except BadValue as error:
        raise BadValue(error.found, f"{error.allowed}, or auto", error.nearest) from error


class Phases(StrictRecord):
    """The phases of a run.

    Attributes:
        warm_up: load before the measurement: a duration, or ``auto``.
        measure: a duration, or ``{until: done, at_least: 40s, at_most: 15m}``.
        cool_down_s: samples after the load has ended.
    """

    warm_up: Annotated[WarmUp, in_file(_warm_up, {"anyOf": [DURATION_FORM, {"const": "auto"}]})] = WarmUp()
    measure: MeasurePhase = Field(description=f"{DURATION}; or {{until: done, at_most: 12h}}")
    cool_down_s: Seconds = Field(default=0.0, alias="cool_down", ge=0)


class Objective(StrictRecord):
    """A goal of a scenario; exactly one figure.

    Attributes:
        scenario: its name in the plan.
        p50_s, p95_s, p99_s: the highest response time of 50, 95 or 99 % of the operations, such as
            ``50ms``. A dropped operation counts as infinitely slow.
        errors_ratio: the highest share of operations that fail or are dropped, such as ``1%``.
        throughput_per_s: the lowest throughput, such as ``90/s``.
    """

    scenario: str = Field(description="the name of a scenario of this plan")
    p50_s: Seconds | None = Field(default=None, alias="p50", gt=0)
    p95_s: Seconds | None = Field(default=None, alias="p95", gt=0)
    p99_s: Seconds | None = Field(default=None, alias="p99", gt=0)
    errors_ratio: Ratio | None = Field(default=None, alias="errors", ge=0, le=1)
    throughput_per_s: PerSecond | None = Field(default=None, alias="throughput", gt=0)

    @model_validator(mode="before")
    @classmethod
    def _names_its_scenario(cls, data: object) -> object:
        """Report ``{crawl: {p95: 50ms}}`` as one mistake: the scenario's name stands in place of a field."""
        if isinstance(data, Mapping) and len(data) == 1:
            [(name, figures)] = data.items()
            if isinstance(figures, Mapping):
                goals = ", ".join(f"{figure}: {goal}" for figure, goal in figures.items())
                raise BadValue(
                    f"{quoted(str(name))} is not a field of an objective",
                    f"write {{scenario: {name}, {goals or 'p95: 50ms'}}}",
                )
        return data

    @model_validator(mode="after")
    def _one_figure(self) -> Self:
        figures = {"p50": self.p50_s, "p95": self.p95_s, "p99": self.p99_s}
        figures |= {"errors": self.errors_ratio, "throughput": self.throughput_per_s}
        only_one(figures)
        if all(figure is None for figure in figures.values()):
            raise BadValue("an objective without a figure", f"needed: one of {', '.join(figures)}")
        return self


class ServerObjective(StrictRecord):
    """A goal of the servers, over the measurement; exactly one figure.

    Attributes:
        metric: such as ``disk.write_latency_s`` or ``cpu.busy_ratio``.
        host, tier, role: only this host, tier or disk role; all that fit have to reach the goal.
        device: only this disk or network interface, such as ``nvme1n1``.
        mean: the highest mean over the measurement, such as ``5ms`` or ``80%``; the lowest of a metric of
            which more is better (available memory, buffer hits, page life).
        p50, p95, p99: the highest value in 50, 95 or 99 % of the seconds.
        max: the highest value of any second.
        min: the lowest value of any second.
    """

    metric: str = Field(description="a metric of the servers such as disk.write_latency_s")
    host: str | None = None
    tier: str | None = None
    role: str | None = None
    device: str | None = None
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None
    min: float | None = None

    @field_validator("metric")
    @classmethod
    def _known(cls, metric: str) -> str:
        if metric in OPERATION_METRICS:
            raise BadValue(
                f"{quoted(metric)} is a figure of scenarios", "needed: {scenario: NAME, errors: 1%}"
            )
        if metric not in SAMPLE_METRICS:
            raise unknown("metric", metric, SAMPLE_METRICS)
        return metric

    @field_validator(*SERVER_FIGURES, mode="before", json_schema_input_type=float | str)
    @classmethod
    def _in_its_unit(cls, value: object, info: ValidationInfo) -> object:
        """A figure in a file, which has the unit of its metric."""
        if not isinstance(info.context, FileContext):
            return value
        metric = info.data.get("metric")
        return None if metric is None else _limit(metric, value)

    @model_validator(mode="after")
    def _one_figure(self) -> Self:
        only_one({name: getattr(self, name) for name in SERVER_FIGURES})
        if all(getattr(self, name) is None for name in SERVER_FIGURES):
            raise BadValue("an objective without a figure", f"needed: one of {', '.join(SERVER_FIGURES)}")
        if self.metric in MORE_IS_BETTER and self.figure not in ("mean", "min"):
            raise BadValue(f"{self.figure} of {self.metric}", "needed: min or mean; more of it is better")
        if self.role and not self.metric.startswith("disk."):
            raise BadValue(f"{self.metric} of a role", "allowed: host, tier; roles are those of disks")
        if self.device and not self.metric.startswith(("disk.", "net.")):
            raise BadValue(
                f"{self.metric} of a device", "allowed: host, tier; devices are disks and interfaces"
            )
        if self.device and self.role:
            raise BadValue("role and device are given together", "allowed: one of them")
        return self

    @property
    def figure(self) -> str:
        """The name of the figure that the objective limits."""
        return next(name for name in SERVER_FIGURES if getattr(self, name) is not None)


def _is_of_servers(value: object) -> str:
    """The name of the record for an objective's data: ``ServerObjective`` or ``Objective``."""
    names = set(value) if isinstance(value, Mapping) else set()
    only_there = ServerObjective.model_fields.keys() - Objective.model_fields.keys() - {"p50", "p95", "p99"}
    of_servers = "metric" in names or ("scenario" not in names and not names.isdisjoint(only_there))
    return (ServerObjective if of_servers or isinstance(value, ServerObjective) else Objective).__name__


AnyObjective = Annotated[
    Annotated[Objective, Tag(Objective.__name__)] | Annotated[ServerObjective, Tag(ServerObjective.__name__)],
    Discriminator(_is_of_servers),
]


class Plan(StrictRecord):
    """The scenarios, their load, how long they run, and the objectives.

    Attributes:
        name: its name.
        seed: the seed of everything random. The same seed gives the same operations.
        scenarios: the scenarios by name; they run at the same time.
        phases: warm-up, measurement, cool-down.
        objectives: goals of scenarios, such as ``{scenario: orders, p95: 50ms}``, and of servers, such as
            ``{metric: disk.write_latency_s, role: log, mean: 5ms}``. A missed one gives exit status 1.
        stop_when: what stops the run: limits, such as ``{metric: error_ratio, above: 5%, for: 30s}``, and
            silence, such as ``{silent: operations, for: 30s}``.
        production: figures of the production server; ``init --from`` writes them.
        compare: the figures that comparisons of this plan judge.
    """

    name: Name = Field(description="the plan's name, such as nightly")
    seed: int = Field(default=1, ge=0, lt=2**63)
    scenarios: Mapping[Name, ScenarioPlan] = Field(min_length=1, description="the scenarios to run, by name")
    phases: Phases = Field(description="how long, such as {warm_up: 5s, measure: 1m}")
    objectives: tuple[AnyObjective, ...] = Field(default=(), strict=False)
    stop_when: tuple[AnyRule, ...] = Field(default=(), strict=False)
    production: Mapping[str, float] | None = None
    compare: Compare | None = None

    @property
    def scenario_objectives(self) -> tuple[Objective, ...]:
        """The objectives of scenarios."""
        return tuple(one for one in self.objectives if isinstance(one, Objective))

    @field_validator("production")
    @classmethod
    def _known_figures(cls, production: Mapping[str, float] | None) -> Mapping[str, float] | None:
        for name in production or ():
            if name not in FIGURES:
                raise unknown("figure", name, FIGURES)
        return production


def with_phases(plan: Plan, measure: str | None, warm_up: str | None) -> Plan:
    """The plan with another measure time (``30s``) or warm-up (``5s``, ``auto``); None keeps the plan's.

    Raises:
        InputError: a value is not a duration; the message names the option of ``pinchpoint run``.
    """
    phases: dict[str, object] = {}
    for option, value, parse in (("measure", measure, _measure), ("warm-up", warm_up, _warm_up)):
        if value is None:
            continue
        try:
            phases[option.replace("-", "_")] = parse(value)
        except BadValue as error:
            raise InputError(f"--{option}: {error}") from error
    return Plan.from_json({**plan.to_json(), "phases": {**plan.phases.to_json(), **phases}})


def _measure(value: str) -> dict[str, object]:
    seconds = duration(value)
    if not seconds:
        raise BadValue(f"found {found(value)}", "allowed: more than 0 s")
    return {"at_most_s": seconds}


def ending_scenarios(plan: Plan) -> list[str]:
    """The names of the plan's scenarios that end by themselves (a crawl)."""
    return [name for name, planned in plan.scenarios.items() if scenario_class(planned.use).ends]
