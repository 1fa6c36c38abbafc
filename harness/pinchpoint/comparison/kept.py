"""The form of comparison.json as it is read back: the comparison's records, as ``document`` writes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from pinchpoint.analysis.kept import Named
from pinchpoint.analysis.verdict import Next, Outcome
from pinchpoint.base.figures import About, Better
from pinchpoint.comparison.capacity import How
from pinchpoint.comparison.costs import Cost
from pinchpoint.comparison.declared import By
from pinchpoint.comparison.moved import Gain
from pinchpoint.comparison.statistics import Call
from pinchpoint.comparison.timelines import Timeline
from pinchpoint.comparison.work import Work
from pinchpoint.store.document import Form, NotBelow0, Time

Text = str | None
Ratio = Annotated[float, Field(gt=0)]


class Run(Form):
    """A run, in short."""

    directory: str
    plan: Text
    farm: Text
    seed: int | None
    started: Time
    ended: Time | None
    outcome: Outcome
    candidates: list[Named]
    experiment: Text
    next: Next | None
    headroom_ratio: float | None
    summary: str


class Side(Form):
    """The runs of a side."""

    label: str
    runs: Annotated[list[Run], Field(min_length=1)]


class Blamed(Form):
    """A resource that a verdict blames."""

    kind: str
    tier: Text
    host: Text
    role: Text


class Difference(Form):
    """What differs between both sides' manifests."""

    area: str
    what: str
    tier: Text
    hosts: list[str]
    role: Text
    base: Any
    other: Any


class Confounder(Difference):
    """A difference that is not studied."""

    matters: bool
    touches: list[Blamed]


class Pair(Form):
    """See ``values.Pair``."""

    base: float | None
    other: float | None
    base_values: list[float | None]
    other_values: list[float | None]
    ratio: float | None
    why: Text


class Change(Pair):
    """A figure of both sides, and what may be said of it (``change.Judgement``)."""

    name: str
    about: About
    metric: str
    source: Text
    scenario: Text
    tier: Text
    host: Text
    role: Text
    per: Text
    better: Better | None
    ci95: tuple[Ratio, Ratio] | None
    interval: Literal["between_runs", "within_run"] | None
    why_no_interval: Text
    declared: bool
    margin_ratio: Ratio | None
    floor_ratio: Ratio | None
    p: float | None
    call: Call | None
    confidence: Literal["high", "medium"] | None


class Capacity(Pair):
    """What each side can do at most."""

    scenario: str
    base_how: How
    other_how: How
    kept_up: tuple[bool | None, bool | None]


class Costs(Form):
    """What both farms cost."""

    base: Cost | None
    other: Cost | None
    ratio: Ratio | None
    why: Text
    per: str
    unit_of_cost: Ratio


class Movement(Form):
    """Whether the bottleneck moved."""

    base: Named | None
    other: Named | None
    moved: bool | None
    why: Text
    foreseen: Gain | None
    second_step: Gain | None


class Predicted(Form):
    """A scenario as the base's model has it."""

    scenario: str
    base_per_s: NotBelow0
    predicted_per_s: NotBelow0
    interval_per_s: tuple[NotBelow0, NotBelow0]
    measured_per_s: NotBelow0 | None
    error_ratio: float | None


class WhatIf(Form):
    """The other side predicted from the base."""

    rows: list[Predicted]
    notes: list[str]
    why_none: Text
    prediction: dict[str, Any] | None


class Kept(Form):
    """comparison.json."""

    base: Side
    other: Side
    factors: list[str]
    studied: list[Difference]
    confounders: list[Confounder]
    work: list[Work]
    metrics: list[str]
    metrics_by: By
    margin_ratio: Ratio
    bound_ratio: Ratio
    changes: list[Change]
    capacity: list[Capacity]
    cost: Costs
    bottleneck: Movement
    gains: list[str]
    main_changes: list[str]
    claim: Literal["caused_by", "associated_with"] | None
    claim_because: list[str]
    what_if: WhatIf | None
    summary: str
    warnings: list[str]
    timelines: dict[Literal["base", "other"], Timeline | None]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        names = {change.name for change in self.changes}
        needed = set(self.metrics)
        for change in self.changes:
            if change.about in ("scenario", "effort", "cost"):
                needed.add(f"scenario.{change.scenario}.throughput_per_s")
        if needed - names:
            raise ValueError(f"changes that are complete, with {min(needed - names)}")
        sides = [side for side in self.timelines.values() if side]
        if len(self.timelines) < 2 or any(side.step_s < 1 or side.points < 1 for side in sides):
            raise ValueError("timelines of both sides, each null or of points, a second or more apart")
        return self
