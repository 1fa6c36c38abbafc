"""Timeline: bottlenecks that follow one another in one run, and cases that only look like that."""

from __future__ import annotations

import numpy as np
import pytest
from harness.analysis.build import Build, Floats, crawl_bound_by_search
from harness.analysis.test_levels import climb
from harness.analysis.verdicts import judged

from pinchpoint.analysis.analyse import judged_case
from pinchpoint.analysis.periods import taking_turns
from pinchpoint.analysis.resources.kinds import KINDS

WARM_UP_S = 10


def halves(first: float, second: float, turn_s: int, measure_s: int) -> Floats:
    """Return one value per second: ``first`` until ``turn_s`` of the measure phase, then ``second``."""
    values = np.full(WARM_UP_S + measure_s, second)
    values[: WARM_UP_S + turn_s] = first
    return values


def two_in_turn(turn_s: int = 50, measure_s: int = 120, seed: int = 1, noise: float = 0.05) -> Build:
    """Build a database load with saturated cores first, then a slow log and idle cores.

    ``noise``: relative noise of the log's I/O.
    """
    build = Build(measure_s, WARM_UP_S, seed)
    build.host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    used = halves(0.98, 0.3, turn_s, measure_s)
    build.cpu("sql1", used, used, cores=(0, 1), pressure=halves(0.9, 0.05, turn_s, measure_s), noise=0.004)
    rate, latency = halves(900, 240, turn_s, measure_s), halves(0.0004, 0.024, turn_s, measure_s)
    build.disk("sql1", "sdb", rate, latency, noise, busy=0.97, pressure=0.9, outstanding_noise=0.1)
    waiting = halves(0.5, 7.6, turn_s, measure_s)
    build.metric("sql1", "db.sessions_active", 8.0, noise=0.01)
    build.metric("sql1", "db.sessions_waiting", waiting, "IO:WalSync", 0.02)
    build.closed("orders", "sql-mix", 8)
    build.operations("orders", "log_append", rate, 8 / rate, noise=0.02)
    build.metric("generator1", "generator.users", 8.0, "orders", 0.0)
    return build.generator()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_bottleneck_that_moves_is_told_with_its_times(seed: int) -> None:
    """Cores, then the log: both are on the timeline, and the longer period alone is judged."""
    verdict = judged(two_in_turn(seed=seed))
    rows = [(row["resource"], row["from"][14:19], row["to"][14:19]) for row in verdict.timeline]
    assert [name for name, _, _ in rows] == ["cpu", "disk"]
    assert rows[0][1:] == ("00:10", "01:00")
    found = verdict.bottleneck
    assert found is not None, verdict.summary
    assert (found.resource, found.role, found.confidence) == ("disk", "log", "medium"), found.why_not_more
    assert found.window is not None
    assert found.window[0][14:19] in {"01:00", "01:05"}, "its transient may be cut"
    named = (
        "moved while this was measured: the CPU of the sql tier (sql1) until 00:01:00 UTC, then the log disk"
    )
    assert named in verdict.summary
    assert any(named in warning for warning in verdict.warnings)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_credits_that_ran_out_before_are_why_a_disk_is_at_its_limit_now(seed: int) -> None:
    """A log that fell from 900/s to a steady 240/s has exhausted its credits."""
    verdict = judged(two_in_turn(seed=seed, noise=0.001))
    assert verdict.bottleneck is not None, verdict.summary
    assert (verdict.bottleneck.kind, verdict.bottleneck.role) == ("disk_burst_exhausted", "log")
    assert "The disk's I/O fell from 900/s to 240/s at the same queue depth" in verdict.summary
    assert "moved while this was measured: the CPU of the sql tier" in verdict.summary


def test_the_longer_one_is_judged_also_when_it_came_first() -> None:
    """The longer period is judged also when it comes first: 80 of 120 s with saturated cores."""
    found = judged(two_in_turn(turn_s=80)).bottleneck
    assert found is not None
    assert found.resource == "cpu"


def test_one_bottleneck_is_one_period() -> None:
    """A tier that is saturated throughout is one period, and no move is reported."""
    verdict = judged(crawl_bound_by_search(measure_s=120))
    assert [(row["kind"], row["tier"]) for row in verdict.timeline] == [("cpu", "search")]
    assert "moved" not in verdict.summary


def test_chance_is_no_period_of_its_own() -> None:
    """Ten seconds of lower CPU use within two minutes are not a period of their own."""
    used = halves(0.97, 0.97, 60, 120)
    used[60:70] = 0.8
    build = Build(120, WARM_UP_S)
    build.host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("sql1", used, used, cores=(0, 1), pressure=0.9, noise=0.004).disk("sql1", "sdb", 100, 0.0005)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", 100, 0.08, noise=0.02)
    verdict = judged(build.metric("generator1", "generator.users", 8.0, "orders", 0.0).generator())
    assert [row["kind"] for row in verdict.timeline] == ["cpu"]


def test_what_held_nothing_up_in_between_is_told() -> None:
    """A period of 40 s without a bottleneck between two bottlenecks is on the timeline."""
    build, second = Build(120, WARM_UP_S), np.arange(WARM_UP_S + 120) - WARM_UP_S
    early, late = second < 40, second >= 80
    build.host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    used = np.where(early, 0.98, 0.3)
    build.cpu("sql1", used, used, cores=(0, 1), pressure=np.where(early, 0.9, 0.05), noise=0.004)
    writes, latency = np.where(late, 240.0, 300.0), np.where(late, 0.024, 0.0004)
    build.disk("sql1", "sdb", writes, latency, busy=0.97, pressure=0.9, outstanding_noise=0.1)
    build.metric("sql1", "db.sessions_active", np.where(late, 90.0, np.where(early, 80.0, 1.0)), noise=0.01)
    build.metric("sql1", "db.sessions_waiting", np.where(late, 88.0, 0.2), "IO:WalSync", 0.02)
    done = np.where(early, 250.0, writes)
    takes, gone = np.where(early, 0.3, np.where(late, 0.4, 0.003)), np.maximum(0, 300 - done)
    build.open("orders", "sql-mix", 300).operations("orders", "log_append", done, takes, dropped=gone)
    verdict = judged(build.generator(orders=(300.0, 265.0)))
    assert [row["resource"] for row in verdict.timeline] == ["cpu", None, "disk"]
    named = "(sql1) until 00:00:50 UTC, then the log disk of the sql tier (sql1, sdb) from 00:01:30 UTC on."
    assert named in verdict.summary


def test_what_was_used_up_for_half_of_the_time_is_told_where_nobody_is_named() -> None:
    """A resource that was saturated for half of the time is listed where no bottleneck is named."""
    build = Build(120, WARM_UP_S)
    build.host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    used, pressure = halves(0.985, 0.3, 60, 120), halves(0.9, 0.05, 60, 120)
    build.cpu("sql1", used, used, cores=(0, 1), pressure=pressure, noise=0.003)
    build.disk("sql1", "sdb", 100, 0.0006, busy=0.06, pressure=0.05)
    done, takes = halves(250, 300, 60, 120), halves(0.4, 0.003, 60, 120)
    build.open("orders", "sql-mix", 300)
    build.operations("orders", "log_append", done, takes, noise=0.02, dropped=np.maximum(0, 300 - done))
    verdict = judged(build.generator(orders=(300.0, 275.0)))
    assert verdict.outcome == "inconclusive", verdict.summary
    named = "Saturated for a part of the 2 min: the CPU of the sql tier (sql1) for 60 s (timeline)."
    assert named in verdict.summary
    assert named in verdict.warnings


@pytest.mark.parametrize("turn_s", [50, 60])
def test_the_period_that_was_judged_is_called_what_the_verdict_calls_it(turn_s: int) -> None:
    """The judged period has the verdict's kind on the timeline, not that of its short blocks."""
    verdict = judged(two_in_turn(turn_s=turn_s))
    assert verdict.bottleneck is not None
    assert [row["kind"] for row in verdict.timeline] == ["cpu", verdict.bottleneck.kind]


def climb_that_moves() -> Build:
    """Build a load in steps of two users: cores saturate at 6, and from 14 on the log takes 24 ms."""
    each_s, levels = 20, np.arange(2.0, 18.0, 2.0)
    build = Build(each_s * len(levels), WARM_UP_S)
    second = np.arange(build.seconds) - WARM_UP_S
    users = levels[np.clip(second // each_s, 0, len(levels) - 1)]
    late, done = second >= 6 * each_s, np.minimum(users * 150, 900.0)
    used = np.where(late, 0.3, done / 900 * 0.985)
    done = np.where(late, 240.0, done)
    build.host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("sql1", used, used, cores=(0, 1), pressure=np.where(used > 0.9, 0.9, 0.05), noise=0.004)
    latency = np.where(late, 0.024, 0.0004)
    build.disk("sql1", "sdb", done, latency, busy=0.97, pressure=0.9, outstanding_noise=0.1)
    build.metric("sql1", "db.sessions_active", users, noise=0.01)
    build.metric("sql1", "db.sessions_waiting", np.where(late, users * 0.95, 0.3), "IO:WalSync", 0.02)
    build.steps("orders", "sql-mix", levels, each_s, "users")
    build.operations("orders", "log_append", done, users / done, noise=0.02)
    return build.metric("generator1", "generator.users", users, "orders", 0.0).generator()


def test_of_a_climb_what_gives_way_at_its_knee_is_judged_and_what_came_later_is_told() -> None:
    """The bottleneck at the knee of a load in steps is judged, and the later one is reported."""
    verdict = judged(climb_that_moves())
    found = verdict.bottleneck
    assert found is not None, verdict.summary
    assert (found.kind, found.tier) == ("cpu", "sql"), verdict.summary
    assert found.window is not None
    assert found.window[1][14:19] <= "02:10"
    named = "moved while this was measured: the CPU of the sql tier (sql1) until 00:02:10 UTC, then the log"
    assert named in verdict.summary


def test_a_climb_tells_from_which_level_on() -> None:
    """The timeline of a load in steps has one part per level, and saturation is not a move."""
    verdict = judged(climb(np.arange(100.0, 900.0, 100.0), 600))
    rows = [(row["level"], row["kind"]) for row in verdict.timeline]
    assert rows[0][1] is None
    assert rows[-1][1] == "cpu"
    assert rows[-1][0].endswith("800/s")
    assert "moved" not in verdict.summary


@pytest.mark.parametrize(("commits", "named"), [(2, True), (0, False)])
def test_two_that_alternate_are_told_with_their_shares(commits: int, named: bool) -> None:
    """Three seconds of CPU and two of index commits are reported as two resources in turn."""
    build = Build(120).host("search1", "search", cores=(0,), disks={"index": "sdc"})
    committing = np.arange(build.seconds) % 5 < commits
    cpu = np.where(committing, 0.35, 0.97 if named else 0.4)
    build.cpu("search1", cpu, cpu, pressure=cpu / 2, noise=0.003)
    build.disk(
        "search1", "sdc", np.where(committing, 300.0, 20.0), np.where(committing, 0.02, 0.001), pressure=0.3
    )
    build.samples = [row for row in build.samples if row[3] != "disk.busy_ratio"]
    build.metric("search1", "disk.busy_ratio", np.where(committing, 0.99, 0.05), "sdc", 0.003)
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:files", 80, 0.1)
    build.metric("generator1", "generator.users", 8.0, "crawl", 0.0)
    verdict = judged(build.generator())
    said = (
        "the CPU of the search tier (search1) for 60 % of the time and the index disk of the search tier "
        "(search1, sdc) for 40 % of the time"
    )
    assert verdict.outcome == "inconclusive", verdict.summary
    assert (f"Several resources took turns at their limit: {said}." in verdict.summary) == named, (
        verdict.summary
    )
    if named:
        assert [(one.resource, one.role) for one in verdict.candidates] == [("cpu", None), ("disk", "index")]


def alternating(period_s: float, share: float, together: float = 1.0, seed: int = 1) -> Build:
    """Build cores that are busy for ``share`` of each period, then a disk up to ``together``."""
    build = Build(120, WARM_UP_S, seed)
    moment = np.arange(build.seconds * 20) / 20 % period_s / period_s
    used, busy = (
        np.where(now, 0.99, 0.0).reshape(-1, 20).mean(axis=1)
        for now in (moment < share, (moment >= share) & (moment < together))
    )
    build.host("search1", "search", cores=(0,), disks={"index": "sdb"})
    build.cpu("search1", used, used, cores=(0,), noise=0.0).disk("search1", "sdb", 20, 0.005, busy=busy)
    build.closed("crawl", "full-crawl", 6)
    for stage in ("", "/index"):
        build.operations("crawl", f"document:files{stage}", 20, 0.29, noise=0.02)
    return build.metric("generator1", "generator.users", 6.0, "crawl", 0.0).generator()


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.6])
@pytest.mark.parametrize("period_s", [6.3, 9.0, 14.7, 31.0])
def test_what_alternates_is_named_with_its_shares_of_the_time(
    period_s: float, share: float, seed: int
) -> None:
    """Resources that alternate within seconds are named with the right shares of the time."""
    case = judged_case(alternating(period_s, share, seed=seed).run())
    assert case is not None
    found = {KINDS[one.type].reported: part for one, part in taking_turns(case)}
    expected = {"cpu": share, "disk": 1 - share}
    assert found == pytest.approx(expected, abs=0.06), found


def test_a_disk_that_is_busy_whatever_the_cpu_does_takes_no_turns() -> None:
    """A disk that is busy independently of the CPU does not count as taking turns."""
    build = alternating(9.0, 0.75)
    build.samples = [row for row in build.samples if row[3] != "disk.busy_ratio"]
    build.metric("search1", "disk.busy_ratio", np.where(np.arange(build.seconds) % 7 < 5, 1.0, 0.1), "sdb", 0)
    case = judged_case(build.run())
    assert case is not None
    assert taking_turns(case) == []


@pytest.mark.parametrize(
    ("period_s", "share", "together"), [(9.0, 0.5, 0.7), (0.9, 0.5, 1.0), (9.0, 1.0, 1.0)]
)
def test_what_leaves_time_or_is_the_only_one_takes_no_turns(
    period_s: float, share: float, together: float
) -> None:
    """30 % of idle time, turns within a second, and a single resource are no alternation."""
    case = judged_case(alternating(period_s, share, together).run())
    assert case is not None
    assert taking_turns(case) == []
