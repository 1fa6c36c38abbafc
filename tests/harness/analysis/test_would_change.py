"""The explanation: what would change the answer, and the figures that support each statement."""

from __future__ import annotations

import numpy as np
import pytest
from harness.analysis.build import Build, crawl_bound_by_search
from harness.analysis.disks import Distant, Spindle, commits, reads
from harness.analysis.test_disks import data
from harness.analysis.test_levels import EACH_S, climb, over_time
from harness.analysis.verdicts import judged, length, log_disk, named

from pinchpoint.analysis import Verdict
from pinchpoint.analysis.levels import SETTLE_S
from pinchpoint.analysis.thresholds import OWN_USE
from pinchpoint.analysis.verdict import Considered, Fact
from pinchpoint.report.evidence import findings
from pinchpoint.report.explained import explanation_text


def changes(verdict: Verdict) -> str:
    return " / ".join(verdict.explanation.would_change)


def reasons(verdict: Verdict) -> str:
    return " / ".join(verdict.explanation.reasons)


def looked_at(verdict: Verdict, resource: str, instance: str = "") -> Considered:
    rows = verdict.explanation.considered
    [found] = [one for one in rows if one.resource == resource and instance in one.instance]
    return found


def proof(verdict: Verdict, evidence: str) -> list[Fact]:
    assert verdict.bottleneck is not None, verdict.summary
    return [fact for fact in verdict.bottleneck.evidence if fact.evidence == evidence]


def users_on(disk: Distant | Spindle, users: int, *, reading: bool, role: str, pressure: float) -> Build:
    """Build users who read from, or commit to, one disk."""
    found = reads(disk, length(60), users) if reading else commits(disk, length(60), users)
    build = Build().host("sql1", "sql", cores=(0, 1), disks={role: "sdc"})
    build.cpu("sql1", 0.1, cores=(0, 1)).device("sql1", "sdc", found, pressure)
    build.closed("orders", "sql-mix", users)
    build.served("orders", "point_read" if reading else "log_append", found)
    return build.metric("generator1", "generator.users", float(users), "orders", 0.0).generator()


# ---- runs that are no evidence ----------------------------------------------------------------------


def test_an_invalid_run_is_explained_by_its_gate() -> None:
    """The explanation of an invalid run names its gate, and neither schedule nor next limits."""
    verdict = judged(crawl_bound_by_search().generator(cpu=0.97, host="generator2"))
    assert verdict.outcome == "invalid"
    assert reasons(verdict).startswith("the load generator (generator2) used 97 % of its core")
    assert reasons(verdict).endswith("measured the load generator, not the farm")
    assert changes(verdict).startswith("for a valid run: give the load generator more cores")
    cpu = looked_at(verdict, "cpu")
    assert cpu.why == "it would be the bottleneck if the run were valid"


def test_nothing_to_judge_is_explained_by_what_is_missing() -> None:
    """A run in which every operation failed is explained by the failures, not by utilisation."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.99, pressure=0.9).closed("orders", "sql-mix", 8)
    verdict = judged(build.operations("orders", "log_append", 80, 0.1, outcome="refused").generator())
    assert verdict.explanation.reasons == ("all operations failed (refused)",)
    assert changes(verdict) == "Remove the cause of the failures, then run again."


def test_waiting_for_nothing_that_is_seen_is_explained_so() -> None:
    """Waiting users without a saturated resource: the explanation has both and the experiment."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.3, 0.25).closed("orders", "sql-mix", 8)
    verdict = judged(build.operations("orders", "log_append", 80, 0.1).generator())
    assert verdict.outcome == "inconclusive"
    assert "no resource was saturated or waited for" in reasons(verdict)
    assert "orders waited for the farm, yet no measured resource was saturated" in reasons(verdict)
    assert changes(verdict).endswith(str(verdict.experiment))


# ---- what is nearest to its limit -------------------------------------------------------------------


def with_room(use: float) -> Build:
    """Build a served schedule with that CPU use, a disk at 80 % of its limit and a pool at 30 %."""
    build = Build().host("sql1", "sql", disks={"data": "sdc"}, limits={"data": {"iops": 500.0}})
    build.cpu("sql1", use, use).disk("sql1", "sdc", 400, 0.001, noise=0.03, busy=0.4)
    build.metric("sql1", "db.connections_ratio", 0.6, noise=0.0)
    build.metric("sql1", "mem.available_ratio", 0.1, noise=0.0)
    build.open("orders", "sql-mix", 100).operations("orders", "log_append", 100, 0.004)
    return build.generator(orders=(100.0, 100.0))


def test_the_nearest_limit_is_a_disk_s_as_well() -> None:
    """The nearest limit may be a disk: 400 of 500 IOPS are its limit at 1.25 times the load."""
    verdict = judged(with_room(0.45))
    assert verdict.outcome == "inconclusive", verdict.summary
    change, experiment = verdict.explanation.would_change
    assert experiment.startswith("Run the same plan with a fifth more load")
    assert change.startswith("at 1.25 times")
    assert "the data disk of the sql tier (sql1, sdc) would be saturated" in change


def test_memory_and_open_connections_do_not_grow_with_the_load() -> None:
    """Memory and open connections at one level are not extrapolated; the CPU is."""
    build = with_room(0.45)
    build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]["data"].update(
        limits=None, resolved_limits=None
    )
    [change] = judged(build).explanation.would_change
    assert change.startswith("at 2")
    assert "the CPU of the sql tier" in change


# ---- another farm -----------------------------------------------------------------------------------


def test_one_kind_of_evidence_holds() -> None:
    """One kind of evidence is worded in the singular."""
    build = Build().host("nosql1", "nosql", cores=(0, 1, 2, 3))
    build.cpu("nosql1", 0.34, 0.34, cores=(0, 1, 2, 3), pressure=0.1)
    build.metric("nosql1", "cpu.busy_ratio", 0.985, "thread:valkey-server", noise=0.005)
    build.closed("burst", "nosql-burst", 50).operations("burst", "write", 20000, 0.0025)
    assert "(valkey-server on nosql1): saturated" in reasons(judged(build.generator()))


def test_who_comes_next_is_told_by_all_levels_as_well() -> None:
    """The bottleneck without the winner follows from all load levels: here there is none."""
    verdict = judged(climb(np.arange(100.0, 900.0, 100.0), 600))
    assert "without the CPU of the sql tier (sql1) no resource would be the bottleneck" in changes(verdict)


# ---- the threshold that was used, and the metric it is of ------------------------------------------


def test_a_log_that_is_waited_for_is_held_against_the_limit_that_it_exceeds() -> None:
    """A wait for the log of 3 ms is compared with the limit it exceeds: 2 ms (MS-IO), not 5 (SP)."""
    verdict = judged(users_on(Distant(0.003, 0.0002), 8, reading=False, role="log", pressure=0.8))
    assert named(verdict)[0] == "disk_latency", verdict.summary
    [latency] = proof(verdict, "E1")
    assert (latency.threshold, latency.source) == (0.002, "MS-IO")
    assert latency.value == pytest.approx(0.003, rel=0.1)
    assert "not measured" not in latency.fact, "nothing was read: there is no latency of reads to tell"


def test_slow_reads_are_told_by_reads() -> None:
    """A data disk with reads is explained by its read latency, not by that of its few writes."""
    found = judged(users_on(Spindle(0.03), 8, reading=True, role="data", pressure=0.9))
    [latency] = [fact for fact in proof(found, "E1") if fact.metric.endswith("latency_s")]
    assert latency.metric == "disk.read_latency_s"
    assert latency.fact.startswith("a read took ")
    assert latency.value is not None
    assert latency.threshold is not None
    assert latency.value > latency.threshold
    assert latency.samples == 60


def test_a_queue_that_never_moved_says_so() -> None:
    """A constant queue of eight is explained as not showing the effect of more outstanding I/O."""
    verdict = judged(data(reads(Spindle(0.02), length(60), 8), 8))
    assert named(verdict)[0] == "disk_device", verdict.summary
    text = " / ".join(fact.fact for fact in proof(verdict, "E1"))
    assert "brought no more" not in text
    assert "the effect of more was not measured" in text
    assert "however many wait" not in verdict.summary


def test_a_thread_s_witness_is_its_server() -> None:
    """A thread's second source is its server's busy time, not the machine's CPU pressure."""
    build = Build().host("nosql1", "nosql", cores=(0, 1)).cpu("nosql1", 0.6, 0.55, cores=(0, 1))
    build.metric("nosql1", "cpu.busy_ratio", 0.985, "thread:valkey-server", noise=0.005)
    build.metric("nosql1", "db.main_thread.busy_ratio", 0.999, noise=0.0)
    build.closed("burst", "nosql-burst", 50).operations("burst", "write", 20000, 0.0025)
    thread = looked_at(judged(build.generator()), "thread")
    witness = next(check for check in thread.checks if check.evidence == "E4")
    assert (witness.holds, witness.fact.metric) == (True, "db.main_thread.busy_ratio")


def test_pressure_witnesses_for_a_quota() -> None:
    """CPU pressure that counts as E4 for a quota is listed as E4 in the evidence."""
    build = Build().host("search1", "search", cores=(0, 1))
    build.cpu("search1", 0.3, 0.97, cores=(0, 1), pressure=0.9)
    build.metric("search1", "cpu.cores", 0.5, "tier:search", noise=0.0)
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:site", 40, 0.2)
    verdict = judged(build.generator())
    assert named(verdict)[:2] == ("cpu", "search"), verdict.summary
    assert {fact.metric for fact in proof(verdict, "E4")} == {"pressure.cpu_ratio"}


def test_a_declared_limit_is_told_with_its_figure() -> None:
    """A declared limit is shown with its figure, apart from Pinchpoint's own threshold of 90 %."""
    text = " ".join(explanation_text(judged(log_disk({"iops": 500.0})).to_json()).split())
    assert "[limit 500/s, declared; saturation begins at 90 % of capacity; 60 samples]" in text


def test_a_thousand_outstanding_are_written_out() -> None:
    """A large number is written as 1,024, not as 1.02e+03."""
    verdict = judged(log_disk(None, noise=0.08, writes=380.0, latency_s=2.7, commit_s=2.7))
    [queue] = [fact for fact in proof(verdict, "E1") if fact.metric == "disk.outstanding"]
    assert queue.value == pytest.approx(1_100, rel=0.1)
    assert queue.fact.startswith(f"{queue.value:,.0f} I/Os were outstanding")


# ---- what a figure rests on ------------------------------------------------------------------------


def test_what_all_levels_tell_rests_on_all_of_them() -> None:
    """E1 uses the 58 s that were judged; E2 and E3 use all eight levels, in their queries as well."""
    levels = np.arange(100.0, 900.0, 100.0)
    verdict = judged(climb(levels, 600))
    used, queue, ceiling = (proof(verdict, kind)[0] for kind in ("E1", "E2", "E3"))
    each_s = EACH_S - int(SETTLE_S)
    assert queue.samples == len(levels) * each_s
    assert used.samples == 2 * 58  # both cores, three levels except the first two seconds
    done = np.minimum(over_time(levels), 600)
    assert ceiling.samples == pytest.approx(done.sum() * each_s / EACH_S, rel=0.02)
    assert (ceiling.host, ceiling.instance) == ("", "orders")
    [finding] = findings(verdict.to_json())
    queries = {fact.fact: fact.query for fact in finding.evidence}
    first = 1_767_225_600 + 10 + int(SETTLE_S)
    assert f">= {first * 10**9}" in queries[queue.fact]
    assert f">= {first * 10**9}" not in queries[used.fact]


def test_operations_are_counted_of_the_scenario_that_is_meant() -> None:
    """The samples of Little's law count the operations of its own scenario only."""
    build = log_disk({"iops": 500.0}).closed("other", "nosql-burst", 4)
    verdict = judged(build.operations("other", "write", 1000, 0.004))
    [little] = [gate.fact for gate in verdict.explanation.gates if "orders:" in gate.fact.fact]
    assert little.samples == pytest.approx(500 * 60, rel=0.02)
    [wait] = [fact for fact in proof(verdict, "E4") if fact.metric == "operations.service"]
    assert (wait.instance, wait.samples) == ("orders", little.samples)
    query = next(fact.query for fact in findings(verdict.to_json())[0].evidence if fact.fact == wait.fact)
    assert "scenario = 'orders'" in query


def test_a_few_levels_cannot_tell_what_six_can() -> None:
    """Four levels answer E2 and E3 with "not known" and the reason, not with "no"."""
    rows = judged(climb(np.arange(200.0, 1000.0, 200.0), 600)).explanation.considered
    grown = [check for one in rows for check in one.checks if check.evidence in {"E2", "E3"}]
    assert {check.holds for check in grown} == {None}
    assert all("4 load levels, at least 6 are needed" in check.fact.fact for check in grown)


def test_what_was_not_measured_did_not_stay() -> None:
    """Without pressure samples, growth of the CPU queue is not known, whatever the levels."""
    cpu = looked_at(judged(climb(np.arange(100.0, 900.0, 100.0), 600, witness=False)), "cpu")
    [queue] = [check for check in cpu.checks if check.evidence == "E2"]
    assert queue.holds is None
    assert "its queue was not measured" in queue.fact.fact


def test_a_dependency_behind_which_much_is_done_says_why_it_is_not_used_up() -> None:
    """A dependency with much work behind it is explained as not idle; its own use is no evidence."""
    build = Build().host("files1", "files", cores=(0, 1), disks={"content": "sdc"})
    build.cpu("files1", 0.05, 0.02, cores=(0, 1)).disk("files1", "sdc", 0, 0.05, reads=30, busy=0.98)
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:files", 16, 0.5)
    build.operations("crawl", "document:files/fetch", 16, 0.45)
    way = looked_at(judged(build.generator()), "dependency", "files")
    used, witness = way.checks[0], way.checks[3]
    assert (used.holds, used.fact.value is not None and used.fact.value > 0.5) == (False, True)
    assert ", but the called tier is busy itself (98 % used)" in used.fact.fact
    assert witness.fact.rule != OWN_USE.says
