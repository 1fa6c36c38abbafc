"""Two sets of runs held against each other: METHOD section 4, in its order."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pinchpoint.base.errors import ExitStatus, InputError
from pinchpoint.comparison import document, summary
from pinchpoint.comparison.capacity import Capacity, capacities, not_kept_up
from pinchpoint.comparison.change import Change
from pinchpoint.comparison.changes import changes
from pinchpoint.comparison.claim import Claim, claim
from pinchpoint.comparison.confounders import Confounder, blamed_of, confounders, everyone_names
from pinchpoint.comparison.costs import Costs, costs_of
from pinchpoint.comparison.declared import Asked, Declared, declared
from pinchpoint.comparison.document import SCHEMA
from pinchpoint.comparison.hosts import Places, pair_hosts
from pinchpoint.comparison.judged import judged, uncalled
from pinchpoint.comparison.manifests import AREAS, Difference, differences
from pinchpoint.comparison.moved import Movement, movement
from pinchpoint.comparison.sides import Sides
from pinchpoint.comparison.work import Work, work_done
from pinchpoint.plan.prices import Prices

__all__ = ["SCHEMA", "Comparison", "check_factor", "compare", "exit_status"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything a comparison found; comparison.json is its plain form (README.md beside this file).

    Attributes:
        sides: the runs.
        factors: what is studied: areas in which the sides may differ.
        studied: the differences in them.
        confounders: all others, those that touch a blamed resource first.
        work: what was done, by source and scenario.
        declared: which figures are judged, and by which measure.
        costs: what both farms cost by the prices their user gave.
        changes: the figures, both sides beside each other.
        capacity: what each side can do at most.
        bottleneck: whether it moved.
        claim: what may be said to be the cause.
        what_if: the other side predicted from the base, beside what was measured; None: nobody asked.
        again: further runs of the base's farm: an A/A pair tells how much it differs from itself. None: none.
    """

    sides: Sides
    factors: tuple[str, ...]
    studied: tuple[Difference, ...]
    confounders: tuple[Confounder, ...]
    work: tuple[Work, ...]
    declared: Declared
    costs: Costs
    changes: tuple[Change, ...]
    capacity: tuple[Capacity, ...]
    bottleneck: Movement
    claim: Claim
    what_if: Mapping[str, Any] | None
    again: Sides | None

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the figures that are judged."""
        return self.declared.metrics

    @property
    def main_changes(self) -> tuple[str, ...]:
        """The figures that are judged, each with its thing, both values and the call, in words."""
        return tuple(summary.main_changes(self.changes, self.metrics))

    @property
    def gains(self) -> tuple[str, ...]:
        """What the change was to buy by the verdicts' model, what came, what a second step buys."""
        return tuple(summary.gain_words(self.sides, self.bottleneck, self.changes))

    @property
    def summary(self) -> str:
        """All of it in a few sentences."""
        main = self.main_changes
        return summary.summary(self.sides, self.bottleneck, main, self.claim, self.factors, self.changes)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know beside them, each once."""
        differing = [*self.studied, *(one.difference for one in self.confounders)]
        said = (
            *summary.warnings(self.sides, self.changes, differing, self.declared.bound, self.again),
            *self.declared.notes,
            *not_kept_up(self.capacity, self.sides),
            *summary.told(self.sides),
        )
        return tuple(dict.fromkeys(said))

    def to_json(self) -> dict[str, Any]:
        """The content of comparison.json: JSON types only, null for "not measured".

        Raises:
            ValueError: a number is not finite; such a value has no place in a comparison.
        """
        return document.content(self)


def compare(
    sides: Sides,
    factors: Sequence[str] = (),
    *,
    metrics: Sequence[str] = (),
    bound: float | None = None,
    margin: float | None = None,
    again: Sides | None = None,
    prices: Prices | None = None,
    what_if: Mapping[str, Any] | None = None,
) -> Comparison:
    """Hold two sides against each other, from records alone: no clock, no files, no global state.

    Args:
        sides: the runs of both, with their verdicts.
        factors: the areas that are studied (``AREAS``); any other difference is a confounder.
        metrics: the figures to judge, by name, six at most; by default those that the plan declares, else
            ``judged.default_metrics``.
        bound: with fewer than five runs on a side, how many times as much one run may be as the next; by
            default as the plan declares, else 1.5.
        margin: within so much of each other two sides count as the same (0.05 = 5 %); likewise, else 5 %.
        again: the base beside further runs of its farm (``read_again``): an A/A pair.
        prices: of disks and machines; by default each farm's own.
        what_if: the other side predicted from the base (``foreseen.predicted``).

    Raises:
        InputError: a factor or a metric is not known, or the plans declare what does not go together.
    """
    for name in factors:
        check_factor(name)
    places = pair_hosts(sides.base.manifests[0], sides.other.manifests[0])
    studied, confounding = _apart(sides, places, factors)
    work, costs = work_done(sides), costs_of(sides, prices)
    figures = changes(sides, places, costs)
    judges = declared(figures, Asked(tuple(metrics), margin, bound), sides, studied)
    found = judged(figures, judges.metrics, sides, judges.bound, _again(again, prices), judges.margin_ratio)
    claimed = claim(sides, factors, studied, confounding, work)
    return Comparison(
        sides=sides,
        factors=tuple(factors),
        studied=studied,
        confounders=confounding,
        work=work,
        declared=judges,
        costs=costs,
        changes=found if claimed.kind else uncalled(found),
        capacity=tuple(capacities(sides)),
        bottleneck=movement(sides, places),
        claim=claimed,
        what_if=what_if,
        again=again,
    )


def _apart(
    sides: Sides, places: Places, factors: Sequence[str]
) -> tuple[tuple[Difference, ...], tuple[Confounder, ...]]:
    """The differences that are studied, and all others."""
    differing = differences(sides.base.manifests, sides.other.manifests, places)
    rest = [one for one in differing if one.area not in factors]
    confounding = confounders(rest, blamed_of(sides, places), named=everyone_names(sides))
    return tuple(one for one in differing if one.area in factors), confounding


def _again(again: Sides | None, prices: Prices | None) -> tuple[Change, ...]:
    """The figures of an A/A pair, of its valid runs; none without one."""
    valid = tuple(run for run in again.other.runs if run.is_evidence) if again else ()
    if again is None or not valid:
        return ()
    again = replace(again, other=replace(again.other, runs=valid))
    places = pair_hosts(again.base.manifests[0], again.other.manifests[0])
    return changes(again, places, costs_of(again, prices))


def check_factor(name: str) -> None:
    """Raises InputError that lists every area, where there is none of that name."""
    if name not in AREAS:
        near = difflib.get_close_matches(name, AREAS, n=1)
        hint = f"; nearest: {near[0]}" if near else ""
        raise InputError(
            f"--factor: {name!r} is nothing runs can differ in; allowed: {', '.join(AREAS)}{hint}"
        )


def exit_status(comparison: Comparison, *, fail_on_worse: bool = False) -> ExitStatus:
    """3 where a run is no valid evidence, 1 where something got worse and that was asked for, else 0.

    Work that failed, did not start or did not end is worse whatever the figures of the rest say: these are of
    what succeeded.
    """
    if comparison.claim.kind is None:
        return ExitStatus.NOT_EVIDENCE
    worse = any(one.judged.call == "worse" for one in comparison.changes)
    worse |= any(one.worse for one in comparison.work)
    return ExitStatus.OBJECTIVES_MISSED if fail_on_worse and worse else ExitStatus.FINE
