"""The verdict of runs with a proof: windows of known truth after the measure phase."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from harness.analysis.build import START_S, Build, utc
from harness.report.example import screen

from pinchpoint.analysis import Verdict, analyse
from pinchpoint.base.clock import seconds_of
from pinchpoint.report import registry
from pinchpoint.report.report import gather
from pinchpoint.run.prove import ORDER, ORDER_WITH_CONTROL
from pinchpoint.store.read import StoredRun

WARM_UP_S, MEASURE_S, EACH_S, GAP_S = 10, 60, 6, 2
PROVE_S = START_S + WARM_UP_S + MEASURE_S + 5
LOG = {
    "kind": "disk_cap",
    "tier": "sql",
    "host": "sql1",
    "resource": "disk",
    "instance": "loop1",
    "role": "log",
}
CHANGE = {"what": "the log disk of sql", "ratio": 0.75, "of": "capacity"}


def windows(order: tuple[str, ...]) -> list[dict[str, Any]]:
    found = []
    for number, kind in enumerate(order):
        begin_s = PROVE_S + GAP_S + number * (EACH_S + GAP_S)
        found.append({"what": kind, "from": utc(begin_s), "to": utc(begin_s + EACH_S)})
    return found


def proved(
    left: float, order: tuple[str, ...] = ORDER, control_left: float = 1.0, noise: float = 0.02, **proof: Any
) -> StoredRun:
    """Return a run with a log disk at its cap; throughput falls while it or the control is slower."""
    length_s = len(order) * (EACH_S + GAP_S) + 5
    build = Build(MEASURE_S + 5 + length_s)
    done = np.full(build.seconds, 500.0)
    for window in windows(order):
        begin = round(seconds_of(window["from"]) - START_S)
        left_then = {"slower": left, "control": control_left}.get(window["what"], 1.0)
        done[begin - GAP_S : begin + EACH_S] *= left_then
    build.host("sql1", "sql", cores=(0, 1), disks={"log": "loop1"}, limits={"log": {"iops": 500.0}})
    build.cpu("sql1", 0.3, 0.25, cores=(0, 1))
    build.disk("sql1", "loop1", done, 0.008, 0.004, busy=1.0, pressure=0.85)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", done, 8 / done, noise=noise)
    run = build.generator().run()
    run.manifest["phases"][1]["to"] = utc(START_S + WARM_UP_S + MEASURE_S)
    run.manifest["phases"].append({"name": "prove", "from": utc(PROVE_S), "to": utc(START_S + build.seconds)})
    given = {"suspect": LOG, "change": CHANGE, "control": None, "windows": windows(order)}
    run.manifest["proof"] = {**given, **proof}
    return run


def waited_for(think_s: float | None) -> StoredRun:
    """Return a run with commits of 100 ms that wait for the log, which is slower in turns.

    Args:
        think_s: think time of twenty users in seconds; None: an open load of 20/s, all served.
    """
    build = Build(MEASURE_S + 5 + len(ORDER) * (EACH_S + GAP_S) + 5)
    takes_s = np.full(build.seconds, 0.1)
    for window in windows(ORDER):
        if window["what"] == "slower":
            begin = round(seconds_of(window["from"]) - START_S)
            takes_s[begin - GAP_S : begin + EACH_S] /= CHANGE["ratio"]
    build.host("sql1", "sql", cores=(0, 1), disks={"log": "loop1"}).cpu("sql1", 0.05, cores=(0, 1))
    build.disk("sql1", "loop1", 0.95 / takes_s, takes_s, 0.1, busy=0.95, pressure=0.9)
    build.objective(scenario="orders", p95_s=0.05)
    if think_s is None:
        build.open("orders", "sql-mix", 20).operations("orders", "log_append", 20, takes_s)
        run = build.generator(orders=(20.0, 20.0)).run()
    else:
        build.closed("orders", "sql-mix", 20, think_s=think_s)
        build.operations("orders", "log_append", 20 / (takes_s + think_s), takes_s, noise=0.01)
        run = build.generator().run()
    run.manifest["phases"][1]["to"] = utc(START_S + WARM_UP_S + MEASURE_S)
    run.manifest["phases"].append({"name": "prove", "from": utc(PROVE_S), "to": utc(START_S + build.seconds)})
    suspect = {**LOG, "kind": "disk_latency"}
    run.manifest["proof"] = {
        "suspect": suspect,
        "change": CHANGE,
        "control": None,
        "windows": windows(ORDER),
    }
    return run


def proof_of(verdict: Verdict) -> Any:
    assert verdict.proof is not None
    return verdict.proof


def test_a_disk_at_its_cap_answers_in_proportion() -> None:
    """75 % of the cap gives 75 % of the throughput, which is a kind of evidence of its own."""
    verdict = analyse(proved(0.75))
    proof = proof_of(verdict)
    assert proof["result"] == "agrees"
    assert proof["measured_ratio"] == pytest.approx(0.75, abs=0.03)
    assert proof["predicted_ratio"] == pytest.approx(0.75, abs=0.01)
    assert proof["ci95"][0] < 0.75 < proof["ci95"][1]
    assert proof["sensitivity"] == pytest.approx(1.0, abs=0.15)
    assert verdict.bottleneck is not None
    [fact] = [fact for fact in verdict.bottleneck.evidence if fact.evidence == "causal"]
    assert "75 % of its speed" in fact.fact


def test_agreement_raises_nothing_and_the_windows_are_not_judged() -> None:
    """A confirming proof does not change the verdict, which uses the measure phase alone."""
    run = proved(0.75)
    verdict = analyse(run)
    without = {key: value for key, value in run.manifest.items() if key != "proof"}
    alone = analyse(replace(run, manifest=without))
    assert alone.proof is None
    assert alone.bottleneck is not None
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.confidence == alone.bottleneck.confidence
    assert (verdict.summary, verdict.scenarios, verdict.disks) == (
        alone.summary,
        alone.scenarios,
        alone.disks,
    )
    assert alone.scenarios["orders"]["throughput_per_s"] == pytest.approx(500, rel=0.02)


def test_users_who_think_are_held_up_by_what_they_wait_for_alone() -> None:
    """With 300 ms of think time, a third more waiting is a twelfth more per round."""
    proof = proof_of(analyse(waited_for(think_s=0.3)))
    assert proof["predicted_ratio"] == pytest.approx(0.4 / (0.3 + 0.1 / 0.75), abs=0.01)
    assert proof["measured_ratio"] == pytest.approx(proof["predicted_ratio"], abs=0.02)
    assert proof["result"] == "agrees", proof["why"]


def test_a_load_that_keeps_its_schedule_is_not_said_to_do_less() -> None:
    """At a served rate of 20/s the time per operation shows the effect, not the rate."""
    run = waited_for(think_s=None)
    verdict = analyse(run).to_json()
    assert verdict["proof"]["of"]["name"] == "operations_per_busy_s"
    assert verdict["proof"]["result"] == "agrees"
    report = gather(run, verdict)
    for text in (report.proof_words, report.tables["proof"].note):
        assert "he speed of operations" in text
        assert "hroughput" not in text


def test_a_suspect_that_does_not_answer_is_no_bottleneck() -> None:
    """A suspect without an effect is no longer named, and headroom and advice are dropped."""
    verdict = analyse(proved(1.0))
    assert proof_of(verdict)["result"] == "contradicts"
    assert verdict.outcome == "inconclusive"
    assert verdict.bottleneck is None
    assert verdict.candidates[-1].role == "log"
    assert verdict.candidates[-1].confidence is None
    assert "did not answer" in verdict.summary
    assert verdict.experiment is not None
    assert (verdict.headroom_ratio, verdict.next, verdict.advice) == (None, None, ())


def test_a_suspect_that_answers_a_little_is_doubted() -> None:
    """A third of the predicted effect keeps the name, with low confidence and the reason."""
    verdict = analyse(proved(0.91, noise=0.005))
    assert proof_of(verdict)["result"] == "contradicts"
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.confidence == "low"
    assert "did not answer" in verdict.bottleneck.why_not_more[-1]
    assert any("contradicts" in warning for warning in verdict.warnings)


def test_windows_in_which_nothing_got_through_are_not_left_out() -> None:
    """A slower window without any operation is not left out, so the proof is undecided."""
    run = proved(0.75)
    begin_s = seconds_of(next(one["from"] for one in windows(ORDER) if one["what"] == "slower"))
    there = pc.and_(
        pc.greater_equal(run.operations["time_s"], int(begin_s)),
        pc.less(run.operations["time_s"], int(begin_s) + EACH_S),
    )
    proof = proof_of(analyse(replace(run, operations=run.operations.filter(pc.invert(there)))))
    assert (proof["result"], proof["measured_ratio"]) == ("undecided", None)
    assert proof["why"] == "nothing got through in some of the windows"


def test_windows_that_differ_by_themselves_decide_nothing() -> None:
    """Noise larger than the effect gives an undecided proof and the same verdict."""
    verdict = analyse(proved(0.75, noise=0.9))
    assert proof_of(verdict)["result"] == "undecided"
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.confidence != "low"


@pytest.mark.parametrize(
    ("left", "control", "whole"), [(1.0, "agrees", "agrees"), (0.75, "contradicts", "undecided")]
)
def test_a_resource_with_room_is_the_control(left: float, control: str, whole: str) -> None:
    """A control resource must show no effect; if it does, the proof is undecided."""
    beside = {
        "suspect": {**LOG, "kind": "cpu", "resource": "cpu", "role": None, "utilisation_ratio": 0.3},
        "change": {"what": "the CPU of sql", "ratio": 0.75, "of": "capacity"},
    }
    proof = proof_of(analyse(proved(0.75, ORDER_WITH_CONTROL, control_left=left, control=beside)))
    assert proof["control"]["result"] == control
    assert proof["result"] == whole


def test_what_was_slower_must_be_what_the_verdict_names() -> None:
    """A proof of another resource than the verdict's is not used."""
    run = proved(1.0, suspect={**LOG, "role": "data", "instance": "loop2"})
    verdict = analyse(run)
    assert proof_of(verdict)["result"] == "undecided"
    assert "not what this verdict names" in proof_of(verdict)["why"]
    assert verdict.bottleneck is not None


@pytest.mark.parametrize("result", ["not_allowed", "not_supported", "nothing_to_prove", "failed"])
def test_what_was_not_proved_is_said_everywhere(result: str) -> None:
    """Terminal and report say that there was no proof, and why."""
    run = proved(1.0)
    run.manifest["proof"] = {"result": result, "why": "the farm does not allow it"}
    verdict = analyse(run).to_json()
    assert verdict["bottleneck"] is not None
    assert verdict["proof"]["measured_ratio"] is None
    for text in (screen(verdict), registry.FORMATS["md"](gather(run, verdict))):
        assert "Not proved" in text
        assert "he farm does not allow it" in text


def test_reports_show_the_test_with_its_control() -> None:
    """The report has a sentence and a table with predicted and measured effects."""
    beside = {
        "suspect": {**LOG, "kind": "cpu", "resource": "cpu", "role": None, "utilisation_ratio": 0.3},
        "change": {"what": "the CPU of sql", "ratio": 0.75, "of": "capacity"},
    }
    run = proved(0.75, ORDER_WITH_CONTROL, control=beside)
    verdict = analyse(run).to_json()
    report = gather(run, verdict)
    assert report.proof_words.startswith("Proved: throughput answers as the model says. Throughput came to 7")
    suspect, control = report.tables["proof"].cells()
    assert suspect[:3] == ["the log disk of sql", "75 %", "75 %"]
    assert suspect[-1] == control[-1] == "agrees"
    assert control[2] == "100 %"
    assert report.tables["incidents"].rows == []
    [finding] = report.findings
    [causal] = [each for each in finding.evidence if each.kind == "causal test"]
    assert f"time_s >= {PROVE_S + GAP_S} AND" in causal.query
    page = str(registry.FORMATS["html"](gather(run, verdict))).replace("\xa0", " ")
    assert report.proof_words in page
    assert 'data-table="proof"' in page
