"""Two sets of runs held against each other: METHOD section 4, in its order."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pinchpoint.comparison import summary
from pinchpoint.comparison.changes import Change, changes
from pinchpoint.comparison.claim import Claim, claim
from pinchpoint.comparison.confounders import Blamed, Confounder, blamed_of, confounders, everyone_names
from pinchpoint.comparison.hosts import Place, pair_hosts
from pinchpoint.comparison.manifests import AREAS, Difference, differences
from pinchpoint.comparison.moved import Movement, movement
from pinchpoint.comparison.sides import Run, Side, Sides
from pinchpoint.comparison.work import Work, work_done
from pinchpoint.errors import ExitStatus, InputError

SCHEMA = "pinchpoint.comparison/1"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything a comparison found; comparison.json is its plain form (README.md beside this file).

    Attributes:
        sides: the runs.
        factors: what is studied: areas in which the sides may differ.
        studied: the differences in them.
        confounders: all others, those that touch a blamed resource first.
        work: what was done, by source and scenario.
        changes: the figures, both sides beside each other.
        bottleneck: whether it moved.
        main_changes: the changes to look at first, each with its thing and both values, in words.
        claim: what may be said to be the cause.
        summary: all of it in a few sentences.
        warnings: what a reader must know beside them.
    """

    sides: Sides
    factors: tuple[str, ...]
    studied: tuple[Difference, ...]
    confounders: tuple[Confounder, ...]
    work: tuple[Work, ...]
    changes: tuple[Change, ...]
    bottleneck: Movement
    main_changes: tuple[str, ...]
    claim: Claim
    summary: str
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The content of comparison.json: JSON types only, null for "not measured".

        Raises:
            ValueError: a number is not finite; such a value has no place in a comparison.
        """
        content = {
            "schema": SCHEMA,
            "base": _side(self.sides.base),
            "other": _side(self.sides.other),
            "factors": self.factors,
            "studied": [_difference(one) for one in self.studied],
            "confounders": [
                {
                    **_difference(one.difference),
                    "matters": one.matters,
                    "touches": [_blamed(resource) for resource in one.touches],
                }
                for one in self.confounders
            ],
            "work": [asdict(one) for one in self.work],
            "changes": [_change(one) for one in self.changes],
            "bottleneck": asdict(self.bottleneck),
            "main_changes": self.main_changes,
            "claim": self.claim.kind,
            "claim_because": self.claim.because,
            "summary": self.summary,
            "warnings": self.warnings,
        }
        result: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
        return result


def compare(sides: Sides, factors: Sequence[str] = ()) -> Comparison:
    """Hold two sides against each other, from records alone: no clock, no files, no global state.

    Args:
        sides: the runs of both, with their verdicts.
        factors: the areas that are studied (``AREAS``); any other difference is a confounder.

    Raises:
        InputError: a factor is not known.
    """
    for name in factors:
        check_factor(name)
    places = pair_hosts(sides.base.manifests[0], sides.other.manifests[0])
    differing = differences(sides.base.manifests, sides.other.manifests, places)
    studied = tuple(one for one in differing if one.area in factors)
    rest = [one for one in differing if one.area not in factors]
    confounding = confounders(rest, blamed_of(sides, places), named=everyone_names(sides))
    work = work_done(sides)
    found = changes(sides, places)
    moved = movement(sides, places)
    main = tuple(summary.main_changes(sides, found, studied))
    claimed = claim(sides, factors, studied, confounding, work)
    return Comparison(
        sides=sides,
        factors=tuple(factors),
        studied=studied,
        confounders=confounding,
        work=work,
        changes=found,
        bottleneck=moved,
        main_changes=main,
        claim=claimed,
        summary=summary.summary(sides, moved, main, claimed, factors),
        warnings=tuple(dict.fromkeys(summary.warnings(sides, found, differing))),
    )


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
    worse = any(one.call == "worse" for one in comparison.changes)
    return ExitStatus.OBJECTIVES_MISSED if fail_on_worse and worse else ExitStatus.FINE


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
    place: Place | None = one.place
    figures: Mapping[str, Any] = asdict(one.pair)
    return {
        "about": one.about,
        "metric": one.metric,
        "source": one.source,
        "scenario": one.scenario,
        "tier": one.tier,
        "host": place.name if place else None,
        "role": one.role,
        "better": one.better,
        **figures,
        "ci95": one.ci95,
        "call": one.call,
    }
