"""Runs with a rising load: the bottleneck, the judged part, and the highest load within objectives."""

from __future__ import annotations

import numpy as np
import pytest
from harness.analysis.build import Build, Floats
from harness.analysis.test_shapes import told
from harness.analysis.verdicts import judged

from pinchpoint.analysis import exit_status
from pinchpoint.report.verdict_tables import level_words, objectives

EACH_S = 20
WARM_UP_S = 10


def over_time(levels: Floats) -> Floats:
    """Return one value per second: zero during the warm-up, then each level for its duration."""
    return np.concatenate([np.zeros(WARM_UP_S), np.repeat(levels, EACH_S)])


def climb(levels: Floats, cap: float, *, witness: bool = True, unit: str = "per_s", seed: int = 1) -> Build:
    """Build a database whose two cores saturate at ``cap`` operations per second."""
    build = Build(measure_s=EACH_S * len(levels), warm_up_s=WARM_UP_S, seed=seed)
    build.host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    offered = over_time(levels if unit == "per_s" else levels * 20.0)
    done = np.minimum(offered, cap)
    used = np.minimum(1.0, 0.02 + 0.97 * done / cap)
    waits = np.where(offered > cap, 0.9, 0.3 * used) if witness else None
    build.cpu("sql1", used, used, cores=(0, 1), pressure=waits, noise=0.01)
    build.disk("sql1", "sdb", done, 0.0005)
    build.steps("orders", "sql-mix", levels, EACH_S, unit)
    takes = np.where(offered > cap, 0.4, 0.004)
    if unit == "users":
        users = over_time(levels)
        takes = users / np.maximum(done, 1)
        build.metric("generator1", "generator.users", users, "orders", 0.0)
    build.operations("orders", "log_append", done, takes, noise=0.01)
    rates = {"orders": (offered, done)} if unit == "per_s" else {}
    return build.generator(**rates)  # type: ignore[arg-type]  # one value a second is as good as a number


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_climb_to_saturation_names_the_cause_with_high_confidence(seed: int) -> None:
    """A load in steps gives all four kinds of evidence, and therefore high confidence."""
    levels = np.arange(100.0, 900.0, 100.0)
    verdict = judged(climb(levels, 600, seed=seed).objective(scenario="orders", p95_s=0.05))
    found = verdict.bottleneck
    assert found is not None, verdict.summary
    assert (found.kind, found.tier, found.confidence) == ("cpu", "sql", "high"), found.why_not_more
    assert {fact.evidence for fact in found.evidence} >= {"E1", "E2", "E3", "E4"}
    [ceiling] = [fact for fact in found.evidence if fact.evidence == "E3"]
    assert ceiling.value == pytest.approx(600, rel=0.05)
    assert verdict.knee["found"]
    assert verdict.knee["level"] == 600
    assert "600/s" in verdict.knee["why"]
    # The judged part begins at the knee, where the CPU was already saturated: 600/s to 800/s.
    assert found.window is not None
    assert (found.window[0][14:19], found.window[1][14:19]) == ("01:52", "02:50")


@pytest.mark.parametrize(("first_s", "outcome"), [(0.004, "inconclusive"), (50 / 600, "invalid")])
def test_a_quota_nobody_watches_is_not_called_the_generators_fault(first_s: float, outcome: str) -> None:
    """An unobserved quota that limits the farm at 600/s does not make the run invalid.

    Where operations take twenty times as long as at first, the farm delayed the sessions. Where they always
    took that long, 50 sessions can never do more, and the generator is the limit.
    """
    levels = np.arange(100.0, 900.0, 100.0)
    offered = over_time(levels)
    done = np.minimum(offered, 600)
    build = Build(measure_s=EACH_S * len(levels), warm_up_s=WARM_UP_S)
    build.host("sql1", "sql", cores=(0, 1, 2, 3), disks={"log": "sdb"})
    build.cpu("sql1", 0.02 + 0.2 * done / 600, cores=(0, 1, 2, 3), noise=0.01)
    build.disk("sql1", "sdb", done, 0.0005).steps("orders", "sql-mix", levels, EACH_S)
    takes = np.where(offered > 600, 50 / 600, first_s)
    build.operations("orders", "log_append", done, takes, noise=0.01, dropped=np.maximum(0, offered - 600))
    build.sessions("sql1", 20.0)
    verdict = judged(build.generator(orders=(offered, done)))  # type: ignore[arg-type]  # as above
    assert verdict.outcome == outcome, verdict.summary
    if outcome == "inconclusive":
        assert "operations of orders took 3.85 ms at 100/s and 83" in verdict.summary
        assert "CPU limit" in str(verdict.experiment)
    else:
        assert verdict.bottleneck is not None
        assert verdict.bottleneck.kind == "generator"


def test_operations_that_never_started_miss_an_objective() -> None:
    """Operations that never started count as failures and as infinite times for the objectives."""
    levels = np.arange(100.0, 900.0, 100.0)
    build = climb(levels, 600).operations(
        "orders", "log_append", 0.0, 0.004, dropped=np.maximum(0, over_time(levels) - 600)
    )
    for figure in ({"errors_ratio": 0.01}, {"p50_s": 3.0}, {"p95_s": 3.0}):
        build.objective(scenario="orders", **figure)
    verdict = judged(build)
    errors, p50, p95 = verdict.objectives
    assert (errors["result"], errors["value"]) == ("met up to 600/s", 0.0)
    assert p50["holds"] == "met up to 800/s, the highest there was"
    assert (p95["result"], p95["holds"]) == ("met up to 600/s", "met up to 600/s, not at 700/s")
    assert verdict.objectives_held["orders"]["level"] == 600
    assert verdict.headroom.objectives_per_s == pytest.approx(600, rel=0.02)


def test_one_level_that_was_not_kept_up_says_how_much_never_started() -> None:
    """900 of 1,000/s started: errors are 10 %, the p95 is infinite, and the median is unchanged."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.99).open("orders", "sql-mix", 1000)
    build.operations("orders", "log_append", 900, 0.01, noise=0.0, dropped=100.0)
    for figure in ({"errors_ratio": 0.01}, {"p95_s": 1.0}, {"p50_s": 1.0}):
        build.objective(scenario="orders", **figure)
    verdict = judged(build.generator(orders=(1000, 900)))
    missed = "missed; 10 % of its operations never started"
    assert [(row["result"], row["met"]) for row in verdict.objectives[:2]] == [(missed, False)] * 2
    assert verdict.objectives[0]["value"] == pytest.approx(0.1)
    assert verdict.objectives[1]["value"] is None
    assert verdict.objectives[2]["result"] == "met"
    measured = [row["measured"] for row in objectives(verdict.to_json()).rows]
    assert measured[:2] == ["10 %", "infinite"]


def test_a_climb_that_ends_in_a_miss_has_met_its_objective_up_to_there() -> None:
    """In a load in steps an objective is met up to the last level that met it, with exit status 0."""
    build = climb(np.arange(100.0, 900.0, 100.0), 600)
    build.objective(scenario="orders", p95_s=0.05).objective(scenario="orders", throughput_per_s=550)
    verdict = judged(build)
    p95, throughput = verdict.objectives
    assert (p95["met"], p95["result"]) == (True, "met up to 600/s")
    assert p95["value"] < 0.05
    assert throughput["met"] is True
    assert throughput["value"] == pytest.approx(600, rel=0.02)
    assert verdict.objectives_held["orders"]["level"] == 600
    assert verdict.objectives_held["orders"]["all_held"] is False
    assert "The objectives of orders were met up to 600/s." in verdict.summary
    assert exit_status(verdict) == 0


@pytest.mark.parametrize(("wanted", "reached"), [(700.0, False), (1000.0, False), (550.0, True)])
def test_a_throughput_that_no_level_reaches_is_said_where_the_rest_held(
    wanted: float, *, reached: bool
) -> None:
    """A throughput goal above every level is reported beside the objectives that were met."""
    build = climb(np.arange(100.0, 900.0, 100.0), 600)
    verdict = judged(build.objective(scenario="orders", p95_s=0.05, throughput_per_s=wanted))
    held = verdict.objectives_held["orders"]
    assert (held["level"], held["never_per_s"]) == (600, None if reached else wanted)
    but = "" if reached else f", except for the goal of {wanted:,.0f}/s: no level reached it"
    assert f"The objectives of orders were met up to 600/s{but}." in verdict.summary
    assert ("no level reached it" in verdict.headroom.why) is not reached
    [sentence] = [one for one in level_words(verdict.to_json()) if "objectives" in one]
    assert ("; no level reached the" in sentence) is not reached


def test_an_objective_that_no_level_meets_is_missed() -> None:
    """An objective that no level meets is missed, with exit status 1."""
    build = climb(np.arange(100.0, 900.0, 100.0), 600).objective(scenario="orders", p95_s=0.001)
    verdict = judged(build)
    assert verdict.objectives[0]["result"] == "missed, from 100/s on"
    assert verdict.objectives_held["orders"]["level"] is None
    assert "met at no level" in verdict.summary
    assert exit_status(verdict) == 1


def test_a_climb_that_is_followed_to_its_end_reached_nothing() -> None:
    """A load in steps without a knee or a saturated resource gives its highest level as capacity."""
    verdict = judged(climb(np.arange(100.0, 500.0, 50.0), 2000).objective(scenario="orders", p95_s=1.0))
    assert verdict.outcome == "not_reached", verdict.summary
    assert verdict.knee["found"] is False
    assert verdict.capacity_at_least_per_s["orders"] == pytest.approx(450, rel=0.03)
    assert "met up to 450/s, the highest there was" in verdict.summary


def test_a_closed_climb_is_judged_with_the_users_it_had() -> None:
    """A closed load in steps is judged with the users of the levels after the knee."""
    verdict = judged(climb(np.arange(5.0, 65.0, 5.0), 600, unit="users"))
    assert verdict.outcome == "bottleneck", verdict.summary
    assert verdict.knee["found"]
    assert verdict.knee["level"] == pytest.approx(30, abs=5)
    assert "users" in verdict.knee["why"]
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.confidence == "high", verdict.bottleneck.why_not_more


def test_few_levels_add_no_evidence() -> None:
    """Four levels are too few for a knee, so the confidence is medium at most."""
    verdict = judged(climb(np.array([200.0, 400.0, 600.0, 800.0]), 600))
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.confidence != "high"
    assert not {"E2", "E3"} & {fact.evidence for fact in verdict.bottleneck.evidence}
    assert "4 load levels, and at least 6 are needed" in verdict.knee["why"]


def test_a_soak_tells_what_changed_over_it() -> None:
    """A soak reports a trend for falling memory and rising times, and none for steady figures."""
    build = Build(measure_s=600, warm_up_s=0).host("sql1", "sql", disks={"log": "sdb"}).cpu("sql1", 0.3, 0.3)
    build.metric("sql1", "mem.available_bytes", np.linspace(8e9, 5e9, 600), noise=0.02)
    build.disk("sql1", "sdb", 200, 0.001)
    build.soak("orders", "sql-mix", 200).operations(
        "orders", "log_append", 200, np.linspace(0.002, 0.004, 600)
    )
    drift = {(row["of"], row["metric"]): row for row in judged(build.generator()).drift}
    memory = drift["sql1", "mem.available_bytes"]
    assert memory["trend"] == "falls"
    assert memory["change_ratio"] == pytest.approx(-0.35, abs=0.05)
    assert drift["orders", "p50_s"]["trend"] == "rises"
    for steady in (("orders", "throughput_per_s"), ("orders", "error_ratio"), ("sql1", "cpu.busy_ratio")):
        assert drift[steady]["trend"] == "steady"


def test_only_a_soak_has_a_drift() -> None:
    """Another load than a soak has no drift table."""
    build = Build(measure_s=60).host("sql1", "sql").cpu("sql1", 0.3, 0.3).open("orders", "sql-mix", 50)
    assert judged(build.operations("orders", "log_append", 50, 0.002).generator()).drift == ()


def test_of_a_ramp_what_follows_it_is_judged() -> None:
    """After a ramp of 300 s, the following minute at full load is judged."""
    build = Build(measure_s=360, warm_up_s=WARM_UP_S).host("sql1", "sql").cpu("sql1", 0.3, 0.3)
    rate = np.concatenate([np.zeros(WARM_UP_S), np.linspace(0, 400, 300), np.full(60, 400.0)])
    build.ramp("orders", "sql-mix", 400, 300).operations("orders", "log_append", rate, 0.002, noise=0.02)
    verdict = judged(build.generator())
    assert verdict.capacity_at_least_per_s["orders"] == pytest.approx(400, rel=0.03)
    assert not any("did not settle" in warning for warning in verdict.warnings)


def test_without_a_knee_all_levels_at_which_it_was_full_are_judged() -> None:
    """Without a knee, all levels with a saturated CPU are judged: 36 s here, not 18 s."""
    levels = np.array([100.0, 200.0, 300.0, 400.0, 500.0, 595.0, 610.0])
    verdict = judged(climb(levels, 600))
    assert verdict.knee["found"] is False
    found = verdict.bottleneck
    assert found is not None, verdict.summary
    assert found.kind == "cpu"
    assert found.window is not None
    assert (found.window[0][14:19], found.window[1][14:19]) == ("01:52", "02:30")


def test_levels_that_are_judged_together_are_no_transient() -> None:
    """Levels judged together are not cut as a transient, although their throughput rises."""
    levels = np.arange(100.0, 900.0, 100.0)
    build = climb(levels, 1000)
    full = np.where(over_time(levels) > 550, 0.97, 0.4)
    build.samples = [row for row in build.samples if row[3] not in {"cpu.busy_ratio", "pressure.cpu_ratio"}]
    build.cpu("sql1", full, full, cores=(0, 1), pressure=np.where(full > 0.9, 0.9, 0.2), noise=0.005)
    verdict = judged(build)
    assert verdict.bottleneck is not None, verdict.summary
    [stage] = verdict.stages
    assert (stage["cut_s"], stage["samples"]) == (0, 3 * EACH_S - 2)
    assert not any("left out" in warning for warning in verdict.warnings)


def test_commits_that_share_their_writes_go_on_where_the_log_is_at_its_cap() -> None:
    """At a capped log, group commit still raises throughput: no knee, and unknown headroom."""
    levels = np.array([50.0, 100.0, 180.0, 400.0, 800.0, 1200.0, 1600.0, 2000.0])
    offered = over_time(levels)
    build = Build(measure_s=EACH_S * len(levels), warm_up_s=WARM_UP_S)
    build.host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"}, limits={"log": {"iops": 220.0}})
    build.cpu("sql1", offered / 5000, offered / 5000, cores=(0, 1), noise=0.01)
    written = np.minimum(offered, 220.0)
    build.disk("sql1", "sdb", written, np.where(offered > 220, 0.0045, 0.0006), 0.004, busy=1.0, pressure=0.9)
    build.steps("orders", "sql-mix", levels, EACH_S)
    build.operations("orders", "log_append", offered, np.where(offered > 220, 0.008, 0.001), noise=0.01)
    verdict = judged(build.generator(orders=(offered, offered)))  # type: ignore[arg-type]  # one a second
    assert verdict.knee["found"] is False
    found = verdict.bottleneck
    assert found is not None
    assert (found.role, found.confidence) == ("log", "low")
    assert "throughput went on rising while it was saturated" in " ".join(found.why_not_more)
    assert verdict.headroom_ratio is None


def test_every_fact_of_a_climb_rests_on_samples() -> None:
    """Every fact about a load in steps has samples; the waiting for CPU comes from host pressure."""
    verdict = judged(climb(np.arange(100.0, 900.0, 100.0), 600))
    grown = [fact for fact in told(verdict) if fact.evidence == "E2" and fact.value is not None]
    assert grown
    assert [fact.fact for fact in told(verdict) if fact.value is not None and not fact.samples] == []


def test_what_waits_alike_at_all_levels_did_not_grow_with_the_load() -> None:
    """Waits that are equal at all levels are no E2: neither locks nor cores used by others."""
    levels = np.arange(100.0, 900.0, 100.0)
    build = climb(levels, 600)
    build.samples = [row for row in build.samples if row[3] not in {"cpu.busy_ratio", "pressure.cpu_ratio"}]
    build.cpu("sql1", 0.99, 0.99, cores=(0, 1), pressure=0.9, noise=0.0)
    found = told(judged(build.sessions("sql1", 5.0)))
    assert found
    assert not [fact.fact for fact in found if "nan" in fact.fact]
    assert not [fact for fact in found if fact.evidence == "E2" and fact.metric == "pressure.cpu_ratio"]


@pytest.mark.parametrize("levels", [8, 3], ids=["a knee to be looked for", "too few for one"])
def test_levels_too_short_for_the_steps_of_a_run_of_hours_are_left_out(levels: int) -> None:
    """Levels of 15 s in steps of 10 s are left out where no whole step lies in them."""
    each_s = 15
    build = Build(measure_s=3800, warm_up_s=WARM_UP_S).host("sql1", "sql").cpu("sql1", 0.4, 0.4)
    offered = np.arange(1.0, levels + 1) * 50
    rate = np.full(build.seconds, offered[0])
    rate[-levels * each_s :] = np.repeat(offered, each_s)
    build.steps("orders", "sql-mix", offered, each_s)
    build.operations("orders", "log_append", rate, 0.002, noise=0.01)
    verdict = judged(build.generator(orders=(rate, rate)))  # type: ignore[arg-type]  # one value a second
    [said] = [warning for warning in verdict.warnings if "too short to judge" in warning]
    assert f"of {levels} levels of orders" in said
    assert "hold each for 30 s or more" in said
    assert 0 < len(verdict.levels) < levels
    assert all(row["throughput_per_s"] for row in verdict.levels)


def test_levels_none_of_which_was_long_enough_tell_nothing() -> None:
    """If no level was long enough, the run is inconclusive, and the generator is not at fault."""
    build = Build(measure_s=3800, warm_up_s=WARM_UP_S).host("sql1", "sql").cpu("sql1", 0.4, 0.4)
    build.steps("orders", "sql-mix", np.array([50.0]), 9)
    build.operations("orders", "log_append", 50, 0.002)
    verdict = judged(build.objective(scenario="orders", p95_s=1.0).generator(orders=(50, 50)))
    assert verdict.outcome == "inconclusive", verdict.summary
    assert verdict.levels == ()
    assert any("1 of 1 levels of orders" in warning for warning in verdict.warnings)


def test_a_time_of_what_never_started_at_all_is_missed() -> None:
    """If no operation ends at any level, a p95 objective is missed."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.02).open("orders", "sql-mix", 200)
    build.operations("orders", "log_append", 0, 0.01, dropped=200.0).objective(scenario="orders", p95_s=1.0)
    verdict = judged(build.generator(orders=(200, 0)))
    [row] = verdict.objectives
    assert (row["met"], row["value"]) == (False, None)
    assert row["result"] == "missed; 100 % of its operations never started"
    assert exit_status(verdict) in (1, 3)


def test_a_throughput_that_was_never_done_held_at_no_level() -> None:
    """A throughput goal of 500/s was met at no level where the highest throughput was 400/s."""
    levels = np.arange(100.0, 900.0, 100.0)
    verdict = judged(climb(levels, 400).objective(scenario="orders", throughput_per_s=500.0))
    assert verdict.objectives_held["orders"]["level"] is None
    assert "The objectives of orders were met at no level." in verdict.summary
    assert verdict.headroom_ratio is None
    assert (
        verdict.headroom.why == "the objectives of orders were met at no level: that rate was never reached"
    )
    enough = judged(climb(levels, 600).objective(scenario="orders", throughput_per_s=500.0))
    assert enough.objectives_held["orders"]["level"] == 800
