"""What is judged, and by which measure: as the command says, else as the plans declare, else by default."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pinchpoint.base.errors import InputError
from pinchpoint.base.figures import MOST_METRICS
from pinchpoint.comparison.change import Change
from pinchpoint.comparison.judged import default_metrics
from pinchpoint.comparison.manifests import Difference
from pinchpoint.comparison.sides import Run, Sides
from pinchpoint.comparison.statistics import RUN_TO_RUN, SAME

By = Literal["command", "plan", "default"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command says; what it leaves out, the plans or the defaults say."""

    metrics: tuple[str, ...] = ()
    margin_ratio: float | None = None
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """What is judged.

    Attributes:
        metrics: names of figures that these runs have, each once.
        by: who says so.
        margin_ratio: within so much of each other two sides count as the same.
        bound: with few runs on a side, how many times as much one run may be as the next.
        notes: what a reader must know of it, sentences without an end.
    """

    metrics: tuple[str, ...]
    by: By
    margin_ratio: float
    bound: float
    notes: tuple[str, ...] = ()


def declared(found: Sequence[Change], asked: Asked, sides: Sides, studied: Sequence[Difference]) -> Declared:
    """What is judged of these figures.

    Raises:
        InputError: too many are asked for, a name is none of the figures', or the runs' plans do not declare
            the same and the command does not say.
    """
    margin = asked.margin_ratio if asked.margin_ratio is not None else _planned(sides, "margin_ratio")
    bound = asked.bound if asked.bound is not None else _planned(sides, "bound")
    names, by, notes = _metrics(found, asked, sides, studied)
    return Declared(
        tuple(dict.fromkeys(names)),
        by,
        SAME if margin is None else float(margin),
        RUN_TO_RUN if bound is None else float(bound),
        tuple(notes),
    )


def _metrics(
    found: Sequence[Change], asked: Asked, sides: Sides, studied: Sequence[Difference]
) -> tuple[Sequence[str], By, list[str]]:
    there = [one.name for one in found]
    if asked.metrics:
        check_metrics(asked.metrics)
        unknown = [name for name in asked.metrics if name not in there]
        if unknown:
            raise InputError(*(_unknown(name, there) for name in unknown))
        return asked.metrics, "command", []
    planned = _planned(sides, "metrics")
    if not planned:
        return default_metrics(found, sides, studied), "default", []
    notes = [
        f"{name}, which the plan declares, is no figure of these runs and is not judged{_near(name, there)}"
        for name in planned
        if name not in there
    ]
    silent = [run.directory for run in _runs(sides) if not _compare(run).get("metrics")]
    if silent:
        notes.append(f"what is judged is declared by the plan of the other runs, not of {', '.join(silent)}")
    return [name for name in planned if name in there], "plan", notes


def check_metrics(names: Sequence[str]) -> None:
    """Raises InputError where there are too many."""
    if len(set(names)) > MOST_METRICS:
        raise InputError(
            f"--metric: found {len(set(names))}; allowed: {MOST_METRICS} at most, as each further question "
            "makes an answer by chance more likely. All other figures are shown with their intervals"
        )


_OPTIONS = {"metrics": "--metric", "margin_ratio": "--margin", "bound": "--bound"}


def _planned(sides: Sides, key: str) -> Any:
    """What the runs' plans declare; None where none does. Raises InputError where they contradict."""
    said: dict[Any, list[str]] = {}
    for run in _runs(sides):
        value = _compare(run).get(key)
        if value not in (None, []):
            said.setdefault(tuple(sorted(value)) if key == "metrics" else value, []).append(run.directory)
    if len(said) > 1:
        each = "; ".join(f"{', '.join(runs)}: {_plain(value)}" for value, runs in said.items())
        name = key.removesuffix("_ratio")
        raise InputError(
            f"compare.{name}: the plans of these runs do not declare the same ({each}); say with "
            f"{_OPTIONS[key]} what holds"
        )
    return next((_compare(run)[key] for run in _runs(sides) if _compare(run).get(key)), None)


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _runs(sides: Sides) -> Iterator[Run]:
    for side in sides:
        yield from side.runs


def _compare(run: Run) -> dict[str, Any]:
    return dict((run.manifest.get("plan") or {}).get("compare") or {})


def _unknown(name: str, names: Sequence[str]) -> str:
    return f"--metric: {name!r} is no figure of these runs; allowed: {', '.join(names)}{_near(name, names)}"


def _near(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    return f"; nearest: {near[0]}" if near else ""
