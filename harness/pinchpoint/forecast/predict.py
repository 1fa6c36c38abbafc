"""Predicts, for ``what-if``, the throughput of a stored run after a change."""

from __future__ import annotations

from collections.abc import Sequence

from pinchpoint.analysis.analyse import judged_case
from pinchpoint.analysis.conclusion import conclude
from pinchpoint.analysis.model.applied import known_in
from pinchpoint.analysis.model.prediction import ModelledRun, Prediction, predict_change
from pinchpoint.analysis.model.settings import Probes, read_settings
from pinchpoint.base.errors import InputError, NotEvidenceError
from pinchpoint.store.read import StoredRun


def predict(run: StoredRun, given: Sequence[str], probe_at: Probes | None = None) -> Prediction:
    """The predicted throughput of a run with other disks, cores, machines or loads.

    Args:
        run: a finished run.
        given: settings as ``NAME=VALUE`` (``settings.py``); empty: the run as the model describes it.
        probe_at: reads a stored probe; None: settings cannot use a probed disk.

    Raises:
        InputError: a setting is not possible, or was not measured in this run; one sentence for each.
        NotEvidenceError: the run is invalid, so no prediction is possible.
    """
    modelled = read_modelled_run(run)
    return predict_change(modelled, read_settings(given, known_in(modelled.measured), probe_at))


def read_modelled_run(run: StoredRun) -> ModelledRun:
    """The run as resources and loads of the model. Raises InputError or NotEvidenceError."""
    case = judged_case(run)
    if case is None or case.stage is None:
        raise InputError(
            f"{run.directory}: contains no measured load (only samples, or it ended before the "
            "measurement began); a prediction needs a run of a plan"
        )
    concluded = conclude(case)
    if concluded.outcome == "invalid":
        raise NotEvidenceError(
            f"{run.directory}: this run is invalid, so no prediction is possible: {concluded.answer}"
        )
    modelled = ModelledRun(case, str(run.directory))
    if not modelled.measured.seen:
        why = "; ".join(modelled.measured.left_out) or "no operation completed"
        raise InputError(f"{run.directory}: contains no load that can be predicted: {why}")
    return modelled
