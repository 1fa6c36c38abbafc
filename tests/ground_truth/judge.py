"""Analyse a run in each variant and under each noise, and compare the answers with the label."""

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
"""Maximum difference between the share of an alternating cause and its label."""
TOLD = "emulated_disk"
"""Name of events that describe emulated disks to a person; the analysis must not use them."""


class NotBlind(Exception):  # noqa: N818 -- a fact about the analysis
    """The verdict changed when the description of the embedded farm was removed."""


@dataclass(frozen=True, slots=True)
class Found:
    """One analysis: its answer and its confidence; None if it names no bottleneck."""

    answer: Answer
    confidence: str | None


@dataclass(frozen=True, slots=True)
class Judged:
    """The answers of one run's analyses.

    Attributes:
        variants: answers by variant: limits as declared, withheld and wrong; ``declared`` is first.
        noises: answers by noise, with limits as declared and samples missing.
    """

    variants: Mapping[str, Found]
    noises: Mapping[str, Found]


def judge(directory: Path) -> Judged:
    """Analyse a run once per variant and noise.

    Raises:
        InputError: the folder has no readable run.
        NotBlind: the verdict depends on the description of the embedded farm.
    """
    stored = open_run(directory)
    run = replace(stored, samples=table(stored.samples))  # noises change the samples
    judged = replace(run, events=[event for event in run.events if event.get("event") != TOLD])
    noisy = noises(replace(judged, manifest=blind(run.manifest)))
    return Judged(_variants(run, judged), {name: _found(*analyse_case(one)) for name, one in noisy})


def _found(verdict: Verdict, case: Case | None) -> Found:
    """Return what a verdict names; without a bottleneck, its alternating causes."""
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
        if same is None:  # nothing is declared, so nothing varies
            varied = replace(judged, manifest=manifest)
            verdict, case = analyse_case(varied)
            if not known:
                _see_that_it_is_blind(run, verdict)
            same = _found(verdict, case)
            known.append((manifest, same))
        found[name] = same
    return found


def _see_that_it_is_blind(run: StoredRun, blind: Verdict) -> None:
    """Raise NotBlind if the verdict without the farm's description, ``blind``, differs from the run's."""
    if analyse(run).to_json() != blind.to_json():
        raise NotBlind("the verdict is another one without `embedded:` and the events of emulated disks")


def found_in(verdict: Verdict) -> Found:
    """Return what a verdict names."""
    suspect = verdict.bottleneck
    if suspect is None:
        return Found(Answer(verdict.outcome), None)
    answer = Answer(verdict.outcome, suspect.kind, suspect.tier, suspect.role)
    return Found(answer, suspect.confidence)


def is_right(expected: Answer, answer: Answer, *, noisy: bool, declared: bool = True) -> bool:
    """Return True if the answer is right.

    Under noise, "inconclusive" is right as well, and so is the disk without the kind of its limit. The latter
    is also right if limits are withheld or declared wrong.
    """
    which = answer.kind == "disk" and answer.resource == expected.resource
    unsure = answer.outcome == "inconclusive" or which
    same = replace(answer, turns=()) == replace(expected, turns=()) and _same_turns(expected, answer)
    return same or (noisy and unsure) or (which and not declared)


def _same_turns(expected: Answer, answer: Answer) -> bool:
    """Return True if the same causes alternate with about the same shares, or if none are expected."""
    found = {(one.resource, one.tier, one.role): one.share for one in answer.turns}
    wanted = {(one.resource, one.tier, one.role): one.share for one in expected.turns}
    return not wanted or (
        found.keys() == wanted.keys()
        and all(abs(found[key] - share) <= SHARE_WITHIN for key, share in wanted.items())
    )


def wrong(expected: Answer, judged: Judged, *, noisy: bool = False) -> dict[str, Found]:
    """Return the variants and noises with a wrong answer, by name.

    Args:
        expected: the label's answer.
        judged: the answers of the analyses.
        noisy: True if the run itself was made under a noise.
    """
    return {
        name: one
        for group, unsure in ((judged.variants, noisy), (judged.noises, True))
        for name, one in group.items()
        if not is_right(expected, one.answer, noisy=unsure, declared=name == DECLARED)
    }


def what_counts(expected: Answer, judged: Judged, *, noisy: bool = False) -> Found:
    """Return the answer that counts for a case: the first wrong one, else that with declared limits."""
    bad = wrong(expected, judged, noisy=noisy)
    return next(iter((bad or judged.variants).values()))
