"""Words the result of a comparison: whether the bottleneck moved, what changed, and the confidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pinchpoint.base import units, wording
from pinchpoint.base.figures import CHANGED, figure_names
from pinchpoint.comparison.attribution import BottleneckMove, Claim, ForeseenGain
from pinchpoint.comparison.changes import Change
from pinchpoint.comparison.differences import Difference
from pinchpoint.comparison.sides import Sides
from pinchpoint.comparison.statistics import ENOUGH


@dataclass(frozen=True, slots=True)
class Lines:
    """The first sentences of a comparison.

    Attributes:
        headline: whether the bottleneck moved.
        cause: the cause of the change, as far as the comparison shows it.
        next_step: the next step and its predicted gain; None if not known.
        gain: the predicted gain of the first step, and the measured gain; None if not known.
    """

    headline: str
    cause: str
    next_step: str | None
    gain: str | None

    def __str__(self) -> str:
        return f"{self.headline} {self.cause}"


def lines(
    sides: Sides,
    movement: BottleneckMove,
    claimed: Claim,
    factors: Sequence[str],
    changes: Sequence[Change],
) -> Lines:
    """The result of a comparison in lines: move of the bottleneck, claim, next step and gain."""
    return Lines(
        headline=movement_words(sides, movement),
        cause=claim_words(claimed, factors, shown=shows_change(movement, changes)),
        next_step=next_words(movement),
        gain=gain_words(sides, movement, changes),
    )


def shows_change(movement: BottleneckMove, changes: Sequence[Change]) -> bool:
    """Whether the bottleneck moved, or a figure is called changed."""
    return bool(movement.moved) or any(one.judged.call in CHANGED for one in changes)


def movement_words(sides: Sides, movement: BottleneckMove) -> str:
    """Whether the bottleneck moved, in one sentence."""
    if movement.moved is None or movement.base is None or movement.other is None:
        return f"Whether the bottleneck moved is not known: {movement.why}."
    base, other = wording.bottleneck_name(movement.base), wording.bottleneck_name(movement.other)
    if movement.moved:
        return f"The bottleneck moved: from {base} in {sides.base.label} to {other} in {sides.other.label}."
    note = f" ({movement.why})" if movement.why else ""
    return f"The bottleneck did not move: on both sides it is {base}{note}."


def next_words(movement: BottleneckMove) -> str | None:
    """The predicted gain of the next step, in one sentence; None if not known."""
    step = movement.second_step
    if not step or not movement.other:
        return None
    return (
        f"Relieve {wording.bottleneck_name(movement.other)}: {amount(step)} more throughput, until "
        f"{wording.bottleneck_name(step.until)} is the bottleneck."
    )


def gain_words(sides: Sides, movement: BottleneckMove, changes: Sequence[Change]) -> str | None:
    """The predicted and the measured gain of the first step; None if nothing was predicted."""
    before = movement.foreseen
    # If the bottleneck is the same, it was not removed, so the prediction does not apply.
    if not before or not movement.base or movement.moved is False:
        return None
    came = came_words(before, changes)
    return (
        f"Predicted from {sides.base.label} without {wording.bottleneck_name(movement.base)}"
        f": {amount(before)} "
        f"more throughput{f'. {came}' if came else ''}."
    )


def amount(gain: ForeseenGain) -> str:
    """The predicted gain in words: ``at most 38 %``, or ``about 38 %`` if the gain is not a bound."""
    return wording.at_most(gain.gain_ratio, bound=gain.at_most)


MORE = 1.1
"""Measured ÷ predicted throughput above which the measured gain counts as more than predicted."""


def came_words(gain: ForeseenGain, changes: Sequence[Change]) -> str:
    """The measured gain in words, with an explanation if the measured gain exceeds the predicted one."""
    if gain.came_ratio is None:
        return ""
    sign = "+" if gain.came_ratio >= 0 else ""
    text = f"Measured: {sign}{units.percent(gain.came_ratio)} ({gain.scenario}, in the steady part)"
    if (1 + gain.came_ratio) <= MORE * (1 + gain.gain_ratio):
        return text
    tier = gain.until.get("tier")
    effort = next(
        (one for one in changes if (one.about, one.scenario, one.tier) == ("effort", gain.scenario, tier)),
        None,
    )
    if effort is None or effort.pair.ratio is None or effort.pair.ratio >= 1:
        return f"{text}, more than predicted"
    each = " to ".join(units.seconds(value) for value in (effort.pair.base, effort.pair.other))
    return f"{text}, more than predicted, because CPU time of {tier} per {effort.per} went from {each}"


def main_changes(changes: Sequence[Change], names: Sequence[str]) -> Iterator[str]:
    """The judged figures in words, in the order of ``names``."""
    by_name = {one.name: one for one in changes}
    for name in names:
        one = by_name[name]
        if one.pair.ratio is not None:
            yield f"{figure_words(one)} {shift(one)}"


def figure_words(change: Change) -> str:
    """The name of a figure in words: ``crawl``, ``crawl p95``, ``a write to the log disk of sql``."""
    figure, _ = figure_names(change.metric)
    if change.about == "disk":
        joint = "to" if "write" in change.metric else "from" if "read" in change.metric else "of"
        return f"{figure} {joint} the {change.role} disk of {change.tier}"
    if change.about == "effort":
        return f"{figure} of {change.tier} for a {change.per} of {change.scenario}"
    if change.about == "cost":
        return f"{change.scenario} for {change.per}"
    if change.about == "cpu":
        return f"CPU of {change.tier} {figure}"
    burst = "a burst of " if change.about == "burst" else ""
    return f"{burst}{change.source or change.scenario} {figure}".rstrip()


def shift(change: Change) -> str:
    """Both medians, the ratio with its interval, and the call, in words."""
    values = (units.of_metric(change.metric, value) for value in (change.pair.base, change.pair.other))
    ratio = units.times(change.pair.ratio)
    if change.judged.ci95:
        ratio += f", {units.interval(change.judged.ci95)}"
    called = f": {change.judged.call}" if change.judged.call else ""
    return f"{' → '.join(values)} ({ratio}){called}"


def claim_words(claimed: Claim, factors: Sequence[str], *, shown: bool) -> str:
    """The conclusion in one sentence.

    Args:
        claimed: the claim.
        factors: the studied areas.
        shown: whether the bottleneck moved or a figure changed.
    """
    because = "; ".join(claimed.because)
    named = wording.listed(list(factors)) if factors else ""
    if claimed.kind is None:
        return f"No conclusion: {because}. Leave out the invalid runs, or repeat them."
    if not shown:
        if claimed.kind == "caused_by":
            return f"No significant change. A change could be attributed to {named}: {because}."
        return f"No significant change. A change could not be attributed to one cause: {because}."
    if claimed.kind == "caused_by":
        return f"Cause of the change: {named}; {because}."
    studied = f" to be {named}" if named else ""
    return f"The cause of the change is not shown{studied}: {because}."


def warnings(
    sides: Sides,
    differing: Sequence[Difference],
    bound: float,
    again: Sides | None,
) -> Iterator[str]:
    """The warnings that a reader needs with the figures."""
    useless = [run for run in again.other.runs if not run.is_evidence] if again else []
    yield from (
        f"{run.directory} is invalid and was left out of the A/A pair: {run.verdict['summary']}"
        for run in useless
    )
    has_again = again is not None and len(useless) < len(again.other.runs)
    counts = ", ".join(f"{side.label}: {len(side.runs)}" for side in sides)
    if min(len(side.runs) for side in sides) < ENOUGH:
        yield (
            f"Fewer than {ENOUGH} runs on a side ({counts}): only changes above {units.times(bound)} are "
            f"reported. Repeat the runs to see smaller ones (`run --repeat {ENOUGH}`)."
        )
    elif not has_again:
        yield (
            f"No A/A pair ({counts}): how much one farm varies is estimated from each side's own runs. "
            "`run --aa` measures it."
        )
    for directory in sides.same_runs:
        yield f"{directory} is on both sides: a run does not differ from itself"
    mixed: list[str] = sorted({one.area for one in differing if one.mixed})
    if mixed:
        areas = wording.listed(mixed)
        yield f"the runs of one side differ in {areas}, so they are not repeats of one another"


def reported(sides: Sides) -> Iterator[str]:
    """The warnings of the runs' own verdicts."""
    for side in sides:
        for warning in dict.fromkeys(str(one) for verdict in side.verdicts for one in verdict["warnings"]):
            yield f"{side.label}: {warning}"
