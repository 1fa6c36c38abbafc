"""Two sets of runs held against each other: METHOD section 4, in its order."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pinchpoint.comparison import document, summary
from pinchpoint.comparison.capacity import Capacity, capacities, not_kept_up
from pinchpoint.comparison.changes import Change, changes
from pinchpoint.comparison.claim import Claim, claim
from pinchpoint.comparison.confounders import Confounder, blamed_of, confounders, everyone_names
from pinchpoint.comparison.document import SCHEMA
from pinchpoint.comparison.hosts import pair_hosts
from pinchpoint.comparison.judged import declared, judged
from pinchpoint.comparison.manifests import AREAS, Difference, differences
from pinchpoint.comparison.moved import Movement, movement
from pinchpoint.comparison.sides import Sides
from pinchpoint.comparison.statistics import RUN_TO_RUN
from pinchpoint.comparison.work import Work, work_done
from pinchpoint.errors import ExitStatus, InputError

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
        metrics: the names of the figures that are judged.
        bound: with few runs, how many times as much one may be as the next.
        changes: the figures, both sides beside each other.
        capacity: what each side can do at most.
        bottleneck: whether it moved.
        main_changes: the figures that are judged, each with its thing, both values and the call, in words.
        claim: what may be said to be the cause.
        what_if: the other side predicted from the base, beside what was measured; None: nobody asked.
        summary: all of it in a few sentences.
        warnings: what a reader must know beside them.
    """

    sides: Sides
    factors: tuple[str, ...]
    studied: tuple[Difference, ...]
    confounders: tuple[Confounder, ...]
    work: tuple[Work, ...]
    metrics: tuple[str, ...]
    bound: float
    changes: tuple[Change, ...]
    capacity: tuple[Capacity, ...]
    bottleneck: Movement
    main_changes: tuple[str, ...]
    claim: Claim
    what_if: Mapping[str, Any] | None
    summary: str
    warnings: tuple[str, ...]

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
    bound: float = RUN_TO_RUN,
    again: Sides | None = None,
    what_if: Mapping[str, Any] | None = None,
) -> Comparison:
    """Hold two sides against each other, from records alone: no clock, no files, no global state.

    Args:
        sides: the runs of both, with their verdicts.
        factors: the areas that are studied (``AREAS``); any other difference is a confounder.
        metrics: the figures to judge, by name, six at most; by default ``judged.default_metrics``.
        bound: with fewer than five runs on a side, how many times as much one run may be as the next.
        again: the base beside further runs of its farm (``read_again``): an A/A pair.
        what_if: the other side predicted from the base (``foreseen.predicted``).

    Raises:
        InputError: a factor or a metric is not known.
    """
    for name in factors:
        check_factor(name)
    places = pair_hosts(sides.base.manifests[0], sides.other.manifests[0])
    differing = differences(sides.base.manifests, sides.other.manifests, places)
    studied = tuple(one for one in differing if one.area in factors)
    rest = [one for one in differing if one.area not in factors]
    confounding = confounders(rest, blamed_of(sides, places), named=everyone_names(sides))
    work = work_done(sides)
    figures = changes(sides, places)
    names = declared(figures, metrics, sides, studied)
    found = judged(figures, names, sides, bound, _again(again))
    moved = movement(sides, places)
    main = tuple(summary.main_changes(found, names))
    claimed = claim(sides, factors, studied, confounding, work)
    capacity = tuple(capacities(sides))
    warnings = (
        *summary.warnings(sides, found, differing, bound, again),
        *not_kept_up(capacity, sides),
        *summary.told(sides),
    )
    return Comparison(
        sides=sides,
        factors=tuple(factors),
        studied=studied,
        confounders=confounding,
        work=work,
        metrics=tuple(names),
        bound=bound,
        changes=found,
        capacity=capacity,
        bottleneck=moved,
        main_changes=main,
        claim=claimed,
        what_if=what_if,
        summary=summary.summary(sides, moved, main, claimed, factors),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _again(again: Sides | None) -> tuple[Change, ...]:
    """The figures of an A/A pair; none without one."""
    if again is None:
        return ()
    return changes(again, pair_hosts(again.base.manifests[0], again.other.manifests[0]))


def check_factor(name: str) -> None:
    """Raises InputError that lists every area, where there is none of that name."""
    if name not in AREAS:
        near = difflib.get_close_matches(name, AREAS, n=1)
        hint = f"; nearest: {near[0]}" if near else ""
        raise InputError(
            f"--factor: {name!r} is nothing runs can differ in; allowed: {', '.join(AREAS)}{hint}"
        )


def exit_status(comparison: Comparison, *, fail_on_worse: bool = False) -> ExitStatus:
    """3 where a run is no valid evidence, 1 where something got worse and that was asked for, else 0."""
    if comparison.claim.kind is None:
        return ExitStatus.NOT_EVIDENCE
    worse = any(one.judged.call == "worse" for one in comparison.changes)
    return ExitStatus.OBJECTIVES_MISSED if fail_on_worse and worse else ExitStatus.FINE
