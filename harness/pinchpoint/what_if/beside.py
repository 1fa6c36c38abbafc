"""The other side of a comparison predicted from the base, beside what was measured there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pinchpoint.base.errors import InputError, NotEvidenceError
from pinchpoint.store.read import StoredRun
from pinchpoint.what_if.other import Between, between
from pinchpoint.what_if.predict import Base, predict_settings, read_base
from pinchpoint.what_if.prediction import Prediction
from pinchpoint.what_if.text import binds_words


def predict_beside(base: StoredRun, other: StoredRun) -> dict[str, Any]:
    """A comparison's ``what_if``: plain JSON.

    Args:
        base: a run of the one side.
        other: a run of the other.

    Returns:
        ``rows`` (scenario, base_per_s, predicted_per_s, interval_per_s, measured_per_s, error_ratio:
        predicted ÷ measured - 1), ``notes`` (sentences: what was put into the base's model, what was not,
        what limits then), ``why_none`` (a sentence where nothing could be predicted, else null),
        ``prediction`` (``Prediction.to_json``, or null).
    """
    try:
        ours, theirs = read_base(base), read_base(other)
        differing = between(ours.measured, theirs.measured)
        found = predict_settings(ours, differing.settings)
    except (InputError, NotEvidenceError) as error:
        return {"rows": [], "notes": [], "why_none": str(error), "prediction": None}
    return {
        "rows": list(_rows(found, theirs)),
        "notes": list(_notes(differing, found)),
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


def _notes(differing: Between, found: Prediction) -> Iterator[str]:
    settings, untold = differing.settings, differing.untold
    if settings:
        what = ", ".join(f"{one.name} = {one.text}" for one in settings)
        yield f"Put into the base's model, as measured on the other side: {what}."
    elif not untold:
        yield "Nothing that was measured of the disks, cores and loads differs between both."
    if untold:
        yield f"Not put into the base's model: {'; '.join(untold)}."
    if settings:
        yield binds_words("Then, by the model", found.binds_then)
        yield f"Assumed: {'; '.join(found.assumes)}."
