"""Decides which figures are judged, and calls each one better, worse, changed, equivalent or inconclusive."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal

from pinchpoint.base.errors import InputError
from pinchpoint.base.figures import MOST_METRICS
from pinchpoint.base.groups import by_key
from pinchpoint.comparison.changes import Change, Judgement, first_change
from pinchpoint.comparison.differences import Difference
from pinchpoint.comparison.intervals import Key, widest
from pinchpoint.comparison.sides import ComparedRun, Sides
from pinchpoint.comparison.statistics import (
    ENOUGH,
    RUN_TO_RUN,
    SAME,
    Estimate,
    call_of,
    combined,
    holm,
    welch,
)
from pinchpoint.comparison.work import is_closed, planned_scenarios

By = Literal["command", "plan", "default"]


@dataclass(frozen=True, slots=True)
class CommandFigures:
    """The figures, margin and bound of the command line; plans or defaults supply what is missing."""

    metrics: tuple[str, ...] = ()
    margin_ratio: float | None = None
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class DeclaredFigures:
    """The figures that are judged, with margin and bound.

    Attributes:
        metrics: names of the judged figures that these runs have, without duplicates.
        by: the origin of the names: the command line, the plans or the defaults.
        margin_ratio: relative difference within which two sides are equivalent (0.05 = 5 %).
        bound: ratio above which a change is reported if a side has few runs.
        notes: notes for the reader about the choice of figures; sentences without a full stop.
    """

    metrics: tuple[str, ...]
    by: By
    margin_ratio: float
    bound: float
    notes: tuple[str, ...] = ()


def declared_figures(
    changes: Sequence[Change], asked: CommandFigures, sides: Sides, studied: Sequence[Difference]
) -> DeclaredFigures:
    """Select the figures to judge, with their margin and bound, from all changes.

    Raises:
        InputError: the command names too many or unknown figures, or the plans of the runs declare different
            values and the command line gives none.
    """
    margin = asked.margin_ratio if asked.margin_ratio is not None else _planned(sides, "margin_ratio")
    bound = asked.bound if asked.bound is not None else _planned(sides, "bound")
    names, by, notes = _metrics(changes, asked, sides, studied)
    return DeclaredFigures(
        tuple(dict.fromkeys(names)),
        by,
        SAME if margin is None else float(margin),
        RUN_TO_RUN if bound is None else float(bound),
        tuple(notes),
    )


def _metrics(
    changes: Sequence[Change], asked: CommandFigures, sides: Sides, studied: Sequence[Difference]
) -> tuple[Sequence[str], By, list[str]]:
    there = [one.name for one in changes]
    if asked.metrics:
        check_metrics(asked.metrics)
        unknown = [name for name in asked.metrics if name not in there]
        if unknown:
            raise InputError(*(_unknown(name, there) for name in unknown))
        return asked.metrics, "command", []
    planned = _planned(sides, "metrics")
    if not planned:
        return default_metrics(changes, sides, studied), "default", []
    notes = [
        f"{name} is declared by the plan, but these runs have no such figure{_near(name, there)}"
        for name in planned
        if name not in there
    ]
    silent = [run.directory for run in _runs(sides) if not _compare(run).get("metrics")]
    if silent:
        notes.append(
            f"the judged figures are those of the other runs' plan; {', '.join(silent)} declares none"
        )
    return [name for name in planned if name in there], "plan", notes


def check_metrics(names: Sequence[str]) -> None:
    """Raise InputError if there are more than ``MOST_METRICS`` distinct names."""
    if len(set(names)) > MOST_METRICS:
        raise InputError(
            f"--metric: found {len(set(names))}; allowed: {MOST_METRICS} at most, as each further question "
            "makes an answer by chance more likely. All other figures are shown with their intervals"
        )


_OPTIONS = {"metrics": "--metric", "margin_ratio": "--margin", "bound": "--bound"}


def _planned(sides: Sides, key: str) -> Any:
    """The value that the runs' plans declare; None if none does. Raises InputError if they disagree."""
    answer = by_key(
        (tuple(sorted(value)) if key == "metrics" else value, run.directory)
        for run in _runs(sides)
        if (value := _compare(run).get(key)) not in (None, [])
    )
    if len(answer) > 1:
        each = "; ".join(f"{', '.join(runs)}: {_plain(value)}" for value, runs in answer.items())
        name = key.removesuffix("_ratio")
        raise InputError(
            f"compare.{name}: the plans of these runs do not declare the same ({each}); say with "
            f"{_OPTIONS[key]} what holds"
        )
    return next((_compare(run)[key] for run in _runs(sides) if _compare(run).get(key)), None)


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _runs(sides: Sides) -> Iterator[ComparedRun]:
    for side in sides:
        yield from side.runs


def _compare(run: ComparedRun) -> dict[str, Any]:
    return dict((run.manifest.get("plan") or {}).get("compare") or {})


def _unknown(name: str, names: Sequence[str]) -> str:
    return f"--metric: {name!r} is no figure of these runs; allowed: {', '.join(names)}{_near(name, names)}"


def _near(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    return f"; nearest: {near[0]}" if near else ""


_SPLIT = 4
"""Runs of a side that are needed for two halves of two runs."""


def default_metrics(changes: Sequence[Change], sides: Sides, studied: Sequence[Difference]) -> list[str]:
    """The six figures that are judged by default, from plan and factor only, never from measurements.

    Order: the main figure of each scenario (throughput of a closed load, p95 of a scheduled load); the write
    latency of the studied disks; the CPU time per unit of work if a studied area affects CPU time; the p95 of
    the remaining scenarios. Without a scenario on both sides: the rates of the crawl sources, the write
    latency of the disks, and CPU and IOPS.
    """
    every = [*_of_scenarios(changes, sides), *_of_disks(changes, studied), *_of_efforts(changes, studied)]
    every += _p95s(changes)
    if not any(one.about == "scenario" and one.pair.ratio is not None for one in changes):
        every += [one for one in changes if one.metric == "rate_per_s"]
        every += [one for one in changes if one.metric == "write_latency_mean_s"]
        every += [one for one in changes if one.metric in ("busy_mean_ratio", "iops_mean")]
    both = [one.name for one in every if one.pair.ratio is not None]
    return list(dict.fromkeys(both))[:MOST_METRICS]


def _of_scenarios(changes: Sequence[Change], sides: Sides) -> Iterator[Change]:
    planned = planned_scenarios(sides)
    for name in dict.fromkeys([*planned, *(one.scenario for one in changes if one.scenario)]):
        closed = is_closed(planned.get(name))
        for one in changes:
            wanted = "throughput_per_s" if closed else "_p95_s"
            if one.about == "scenario" and one.scenario == name and one.metric.endswith(wanted):
                yield one


def _of_disks(changes: Sequence[Change], studied: Sequence[Difference]) -> Iterator[Change]:
    disks = dict.fromkeys((one.tier, one.role) for one in studied if one.area == "disks" and one.role)
    # Commits wait for the log disk; writes to data files are rarely waited for.
    for tier, role in sorted(disks, key=lambda disk: disk[1] != "log"):
        one = first_change(changes, about="disk", tier=tier, role=role, metric="write_latency_mean_s")
        if one:
            yield one


COMPUTES = ("cpu", "machine", "memory", "database", "versions")
"""Areas whose differences change the CPU time per unit of work."""


def _of_efforts(changes: Sequence[Change], studied: Sequence[Difference]) -> Iterator[Change]:
    if any(one.area in COMPUTES for one in studied):
        yield from (one for one in changes if one.about == "effort" and one.metric == "cpu_s")


def _p95s(changes: Sequence[Change]) -> Iterator[Change]:
    yield from (one for one in changes if one.about == "scenario" and one.metric.endswith("_p95_s"))


@dataclass(frozen=True, slots=True)
class EstimatedChange:
    """A figure of both sides with its estimate, before the judgement.

    Attributes:
        change: the figure, with its interval.
        estimate: the estimate of the figure's ratio; None without an interval.
        margin_ratio: ratios from 1/margin to margin count as no change.
        floor_ratio: the ratio between runs of the same farm, at least 1; None if not known.
    """

    change: Change
    estimate: Estimate | None
    margin_ratio: float
    floor_ratio: float | None

    @property
    def p(self) -> float:
        """p-value of the hypothesis that the ratio lies within the margin, not corrected."""
        return self.estimate.p_within(self.margin_ratio) if self.estimate else 1.0

    def called(self, p: float) -> Change:
        """The figure with its call, from the corrected p-value."""
        return _called(
            self.change, self.estimate, p, (self.margin_ratio, self.floor_ratio), enough=_enough(self.change)
        )


def estimate_changes(
    changes: Sequence[Change],
    sides: Sides,
    bound: float = RUN_TO_RUN,
    again: Sequence[Change] = (),
    same: float = SAME,
) -> tuple[EstimatedChange, ...]:
    """Every change with its interval and margin (for the arguments see ``judge_changes``)."""
    same_farm = {_in_base(one): one for one in again}
    made = []
    for one in changes:
        estimate, floor = _estimate(one, sides), _floor(one, same_farm.get(_in_base(one)))
        margin = max(1 + same if _enough(one) else bound, floor or 1.0)
        made.append(EstimatedChange(_with_interval(one, estimate), estimate, margin, floor))
    return tuple(made)


def judge_changes(
    changes: Sequence[Change],
    names: Sequence[str],
    sides: Sides,
    bound: float = RUN_TO_RUN,
    again: Sequence[Change] = (),
    same: float = SAME,
) -> tuple[Change, ...]:
    """All changes with their intervals; the declared ones also with their calls.

    Args:
        changes: the figures of both sides.
        names: names of the declared figures.
        sides: the runs of both sides, with the courses of their figures if a side has fewer than two runs.
        bound: the margin (a ratio) for a figure that fewer than ``ENOUGH`` runs of a side measured.
        again: the same figures of the A/A pair, with the base as base and the A/A runs as other; empty
            without A/A runs.
        same: relative difference within which two sides are equivalent (0.05 = 5 %).
    """
    each = {one.change.name: one for one in estimate_changes(changes, sides, bound, again, same)}
    # figures without an interval included, because every declared figure counts for Holm's correction
    asked = list(dict.fromkeys(names))
    p = dict(zip(asked, holm([each[name].p for name in asked]), strict=True))
    return tuple(one.called(p[name]) if name in p else one.change for name, one in each.items())


def without_calls(changes: Sequence[Change]) -> tuple[Change, ...]:
    """The figures with the call ``inconclusive`` for each judged one, because a run is not valid evidence."""
    return tuple(
        replace(one, judged=replace(one.judged, call="inconclusive", confidence=None))
        if one.judged.declared
        else one
        for one in changes
    )


def _enough(change: Change) -> bool:
    """Whether at least ``ENOUGH`` runs of both sides measured the figure."""
    return min(map(len, change.pair.measured)) >= ENOUGH


def _estimate(change: Change, sides: Sides) -> Estimate | None:
    """Estimate the ratio from the runs' values, or from resamples within the runs if a side has one run."""
    if change.pair.ratio is None or change.pair.ratio <= 0:
        return None
    base, other = change.pair.measured
    if min(len(base), len(other)) >= 2:
        return welch(base, other)
    spreads = [widest([run.courses.get(change.key(name)) for run in side.runs]) for name, side in sides.named]
    known = [spread for spread in spreads if spread is not None]
    if len(known) < 2:
        return None
    return combined(math.log(change.pair.ratio), [each[0] for each in known], [each[1] for each in known])


def _with_interval(change: Change, estimate: Estimate | None) -> Change:
    if estimate is None:
        return replace(change, judged=Judgement(why_no_interval=_why_none(change)))
    between = min(map(len, change.pair.measured)) >= 2
    return replace(
        change, judged=Judgement(ci95=estimate.ci95, interval="between_runs" if between else "within_run")
    )


def _why_none(change: Change) -> str:
    if change.pair.ratio is None:
        return change.pair.why or "there is no ratio"
    if min(*(value for side in change.pair.measured for value in side)) <= 0:
        return "it is 0 in one of the runs"
    # Means and percentiles have values over time; maxima, counts and bursts do not.
    return "one run on a side, and it has one value of this figure: repeat the runs for an interval"


def _in_base(change: Change) -> tuple[str, str, Key]:
    """The identity of a figure in the base, as its name may contain the host of the other side."""
    return change.about, change.metric, change.key("base")


def _floor(change: Change, again: Change | None) -> float | None:
    """The ratio between runs of the same farm, at least 1; None if unknown.

    With A/A runs, the ratio of the two geometric means. Without A/A runs, each side's own runs are split into
    every second run and the others, and the larger ratio of the two sides counts.
    """
    if again is not None:
        base, other = again.pair.measured
        return _apart(base, other)
    halves = [(side[0::2], side[1::2]) for side in change.pair.measured if len(side) >= _SPLIT]
    known = [apart for half in halves if (apart := _apart(*half)) is not None]
    return max(known) if known else None


def _apart(base: Sequence[float], other: Sequence[float]) -> float | None:
    if not base or not other or min(*base, *other) <= 0:
        return None
    return math.exp(abs(fmean(map(math.log, other)) - fmean(map(math.log, base))))


def _called(
    change: Change,
    estimate: Estimate | None,
    p: float,
    margin: tuple[float, float | None],
    *,
    enough: bool,
) -> Change:
    reported = replace(
        change.judged, declared=True, margin_ratio=margin[0], floor_ratio=margin[1], call="inconclusive"
    )
    if estimate is not None:
        # With fewer than ``ENOUGH`` runs a figure is never called equivalent: the next run may differ.
        call = call_of(estimate, p, same=margin[0] if enough else None, better=change.better)
        reported = replace(reported, p=p, call=call)
        if call not in ("equivalent", "inconclusive"):
            reported = replace(reported, confidence="high" if enough else "medium")
    return replace(change, judged=reported)
