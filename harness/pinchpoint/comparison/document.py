"""A comparison as plain JSON: the content of comparison.json (its keys: README.md beside this file)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pinchpoint.comparison.capacity import Capacity
from pinchpoint.comparison.change import Change
from pinchpoint.comparison.confounders import Blamed, Confounder
from pinchpoint.comparison.costs import UNIT_OF_COST, Costs
from pinchpoint.comparison.manifests import Difference
from pinchpoint.comparison.sides import Run, Side

if TYPE_CHECKING:
    from pinchpoint.comparison.comparison import Comparison

SCHEMA = "pinchpoint.comparison/1"


def content(found: Comparison) -> dict[str, Any]:
    """JSON types only, null for "not measured".

    Raises:
        ValueError: a number is not finite; such a value has no place in a comparison.
    """
    sides = found.sides
    document = {
        "schema": SCHEMA,
        "base": _side(sides.base),
        "other": _side(sides.other),
        "factors": found.factors,
        "studied": [_difference(one) for one in found.studied],
        "confounders": [_confounder(one) for one in found.confounders],
        "work": [asdict(one) for one in found.work],
        "metrics": found.metrics,
        "metrics_by": found.declared.by,
        "margin_ratio": found.declared.margin_ratio,
        "bound_ratio": found.declared.bound,
        "changes": [_change(one) for one in found.changes],
        "capacity": [_capacity(one) for one in found.capacity],
        "cost": _costs(found.costs),
        "bottleneck": asdict(found.bottleneck),
        "gains": found.gains,
        "main_changes": found.main_changes,
        "claim": found.claim.kind,
        "claim_because": found.claim.because,
        "what_if": found.what_if,
        "summary": found.summary,
        "warnings": found.warnings,
        "timelines": {
            name: asdict(side.runs[0].timeline) if side.runs[0].timeline else None
            for name, side in (("base", sides.base), ("other", sides.other))
        },
    }
    result: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False))
    return result


def _side(side: Side) -> dict[str, Any]:
    return {"label": side.label, "runs": [_run(run) for run in side.runs]}


def _run(run: Run) -> dict[str, Any]:
    manifest, verdict = run.manifest, run.verdict
    return {
        "directory": run.directory,
        "plan": (manifest.get("plan") or {}).get("name"),
        "farm": (manifest.get("farm") or {}).get("name"),
        "seed": manifest.get("seed"),
        "started": manifest.get("started"),
        "ended": manifest.get("ended"),
        "outcome": verdict["outcome"],
        "candidates": verdict.get("candidates") or [],
        "experiment": verdict.get("experiment"),
        "next": verdict.get("next"),
        "headroom_ratio": verdict.get("headroom_ratio"),
        "summary": verdict["summary"],
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "area": one.area,
        "what": one.what,
        "tier": one.tier,
        "hosts": [place.name for place in one.places],
        "role": one.role,
        "base": _values(one.base),
        "other": _values(one.other),
    }


def _confounder(one: Confounder) -> dict[str, Any]:
    return {
        **_difference(one.difference),
        "matters": one.matters,
        "touches": [_blamed(resource) for resource in one.touches],
    }


def _values(values: tuple[Any, ...]) -> Any:
    """The one value of a side; None where none was recorded; a list where its runs differ."""
    if len(values) > 1:
        return list(values)
    return values[0] if values else None


def _blamed(resource: Blamed) -> dict[str, Any]:
    return {
        "kind": resource.kind,
        "tier": resource.tier,
        "host": resource.place.name if resource.place else None,
        "role": resource.role,
    }


def _change(one: Change) -> dict[str, Any]:
    place = one.place
    return {
        "name": one.name,
        "about": one.about,
        "metric": one.metric,
        "source": one.source,
        "scenario": one.scenario,
        "tier": one.tier,
        "host": place.name if place else None,
        "role": one.role,
        "per": one.per,
        "better": one.better,
        **asdict(one.pair),
        **asdict(one.judged),
    }


def _capacity(one: Capacity) -> dict[str, Any]:
    figures: Mapping[str, Any] = asdict(one.pair)
    hows = {"base_how": one.base_how, "other_how": one.other_how, "kept_up": one.kept_up}
    return {"scenario": one.scenario, **figures, **hows}


def _costs(costs: Costs) -> dict[str, Any]:
    """``base`` and ``other`` are null where no prices are declared."""
    sides = {
        name: asdict(one.cost) if one.cost else None
        for name, one in (("base", costs.base), ("other", costs.other))
    }
    return {**sides, "ratio": costs.ratio, "why": costs.why, "per": costs.per, "unit_of_cost": UNIT_OF_COST}
