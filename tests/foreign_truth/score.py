"""Compare a verdict with a label: right, wrong or declined.

| answer | right | wrong | declined |
| --- | --- | --- | --- |
| a resource | `bottleneck` with this resource, host and time | another resource; `not_reached` | all else |
| `worse` | | `not_reached` | all else; named resources are counted separately, for a person to check |
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
    """The score of one verdict on one recording.

    Attributes:
        label: the recording's label.
        variant: name of the variant of the recording.
        score: ``right``, ``wrong``, ``declined``, ``named`` or ``failed``.
        candidate: True if the verdict declined but had the right candidate.
        said: the verdict in a few words.
    """

    label: Label
    variant: str
    score: Score
    candidate: bool
    said: str

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``build/foreign-truth.json``."""
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
    """Compare a verdict with its label and return the score."""
    named = [one for one in (verdict.bottleneck,) if one]
    # If several resources alternate, the verdict names each of them.
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
    """Return True if the bottleneck has the label's resource and host, at an overlapping time."""
    if one.resource not in ANSWERS[label.answer] or (label.host and one.host != label.host):
        return False
    if not timed or label.from_s is None or label.to_s is None:
        return True
    begin_s, end_s = (datetime.fromisoformat(each).timestamp() for each in one.window or ())
    return begin_s < label.to_s and end_s > label.from_s


def said(verdict: Verdict) -> str:
    """Return the verdict in a few words."""
    ones = [one for one in (verdict.bottleneck,) if one] or list(verdict.candidates)
    names = ", ".join(f"{one.kind} of {one.host} {one.instance}".strip() for one in ones)
    return f"{verdict.outcome}: {names}" if names else verdict.outcome
