"""From a run directory to what was found in each variant and under each noise, and whether that is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ground_truth.cases import Answer, Turn
from ground_truth.noises import noises
from ground_truth.variants import VARIANTS, blind

from pinchpoint.analysis import Verdict, analyse
from pinchpoint.analysis.analyse import analyse_case
from pinchpoint.analysis.case import Case
from pinchpoint.analysis.periods import taking_turns
from pinchpoint.analysis.resources.kinds import KINDS
from pinchpoint.store.read import StoredRun, open_run
from pinchpoint.store.samples import table

DECLARED = next(iter(VARIANTS))
SHARE_WITHIN = 0.2
"""How far the share of the time of a cause that takes turns may be from its label."""
TOLD = "emulated_disk"
"""Events of this name tell a person what an emulated disk went through; the analysis may not know."""


class NotBlind(Exception):  # noqa: N818 -- a fact about the analysis
    """The verdict changed when what tells how the farm was built was taken away."""


@dataclass(frozen=True, slots=True)
class Found:
    """One analysis: what it names and how sure it is; None if it names nothing."""

    answer: Answer
    confidence: str | None


@dataclass(frozen=True, slots=True)
class Judged:
    """What one run's analyses found.

    Attributes:
        variants: with limits as declared, withheld and wrong, by name; ``declared`` first.
        noises: as declared, with samples missing, by name.
    """

    variants: Mapping[str, Found]
    noises: Mapping[str, Found]


def judge(directory: Path) -> Judged:
    """Analyse a run once per variant and noise.

    Raises:
        InputError: the folder holds no run that can be read.
        NotBlind: the analysis knows what it must not.
    """
    stored = open_run(directory)
    run = replace(stored, samples=table(stored.samples))  # noises change it
    judged = replace(run, events=[event for event in run.events if event.get("event") != TOLD])
    noisy = noises(replace(judged, manifest=blind(run.manifest)))
    return Judged(_variants(run, judged), {name: _found(*analyse_case(one)) for name, one in noisy})


def _found(verdict: Verdict, case: Case | None) -> Found:
    """What a verdict names; where it names none, the causes that take turns."""
    found = found_in(verdict)
    named_none = verdict.outcome == "inconclusive" and case is not None and case.climb is None
    turns = [
        Turn(
            KINDS[one.type].reported, role.tier if role else one.tiers[0], role.role if role else None, share
        )
        for one, share in (taking_turns(case) if named_none and case is not None else ())
        for role in [one.roles[0] if one.roles else None]
    ]
    return replace(found, answer=replace(found.answer, turns=tuple(turns)))


def _variants(run: StoredRun, judged: StoredRun) -> dict[str, Found]:
    found: dict[str, Found] = {}
    known: list[tuple[dict[str, Any], Found]] = []
    for name, change in VARIANTS.items():
        manifest = change(run.manifest)
        same = next((one for seen, one in known if seen == manifest), None)
        if same is None:  # where nothing is declared there is nothing to vary
            varied = replace(judged, manifest=manifest)
            verdict, case = analyse_case(varied)
            if not known:
                _see_that_it_is_blind(run, verdict)
            same = _found(verdict, case)
            known.append((manifest, same))
        found[name] = same
    return found


def _see_that_it_is_blind(run: StoredRun, blind: Verdict) -> None:
    """``blind``: of the same run without what tells how the farm was built."""
    if analyse(run).to_json() != blind.to_json():
        raise NotBlind("the verdict is another one without `embedded:` and the events of emulated disks")


def found_in(verdict: Verdict) -> Found:
    """What a verdict names."""
    suspect = verdict.bottleneck
    if suspect is None:
        return Found(Answer(verdict.outcome), None)
    answer = Answer(verdict.outcome, suspect.kind, suspect.tier, suspect.role)
    return Found(answer, suspect.confidence)


def is_right(expected: Answer, answer: Answer, *, noisy: bool, declared: bool = True) -> bool:
    """Whether it is what is expected.

    Under noise "inconclusive" is no wrong answer either, nor is the disk itself without how it limits; where
    its limits are withheld or declared wrong the latter is right as well.
    """
    which = answer.kind == "disk" and answer.resource == expected.resource
    unsure = answer.outcome == "inconclusive" or which
    same = replace(answer, turns=()) == replace(expected, turns=()) and _same_turns(expected, answer)
    return same or (noisy and unsure) or (which and not declared)


def _same_turns(expected: Answer, answer: Answer) -> bool:
    """Whether the same causes take turns, with about the same shares; true where none are expected."""
    found = {(one.resource, one.tier, one.role): one.share for one in answer.turns}
    wanted = {(one.resource, one.tier, one.role): one.share for one in expected.turns}
    return not wanted or (
        found.keys() == wanted.keys()
        and all(abs(found[key] - share) <= SHARE_WITHIN for key, share in wanted.items())
    )


def wrong(expected: Answer, judged: Judged, *, noisy: bool = False) -> dict[str, Found]:
    """The variants and noises with a wrong answer, by name.

    Args:
        expected: the label.
        judged: what was found.
        noisy: the run itself was made under a noise.
    """
    return {
        name: one
        for group, unsure in ((judged.variants, noisy), (judged.noises, True))
        for name, one in group.items()
        if not is_right(expected, one.answer, noisy=unsure, declared=name == DECLARED)
    }


def what_counts(expected: Answer, judged: Judged, *, noisy: bool = False) -> Found:
    """What a case is judged by: the first wrong answer where there is one, else that with all declared."""
    bad = wrong(expected, judged, noisy=noisy)
    return next(iter((bad or judged.variants).values()))
