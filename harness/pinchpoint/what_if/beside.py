"""The other side of a comparison predicted from the base, beside what was measured there; what both cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pinchpoint.errors import InputError, NotEvidenceError
from pinchpoint.report import units
from pinchpoint.store.read import StoredRun
from pinchpoint.what_if.cost import cost_of, per_cost, prices_of
from pinchpoint.what_if.other import settings_between
from pinchpoint.what_if.predict import Base, predict_settings, read_base
from pinchpoint.what_if.prediction import Prediction
from pinchpoint.what_if.settings import Setting
from pinchpoint.what_if.text import UNIT_OF_COST, cost_words


def predict_beside(base: StoredRun, other: StoredRun) -> dict[str, Any]:
    """A comparison's ``what_if``: plain JSON.

    Args:
        base: a run of the one side.
        other: a run of the other.

    Returns:
        ``rows`` (scenario, base_per_s, predicted_per_s, interval_per_s, measured_per_s, error_ratio:
        predicted ÷ measured - 1), ``notes`` (sentences: what was put into the base's model, what limits then,
        what both cost), ``why_none`` (a sentence where nothing could be predicted, else null),
        ``prediction`` (``Prediction.to_json``, or null).
    """
    costs = [*_costs(base), *_costs(other)]
    try:
        ours, theirs = read_base(base), read_base(other)
        settings = tuple(settings_between(ours.measured, theirs.measured))
        found = predict_settings(ours, settings)
    except (InputError, NotEvidenceError) as error:
        return {"rows": [], "notes": costs, "why_none": str(error), "prediction": None}
    return {
        "rows": list(_rows(found, theirs)),
        "notes": [*_notes(settings, found), *costs],
        "why_none": None,
        "prediction": found.to_json(),
    }


def _rows(found: Prediction, theirs: Base) -> Iterator[dict[str, Any]]:
    measured = {one.name: one.per_s * one.ok_ratio for one in theirs.measured.seen}
    for one in found.scenarios:
        done = measured.get(one.scenario)
        yield {
            "scenario": one.scenario,
            "base_per_s": one.now_per_s,
            "predicted_per_s": one.then_per_s,
            "interval_per_s": [one.low_per_s, one.high_per_s],
            "measured_per_s": done,
            "error_ratio": one.then_per_s / done - 1 if done else None,
        }


def _notes(settings: tuple[Setting, ...], found: Prediction) -> Iterator[str]:
    if not settings:
        yield "Nothing that was measured of the disks, cores and loads differs between both."
        return
    what = ", ".join(f"{one.name} = {one.text}" for one in settings)
    yield f"Put into the base's model, as measured on the other side: {what}."
    yield f"By the model {found.binds_then.name} limits then."
    yield f"Assumed: {'; '.join(found.assumes)}."


def _costs(run: StoredRun) -> Iterator[str]:
    """What the farm of a run costs, and what throughput that buys, where its farm.yaml has prices."""
    prices = prices_of(run.manifest)
    if prices is None:
        return
    cost = cost_of(run.manifest, prices)
    text = f"{(run.manifest.get('farm') or {}).get('name')} costs {cost_words(cost)}"
    try:
        seen = read_base(run).measured.seen
    except (InputError, NotEvidenceError):
        seen = ()  # what it does is not known; what it costs is
    for one in seen:
        each = per_cost(one.per_s * one.ok_ratio, cost)
        if each is not None:
            done = units.per_second(each * UNIT_OF_COST)
            text += f"; {one.name}: {done} for {UNIT_OF_COST:g} {cost.currency} a month"
    yield f"{text}."
