"""Compares two sets of runs in the order of docs/dev-against-prod.md and writes the result as plain JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pinchpoint.base.errors import ExitStatus, InputError
from pinchpoint.base.objects import JsonObject
from pinchpoint.comparison import words
from pinchpoint.comparison.attribution import (
    Blamed,
    BottleneckMove,
    Claim,
    Confounder,
    all_name_bottleneck,
    blamed_of,
    bottleneck_move,
    claim,
    confounders,
)
from pinchpoint.comparison.changes import Change, changes
from pinchpoint.comparison.costs import UNIT_OF_COST, Costs, costs_of
from pinchpoint.comparison.differences import AREAS, Difference, differences
from pinchpoint.comparison.judged_figures import (
    CommandFigures,
    DeclaredFigures,
    declared_figures,
    judge_changes,
    without_calls,
)
from pinchpoint.comparison.sides import ComparedRun, HostPairs, Side, Sides, folder_name, pair_hosts
from pinchpoint.comparison.work import Capacity, ComparedWork, capacities, not_kept_up, work_done
from pinchpoint.plan.prices import Prices
from pinchpoint_collectors.common.names import allowed

__all__ = ["SCHEMA", "Comparison", "check_factor", "compare", "exit_status"]

SCHEMA = "pinchpoint.comparison/1"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison; comparison.json is its JSON form (docs/run-directory.md).

    Attributes:
        sides: the runs of both sides.
        factors: the studied areas, in which the sides may differ.
        studied: the differences in the studied areas.
        confounders: all other differences; those that can affect a named resource come first.
        work: the completed work of each crawl source and scenario.
        declared: the judged figures, with their margin and bound.
        costs: the monthly cost of both farms, by the prices that the user gave.
        changes: every figure of both sides.
        capacity: the maximum throughput of each scenario on each side.
        bottleneck: the bottleneck of each side, and whether the bottleneck moved.
        claim: the conclusion about the cause.
        what_if: the prediction of the other side from the base, with the measured values; None if not
            requested.
        again: the base with further runs of its farm (an A/A pair), which shows the farm's own variation;
            None without such runs.
        notes: further warnings about how the runs were made.
    """

    sides: Sides
    factors: tuple[str, ...]
    studied: tuple[Difference, ...]
    confounders: tuple[Confounder, ...]
    work: tuple[ComparedWork, ...]
    declared: DeclaredFigures
    costs: Costs
    changes: tuple[Change, ...]
    capacity: tuple[Capacity, ...]
    bottleneck: BottleneckMove
    claim: Claim
    what_if: JsonObject | None
    again: Sides | None
    notes: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """The name of the comparison's folder: ``comparison-dev-prod``."""
        return folder_name(self.sides.labels)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the figures that are judged."""
        return self.declared.metrics

    @property
    def main_changes(self) -> tuple[str, ...]:
        """The judged figures in words: the thing, both values and the call."""
        return tuple(words.main_changes(self.changes, self.metrics))

    @property
    def lines(self) -> words.Lines:
        """The result in a few sentences."""
        return words.lines(self.sides, self.bottleneck, self.claim, self.factors, self.changes)

    @property
    def summary(self) -> str:
        """The result in a few sentences, as one text."""
        return str(self.lines)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the figures, without duplicates."""
        differing = [*self.studied, *(one.difference for one in self.confounders)]
        answer = (
            *words.warnings(self.sides, differing, self.declared.bound, self.again),
            *self.notes,
            *self.declared.notes,
            *not_kept_up(self.capacity, self.sides),
            *words.reported(self.sides),
        )
        return tuple(dict.fromkeys(answer))

    def to_json(self) -> dict[str, Any]:
        """The content of comparison.json: JSON types only, null for "not measured".

        Raises:
            ValueError: a number is not finite.
        """
        return content(self)


def compare(
    sides: Sides,
    factors: Sequence[str] = (),
    *,
    metrics: Sequence[str] = (),
    bound: float | None = None,
    margin: float | None = None,
    again: Sides | None = None,
    prices: Prices | None = None,
    what_if: JsonObject | None = None,
) -> Comparison:
    """Compare two sides from their records alone: no clock, no files, no global state.

    Args:
        sides: the runs of both sides, with their verdicts.
        factors: the areas that are studied (``AREAS``); any other difference is a confounder.
        metrics: names of the figures to judge, six at most; by default the figures that the plans declare,
            else ``judged_figures.default_metrics``.
        bound: ratio above which a change is reported if a side has fewer than five runs; by default the value
            in the plans, else 1.5.
        margin: relative difference within which two sides are equivalent (0.05 = 5 %); by default the value
            in the plans, else 5 %.
        again: the base with further runs of its farm (``read_again``), an A/A pair.
        prices: prices of disks and machines; by default the prices in each farm's farm.yaml.
        what_if: the prediction of the other side from the base (``sides.predicted``).

    Raises:
        InputError: a factor or a metric is not known, or the plans declare different values.
    """
    for name in factors:
        check_factor(name)
    places = pair_hosts(sides.base.manifests[0], sides.other.manifests[0])
    studied, confounding = _studied_apart(sides, places, factors)
    work, costs = work_done(sides), costs_of(sides, prices)
    figures = changes(sides, places, costs)
    judges = declared_figures(figures, CommandFigures(tuple(metrics), margin, bound), sides, studied)
    result = judge_changes(
        figures, judges.metrics, sides, judges.bound, _again(again, prices), judges.margin_ratio
    )
    claimed = claim(sides, factors, studied, confounding, work)
    return Comparison(
        sides=sides,
        factors=tuple(factors),
        studied=studied,
        confounders=confounding,
        work=work,
        declared=judges,
        costs=costs,
        changes=result if claimed.kind else without_calls(result),
        capacity=tuple(capacities(sides)),
        bottleneck=bottleneck_move(sides, places),
        claim=claimed,
        what_if=what_if,
        again=again,
    )


def _studied_apart(
    sides: Sides, places: HostPairs, factors: Sequence[str]
) -> tuple[tuple[Difference, ...], tuple[Confounder, ...]]:
    """(the studied differences, all other differences as confounders)."""
    differing = differences(sides.base.manifests, sides.other.manifests, places)
    rest = [one for one in differing if one.area not in factors]
    confounding = confounders(rest, blamed_of(sides, places), named=all_name_bottleneck(sides))
    return tuple(one for one in differing if one.area in factors), confounding


def _again(again: Sides | None, prices: Prices | None) -> tuple[Change, ...]:
    """The figures of the A/A pair, from its valid runs; empty if there are none."""
    valid = tuple(run for run in again.other.runs if run.is_evidence) if again else ()
    if again is None or not valid:
        return ()
    again = replace(again, other=replace(again.other, runs=valid))
    places = pair_hosts(again.base.manifests[0], again.other.manifests[0])
    return changes(again, places, costs_of(again, prices))


def check_factor(name: str) -> None:
    """Raise InputError with the allowed areas if ``name`` is not one of them."""
    if name not in AREAS:
        raise InputError(f"--factor: {name!r} is nothing runs can differ in; {allowed(name, AREAS)}")


def exit_status(comparison: Comparison, *, fail_on_worse: bool = False) -> ExitStatus:
    """3 if a run is not valid evidence, 1 if ``fail_on_worse`` and something got worse, else 0.

    Work that failed, did not start or did not end counts as worse, because the figures cover only the
    operations that succeeded.
    """
    if comparison.claim.kind is None:
        return ExitStatus.NOT_EVIDENCE
    worse = any(one.judged.call == "worse" for one in comparison.changes)
    worse |= any(one.worse for one in comparison.work)
    return ExitStatus.OBJECTIVES_MISSED if fail_on_worse and worse else ExitStatus.FINE


def content(comparison: Comparison) -> dict[str, Any]:
    """A comparison as JSON types, null for "not measured".

    Raises:
        ValueError: a number is not finite.
    """
    sides = comparison.sides
    document = {
        "schema": SCHEMA,
        "base": _side(sides.base),
        "other": _side(sides.other),
        "factors": comparison.factors,
        "studied": [_difference(one) for one in comparison.studied],
        "confounders": [_confounder(one) for one in comparison.confounders],
        "work": [asdict(one) for one in comparison.work],
        "metrics": comparison.metrics,
        "metrics_by": comparison.declared.by,
        "margin_ratio": comparison.declared.margin_ratio,
        "bound_ratio": comparison.declared.bound,
        "changes": [_change(one) for one in comparison.changes],
        "capacity": [_capacity(one) for one in comparison.capacity],
        "cost": _costs(comparison.costs),
        "bottleneck": asdict(comparison.bottleneck),
        "lines": asdict(comparison.lines),
        "main_changes": comparison.main_changes,
        "claim": comparison.claim.kind,
        "claim_because": comparison.claim.because,
        "what_if": comparison.what_if,
        "summary": comparison.summary,
        "warnings": comparison.warnings,
        "timelines": {
            name: asdict(side.runs[0].timeline) if side.runs[0].timeline else None
            for name, side in sides.named
        },
    }
    result: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False))
    return result


def _side(side: Side) -> dict[str, Any]:
    return {"label": side.label, "runs": [_run(run) for run in side.runs]}


def _run(run: ComparedRun) -> dict[str, Any]:
    manifest, verdict = run.manifest, run.verdict
    return {
        "directory": run.directory,
        **{key: (manifest.get(key) or {}).get("name") for key in ("plan", "farm")},
        **{key: manifest.get(key) for key in ("seed", "started", "ended")},
        "outcome": verdict["outcome"],
        "candidates": verdict.get("candidates") or [],
        **{key: verdict.get(key) for key in ("experiment", "next", "headroom_ratio", "summary")},
    }


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "area": difference.area,
        "what": difference.what,
        "tier": difference.tier,
        "hosts": [place.name for place in difference.places],
        "role": difference.role,
        "base": plain(difference.base),
        "other": plain(difference.other),
    }


def _confounder(confounder: Confounder) -> dict[str, Any]:
    return {
        **_difference(confounder.difference),
        "matters": confounder.matters,
        "touches": [_fields(one, "kind", "tier", "host", "role") for one in confounder.touches],
    }


def plain(values: tuple[Any, ...]) -> Any:
    """The value of a side; None if none was recorded; a list if the side's runs differ."""
    if len(values) > 1:
        return list(values)
    return values[0] if values else None


def _fields(record: Blamed | Change, *names: str) -> dict[str, Any]:
    """The named fields of a record; ``host`` is the name of the record's host pair."""
    host = record.place.name if record.place else None
    return {name: host if name == "host" else getattr(record, name) for name in names}


def _change(change: Change) -> dict[str, Any]:
    whose = "source", "scenario", "tier", "host", "role", "per", "better"
    fields = _fields(change, "name", "about", "metric", *whose)
    return {**fields, **asdict(change.pair), **asdict(change.judged)}


def _capacity(capacity: Capacity) -> dict[str, Any]:
    figures: JsonObject = asdict(capacity.pair)
    hows = {"base_how": capacity.base_how, "other_how": capacity.other_how, "kept_up": capacity.kept_up}
    return {"scenario": capacity.scenario, **figures, **hows}


def _costs(costs: Costs) -> dict[str, Any]:
    """The costs as JSON; ``base`` and ``other`` are null if no prices are declared."""
    sides = {
        name: asdict(one.cost) if one.cost else None
        for name, one in (("base", costs.base), ("other", costs.other))
    }
    return {**sides, "ratio": costs.ratio, "why": costs.why, "per": costs.per, "unit_of_cost": UNIT_OF_COST}
