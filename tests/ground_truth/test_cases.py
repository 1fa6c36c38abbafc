"""Tests of the cases: their files, their needs, and their selection."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pytest
from ground_truth.cases import Expected, farms, needs_of, read_case, select
from ground_truth.made import make_case
from pydantic import ValidationError

from pinchpoint.analysis.verdict import Kind
from pinchpoint.base.errors import InputError

CPU_TURN = {"resource": "cpu", "tier": "search", "share": 0.6}
DISK_TURN = {"resource": "disk", "tier": "search", "role": "index", "share": 0.35}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"outcome": "bottleneck", "why": "x"}, "a kind belongs to"),
        ({"outcome": "not_reached", "kind": "cpu", "why": "x"}, "a kind belongs to"),
        ({"outcome": "bottleneck", "kind": "cpu", "why": "x"}, "a tier belongs to"),
        ({"outcome": "bottleneck", "kind": "disk_cap", "tier": "sql", "why": "x"}, "a role belongs to"),
        (
            {"outcome": "bottleneck", "kind": "cpu", "tier": "sql", "role": "log", "why": "x"},
            "a role belongs",
        ),
        ({"outcome": "inconclusive", "why": "x", "turns": [CPU_TURN]}, "two causes or more"),
        ({"outcome": "not_reached", "why": "x", "turns": [CPU_TURN, DISK_TURN]}, "of an inconclusive run"),
        ({"outcome": "not_reached"}, "why"),
        ({"outcome": "healthy", "why": "x"}, "outcome"),
        ({"outcome": "not_reached", "why": "x", "kinds": ["cpu"]}, "kinds"),
        ({"outcome": "not_reached", "why": "x", "needs": ["luck"]}, "needs"),
    ],
)
def test_a_label_says_one_whole_answer(fields: dict[str, Any], words: str) -> None:
    """A label with half an answer or two answers is refused, because no verdict could miss it."""
    with pytest.raises(ValidationError, match=words):
        Expected.model_validate(fields)


def test_a_case_that_cannot_be_read_names_its_file(tmp_path: Path) -> None:
    """The message about a bad label names the file and the field."""
    place = make_case(tmp_path, "one", expected="outcome: perfect\nwhy: x\n")
    with pytest.raises(InputError, match=r"expected\.yaml: outcome: "):
        read_case(place)
    (place / "expected.yaml").unlink()
    with pytest.raises(InputError, match=r"expected\.yaml: cannot be read"):
        read_case(place)


def test_every_case_can_be_read_and_says_what_it_needs() -> None:
    """Every labelled case is complete, and ``needs`` names the needs of each key of its farm."""
    for case in select([]):
        assert case.farm.embedded is not None
        assert set(case.expected.needs) == needs_of(case.farm.embedded.to_json()), case.name
        climbs = any(scenario.load.model == "steps" for scenario in case.plan.scenarios.values())
        assert case.load_s <= (135 if climbs else 60), f"{case.name}: a sweep takes long enough as it is"
        assert case.farm.name == case.plan.name == case.name


def test_there_are_cases_enough() -> None:
    """There are 60 cases: twelve healthy, three of each kind; those of CI take at most two minutes."""
    cases = select([])
    labels = Counter(case.expected.answer.label for case in cases)
    assert len(cases) >= 60
    assert labels["not_reached"] >= 12
    # the analysis names the kind of disk limit for runs; ``disk`` alone occurs only in imported recordings
    of_recordings = {"disk"}
    assert {kind for kind in get_args(Kind) if labels[kind] < 3} == of_recordings
    chosen = select(["@ci"])
    assert len({case.expected.answer.label for case in chosen}) >= 2
    assert sum(case.load_s + 10 for case in chosen) <= 120


def test_a_climb_is_as_long_as_its_levels() -> None:
    """The measure phase of a plan with load steps is as long as its steps."""
    for case in select([]):
        for scenario in case.plan.scenarios.values():
            if scenario.load.model == "steps":
                least = scenario.load.count * scenario.load.each_s
                assert case.plan.phases.measure.at_most_s >= least + 5, case.name
                assert scenario.load.count >= 6, case.name


def test_cases_are_chosen_by_name_glob_and_list(tmp_path: Path) -> None:
    """Selected cases are sorted and unique; lists may have comments; one error names all bad patterns."""
    for name in ("log-a", "log-b", "web"):
        make_case(tmp_path / "cases", name)
    (tmp_path / "few.txt").write_text("# the quick ones\nweb\n\nlog-a\n")

    def chosen(*patterns: str) -> list[str]:
        return [case.name for case in select(patterns, tmp_path / "cases", tmp_path)]

    assert chosen() == ["log-a", "log-b", "web"]
    assert chosen("log-*") == ["log-a", "log-b"]
    assert chosen("@few", "log-a") == ["log-a", "web"]
    with pytest.raises(InputError, match=r"(?s)lgo-a: is no case; nearest: log-a.*zzz.*there are: log-a"):
        chosen("lgo-a", "web", "zzz")
    with pytest.raises(InputError, match=r"@none.*none\.txt cannot be read"):
        chosen("@none")


def test_shards_share_out_whole_farms(tmp_path: Path) -> None:
    """Every case is in exactly one shard, a farm is never split, and the longest farm has its own shard."""
    for name, tier, measure in (
        ("a", "nosql", "50s"),
        ("b", "sql", "10s"),
        ("c", "nosql", "50s"),
        ("d", "sql", "10s"),
    ):
        make_case(tmp_path, name, tier, measure)
    cases = select([], tmp_path)
    assert [[case.name for case in group] for group in farms(cases)] == [["a", "c"], ["b", "d"]]
    shards = [farms(cases, shard, 2) for shard in (1, 2)]
    assert [[[case.name for case in group] for group in shard] for shard in shards] == [
        [["a", "c"]],
        [["b", "d"]],
    ]
    assert farms(cases, 3, 3) == []
