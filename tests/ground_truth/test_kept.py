"""Tests of the score of a verdict on a kept run, and of the answers of all kept runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from ground_truth.cases import Answer
from ground_truth.kept import REAL, RUNS, SYNTHETIC, score, truths
from ground_truth.made import LOG_CAP, OTHER_DISK


def _verdict(found: Answer, candidate: Answer | None) -> Any:
    def named(one: Answer) -> Any:
        return SimpleNamespace(kind=one.kind, tier=one.tier, role=one.role, confidence="low")

    return SimpleNamespace(
        outcome=found.outcome,
        bottleneck=named(found) if found.kind else None,
        candidates=[named(candidate)] if candidate else [],
    )


@pytest.mark.parametrize(
    ("found", "candidate", "worth"),
    [
        (LOG_CAP, None, ("right", True, False)),
        (Answer("bottleneck", "disk_latency", "sql", "log"), None, ("right", False, False)),
        (OTHER_DISK, None, ("wrong", False, False)),
        (Answer("not_reached"), None, ("wrong", False, False)),
        (Answer("invalid", "generator"), None, ("wrong", False, False)),
        (Answer("invalid", "contention"), None, ("declined", False, False)),
        (Answer("inconclusive"), LOG_CAP, ("declined", False, True)),
        (Answer("inconclusive"), OTHER_DISK, ("declined", False, False)),
    ],
)
def test_the_resource_counts_before_the_kind(
    found: Answer, candidate: Answer | None, worth: tuple[str, bool, bool]
) -> None:
    """Another resource and a false all-clear are wrong; another kind of limit of the same disk is right."""
    one = score(REAL, "run", "declared", LOG_CAP, cast("Any", _verdict(found, candidate)))
    assert (one.score, one.kind, one.candidate) == worth


def test_every_kept_run_has_an_answer() -> None:
    """Every kept run has a case or a row in simulated.csv."""
    for set_ in (REAL, SYNTHETIC):
        assert sorted(truths(set_)) == sorted(path.name for path in (RUNS / set_).iterdir())
