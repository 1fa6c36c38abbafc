"""From a run directory to what was found in each variant, and whether that is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ground_truth.cases import Answer
from ground_truth.variants import VARIANTS

from pinchpoint.analysis import Verdict, analyse
from pinchpoint.store.read import StoredRun, open_run

SURE = ("low", "medium", "high")
TOLD = "emulated_disk"
"""Events of this name tell a person what an emulated disk went through; the analysis may not know."""


class NotBlind(Exception):  # noqa: N818 -- a fact about the analysis
    """The verdict changed when what tells how the farm was built was taken away."""


@dataclass(frozen=True, slots=True)
class Found:
    """One analysis: what it names and how sure it is; None where it names nothing."""

    answer: Answer
    confidence: str | None


def judge(directory: Path) -> dict[str, Found]:
    """Analyse a run once per variant.

    Raises:
        InputError: the folder holds no run that can be read.
        NotBlind: the analysis knows what it must not.
    """
    run = open_run(directory)
    told = replace(run, events=[event for event in run.events if event.get("event") != TOLD])
    found: dict[str, Found] = {}
    known: list[tuple[dict[str, Any], Found]] = []
    for name, change in VARIANTS.items():
        manifest = change(run.manifest)
        same = next((one for seen, one in known if seen == manifest), None)
        if same is None:  # where nothing is declared there is nothing to vary
            verdict = analyse(replace(told, manifest=manifest))
            if not known:
                _see_that_it_is_blind(run, verdict)
            same = _found(verdict)
            known.append((manifest, same))
        found[name] = same
    return found


def _see_that_it_is_blind(run: StoredRun, blind: Verdict) -> None:
    """``blind``: of the same run without what tells how the farm was built."""
    if analyse(run).to_json() != blind.to_json():
        raise NotBlind("the verdict is another one without `embedded:` and the events of emulated disks")


def _found(verdict: Verdict) -> Found:
    suspect = verdict.bottleneck
    if suspect is None:
        return Found(Answer(verdict.outcome), None)
    answer = Answer(verdict.outcome, suspect.kind, suspect.tier, suspect.role)
    return Found(answer, suspect.confidence)


def is_right(expected: Answer, found: Mapping[str, Found]) -> bool:
    """Whether every variant names exactly what is expected."""
    return bool(found) and all(one.answer == expected for one in found.values())


def what_counts(expected: Answer, found: Mapping[str, Found]) -> Answer:
    """The first wrong answer where there is one: the answer a case is judged by."""
    answers = [one.answer for one in found.values()]
    return next((answer for answer in answers if answer != expected), answers[0])


def least_sure(found: Sequence[Found]) -> str | None:
    """The lowest confidence any variant had; None where one named nothing."""
    levels = [one.confidence for one in found]
    return None if None in levels else min((str(level) for level in levels), key=SURE.index, default=None)
