"""What a verdict is worth, held against a label: right, wrong or declined, each by itself.

| answer | right | wrong | declined |
| --- | --- | --- | --- |
| a resource | `bottleneck` that names it, there and then | another one named; `not_reached` | all else |
| `worse` | | `not_reached` | all else; what is named is counted apart, to be looked at |
| `healthy` | `not_reached` | `bottleneck` | all else |
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from foreign_truth.labels import ANSWERS, HEALTHY, WORSE, Label
from pinchpoint.analysis import Verdict
from pinchpoint.analysis.verdict import Bottleneck

Score = Literal["right", "wrong", "declined", "named", "failed"]


@dataclass(frozen=True, slots=True)
class Judged:
    """One verdict on one recording.

    Attributes:
        label: the recording.
        variant: what was done to it.
        score: what the verdict is worth.
        candidate: declined, with the right candidate.
        said: the verdict in a few words.
    """

    label: Label
    variant: str
    score: Score
    candidate: bool
    said: str

    def to_json(self) -> dict[str, Any]:
        """For ``build/foreign-truth.json``."""
        return {
            "case": self.label.case,
            "set": self.label.set,
            "answer": self.label.answer,
            "variant": self.variant,
            "score": self.score,
            "candidate": self.candidate,
            "said": self.said,
        }


def score(label: Label, variant: str, verdict: Verdict) -> Judged:
    """Hold a verdict against its label."""
    named = [one for one in (verdict.bottleneck,) if one]
    # Where several took turns each of them is named.
    named += [one for one in (verdict.runner_up,) if one and named]
    candidate = any(is_right(label, one, timed=False) for one in verdict.candidates)
    found: Score = "declined"
    if verdict.outcome == "bottleneck":
        found = "right" if any(is_right(label, one) for one in named) else "wrong"
        found = "named" if label.answer == WORSE else found
    elif verdict.outcome == "not_reached":
        found = "right" if label.answer == HEALTHY else "wrong"
    return Judged(label, variant, found, candidate and found == "declined", said(verdict))


def is_right(label: Label, one: Bottleneck, *, timed: bool = True) -> bool:
    """Whether it is the labelled resource, of the labelled host, at a time that overlaps the labelled one."""
    if one.resource not in ANSWERS[label.answer] or (label.host and one.host != label.host):
        return False
    if not timed or label.from_s is None or label.to_s is None:
        return True
    begin_s, end_s = (datetime.fromisoformat(each).timestamp() for each in one.window or ())
    return begin_s < label.to_s and end_s > label.from_s


def said(verdict: Verdict) -> str:
    """The verdict in a few words."""
    ones = [one for one in (verdict.bottleneck,) if one] or list(verdict.candidates)
    names = ", ".join(f"{one.kind} of {one.host} {one.instance}".strip() for one in ones)
    return f"{verdict.outcome}: {names}" if names else verdict.outcome
