"""The explanation of a verdict lists every considered resource, and the samples behind every number."""

from __future__ import annotations

import numpy as np
import pytest
from harness.analysis.build import Build, crawl_bound_by_search
from harness.analysis.test_levels import climb
from harness.analysis.test_shapes import told
from harness.analysis.test_timeline import two_in_turn
from harness.analysis.verdicts import judged

from pinchpoint.analysis import Verdict
from pinchpoint.analysis.verdict import Check, Considered
from pinchpoint.report.explained import explanation_text


def row(verdict: Verdict, text: str) -> Considered:
    [found] = [one for one in verdict.explanation.considered if text in one.name]
    return found


def asked(one: Considered, evidence: str) -> Check:
    [check] = [check for check in one.checks if check.evidence == evidence]
    return check


def test_every_resource_is_there_with_four_answers() -> None:
    """Each considered resource has the answers E1 to E4, for the winner and for the others."""
    verdict = judged(crawl_bound_by_search())
    rows = verdict.explanation.considered
    assert {one.resource for one in rows} == {"cpu", "allowance", "disk", "dependency"}
    assert all([check.evidence for check in one.checks] == ["E1", "E2", "E3", "E4"] for one in rows)
    used = [one.used_ratio for one in rows if one.used_ratio is not None]
    assert used == sorted(used, reverse=True)
    cpu = row(verdict, "the CPU shared by ")
    assert (cpu.kind, cpu.tier, cpu.why) == ("cpu", "search", "the bottleneck")
    assert [check.holds for check in cpu.checks] == [True, None, None, True]
    assert "only a load in steps" in asked(cpu, "E2").fact.fact
    disk = row(verdict, "the log disk")
    assert (disk.kind, disk.used_ratio, disk.why) == (None, None, "not saturated")
    assert asked(disk, "E1").holds is False
    assert "no limit is declared" in asked(disk, "E1").fact.fact


def test_each_number_says_its_samples_its_threshold_and_where_that_is_from() -> None:
    """Each fact has its metric, threshold, source and sample count: 60 at one reading per second."""
    verdict = judged(crawl_bound_by_search())
    cpu = row(verdict, "the CPU shared by ")
    for kind, metric, limit in (("E1", "cpu.busy_ratio", 0.9), ("E4", "pressure.cpu_ratio", 0.5)):
        fact = asked(cpu, kind).fact
        assert (fact.metric, fact.threshold, fact.source, fact.samples) == (metric, limit, "design", 60)
    assert verdict.bottleneck is not None
    assert {fact.samples for fact in verdict.bottleneck.evidence if fact.evidence != "context"} == {60}


def test_levels_answer_what_one_level_cannot() -> None:
    """Eight load levels answer E1 to E4 for the CPU; the disk without a declared limit has no E3."""
    verdict = judged(climb(np.arange(100.0, 900.0, 100.0), 600))
    cpu = row(verdict, "the CPU of the sql tier (sql1)")
    assert [check.holds for check in cpu.checks] == [True, True, True, True]
    ceiling = asked(row(verdict, "the log disk"), "E3")
    assert ceiling.holds is None, "no limit is declared: neither yes nor no"
    assert "its utilisation is not known" in ceiling.fact.fact


def test_gates_are_told_also_when_they_held() -> None:
    """The gates are listed with their figures also where they passed."""
    verdict = judged(crawl_bound_by_search())
    assert [gate.holds for gate in verdict.explanation.gates] == [True, True]
    assert verdict.explanation.gates[1].fact.value == pytest.approx(0.3, rel=0.1)


def test_why_it_won_and_what_would_change_it() -> None:
    """The explanation states the reasons, the share of resamples, and what would change the answer."""
    verdict = judged(crawl_bound_by_search())
    reasons = " / ".join(verdict.explanation.reasons)
    assert "(search1): saturated and second source agrees" in reasons
    assert "100 % of 200 resamples" in reasons
    assert "why the confidence is not higher: one load level" in reasons
    changes = " / ".join(verdict.explanation.would_change)
    assert "(search1) no resource would be the bottleneck" in changes


def test_of_two_the_reason_for_the_first_is_told() -> None:
    """Of two saturated machines the deeper tier ranks first, and the explanation says why."""
    build = Build().host("app3", "search", machine="b").host("sql1", "sql", machine="a")
    build.cpu("app3", 0.97, pressure=0.9).cpu("sql1", 0.97, pressure=0.9)
    build.closed("crawl", "full-crawl", 16).operations("crawl", "document:site", 40, 0.4)
    verdict = judged(build.generator())
    second = row(verdict, "the CPU of the search tier")
    assert "ranks after the CPU of the sql tier (sql1): it is called by the other tier" in second.why
    changes = " / ".join(verdict.explanation.would_change)
    assert "the bottleneck would be the CPU of the search tier (app3)" in changes


def test_nothing_used_up_says_what_is_nearest() -> None:
    """For a served schedule the explanation says which resource saturates first, and at which load."""
    build = Build().host("sql1", "sql", cores=(0, 1)).cpu("sql1", 0.45, cores=(0, 1))
    build.open("orders", "sql-mix", 100).operations("orders", "log_append", 100, 0.004)
    verdict = judged(build.generator(orders=(100.0, 100.0)))
    assert verdict.outcome == "not_reached"
    assert "the schedule limited the load" in " / ".join(verdict.explanation.reasons)
    [change] = verdict.explanation.would_change
    assert change.startswith("at 2.2")


def test_a_run_without_a_measure_phase_has_gates_only() -> None:
    """A run without a measure phase has gates and an empty list of resources, without an error."""
    build = crawl_bound_by_search()
    build.manifest["phases"] = build.manifest["phases"][:1]
    verdict = judged(build)
    assert verdict.outcome == "inconclusive"
    assert verdict.explanation.considered == ()
    assert "0. Is the run valid?" in explanation_text(verdict.to_json())


@pytest.mark.parametrize("build", [crawl_bound_by_search, two_in_turn])
def test_the_text_has_all_steps_and_a_query_for_each_series(build: type[Build]) -> None:
    """The text has METHOD's parts in order, with lines of at most 88 columns except for the queries."""
    text = explanation_text(judged(build()).to_json())
    heads = [line[:2] for line in text.splitlines() if line[:1].isdigit()]
    assert heads == ["0.", "1.", "2.", "3.", "6.", "7.", "8."]
    lines = [line for line in text.splitlines() if "duckdb" not in line]
    assert max(map(len, lines)) <= 88
    assert "FROM 'samples.parquet' WHERE metric = " in text


def test_what_hosts_of_one_machine_read_alike_is_told_of_one_that_did() -> None:
    """A fact of a shared machine names a host with samples where the first host's are missing."""
    build = crawl_bound_by_search()
    build.samples = [row for row in build.samples if row[2] != "web1" or not row[3].startswith("pressure.")]
    verdict = judged(build)
    assert [fact.fact for fact in told(verdict) if fact.value is not None and not fact.samples] == []
    assert "pressure.cpu_ratio" in {fact.metric for fact in told(verdict)}
