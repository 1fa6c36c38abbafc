"""A comparison of two sides with known truth: work, figures, bottleneck and claim."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from harness.comparison.example import (
    LOG,
    SEARCH,
    TIMES,
    alike,
    changed,
    invalid,
    run,
    two_sides,
)
from harness.report.example import suspect

from pinchpoint.analysis.capacity import ONE_LEVEL
from pinchpoint.base.errors import InputError
from pinchpoint.comparison import Comparison, compare, exit_status, sides_of
from pinchpoint.comparison.sides import Effort
from pinchpoint.comparison.statistics import pair


def figure(done: Comparison, metric: str, **where: Any) -> dict[str, Any]:
    rows = done.to_json()["changes"]
    (row,) = [row for row in rows if row["metric"] == metric and where.items() <= row.items()]
    return dict(row)


def test_the_bottleneck_moved_and_the_disks_are_the_cause() -> None:
    """With the same work and other disks only, the bottleneck moved, and the disks caused it."""
    done = compare(alike(), ["disks"])
    assert done.bottleneck.moved is True
    assert done.claim.kind == "caused_by"
    assert done.summary.startswith(
        "The bottleneck moved: from the log disk of sql in dev to the CPU of search in prod."
    )
    figures = " ".join(done.main_changes)
    assert f"crawl 3.4/s → 15.2/s (4.47 {TIMES})" in figures
    assert f"a write to the log disk of sql 36.4 ms → 2.8 ms (0.0769 {TIMES})" in figures
    assert exit_status(done, fail_on_worse=True) == 0


def test_other_work_is_said_and_weakens_the_claim() -> None:
    """A source that failed on one side is different work, so the claim is only "associated with"."""
    done = compare(two_sides(), ["disks"])
    unlike = {work.name: work.unlike for work in done.work}
    assert unlike["share"] == "100 % failed in dev, 0 % failed in prod; 0 documents in dev, 73,769 in prod"
    assert unlike["collab"] is None, "within 1 %"
    assert done.claim.kind == "associated_with"
    assert done.claim.because == ("the sides did not do the same work (share)",)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"error_ratio": 0.5, "outcomes": {"ok": 12795, "timeout": 12795}}, "50 % failed in prod"),
        ({"dropped": 9000}, "26 % in prod"),
        (
            {"count": 0, "throughput_per_s": 0.0, "error_ratio": None, "outcomes": {}},
            "no operation succeeded in prod",
        ),
    ],
)
def test_work_that_is_not_done_any_more_is_worse(changes: dict[str, Any], why: str) -> None:
    """Work that fails, is dropped or stops on the second side is worse, whatever its times are."""
    sides = alike()
    sides.other.runs[0].verdict["scenarios"]["crawl"] |= changes
    done = compare(sides, ["disks"])
    [crawl] = [one for one in done.work if one.about == "scenario"]
    assert crawl.unlike is not None
    assert why in crawl.unlike
    assert exit_status(done, fail_on_worse=True) == 1
    back = compare(sides_of(sides.other.runs, sides.base.runs), ["disks"])
    assert not any(one.worse for one in back.work)


def test_a_crawl_that_ends_no_more_is_worse() -> None:
    """A crawl that no longer ends is worse; a scenario missing from the other plan is not."""
    sides = alike()
    sides.other.runs[0].verdict["crawl"][0]["complete"] = False
    assert exit_status(compare(sides, ["disks"]), fail_on_worse=True) == 1
    sides = alike()
    scenarios = sides.other.runs[0].verdict["scenarios"]
    scenarios["other"] = scenarios.pop("crawl")
    assert not any(one.worse for one in compare(sides, ["disks"]).work)


def test_every_figure_has_both_values_and_a_ratio_or_a_reason() -> None:
    """Every figure has both values and a ratio, or the reason why there is no ratio."""
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
    """A thirteenfold change without an interval is inconclusive, and a warning says why."""
    done = compare(alike(), ["disks"])
    rows = done.to_json()["changes"]
    assert {row["call"] for row in rows if row["declared"]} == {"inconclusive"}
    assert {row["call"] for row in rows if not row["declared"]} == {None}
    assert {row["ci95"] for row in rows} == {None}
    assert all(row["why_no_interval"] for row in rows)
    assert done.warnings[0].startswith("Fewer than 5 runs on a side (dev: 1, prod: 1)")


def test_what_the_second_step_buys_and_what_was_promised_of_the_first() -> None:
    """The next gain and the predicted gain come from each side's verdicts; disagreement gives none."""
    after_log = {**SEARCH, "gain_ratio": 3.2, "assumes": "the same mix", "at_most": True}
    after_cpu = {
        **LOG,
        "tier": "search",
        "role": "index",
        "gain_ratio": 0.38,
        "assumes": "the same mix",
        "at_most": True,
    }
    sides = sides_of([run("dev", next=after_log)], [run("prod", next=after_cpu)])
    done = compare(sides, ["disks"])
    step, before = done.bottleneck.second_step, done.bottleneck.foreseen
    assert step is not None
    assert before is not None
    assert (step.gain_ratio, before.gain_ratio) == (0.38, 3.2)
    promised, came = done.lines.next_step or "", done.lines.gain or ""
    assert promised.startswith("Relieve the CPU of search: at most 38 % more throughput, until ")
    assert came.startswith("Predicted from dev without the log disk of sql: at most 320 % more throughput")
    mixed = sides_of([run("dev", next=after_log)], [run("prod", next=after_cpu), run("prod", next=None)])
    assert compare(mixed).bottleneck.second_step is None


def test_what_came_of_a_promise_is_said_with_why_it_was_more() -> None:
    """The measured gain is shown beside the prediction, with the reason where it is larger."""
    one_level = {**SEARCH, "gain_ratio": 0.91, "assumes": ONE_LEVEL, "at_most": False}
    runs = [
        replace(
            run(farm, next=after),
            efforts=(Effort("crawl", "search", "cpu_s", "document", each_s),),
            settled_per_s={"crawl": settled},
        )
        for farm, after, each_s, settled in (("dev", one_level, 0.009, 5.0), ("prod", None, 0.006, 15.0))
    ]
    done = compare(sides_of(runs[:1], runs[1:]), ["disks"])
    before = done.bottleneck.foreseen
    assert before is not None
    assert (before.at_most, before.scenario) == (False, "crawl")
    assert before.came_ratio == pytest.approx(2.0)
    assert done.lines.gain == (
        "Predicted from dev without the log disk of sql: about 91 % more throughput. Measured: +200 % "
        "(crawl, in the steady part), more than predicted, because CPU time of search per document went from "
        "9 ms to 6 ms."
    )
    kept = {**SEARCH, "gain_ratio": 4.0, "assumes": "the same mix", "at_most": True}
    runs[0] = replace(run("dev", next=kept), settled_per_s={"crawl": 5.0})
    done = compare(sides_of(runs[:1], runs[1:]), ["disks"])
    assert done.lines.gain == (
        "Predicted from dev without the log disk of sql: at most 400 % more throughput. Measured: +200 % "
        "(crawl, in the steady part)."
    )


def test_capacity_is_what_was_reached_and_apart_from_the_load_that_was_offered() -> None:
    """Capacity is reached at a saturated CPU or an unserved rate; else it is a lower bound."""
    done = compare(alike())
    (crawl,) = done.capacity
    assert (crawl.base_how, crawl.other_how) == ("at_least", "reached"), "a slow log is no end, a full CPU is"
    assert (crawl.pair.base, crawl.pair.other, crawl.pair.ratio) == (3.4, 15.2, None)
    sides = alike()
    for side in sides:
        side.runs[0].manifest["plan"]["scenarios"]["crawl"]["load"] = {"model": "open", "rate_per_s": 15.0}
    done = compare(sides)
    (crawl,) = done.capacity
    assert (crawl.base_how, crawl.other_how) == ("reached", "at_least")
    assert crawl.kept_up == (False, True)
    assert any(one.startswith("crawl: dev did not keep up") for one in done.warnings)


def test_a_side_of_several_runs_is_its_median_and_keeps_every_value() -> None:
    """A side's figure is the median of its runs without missing values, and all values are kept."""
    found = pair([3.0, None, 30.0, 4.0], [8.0], ("a", "b"))
    assert (found.base, found.other, found.ratio) == (4.0, 8.0, 2.0)
    assert found.base_values == (3.0, None, 30.0, 4.0)
    sides = sides_of([run("dev"), run("dev"), run("dev")], [run("prod")])
    row = figure(compare(sides, ["disks"]), "throughput_per_s", scenario="crawl")
    assert (row["base_values"], row["other_values"]) == ([3.4, 3.4, 3.4], [15.2])


def test_figures_of_two_kinds_have_no_ratio() -> None:
    """Figures of different sources or scopes have no ratio but a reason."""
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
    """The count and duration of an unfinished crawl have no ratio; its rate has one."""
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
        (suspect(), suspect(tier=None, host="web1", shared_with=["web", "search", "sql"]), False),
        (SEARCH, suspect(tier=None, host="web1", shared_with=["web", "sql"]), True),
        (
            suspect(tier=None, host="web1", shared_with=["web", "search"]),
            suspect(tier=None, host="sql1", shared_with=["sql", "nosql"]),
            True,
        ),
    ],
    ids=[
        *["other tier", "other way", "other role", "one thread", "other machine", "shared cores"],
        *["whose is not known", "not its own", "other cores"],
    ],
)
def test_moved_means_another_resource(base: dict[str, Any], other: dict[str, Any], moved: bool) -> None:
    """The bottleneck moved if its family of kinds, tier or role differs; a device may differ."""
    done = compare(sides_of([run("dev", bottleneck=base)], [run("prod", bottleneck=other)]))
    assert done.bottleneck.moved is moved


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        ("not_reached", "prod reached no limit at this load"),
        ("inconclusive", "the verdict of prod is inconclusive"),
    ],
)
def test_a_side_that_names_nothing_leaves_it_open(outcome: str, why: str) -> None:
    """Without a bottleneck on one side "moved" is null, and any other difference weakens the claim."""
    sides = alike(outcome=outcome, bottleneck=None)
    done = compare(sides, ["disks"])
    assert (done.bottleneck.moved, done.bottleneck.why) == (None, why)
    assert done.bottleneck.base is not None
    assert done.claim.kind == "caused_by", "nothing else differs but who the machines are"
    other = compare(changed(sides, "hosts", "web1", "cpu_model", value="Another CPU"), ["disks"])
    assert other.claim.kind == "associated_with"


def test_runs_of_one_side_that_disagree_name_nothing() -> None:
    """Runs with different bottlenecks give the side none; the lowest confidence of a side counts."""
    both = sides_of([run("dev"), run("dev", bottleneck=SEARCH)], [run("prod")])
    done = compare(both)
    assert (done.bottleneck.moved, done.bottleneck.why) == (None, "the runs of dev name different resources")
    sure = [run("dev", bottleneck={**LOG, "confidence": level}) for level in ("high", "low")]
    base = compare(sides_of(sure, [run("prod")])).bottleneck.base
    assert base is not None
    assert base["confidence"] == "low"


def test_one_run_of_five_that_could_not_tell_is_counted() -> None:
    """One inconclusive run of five leaves the side open, and the reason counts it."""
    unsure = run("prod", outcome="inconclusive", bottleneck=None)
    done = compare(sides_of([run("dev")] * 5, [*[run("prod")] * 4, unsure]))
    assert done.bottleneck.why == "the verdict of prod is inconclusive in 1 of its 5 runs"


def test_one_run_of_five_that_suspects_what_the_others_name_lowers_the_confidence() -> None:
    """An inconclusive run whose only candidate is the others' bottleneck lowers the confidence only."""
    named = run("prod").verdict["bottleneck"]
    for candidate, why in (
        (named, None),
        ({**named, "tier": "web"}, "the verdict of prod is inconclusive in 1 of its 5 runs"),
    ):
        unsure = run("prod", outcome="inconclusive", bottleneck=None, candidates=[candidate])
        found = compare(sides_of([run("dev")] * 5, [*[run("prod")] * 4, unsure])).bottleneck
        assert found.why == why
        if why is None:
            assert found.other is not None
            assert (found.other["resource"], found.other["confidence"]) == (named["resource"], "low")
    half = [run("dev", outcome="inconclusive", bottleneck=None, candidates=[LOG])] * 2
    both = compare(sides_of([run("dev"), run("dev"), *half], [run("prod")])).bottleneck
    assert both.why == "the verdict of dev is inconclusive in 2 of its 4 runs"


def test_the_bursts_that_were_recovered_from_do_not_speak_for_the_others() -> None:
    """One run without recovery excludes the recovery time from the comparison."""
    runs = {farm: [run(farm) for _ in range(5)] for farm in ("dev", "prod")}
    for side in runs.values():
        for at, one in enumerate(side):
            burst = {"done": 900, "p50_s": 0.01, "p99_s": 0.1, "backlog": 5, "recovery_s": 2.0 + at / 10}
            one.verdict["scenarios"]["crawl"]["bursts"] = [burst]
    runs["prod"][3].verdict["scenarios"]["crawl"]["bursts"][0]["recovery_s"] = None
    done = compare(sides_of(runs["dev"], runs["prod"]))
    row = figure(done, "recovery_s")
    assert (row["ratio"], row["ci95"], row["call"]) == (None, None, None)
    assert row["why"] == "in prod a burst was not recovered from while it was watched"
    assert figure(done, "done")["ratio"] == 1.0


def test_an_invalid_run_shows_its_figures_and_claims_nothing() -> None:
    """An invalid run gives exit status 3 and no claim or bottleneck, but its figures are shown."""
    done = compare(alike(**invalid()), ["disks"])
    assert done.claim.kind is None
    assert done.bottleneck.moved is None
    assert exit_status(done) == 3
    assert done.to_json()["claim"] is None
    assert figure(done, "throughput_per_s", scenario="crawl")["ratio"] is not None
    assert "No conclusion: runs/prod is invalid: operations came late." in done.summary


@pytest.mark.parametrize(
    ("factors", "because"),
    [
        ([], "no factor was named (--factor)"),
        (["cpu"], "the sides do not differ in cpu"),
    ],
)
def test_a_cause_must_be_named_and_differ(factors: list[str], because: str) -> None:
    """Without a named factor, or with one that does not differ, the claim is "associated with"."""
    done = compare(alike(), factors)
    assert done.claim.kind == "associated_with"
    assert because in done.claim.because


def test_one_run_on_both_sides_is_allowed_with_a_warning() -> None:
    """A run compared with itself gives a warning, two labels and no difference."""
    one = run("dev")
    done = compare(sides_of([one], [one], [one.directory]), ["disks"])
    assert [side.label for side in done.sides] == ["dev (first side)", "dev (second side)"]
    assert done.bottleneck.moved is False
    assert done.claim.kind == "associated_with"
    assert any("runs/dev is on both sides" in warning for warning in done.warnings)
    assert all(row["ratio"] in (1.0, None) for row in done.to_json()["changes"])


def test_an_unknown_factor_lists_every_allowed_one() -> None:
    """An unknown factor's message lists all allowed ones and the nearest."""
    with pytest.raises(
        InputError, match=r"'disk' is nothing runs can differ in; allowed: disks, cpu, .*nearest: disks"
    ):
        compare(alike(), ["disk"])


def test_the_document_is_plain_json() -> None:
    """The document has every key of the format and is valid JSON."""
    content = compare(two_sides(), ["disks"]).to_json()
    assert content["schema"] == "pinchpoint.comparison/1"
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    wanted = {"changes", "bottleneck", "confounders", "claim", "summary", "warnings"}
    assert wanted <= content.keys()
    row = {"name", "metric", "tier", "host", "role", "base", "other", "ratio", "ci95", "call"}
    assert all(row <= each.keys() for each in content["changes"])
    assert content["bottleneck"]["base"] == LOG
