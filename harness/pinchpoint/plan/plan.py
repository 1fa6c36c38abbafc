"""The records of plan.yaml (DESIGN.md section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from pinchpoint.fit.figures import FIGURES
from pinchpoint.loadgen.locustfile import is_locustfile, scenario_class
from pinchpoint.plan.problems import Unfit, unknown
from pinchpoint.plan.record import (
    FileContext,
    Name,
    PerSecond,
    Ratio,
    Record,
    Seconds,
    in_file,
    only_one,
    resolved,
    with_places,
)
from pinchpoint.plan.units import DURATION, RATE, byte_rate, duration, found, rate, ratio, size
from pinchpoint_scenarios.registry import SCENARIOS

AUTO_WARM_UP_S = 120.0
"""A warm-up whose end is to be detected ends here at the latest."""
DEFAULT_WARM_UP_S = 5.0
"""Connections are open and caches touched after some seconds; a plan that needs more says so."""


Arrivals = Literal["poisson", "constant"]
MOST_USERS = 100_000
MOST_STEPS = 200
DEFAULT_STEPS = 11
"""Steps above the first level where a plan names no highest one: a knee takes six levels to be told."""
SHORTEST_STEP_S = 15.0
"""A level must settle and then be seen for the least time that anything is judged by."""
MOST_BACK_TO_BACK = 100
DEFAULT_GAP_S = 2.0
"""Latency is seen by the second: bursts nearer to each other would be one."""
LEVEL = "a rate such as 50/s, or a number of users such as 4"


class Closed(Record):
    """A fixed number of users, each starting its next operation when the last one has ended.

    Attributes:
        users: how many there are at once.
        think_s: how long each waits between two operations.
    """

    model: Literal["closed"]
    users: int = Field(ge=1, le=MOST_USERS, description="the number of users, such as 32")
    think_s: Seconds = Field(default=0.0, alias="think", ge=0)


class Open(Record):
    """Operations that arrive at a rate, whether or not the earlier ones have ended.

    Attributes:
        rate_per_s: arrivals per second.
        arrivals: ``poisson`` (independent of one another) or ``constant`` (evenly spaced).
    """

    model: Literal["open"]
    rate_per_s: PerSecond = Field(alias="rate", gt=0, description=RATE)
    arrivals: Arrivals = "poisson"


class Burst(Record):
    """Arrivals at a base rate, with bursts at a peak rate; each period ends with its burst.

    Attributes:
        base_per_s: arrivals per second between the bursts; may be 0.
        peak_per_s: arrivals per second in a burst.
        every_s: seconds from one burst's beginning to the next one's.
        for_s: seconds a burst lasts.
        ramp_s: seconds within a burst in which it rises, and again in which it falls; 0: at once.
        back_to_back: so many bursts end each period, with ``gap_s`` between them: too short to recover.
        gap_s: seconds at the base rate between bursts that are back to back.
        jitter_ratio: bursts come earlier by up to this share of the period's time without a burst.
        arrivals: as of ``Open``.
    """

    model: Literal["burst"]
    base_per_s: PerSecond = Field(alias="base", ge=0, description=RATE)
    peak_per_s: PerSecond = Field(alias="peak", gt=0, description=RATE)
    every_s: Seconds = Field(alias="every", gt=0, description=DURATION)
    for_s: Seconds = Field(alias="for", gt=0, description=DURATION)
    ramp_s: Seconds = Field(default=0.0, alias="ramp", ge=0, description=DURATION)
    back_to_back: int = Field(default=1, ge=1, le=MOST_BACK_TO_BACK)
    gap_s: Seconds = Field(default=DEFAULT_GAP_S, alias="gap", gt=0, description=DURATION)
    jitter_ratio: Ratio = Field(default=0.0, alias="jitter", ge=0, le=1)
    arrivals: Arrivals = "poisson"

    @model_validator(mode="after")
    def _bursts_stand_out(self) -> Self:
        if self.peak_per_s <= self.base_per_s:
            raise Unfit("a peak that is not above the base", "needed: a higher peak, or the load model open")
        if self.for_s >= self.every_s:
            raise Unfit("bursts that last as long as their period", "needed: for shorter than every")
        if self.back_to_back * self.for_s + (self.back_to_back - 1) * self.gap_s >= self.every_s:
            raise Unfit(
                f"{self.back_to_back} bursts back to back that last as long as their period",
                "needed: all of them, with the gaps between, shorter than every",
            )
        if 2 * self.ramp_s > self.for_s:
            raise Unfit(
                "a ramp longer than half its burst", "needed: ramp, up and down, no longer than for in all"
            )
        return self


class Soak(Record):
    """An open load for hours: what grows, leaks or runs out shows only then.

    Attributes:
        rate_per_s, arrivals: as of ``Open``.
    """

    model: Literal["soak"]
    rate_per_s: PerSecond = Field(alias="rate", gt=0, description=RATE)
    arrivals: Arrivals = "poisson"


class Level(Record):
    """How much load: a rate, which makes it an open load, or a number of users, which makes it a closed one.

    Attributes:
        per_s: arrivals per second.
        users: users at once.
    """

    per_s: float | None = None
    users: int | None = None

    @property
    def amount(self) -> float:
        """The rate, or the number of users."""
        return self.per_s if self.per_s is not None else float(self.users or 0)


def _level(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value <= MOST_USERS:
            raise Unfit(f"found {found(value)}", f"allowed: {LEVEL}, {MOST_USERS:,} users at most")
        return {"users": value}
    if isinstance(value, str) and "/" in value:
        return {"per_s": rate(value)}
    raise Unfit(f"found {found(value)}", f"allowed: {LEVEL}")


LevelInFile = Annotated[Level, in_file(_level)]


def _same_unit(levels: Mapping[str, Level | None]) -> None:
    given = {name: level for name, level in levels.items() if level is not None}
    if len({level.users is None for level in given.values()}) > 1:
        names = " and ".join(given)
        raise Unfit(f"{names} are partly rates and partly users", f"allowed: {LEVEL}, the same in each")


class Ramp(Record):
    """From one level evenly to another, which then holds.

    Attributes:
        start: the first level (``from`` in a file).
        to: the last level.
        over_s: how long it takes.
        arrivals: of an open load, as of ``Open``.
        think_s: of a closed load, as of ``Closed``.
    """

    model: Literal["ramp"]
    start: LevelInFile = Field(alias="from", description=LEVEL)
    to: LevelInFile = Field(description=LEVEL)
    over_s: Seconds = Field(alias="over", gt=0, description=DURATION)
    arrivals: Arrivals = "poisson"
    think_s: Seconds = Field(default=0.0, alias="think", ge=0)

    @model_validator(mode="after")
    def _goes_up(self) -> Self:
        _same_unit({"from": self.start, "to": self.to})
        if self.to.amount <= 0:
            raise Unfit("a ramp that ends at nothing", "needed: to above 0")
        if self.to.users is not None and self.to.amount <= self.start.amount:
            raise Unfit("users that become fewer", "needed: to above from; a ramp of rates may fall")
        return self


class Steps(Record):
    """Levels one after the other, from low to high, until something gives way.

    Attributes:
        start: the first level.
        step: how much is added at each step.
        each_s: how long each level lasts.
        until: ``saturation``: until throughput no longer follows; ``objective``: until an objective of
            the scenario is missed.
        at_most: the highest level; ``DEFAULT_STEPS`` steps above the first one by default.
        arrivals: of an open load, as of ``Open``.
        think_s: of a closed load, as of ``Closed``.
    """

    model: Literal["steps"]
    start: LevelInFile = Field(description=LEVEL)
    step: LevelInFile = Field(description=LEVEL)
    each_s: Seconds = Field(alias="each", ge=SHORTEST_STEP_S, description=DURATION)
    until: Literal["saturation", "objective"] = "saturation"
    at_most: LevelInFile | None = None
    arrivals: Arrivals = "poisson"
    think_s: Seconds = Field(default=0.0, alias="think", ge=0)

    @model_validator(mode="after")
    def _goes_up(self) -> Self:
        _same_unit({"start": self.start, "step": self.step, "at_most": self.at_most})
        for name, level in (("start", self.start), ("step", self.step)):
            if level.amount <= 0:
                raise Unfit(f"{name} is 0", f"needed: {name} above 0")
        if self.at_most is not None and self.at_most.amount < self.start.amount + self.step.amount:
            raise Unfit("at_most leaves only one level", "needed: at_most no less than start and one step")
        if self.count > MOST_STEPS:
            raise Unfit(f"{self.count:,} levels", f"allowed: {MOST_STEPS} at most; make step larger")
        return self

    @property
    def count(self) -> int:
        """How many levels there are."""
        if self.at_most is None:
            return DEFAULT_STEPS + 1
        return int((self.at_most.amount - self.start.amount) / self.step.amount * (1 + 1e-9)) + 1

    @property
    def levels(self) -> tuple[float, ...]:
        """Every level, as rate or number of users."""
        return tuple(self.start.amount + number * self.step.amount for number in range(self.count))


Load = Annotated[Closed | Open | Ramp | Steps | Burst | Soak, Field(discriminator="model")]


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

    @field_validator("params")
    @classmethod
    def _files_places(cls, params: Mapping[str, Any], info: ValidationInfo) -> Mapping[str, Any]:
        """The paths of the user's files start in the plan's folder."""
        use = info.data.get("use")
        if isinstance(info.context, FileContext) and use in SCENARIOS:
            return with_places(SCENARIOS[use].params_model, params, info.context.directory)
        return params


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


class WarmUp(Record):
    """How long load goes on before anything counts.

    Attributes:
        at_most_s: how long, or where its end is detected, how long at most.
        auto: whether its end is detected (``warm_up: auto`` in a file): when load has become stationary.
    """

    at_most_s: float = Field(default=DEFAULT_WARM_UP_S, ge=0)
    auto: bool = False


def _warm_up(value: object) -> object:
    if value == "auto":
        return {"at_most_s": AUTO_WARM_UP_S, "auto": True}
    try:
        return {"at_most_s": duration(value)}
    except Unfit as error:
        raise Unfit(error.found, f"{error.allowed}, or auto", error.nearest) from error


class Phases(Record):
    """The phases of a run, in seconds."""

    warm_up: Annotated[WarmUp, in_file(_warm_up)] = WarmUp()
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


OPERATION_METRICS = ("error_ratio", "response_p95_s")
SAMPLE_METRICS = (
    "cpu.busy_ratio",
    "cpu.run_queue",
    "cpu.steal_ratio",
    "cpu.wait_ratio",
    "disk.busy_ratio",
    "disk.flush_latency_s",
    "disk.outstanding",
    "disk.read_bytes_per_s",
    "disk.read_latency_s",
    "disk.reads_per_s",
    "disk.write_bytes_per_s",
    "disk.write_latency_s",
    "disk.writes_per_s",
    "mem.available_bytes",
    "mem.available_ratio",
    "mem.paged_in_bytes_per_s",
    "mem.paged_out_bytes_per_s",
    "net.errors_per_s",
    "net.received_bytes_per_s",
    "net.sent_bytes_per_s",
    "pressure.cpu_ratio",
    "pressure.io_ratio",
    "pressure.memory_ratio",
)
"""DESIGN.md section 6: what a collector may give of any host."""


def _limit(value: object) -> float:
    """A limit as people write it: base units, or with its unit (``5%``, ``500ms``, ``200MB/s``)."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    text = str(value).strip() if isinstance(value, str) else ""
    parse = ratio if text.endswith("%") else byte_rate if "B/" in text else rate if "/" in text else None
    if parse is None:
        parse = size if text.endswith("B") else duration
    try:
        return float(parse(value))
    except Unfit as error:
        raise Unfit(f"found {found(value)}", f"allowed: {LIMIT}") from error


Limit = Annotated[float, in_file(_limit)]
LIMIT = "a number in base units, or one with its unit, such as 0.5, 5%, 500ms or 200MB/s"


class StopRule(Record):
    """What ends the run before it does harm.

    Attributes:
        metric: a name of ``OPERATION_METRICS`` or ``SAMPLE_METRICS``.
        above, below: the limit; exactly one of them.
        for_s: how long without a break.
        scenario: whose operations; all of them without it.
        host, tier, role: of which host, tier or disk; any without them.
    """

    metric: str = Field(description="a metric such as error_ratio or disk.write_latency_s")
    above: Limit | None = None
    below: Limit | None = None
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

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        only_one({"above": self.above, "below": self.below})
        if self.above is None and self.below is None:
            raise Unfit("a rule without a limit", "needed: above or below")
        if self.of_operations and (self.host or self.tier or self.role):
            raise Unfit(f"{self.metric} of a host", "allowed: scenario; operations belong to scenarios")
        if not self.of_operations and self.scenario:
            raise Unfit(f"{self.metric} of a scenario", "allowed: host, tier, role; samples belong to hosts")
        return self

    @property
    def of_operations(self) -> bool:
        """Whether it speaks of what scenarios do, not of what hosts show."""
        return self.metric in OPERATION_METRICS

    def broken_by(self, value: float) -> bool:
        """Whether a value is beyond the limit."""
        if self.above is not None:
            return value > self.above
        return self.below is not None and value < self.below


class Plan(Record):
    """Which scenarios run, at what load, for how long, with which objectives.

    Attributes:
        name: its name.
        seed: decides everything random.
        scenarios: name in the plan -> scenario.
        phases: how long.
        objectives: what has to be achieved.
        stop_when: what ends a run early.
        production: figures of the server that the plan was fitted to (``fit.figures``), for comparison.
    """

    name: Name = Field(description="the plan's name")
    seed: int = Field(default=1, ge=0, lt=2**63)
    scenarios: Mapping[Name, ScenarioPlan] = Field(min_length=1, description="the scenarios to run, by name")
    phases: Phases = Field(description="how long, such as {warm_up: 5s, measure: 1m}")
    objectives: tuple[Objective, ...] = Field(default=(), strict=False)
    stop_when: tuple[StopRule, ...] = Field(default=(), strict=False)
    production: Mapping[str, float] | None = None

    @field_validator("production")
    @classmethod
    def _known_figures(cls, production: Mapping[str, float] | None) -> Mapping[str, float] | None:
        for name in production or ():
            if name not in FIGURES:
                raise unknown("figure", name, FIGURES)
        return production


def ending_scenarios(plan: Plan) -> list[str]:
    """The names of the plan's scenarios that end by themselves (a crawl)."""
    return [name for name, planned in plan.scenarios.items() if scenario_class(planned.use).ends]
