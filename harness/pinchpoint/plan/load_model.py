"""Defines the load models of plan.yaml: how much load a scenario gets, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pinchpoint.plan.problems import BadValue
from pinchpoint.plan.record import PerSecond, Ratio, Seconds, StrictRecord, in_file
from pinchpoint.plan.units import DURATION, RATE, RATE_FORM, found, rate

Arrivals = Literal["poisson", "constant"]
MOST_USERS = 100_000
MOST_STEPS = 200
DEFAULT_STEPS = 11
"""Steps above the first level if a plan gives no highest level; six levels are needed to find a knee."""
SHORTEST_STEP_S = 15.0
"""A level must settle and then be measured for the shortest time that the analysis can judge."""
MOST_BACK_TO_BACK = 100
DEFAULT_GAP_S = 2.0
"""Latency is measured per second, so two bursts closer together could not be separated."""
LEVEL = "a rate such as 50/s, or a number of users such as 4"


class Closed(StrictRecord):
    """A fixed number of users, each starting its next operation when the last one has ended.

    Attributes:
        users: the number of users at the same time.
        think_s: the pause of each user between two operations, such as ``1s``.
    """

    model: Literal["closed"]
    users: int = Field(ge=1, le=MOST_USERS, description="the number of users, such as 32")
    think_s: Seconds = Field(default=0.0, alias="think", ge=0)


class Open(StrictRecord):
    """Operations that arrive at a rate, whether or not the earlier ones have ended.

    Attributes:
        rate_per_s: operations that arrive per second, such as ``200/s``.
        arrivals: ``poisson`` (random, independent) or ``constant`` (evenly spaced).
    """

    model: Literal["open"]
    rate_per_s: PerSecond = Field(alias="rate", gt=0, description=RATE)
    arrivals: Arrivals = "poisson"


class Burst(StrictRecord):
    """Arrivals at a base rate, with bursts at a peak rate; each period ends with its burst.

    Attributes:
        base_per_s: arrivals per second between the bursts; may be 0.
        peak_per_s: arrivals per second in a burst.
        every_s: time from the start of one burst to the start of the next.
        for_s: duration of a burst.
        ramp_s: time to rise at the start of a burst, and to fall at its end; 0: at once.
        back_to_back: number of bursts at the end of each period, with ``gap`` between them.
        gap_s: time at the base rate between such bursts.
        jitter_ratio: bursts start earlier, at random, by up to this share of the time between bursts.
        arrivals: ``poisson`` or ``constant``.
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
            raise BadValue(
                "a peak that is not above the base", "needed: a higher peak, or the load model open"
            )
        if self.for_s >= self.every_s:
            raise BadValue("bursts that last as long as their period", "needed: for shorter than every")
        if self.back_to_back * self.for_s + (self.back_to_back - 1) * self.gap_s >= self.every_s:
            raise BadValue(
                f"{self.back_to_back} bursts back to back that last as long as their period",
                "needed: all of them, with the gaps between, shorter than every",
            )
        if 2 * self.ramp_s > self.for_s:
            raise BadValue(
                "a ramp longer than half its burst", "needed: ramp, up and down, no longer than for in all"
            )
        return self


class Soak(StrictRecord):
    """An open load for hours, to find what grows, leaks or runs out.

    Attributes:
        rate_per_s: operations that arrive per second.
        arrivals: ``poisson`` or ``constant``.
    """

    model: Literal["soak"]
    rate_per_s: PerSecond = Field(alias="rate", gt=0, description=RATE)
    arrivals: Arrivals = "poisson"


class LoadLevel(StrictRecord):
    """How much load: a rate, which makes it an open load, or a number of users, which makes it a closed one.

    Attributes:
        per_s: arrivals per second.
        users: users at once.
    """

    per_s: float | None = None
    users: int | None = None

    @property
    def amount(self) -> float:
        """The rate per second, or the number of users."""
        return self.per_s if self.per_s is not None else float(self.users or 0)


def _level(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value <= MOST_USERS:
            raise BadValue(f"found {found(value)}", f"allowed: {LEVEL}, {MOST_USERS:,} users at most")
        return {"users": value}
    if isinstance(value, str) and "/" in value:
        return {"per_s": rate(value)}
    raise BadValue(f"found {found(value)}", f"allowed: {LEVEL}")


LevelInFile = Annotated[
    LoadLevel,
    in_file(_level, {"anyOf": [{"type": "integer", "minimum": 0, "maximum": MOST_USERS}, RATE_FORM]}),
]


def _same_unit(levels: Mapping[str, LoadLevel | None]) -> None:
    given = {name: level for name, level in levels.items() if level is not None}
    if len({level.users is None for level in given.values()}) > 1:
        names = " and ".join(given)
        raise BadValue(f"{names} are partly rates and partly users", f"allowed: {LEVEL}, the same in each")


class Ramp(StrictRecord):
    """An even rise from one level to another, which then stays.

    Attributes:
        start: the first level, such as ``10/s`` or ``4`` (users).
        to: the last level.
        over_s: duration of the rise.
        arrivals: of rates: ``poisson`` or ``constant``.
        think_s: of users: the pause between two operations.
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
            raise BadValue("a ramp that ends at nothing", "needed: to above 0")
        if self.to.users is not None and self.to.amount <= self.start.amount:
            raise BadValue("users that become fewer", "needed: to above from; a ramp of rates may fall")
        return self


class Steps(StrictRecord):
    """Load levels from low to high, until throughput no longer rises or an objective is missed.

    Attributes:
        start: the first level.
        step: what each further level adds, such as ``50/s``.
        each_s: duration of each level, 15 s or more.
        until: ``saturation`` (throughput no longer rises) or ``objective`` (an objective of the scenario is
            missed).
        at_most: the highest level. By default 11 steps above the first.
        arrivals: of rates: ``poisson`` or ``constant``.
        think_s: of users: the pause between two operations.
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
                raise BadValue(f"{name} is 0", f"needed: {name} above 0")
        if self.at_most is not None and self.at_most.amount < self.start.amount + self.step.amount:
            raise BadValue("at_most leaves only one level", "needed: at_most no less than start and one step")
        if self.count > MOST_STEPS:
            raise BadValue(f"{self.count:,} levels", f"allowed: {MOST_STEPS} at most; make step larger")
        return self

    @property
    def count(self) -> int:
        """The number of levels."""
        if self.at_most is None:
            return DEFAULT_STEPS + 1
        return int((self.at_most.amount - self.start.amount) / self.step.amount * (1 + 1e-9)) + 1

    @property
    def levels(self) -> tuple[float, ...]:
        """The amount of every level: rate per second, or number of users."""
        return tuple(self.start.amount + number * self.step.amount for number in range(self.count))


Load = Annotated[Closed | Open | Ramp | Steps | Burst | Soak, Field(discriminator="model")]
