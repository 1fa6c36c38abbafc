"""Gates: runs that are invalid as evidence about the farm, and valid runs that look similar."""

from __future__ import annotations

import re

import numpy as np
import pytest
from harness.analysis.build import MACHINE, START_S, Build, crawl_bound_by_search, shared_farm
from harness.analysis.verdicts import judged, named

from pinchpoint.analysis import exit_status
from pinchpoint_scenarios.contract import PAUSE


@pytest.mark.parametrize("cpu", [0.93, 0.99])
def test_a_generator_at_its_core_s_limit_invalidates(cpu: float) -> None:
    """A load worker at 90 % of its core or more makes the run invalid, with exit status 3."""
    build = crawl_bound_by_search()
    build.generator(cpu=cpu, host="generator2")
    verdict = judged(build)
    assert verdict.outcome == "invalid"
    assert verdict.bottleneck is not None
    assert (verdict.bottleneck.kind, verdict.bottleneck.host) == ("generator", "generator2")
    assert verdict.summary.startswith("Invalid run: ")
    assert exit_status(verdict) == 3


def test_a_generator_that_is_full_now_and_then_says_how_often() -> None:
    """A core that is saturated in a third of the seconds makes the run invalid; the share is stated."""
    say_if_due = np.where(np.arange(70) % 3 == 0, 0.98, 0.15)
    verdict = judged(crawl_bound_by_search().generator(cpu=say_if_due, host="generator2"))
    assert verdict.outcome == "invalid"
    assert re.search(r"43 % of its core, and 90 % or more of it for 3\d % of the time", verdict.summary)


def test_a_generator_at_its_quota_s_limit_invalidates() -> None:
    """A load worker at its container's quota of a twentieth of a core makes the run invalid."""
    build = crawl_bound_by_search().generator(cpu=0.049, host="generator2")
    verdict = judged(build.metric("generator2", "generator.allowed_cores", 0.05, noise=0.0))
    assert verdict.outcome == "invalid"
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.host == "generator2"
    assert "98 % of its core" in verdict.summary


def test_a_generator_that_is_late_itself_blames_nothing_outside() -> None:
    """With a generator clock 250 ms late, a wait of 400 ms is attributed to no dependency."""
    build = Build().host("search1", "search", cores=(0, 1)).cpu("search1", 0.1, 0.1, cores=(0, 1))
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:far", 16, 0.5)
    build.operations("crawl", "document:far/fetch", 16, 0.4)
    verdict = judged(build.generator(loop_lag_s=0.25))
    assert verdict.outcome == "inconclusive"
    assert [one.kind for one in verdict.candidates] == ["external"]
    assert "the load generator itself is" in verdict.summary
    assert verdict.summary.endswith("Candidates: network or dependency in front of far.")
    assert verdict.experiment == "Give the load generator more CPU, and run the same plan again."


def test_a_quota_of_several_cores_leaves_a_generator_one() -> None:
    """A quota of eight cores does not raise a single process's limit of one core."""
    build = crawl_bound_by_search().generator(cpu=0.95, host="generator2")
    verdict = judged(build.metric("generator2", "generator.allowed_cores", 8.0, noise=0.0))
    assert verdict.outcome == "invalid"


def lagging(cpu: float, started: float) -> Build:
    build = Build().host("sql1", "sql").cpu("sql1", cpu, cpu, pressure=cpu)
    build.open("orders", "sql-mix", 200)
    build.operations("orders", "log_append", started, 0.03, dropped=200 - started)
    return build.generator(orders=(200.0, started))


def test_operations_not_started_while_the_farm_has_room_invalidate() -> None:
    """Started ÷ scheduled below 0.95 with an idle farm makes the run invalid."""
    verdict = judged(lagging(0.3, 150.0).sessions("sql1", 3.0))
    assert verdict.outcome == "invalid"
    assert "only 75 % of the scheduled operations of orders were started" in verdict.summary


def test_operations_not_started_because_the_farm_is_full_are_the_farm_s() -> None:
    """The same shortfall with a saturated CPU is a bottleneck of the farm, with a warning."""
    verdict = judged(lagging(0.98, 150.0))
    assert named(verdict)[:2] == ("cpu", "sql")
    assert any("only 75 %" in warning for warning in verdict.warnings)


def test_without_the_generators_count_dropped_operations_tell() -> None:
    """Without scheduled/started samples, dropped operations show that the schedule was not kept."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.2).open("orders", "sql-mix", 200)
    build.operations("orders", "log_append", 150, 0.03, dropped=50.0)
    verdict = judged(build)
    assert verdict.outcome == "inconclusive", "its sessions may have waited for locks, which nobody measured"
    assert judged(build.sessions("sql1", 4.0)).outcome == "invalid"


def test_send_lag_invalidates_only_beyond_its_limit() -> None:
    """The p99 send lag is compared with max(5 ms, a tenth of the p99 response time)."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.2).open("orders", "sql-mix", 100)
    build.operations("orders", "log_append", 100, 0.1)
    assert judged(build.generator(send_lag_s=0.008, orders=(100.0, 100.0))).outcome == "not_reached"
    build = Build().host("sql1", "sql").cpu("sql1", 0.2).open("orders", "sql-mix", 100)
    build.operations("orders", "log_append", 100, 0.005)
    verdict = judged(build.generator(send_lag_s=0.008, orders=(100.0, 100.0)))
    assert verdict.outcome == "invalid"
    assert " late (p99)" in verdict.summary


@pytest.mark.parametrize(("users", "valid"), [(8, True), (12, False)])
def test_little_s_law_on_closed_load(users: int, valid: bool) -> None:
    """160/s of 50 ms are the work of 8 users, so with 12 users the run is invalid."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.97, 0.9, pressure=0.9)
    build.closed("orders", "sql-mix", users).operations("orders", "log_append", 160, 0.05, noise=0.01)
    verdict = judged(build.generator())
    assert (verdict.outcome != "invalid") == valid
    if not valid:
        assert "Little's law" in verdict.summary


def test_a_crawl_whose_users_wait_for_the_frontier_keeps_little_s_law() -> None:
    """Crawl sessions that wait without an operation do not make the run invalid."""
    build = crawl_bound_by_search()
    build.manifest["plan"]["scenarios"]["crawl"]["load"]["users"] = 32
    assert judged(build).outcome == "bottleneck"


def test_a_client_s_own_work_shows_where_operations_are_short() -> None:
    """0.1 ms of the client's own work per operation does not make the run invalid."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.97, 0.9, pressure=0.9).closed("orders", "sql-mix", 4)
    build.operations("orders", "log_append", 2500, 0.0015, noise=0.01)
    assert named(judged(build.generator()))[:2] == ("cpu", "sql")


def test_sessions_that_wait_to_reconnect_are_no_fault_of_the_generator() -> None:
    """Users without an operation are explained by the farm's failures, so the run stays valid."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.97, 0.9, pressure=0.9).closed("orders", "sql-mix", 12)
    build.operations("orders", "log_append", 160, 0.05, noise=0.01)
    build.operations("orders", "log_append", 5, 0.001, outcome="connection_lost", noise=0.01)
    assert named(judged(build.generator()))[:2] == ("cpu", "sql")


@pytest.mark.parametrize(
    ("paused", "failures", "valid"), [(4, 0, True), (4, 1, True), (0, 0, False), (0, 1, False)]
)
def test_a_replay_s_own_pauses_are_think_time(paused: int, failures: int, valid: bool) -> None:
    """Pauses in a replay count as think time; a single failure does not excuse users without them.

    Pauses do not count as waiting for the farm either.
    """
    build = Build().host("sql1", "sql").cpu("sql1", 0.2, 0.2, pressure=0.0)
    build.closed("again", "sql-replay", 8).operations("again", "select", 100, 0.036, noise=0.01)
    if paused:
        build.operations("again", PAUSE, 20, 0.22, noise=0.01)
    if failures:
        build.operations(
            "again", "select", np.eye(1, build.seconds, 30)[0], 0.001, outcome="error", noise=0.0
        )
    verdict = judged(build.generator())
    assert (verdict.outcome != "invalid") == valid
    assert ("Little's law" in verdict.summary) != valid
    assert "waited for the farm" not in verdict.summary


def test_seconds_in_which_nothing_was_started_count() -> None:
    """Seconds without a 'started' row from a stalled generator count as 0 started operations."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.2, 0.2).open("orders", "sql-mix", 100)
    build.operations("orders", "log_append", 80, 0.003).generator(orders=(100.0, 100.0))
    build.samples = [
        row for row in build.samples if row[3] != "generator.started_per_s" or (row[0] // 10**9) % 5
    ]
    verdict = judged(build)
    assert verdict.outcome == "invalid"
    assert "only 80 % of the scheduled operations" in verdict.summary


def test_a_host_without_processes_is_no_pool_of_cores() -> None:
    """A tier of files on the shared machine has no processes, so it does not compete for the CPU."""
    build = crawl_bound_by_search()
    build.host("files1", "files", disks={"content": "vda"})
    build.manifest["hosts"]["files1"]["tier_cores"] = None
    build.metric("files1", "cpu.busy_ratio", 0.95, "1").metric("files1", "cpu.busy_ratio", 0.96)
    verdict = judged(build)
    assert named(verdict) == ("cpu", "search", "search1", "medium")
    assert verdict.runner_up is None


@pytest.mark.parametrize("how", ["event", "sample"])
def test_a_recorder_that_failed_invalidates(how: str) -> None:
    """A failed recorder makes the run invalid, with exit status 3."""
    build = crawl_bound_by_search()
    if how == "event":
        build.event("recorder_failed", 30, worker="generator1", why="disk full")
    else:
        build.metric(
            "generator2", "generator.recorder_ok", np.where(np.arange(build.seconds) < 40, 1.0, 0.0), noise=0
        )
    verdict = judged(build)
    assert verdict.outcome == "invalid"
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.resource == "recorder"
    assert exit_status(verdict) == 3


@pytest.mark.parametrize("pinned", [True, False])
def test_a_generator_that_takes_the_farm_s_only_core_invalidates(*, pinned: bool) -> None:
    """On a farm with one core, a generator that uses most of that core makes the run invalid."""
    build = shared_farm(Build())
    worker = {"cores": [0]} if pinned else {"cores": [], "machine_id": MACHINE}
    build.manifest["generators"] = [{"worker": "generator1", **worker}]
    for facts in build.manifest["hosts"].values():
        facts["usable_cores"] = [0]
    for host, share in (("web1", 0.1), ("search1", 0.15), ("sql1", 0.1), ("nosql1", 0.02)):
        build.cpu(host, 0.98, share, pressure=0.9)
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:site", 80, 0.1)
    verdict = judged(build.generator(cpu=0.6))
    assert verdict.outcome == "invalid"
    assert "cores of its own" in verdict.advice[0].text


def test_an_unpinned_generator_of_another_machine_takes_nothing_of_the_farm_s() -> None:
    """CPU use by other processes is not attributed to a generator on another machine."""
    build = Build().host("sql1", "sql", cores=(0, 1)).cpu("sql1", 0.99, 0.4, cores=(0, 1), pressure=0.9)
    build.manifest["generators"] = [{"worker": "generator1", "cores": [], "machine_id": "elsewhere"}]
    build.closed("orders", "sql-mix", 4).operations("orders", "log_append", 400, 0.01)
    verdict = judged(build.generator(cpu=0.6))
    assert verdict.outcome == "inconclusive", verdict.summary
    assert "was used by other processes" in verdict.summary


@pytest.mark.parametrize("way", ["one dies", "one joins late", "half of what they tell is lost"])
def test_generators_that_come_and_go_have_their_users_for_a_while(way: str) -> None:
    """Sixteen users on two generators stay sixteen when one generator dies, joins late or loses samples."""
    build = Build().host("sql1", "sql", cores=(0, 1)).cpu("sql1", 0.97, 0.95, cores=(0, 1), pressure=0.9)
    build.closed("orders", "sql-mix", 16).operations("orders", "log_append", 320, 0.05, noise=0.01)
    second = np.arange(build.seconds)
    alone = {"one dies": second >= 40, "one joins late": second < 40}.get(way, second < 0)
    build.generator().generator(host="generator2")
    build.metric("generator1", "generator.users", np.where(alone, 16.0, 8.0), "orders", 0.0)
    build.metric("generator2", "generator.users", 8.0, "orders", 0.0)
    lost = alone if alone.any() else second >= 38
    gone = {"generator2"} if alone.any() else {"generator1", "generator2"}
    build.samples = [
        row for row in build.samples if row[2] not in gone or not lost[int(row[0] / 1e9) - START_S - 1]
    ]
    verdict = judged(build)
    assert named(verdict)[:2] == ("cpu", "sql"), verdict.summary


@pytest.mark.parametrize("metric", ["scheduled", "started"])
def test_lost_counts_of_a_generator_are_no_fault_of_anybody(metric: str) -> None:
    """A fifth of the generator's counts is missing, and the verdict is the same without them.

    At 97 % of the schedule the farm is not saturated; at 92 % the generator is at fault.
    """
    for done, outcome in ((97.0, "not_reached"), (92.0, "invalid")):
        build = Build().host("sql1", "sql").cpu("sql1", 0.2, 0.2).open("orders", "sql-mix", 100)
        build.operations("orders", "log_append", done, 0.003, noise=0.0, dropped=100 - done)
        build.generator(orders=(100.0, done))
        build.samples = [
            row for row in build.samples if row[3] != f"generator.{metric}_per_s" or (row[0] // 10**9) % 5
        ]
        assert judged(build).outcome == outcome
