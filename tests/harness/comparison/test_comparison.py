"""Work, figures, the bottleneck, the claim: what a comparison says of two sides whose truth is known."""

from __future__ import annotations

import json
from typing import Any

import pytest
from harness.comparison.example import LOG, SEARCH, TIMES, alike, changed, run, two_sides
from harness.report.example import suspect

from pinchpoint.comparison import Comparison, compare, exit_status, sides_of
from pinchpoint.comparison.values import pair
from pinchpoint.errors import InputError


def figure(done: Comparison, metric: str, **where: Any) -> dict[str, Any]:
    rows = done.to_json()["changes"]
    (row,) = [row for row in rows if row["metric"] == metric and where.items() <= row.items()]
    return dict(row)


def test_the_bottleneck_moved_and_the_disks_are_the_cause() -> None:
    """Same work, nothing else differs: from the log disk to the search servers' CPU, caused by the disks."""
    done = compare(alike(), ["disks"])
    assert done.bottleneck.moved is True
    assert done.claim.kind == "caused_by"
    assert done.summary.startswith(
        "The bottleneck moved: from the log disk of sql in dev to the CPU of search in prod."
    )
    assert f"crawl 3.4/s → 15.2/s (4.47 {TIMES})" in done.summary
    assert f"a write to the log disk of sql 36.4 ms → 2.8 ms (0.0769 {TIMES})" in done.summary
    assert exit_status(done, fail_on_worse=True) == 0


def test_other_work_is_said_and_weakens_the_claim() -> None:
    """A source that failed altogether on one side: rates of the others are no proof of the disks."""
    done = compare(two_sides(), ["disks"])
    unlike = {work.name: work.unlike for work in done.work}
    assert unlike["share"] == "all failed in dev, 0 % failed in prod; 0 documents in dev, 73,769 in prod"
    assert unlike["collab"] is None, "within 1 %"
    assert done.claim.kind == "associated_with"
    assert done.claim.because == ("the sides did not do the same work (share)",)


def test_every_figure_has_both_values_and_a_ratio_or_a_reason() -> None:
    """Nothing is 0 for want of a measurement, and nothing is divided by 0."""
    done = compare(two_sides(), ["disks"])
    latency = figure(done, "repository_latency_s", source="collab")
    assert (latency["base"], latency["other"]) == (0.467, 0.237)
    assert latency["ratio"] == pytest.approx(0.5075, rel=1e-3)
    missing = figure(done, "repository_latency_s", source="share")
    assert (missing["base"], missing["ratio"], missing["why"]) == (None, None, "not measured in dev")
    nothing = figure(done, "count", source="share")
    assert (nothing["base"], nothing["ratio"]) == (0, None)
    assert nothing["why"] == "it is 0 in dev, so there is no ratio"
    read = figure(done, "read_latency_mean_s", role="log")
    assert read["why"] == "not measured in dev and prod"
    assert all((row["ratio"] is None) == bool(row["why"]) for row in done.to_json()["changes"])


def test_no_change_is_called_without_an_interval_and_the_reader_is_told() -> None:
    """A thirteenfold change of one run each stays inconclusive; only the verdicts speak."""
    done = compare(alike(), ["disks"])
    assert {row["call"] for row in done.to_json()["changes"]} == {"inconclusive"}
    assert {row["ci95"] for row in done.to_json()["changes"]} == {None}
    assert "ratios have no 95 % interval yet" in done.warnings[0]


def test_a_side_of_several_runs_is_its_median_and_keeps_every_value() -> None:
    """One odd run does not move it; a run that did not measure is left out of the median, not 0."""
    found = pair([3.0, None, 30.0, 4.0], [8.0], ("a", "b"))
    assert (found.base, found.other, found.ratio) == (4.0, 8.0, 2.0)
    assert found.base_values == (3.0, None, 30.0, 4.0)
    sides = sides_of([run("dev"), run("dev"), run("dev")], [run("prod")])
    row = figure(compare(sides, ["disks"]), "throughput_per_s", scenario="crawl")
    assert (row["base_values"], row["other_values"]) == ([3.4, 3.4, 3.4], [15.2])


def test_figures_of_two_kinds_have_no_ratio() -> None:
    """I/O counted in two ways, and a tier's CPU beside a machine's, are not the same quantity."""
    sides = alike()
    for row in sides.other.runs[0].verdict["disks"]:
        row["iops_source"] = "data"
    sides.other.runs[0].verdict["cpus"][0]["of"] = "tier"
    done = compare(sides, ["disks"])
    iops = figure(done, "iops_mean", role="log")
    assert (iops["base"], iops["other"], iops["ratio"]) == (133.0, 187.0, None)
    assert iops["why"] == "I/O is counted in two ways (data and kernel), so there is no ratio"
    assert figure(done, "busy_mean_ratio")["why"].startswith("it is a share of two different things")
    assert figure(done, "write_latency_mean_s", role="log")["ratio"] is not None


def test_a_crawl_that_did_not_end_is_not_held_against_one_that_did() -> None:
    """Its count and duration have no ratio; its rate has, and the work is said to differ."""
    sides = alike()
    sides.other.runs[0].verdict["crawl"][0]["complete"] = False
    done = compare(sides, ["disks"])
    assert figure(done, "duration_s", source="collab")["ratio"] is None
    assert figure(done, "rate_per_s", source="collab")["ratio"] is not None
    assert done.work[0].unlike == "the crawl did not end in prod"


@pytest.mark.parametrize(
    ("base", "other", "moved"),
    [
        (LOG, SEARCH, True),
        (LOG, {**LOG, "kind": "disk_cap", "instance": "sdz"}, False),
        (LOG, {**LOG, "role": "data"}, True),
        (SEARCH, {**SEARCH, "kind": "cpu_thread"}, False),
        (SEARCH, {**SEARCH, "tier": "web", "host": "web1"}, True),
        (suspect(), suspect(tier="web", host="web1", shared_with=["search", "sql"]), False),
    ],
    ids=["other tier", "other way", "other role", "one thread", "other machine", "shared cores"],
)
def test_moved_means_another_resource(base: dict[str, Any], other: dict[str, Any], moved: bool) -> None:
    """Family of kinds, tier and role; not how it gives way, its device, or who uses most of shared cores."""
    done = compare(sides_of([run("dev", bottleneck=base)], [run("prod", bottleneck=other)]))
    assert done.bottleneck.moved is moved


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        ("not_reached", "nothing gave way in prod at this load"),
        ("inconclusive", "what limits prod could not be told"),
    ],
)
def test_a_side_that_names_nothing_leaves_it_open(outcome: str, why: str) -> None:
    """Null, with the reason; any other difference then weakens the claim: nobody knows what matters."""
    sides = alike(outcome=outcome, bottleneck=None)
    done = compare(sides, ["disks"])
    assert (done.bottleneck.moved, done.bottleneck.why) == (None, why)
    assert done.bottleneck.base is not None
    assert done.claim.kind == "caused_by", "nothing else differs but who the machines are"
    other = compare(changed(sides, "hosts", "web1", "cpu_model", value="Another CPU"), ["disks"])
    assert other.claim.kind == "associated_with"


def test_runs_of_one_side_that_disagree_name_nothing() -> None:
    """Two repeats, two bottlenecks: the side has none; of two that agree the lower confidence counts."""
    both = sides_of([run("dev"), run("dev", bottleneck=SEARCH)], [run("prod")])
    done = compare(both)
    assert (done.bottleneck.moved, done.bottleneck.why) == (None, "the runs of dev name different resources")
    sure = [run("dev", bottleneck={**LOG, "confidence": level}) for level in ("high", "low")]
    base = compare(sides_of(sure, [run("prod")])).bottleneck.base
    assert base is not None
    assert base["confidence"] == "low"


def test_an_invalid_run_shows_its_figures_and_claims_nothing() -> None:
    """Exit status 3, no claim, no answer about the bottleneck; the tables are there."""
    generator = suspect(kind="generator", tier=None, host="generator1", resource="generator", shared_with=[])
    done = compare(
        alike(outcome="invalid", bottleneck=generator, summary="It says nothing: late."), ["disks"]
    )
    assert done.claim.kind is None
    assert done.bottleneck.moved is None
    assert exit_status(done) == 3
    assert done.to_json()["claim"] is None
    assert figure(done, "throughput_per_s", scenario="crawl")["ratio"] is not None
    assert "Nothing is claimed: runs/prod (prod) is no valid evidence: It says nothing: late." in done.summary


@pytest.mark.parametrize(
    ("factors", "because"),
    [
        ([], "no factor was named (--factor), so nothing was studied as the cause"),
        (["cpu"], "the manifests show no difference in cpu"),
    ],
)
def test_a_cause_must_be_named_and_differ(factors: list[str], because: str) -> None:
    """What was not studied, or is the same on both sides, causes nothing."""
    done = compare(alike(), factors)
    assert done.claim.kind == "associated_with"
    assert because in done.claim.because


def test_one_run_on_both_sides_is_allowed_with_a_warning() -> None:
    """Held against itself it differs in nothing; the labels tell the sides apart."""
    one = run("dev")
    done = compare(sides_of([one], [one], [one.directory]), ["disks"])
    assert [side.label for side in done.sides] == ["dev (base)", "dev (other)"]
    assert done.bottleneck.moved is False
    assert done.claim.kind == "associated_with"
    assert any("stands on both sides" in warning for warning in done.warnings)
    assert all(row["ratio"] in (1.0, None) for row in done.to_json()["changes"])


def test_an_unknown_factor_lists_every_allowed_one() -> None:
    """With the nearest name."""
    with pytest.raises(
        InputError, match=r"'disk' is nothing runs can differ in; allowed: disks, cpu, .*nearest: disks"
    ):
        compare(alike(), ["disk"])


def test_the_document_is_plain_json() -> None:
    """Every key of the format, and nothing that JSON does not have."""
    content = compare(two_sides(), ["disks"]).to_json()
    assert content["schema"] == "pinchpoint.comparison/1"
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    wanted = {"changes", "bottleneck", "confounders", "claim", "summary", "warnings"}
    assert wanted <= content.keys()
    row = {"metric", "tier", "host", "role", "base", "other", "ratio", "ci95", "call"}
    assert all(row <= each.keys() for each in content["changes"])
    assert content["bottleneck"]["base"] == LOG
