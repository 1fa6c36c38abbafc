"""What a probe measured after the disk's level had changed: that is what its caps are found by."""

from __future__ import annotations

from collections.abc import Sequence

from pinchpoint.analysis.thresholds import FLAT
from pinchpoint.probe import course
from pinchpoint.probe.course import Change
from pinchpoint.probe.falls import Fall, cut, fallen
from pinchpoint.probe.record import Trial


def settled(trials: Sequence[Trial], writes: Change | None, fall: Fall | None) -> Sequence[Trial]:
    """Of one cell; of repetitions that fell the part after the fall.

    Args:
        trials: the cell's.
        writes: how all that writes went over the repetitions.
        fall: of the whole probe.

    Returns:
        All where no level changed; none where it fell after this cell was measured.
    """
    own = course.of_cell(trials)
    if fall is not None:
        trials = [fallen(one) for one in trials if one.started >= fall.started and not one.failed]
    elif own is not None and own.move == "fell" and own.at_s is not None:
        held = own.after * (1 + FLAT.value)
        trials = [one for each in trials if (one := _part(each, own)).iops and one.iops <= held] or trials
    elif writes is not None and writes.at_trial is not None and writes.move in course.OVER_TIME:
        trials = [one for one in trials if one.number > writes.at_trial] or trials
    return trials


def _part(trial: Trial, change: Change) -> Trial:
    """A repetition after its fall: as it shows, else, of one that is long, at the second that was found."""
    after = fallen(trial)
    if after is trial and trial.series and change.at_s and trial.seconds and change.at_s < trial.seconds:
        return cut(trial, round(change.at_s / trial.series.step_s))
    return after
