"""Decisions during a run from its figures: settled, saturated, objective missed, guard broken."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest

from pinchpoint.loadgen.latency_bins import binned
from pinchpoint.plan import Objective, SilenceRule, StopRule
from pinchpoint.run.phases import settled
from pinchpoint.run.recent_seconds import LATE_S, RecentSeconds, Reported
from pinchpoint.run.step_controller import HeldStep, missed, saturated
from pinchpoint.run.stop_rules import RuleOutcome, Silence, StopRules
from pinchpoint_collectors.record import Sample


def reported(
    ok: int, p95_s: float | None = 0.01, failed: int = 0, dropped: int = 0, seconds: float = 5
) -> Reported:
    return Reported(seconds, ok, failed, dropped, p95_s)


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (reported(500), reported(510), True),
        (reported(500), reported(700), False),  # still getting faster
        # the schedule keeps the rate constant, and the times still fall
        (reported(500, 0.1), reported(500, 0.01), False),
        (reported(20), reported(26), True),  # the difference is within chance for so few operations
        (reported(0, None), reported(0, None), False),  # no operation has ended yet
        (reported(500, math.inf), reported(500, math.inf), True),  # both are overloaded
        (reported(500, 0.1), reported(500, math.inf), False),
    ],
)
def test_a_load_has_settled_when_two_stretches_are_alike(
    before: Reported, after: Reported, same: bool
) -> None:
    """A load has settled when two stretches have equal rates (10 %, or chance) and times (25 %)."""
    assert settled(before, after) is same


def steps(*pairs: tuple[float, float]) -> list[HeldStep]:
    return [HeldStep(level, reported(round(rate * 10), seconds=10)) for level, rate in pairs]


def test_an_open_load_is_saturated_when_two_levels_are_not_served() -> None:
    """An open load is saturated after two unserved levels in a row, not after one."""
    good = [(50, 50), (100, 99), (150, 149)]
    assert saturated(steps(*good), closed=False) is None
    assert saturated(steps(*good, (200, 160)), closed=False) is None
    why = saturated(steps(*good, (200, 160), (250, 160)), closed=False)
    assert why is not None
    assert "160/s of 250/s" in why


def test_a_closed_load_is_saturated_when_users_bring_nothing_more() -> None:
    """A closed load is saturated when more users add less than a tenth of the first ones, twice."""
    climb = [(4, 40), (8, 80), (12, 110)]
    assert saturated(steps(*climb), closed=True) is None
    assert saturated(steps(*climb, (16, 112)), closed=True) is None
    assert saturated(steps(*climb, (16, 112), (20, 113)), closed=True) is not None
    assert saturated(steps(*climb, (16, 100), (20, 80)), closed=True) is not None  # it even falls


def test_a_few_independent_arrivals_less_are_chance() -> None:
    """45 of 56 offered operations are within chance for Poisson arrivals and no saturation."""
    few = [HeldStep(level, reported(round(level * 14 * 0.8), seconds=14)) for level in (2.0, 3.0, 4.0, 5.0)]
    assert saturated(few, closed=False) is None
    many = [HeldStep(level, reported(round(level * 14 * 0.8), seconds=14)) for level in (200.0, 300.0, 400.0)]
    assert saturated(many, closed=False) is not None


def test_times_that_explode_are_the_end_of_an_open_load() -> None:
    """Times ten times as long, twice, saturate an open load but not a closed one."""
    climb = [
        HeldStep(n * 10, Reported(10, n * 100, 0, 0, 0.1, p50_s=0.01 * (1, 1, 11, 12)[n - 1]))
        for n in range(1, 5)
    ]
    why = saturated(climb, closed=False)
    assert why is not None
    assert "10 times as long" in why
    assert saturated(climb[:3], closed=False) is None
    assert saturated(climb, closed=True) is None


def test_an_objective_is_missed_by_what_is_told_live() -> None:
    """A missed objective is found live: percentiles, errors and throughput."""
    step = HeldStep(100, Reported(10, 850, 5, 5, p95_s=0.06, p50_s=0.02, p99_s=0.2))
    for name, value in (("p50", 0.02), ("p95", 0.06), ("p99", 0.2)):
        assert missed(step, [Objective(scenario="s", **{f"{name}_s": value * 0.9})]) == name
        assert missed(step, [Objective(scenario="s", **{f"{name}_s": value * 1.1})]) is None
    assert missed(step, [Objective(scenario="s", errors_ratio=0.005)]) == "errors"
    assert missed(step, [Objective(scenario="s", errors_ratio=0.05)]) is None
    assert missed(step, [Objective(scenario="s", throughput_per_s=100)]) == "throughput"
    assert missed(step, [Objective(scenario="s", throughput_per_s=200)]) is None, "not offered yet"
    assert missed(step, [Objective(scenario="s", throughput_per_s=100)], closed=True) is None
    assert (
        missed(HeldStep(100, reported(0, None)), [Objective(scenario="s", p95_s=1)]) == "nothing got through"
    )


def test_a_time_has_as_many_seconds_however_late_each_is_told() -> None:
    """Seconds that are reported late in one batch still count as the seconds they cover."""
    heard, first_s = RecentSeconds(), int(time.time()) - 30
    for second in range(30):
        heard.second({"orders": {**SECOND, "before_s": first_s + second, "ok": 100}})
    origin = first_s - time.time() + time.monotonic()
    for begun in (0.0, 0.2, 0.5, 0.8, 7.3):
        assert heard.between(["orders"], origin + begun, origin + begun + 14).ok == 1400


def test_a_clock_set_forward_ends_nobody_who_listens() -> None:
    """After the clock is set forward by an hour, new reports are still counted."""
    heard = RecentSeconds()
    heard.second({"orders": {**SECOND, "before_s": time.time() - 3600, "ok": 1}})
    begun = time.monotonic()
    heard.second({"orders": {**SECOND, "before_s": time.time() + 0.5, "ok": 2}})
    assert heard.between(["orders"], begun, begun + 1).ok == 2


def test_percentiles_of_seconds_and_workers_are_those_of_all_operations() -> None:
    """Percentiles over seconds and workers come from merged bins, within half a percent."""
    random, heard = np.random.default_rng(1), RecentSeconds()
    parts = [random.lognormal(size, 0.5, 3000) * 1e6 for size in (0.0, 0.1, 3.0)]
    begun = time.monotonic()
    for part in parts:
        figures = {**SECOND, "before_s": time.time() + 0.5, "ok": len(part), "skipped": 1}
        heard.second({"orders": {**figures, "times": binned(part.astype(np.int64))}})
    found = heard.between(["orders"], begun, time.monotonic() + 1)
    assert (found.ok, found.skipped, found.error_ratio) == (9000, 3, 0.0)
    every = np.concatenate(parts) / 1e9
    assert found.p50_s == pytest.approx(np.percentile(every, 50), rel=0.01)
    assert found.p95_s == pytest.approx(np.percentile(every, 95), rel=0.01)
    assert found.p99_s == pytest.approx(np.percentile(every, 99), rel=0.01)


def test_what_never_started_has_taken_endlessly_long() -> None:
    """Operations that never started count as infinitely long in the live percentiles."""
    heard, begun = RecentSeconds(), time.monotonic()
    times = binned(np.arange(1, 941) * 1_000_000)
    figures = {**SECOND, "before_s": time.time() + 0.5, "ok": 940, "dropped": 60, "times": times}
    heard.second({"orders": figures})
    found = heard.between(["orders"], begun, time.monotonic() + 1)
    assert found.p50_s == pytest.approx(0.5, rel=0.01)
    assert (found.p95_s, found.p99_s) == (math.inf, math.inf)
    assert found.error_ratio == 0.06
    step = HeldStep(1000, found)
    assert (
        missed(step, [Objective(scenario="s", p50_s=0.6), Objective(scenario="s", errors_ratio=0.07)]) is None
    )
    assert missed(step, [Objective(scenario="s", errors_ratio=0.05)]) == "errors"
    assert missed(step, [Objective(scenario="s", p95_s=3600)]) == "p95"


class Clock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


SECOND: dict[str, Any] = {
    "ok": 0,
    "failed": 0,
    "skipped": 0,
    "dropped": 0,
    "p95_s": 0.01,
    "times": [[1], [90]],
}

HOSTS: dict[str, Any] = {
    "sql1": {
        "tier": "sql",
        "tier_cores": [0],
        "roles": {"log": {"device": "loop1"}, "data": {"device": "loop2"}},
    },
    "web1": {"tier": "web", "roles": {}},
}


def watch(rule: StopRule, values: list[tuple[str, str, float | None]]) -> tuple[StopRules, Clock]:
    """Pass one reading per second of a rule's metric: (host, instance, value)."""
    clock = Clock()
    rules = StopRules([rule], HOSTS, ["orders"], RecentSeconds(), clock)
    for host, instance, value in values:
        rules.samples([Sample(0, 1.0, host, rule.metric, instance, value)])
        clock.now += 1
    return rules, clock


def test_a_rule_is_broken_after_its_time_without_a_break() -> None:
    """A guard breaks after its time above the limit; a value below restarts the time, a null does not."""
    rule = StopRule(metric="disk.write_latency_s", above=0.5, for_s=5, role="log")
    slow = [("sql1", "loop1", 0.6)] * 5
    rules, _ = watch(rule, [*slow, ("sql1", "loop1", 0.7)])
    ended = rules.broken()
    assert ended is not None
    said = ended.why
    assert "disk.write_latency_s on sql1 (loop1) was above 500 ms for 5 s (now 700 ms)" in said
    assert watch(rule, [*slow[:3], ("sql1", "loop1", 0.1), *slow[:4]])[0].broken() is None
    assert watch(rule, [*slow[:3], ("sql1", "loop1", None), *slow[:3]])[0].broken() is not None


def test_one_bad_reading_and_silence_break_no_rule() -> None:
    """One bad reading followed by nulls or silence does not break a guard."""
    rule = StopRule(metric="disk.write_latency_s", above=0.5, for_s=60, role="log")
    rules, clock = watch(rule, [("sql1", "loop1", 0.6), *[("sql1", "loop1", None)] * 120])
    assert rules.broken() is None
    clock.now += 3600
    assert rules.broken() is None


def test_a_rule_hears_only_of_what_it_names() -> None:
    """A guard ignores other roles' disks, other tiers' CPU, and single cores."""
    log = StopRule(metric="disk.write_latency_s", above=0.5, for_s=2, role="log")
    assert watch(log, [("sql1", "loop2", 0.9)] * 5)[0].broken() is None
    sql = StopRule(metric="cpu.busy_ratio", above=0.9, for_s=2, tier="sql")
    assert watch(sql, [("sql1", "tier:sql", 0.95)] * 5)[0].broken() is not None
    assert watch(sql, [("web1", "tier:web", 0.95)] * 5)[0].broken() is None
    whole = StopRule(metric="cpu.busy_ratio", above=0.9, for_s=2, tier="web")  # a host without other tiers
    assert watch(whole, [("web1", "", 0.95)] * 5)[0].broken() is not None
    anyone = StopRule(metric="cpu.busy_ratio", above=0.9, for_s=2)
    assert watch(anyone, [("web1", "", 0.95)] * 5)[0].broken() is not None
    assert watch(anyone, [("web1", "0", 0.95)] * 5)[0].broken() is None
    memory = StopRule(metric="mem.available_ratio", below=0.05, for_s=2, host="web1")
    assert watch(memory, [("web1", "", 0.01)] * 5)[0].broken() is not None
    assert watch(memory, [("sql1", "", 0.01)] * 5)[0].broken() is None


def test_errors_break_a_rule_over_its_time() -> None:
    """Failed and dropped operations break a guard once its whole time has passed."""
    heard, clock = RecentSeconds(), time.monotonic
    rule = StopRule(metric="error_ratio", above=0.05, for_s=1)
    begun = clock()
    rules = StopRules([rule], HOSTS, ["orders"], heard)
    while clock() - begun < 1.2 + LATE_S + 1:
        heard.second({"orders": {**SECOND, "before_s": time.time(), "ok": 90, "failed": 8, "dropped": 2}})
        time.sleep(0.1)
    ended = rules.broken()
    assert ended is not None
    said = ended.why
    assert "error_ratio of all scenarios was above 5 % for 1 s (now 10 %)" in said
    other = StopRule(metric="error_ratio", above=0.05, for_s=1, scenario="crawl")
    assert StopRules([other], HOSTS, ["orders"], heard, lambda: clock() + 0).broken() is None


def test_a_rule_whose_metric_never_had_a_value_is_named() -> None:
    """A guard whose metric never had a value is named, because it protected nothing."""
    disk = StopRule(metric="disk.write_latency_s", above=0.5, for_s=2, tier="sql", role="log")
    sentence = (
        "stop_when[0]: disk.write_latency_s of tier sql, role log was not measured: this rule could not end "
        "the run"
    )
    rules, clock = watch(disk, [("sql1", "loop1", None), ("sql1", "loop2", 0.1)])
    assert rules.not_measured() == [RuleOutcome(0, sentence)]
    assert not rules.due
    clock.now += 60
    assert rules.due
    rules.samples([Sample(0, 1.0, "sql1", disk.metric, "loop1", 0.0)])
    assert rules.not_measured() == []


def test_operations_are_silent_once_none_has_completed_for_the_time() -> None:
    """Operations count as silent from the load's begin, while the load goes on; failures do not count."""
    heard = RecentSeconds()
    now_ns = time.time_ns()
    rule = SilenceRule(silent="operations", for_s=5)
    rules = StopRules([rule], HOSTS, ["orders", "crawl"], heard)
    assert rules.broken({}) is None, "no load has begun"
    assert rules.not_measured() == [
        RuleOutcome(
            0, "stop_when[0]: the silence of operations was not measured: this rule could not end the run"
        )
    ]
    assert rules.broken({"orders": now_ns - 6 * 10**9}) is None, "its last seconds are reported later"
    begun = {"orders": now_ns - 8 * 10**9}
    said = "stop_when: no operation of any scenario completed for 5 s"
    assert rules.broken(begun) == RuleOutcome(0, said)
    heard.second({"orders": {**SECOND, "before_s": time.time() - 3, "failed": 4, "dropped": 2}})
    assert rules.broken(begun) == RuleOutcome(0, f"{said} (4 failed, 2 could not start)")
    heard.second({"crawl": {**SECOND, "before_s": time.time() - 3, "ok": 1}})
    assert rules.broken(begun | {"crawl": now_ns}) is None
    only = SilenceRule(silent="operations", for_s=5, scenario="orders")
    found = StopRules([only], HOSTS, ["orders", "crawl"], heard).broken(begun | {"crawl": now_ns})
    assert found is not None
    assert found.why == "stop_when: no operation of orders completed for 5 s (4 failed, 2 could not start)"
    assert rules.not_measured() == []


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({}, "the collector postgres of sql1 gave no reading for 10 s: it is gone"),
        ({"host": "sql1"}, "the collector postgres of sql1 gave no reading for 10 s: it is gone"),
        (
            {"tier": "web"},
            "the collector ssh of web1 gave no reading for 10 s: its last reading has not ended",
        ),
        ({"host": "sql1", "tier": "web"}, None),
        ({"for_s": 60}, None),
    ],
)
def test_a_collector_that_gives_no_reading_ends_the_run(rule: dict[str, Any], said: str | None) -> None:
    """A collector that fails or hangs on the guard's hosts ends the run."""
    silences = [Silence("local", ("sql1",), 0.4, ""), Silence("postgres", ("sql1",), 12.0, "it is gone"),
                Silence("ssh", ("web1",), 30.0, "")]  # fmt: skip
    given: dict[str, Any] = {"silent": "collectors", "for_s": 10} | rule
    rules = StopRules([SilenceRule(**given)], HOSTS, [], RecentSeconds())
    assert rules.broken({}, silences) == (said and RuleOutcome(0, f"stop_when: {said}"))
    assert bool(rules.not_measured()) is ("host" in rule and "tier" in rule)


def test_a_rule_of_operations_is_measured_once_one_ended() -> None:
    """A guard on operations counts as measured after one operation, also in a short run."""
    heard = RecentSeconds()
    rules = StopRules([StopRule(metric="error_ratio", above=0.05, for_s=1)], HOSTS, ["orders"], heard)
    assert rules.broken() is None
    assert len(rules.not_measured()) == 1
    heard.second({"orders": {**SECOND, "before_s": time.time() - LATE_S - 0.5, "ok": 1}})
    assert rules.broken() is None
    assert rules.not_measured() == []
