"""Reads and writes the folder of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import Field, model_validator
from pydantic_core import from_json

from pinchpoint.analysis.verdict import Next, Outcome
from pinchpoint.analysis.verdict_forms import BottleneckForm
from pinchpoint.base.errors import InputError
from pinchpoint.base.figures import About, Better
from pinchpoint.comparison.attribution import ForeseenGain
from pinchpoint.comparison.comparison import SCHEMA
from pinchpoint.comparison.costs import Cost
from pinchpoint.comparison.judged_figures import By
from pinchpoint.comparison.statistics import Call
from pinchpoint.comparison.timelines import RunTimeline
from pinchpoint.comparison.words import Lines
from pinchpoint.comparison.work import ComparedWork, How
from pinchpoint.store import document
from pinchpoint.store.document import Form, NotBelow0, Time
from pinchpoint.store.write import free_path, writable, write_json

Text = str | None
Ratio = Annotated[float, Field(gt=0)]


class RunForm(Form):
    """The summary of a run."""

    directory: str
    plan: Text
    farm: Text
    seed: int | None
    started: Time
    ended: Time | None
    outcome: Outcome
    candidates: list[BottleneckForm]
    experiment: Text
    next: Next | None
    headroom_ratio: float | None
    summary: str


class SideForm(Form):
    """The runs of one side."""

    label: str
    runs: Annotated[list[RunForm], Field(min_length=1)]


class BlamedForm(Form):
    """A resource that a verdict names."""

    kind: str
    tier: Text
    host: Text
    role: Text


class DifferenceForm(Form):
    """A difference between the manifests of both sides."""

    area: str
    what: str
    tier: Text
    hosts: list[str]
    role: Text
    base: Any
    other: Any


class ConfounderForm(DifferenceForm):
    """A difference that is not studied."""

    matters: bool
    touches: list[BlamedForm]


class PairForm(Form):
    """The values of a figure on both sides (``statistics.Pair``)."""

    base: float | None
    other: float | None
    base_values: list[float | None]
    other_values: list[float | None]
    ratio: float | None
    why: Text


class ChangeForm(PairForm):
    """A figure of both sides, with its judgement (``changes.Judgement``)."""

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


class CapacityForm(PairForm):
    """The capacity of each side for one scenario."""

    scenario: str
    base_how: How
    other_how: How
    kept_up: tuple[bool | None, bool | None]


class CostsForm(Form):
    """The monthly costs of both farms."""

    base: Cost | None
    other: Cost | None
    ratio: Ratio | None
    why: Text
    per: str
    unit_of_cost: Ratio


class MovementForm(Form):
    """The bottleneck of each side, and whether the bottleneck moved."""

    base: BottleneckForm | None
    other: BottleneckForm | None
    moved: bool | None
    why: Text
    foreseen: ForeseenGain | None
    second_step: ForeseenGain | None


class PredictedForm(Form):
    """The prediction of one scenario from the model of the base."""

    scenario: str
    base_per_s: NotBelow0
    predicted_per_s: NotBelow0
    interval_per_s: tuple[NotBelow0, NotBelow0]
    measured_per_s: NotBelow0 | None
    error_ratio: float | None


class WhatIfForm(Form):
    """The prediction of the other side from the base."""

    rows: list[PredictedForm]
    notes: list[str]
    why_none: Text
    prediction: dict[str, Any] | None


class SavedComparison(Form):
    """The content of comparison.json."""

    base: SideForm
    other: SideForm
    factors: list[str]
    studied: list[DifferenceForm]
    confounders: list[ConfounderForm]
    work: list[ComparedWork]
    metrics: list[str]
    metrics_by: By
    margin_ratio: Ratio
    bound_ratio: Ratio
    changes: list[ChangeForm]
    capacity: list[CapacityForm]
    cost: CostsForm
    bottleneck: MovementForm
    lines: Lines | None = None
    gains: list[str] | None = None
    main_changes: list[str]
    claim: Literal["caused_by", "associated_with"] | None
    claim_because: list[str]
    what_if: WhatIfForm | None
    summary: str
    warnings: list[str]
    timelines: dict[Literal["base", "other"], RunTimeline | None]

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


COMPARISON = "comparison.json"


class AnyComparison(Protocol):
    """A comparison of two sides, of several sides, or of two probes."""

    @property
    def folder(self) -> str:
        """The name of the comparison's folder, without the time."""

    def to_json(self) -> dict[str, Any]:
        """The content of comparison.json."""


def save(comparison: AnyComparison, parent: Path) -> Path:
    """Write comparison.json to a new folder and return its path. Raises InputError.

    The folder's name is like ``comparison-dev-prod-20260101T000000Z``.
    """
    directory = free_path(parent, comparison.folder)
    with writable(directory):
        directory.mkdir(parents=True)
        write_json(directory / COMPARISON, comparison.to_json())
    return directory


def beside(base: Sequence[Path]) -> Path:
    """The folder that contains the first run of the base."""
    return base[0].absolute().parent


def is_comparison(directory: Path) -> bool:
    """Whether a directory contains a comparison, not a run."""
    return (directory / COMPARISON).exists()


def schema_of(directory: Path) -> object:
    """The schema of a directory's comparison.json; None if the file is missing or no JSON.

    The reader of the file reports such an error.
    """
    try:
        result = from_json((directory / COMPARISON).read_bytes())
    except (OSError, ValueError):
        return None
    return result.get("schema") if isinstance(result, dict) else None


def load(directory: Path) -> dict[str, Any]:
    """Read the content of a directory's comparison.json. Raises InputError."""
    path, again = directory / COMPARISON, "`pinchpoint compare` writes it anew from the runs"
    try:
        content: dict[str, Any] = document.read(path, SavedComparison, SCHEMA, again)
    except FileNotFoundError as error:
        raise InputError(f"{path}: is missing; {again}") from error
    return content
