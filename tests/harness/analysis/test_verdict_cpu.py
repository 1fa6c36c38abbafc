"""Saturated cores, quotas and threads: which tier is named, and with which confidence."""

from __future__ import annotations

import pytest
from harness.analysis.build import Build, crawl_bound_by_search, shared_farm
from harness.analysis.verdicts import SEEDS, judged, named, two_machines

from pinchpoint.analysis import exit_status
from pinchpoint.analysis.flows import find_flows
from pinchpoint.analysis.resources.base import Resource, ResourceType, ShareMeasures, Suspicion
from pinchpoint.analysis.resources.kinds import find_resources
from pinchpoint.analysis.summary import experiment
from pinchpoint.data.inputs import read_inputs


@pytest.mark.parametrize("seed", SEEDS)
def test_a_shared_core_is_named_with_the_tier_that_uses_most_of_it(seed: int) -> None:
    """A shared machine's CPU is named once, with the tier that uses most and those that share it."""
    verdict = judged(crawl_bound_by_search(seed))
    assert named(verdict) == ("cpu", "search", "search1", "medium")
    assert verdict.bottleneck is not None
    assert set(verdict.bottleneck.shared_with) == {"web", "sql", "nosql"}
    assert verdict.bottleneck.uses[0]["tier"] == "search"
    assert verdict.summary.startswith("Bottleneck: CPU shared by ")
    assert "search used" in verdict.summary
    assert verdict.bottleneck.confidence == "medium"
    assert {fact.evidence for fact in verdict.bottleneck.evidence} >= {"E1", "E4"}
    assert verdict.headroom_ratio == pytest.approx(0.03, abs=0.03)
    assert exit_status(verdict) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_dedicated_machine_is_named_without_sharing(seed: int) -> None:
    """A tier alone on its machine is named without process figures."""
    verdict = judged(two_machines(0.96, seed))
    assert named(verdict) == ("cpu", "search", "app3", "medium")
    assert "Bottleneck: CPU of the search tier (app3)." in verdict.summary
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.shared_with == ()
    assert verdict.next is not None
    assert (verdict.next.kind, verdict.next.tier) == ("cpu", "sql")
    assert verdict.next.gain_ratio == pytest.approx(0.96 / 0.35 - 1, rel=0.1)


def test_without_a_witness_confidence_is_low() -> None:
    """A CPU at its limit without pressure figures has one kind of evidence: low confidence."""
    verdict = judged(two_machines(0.96, pressure=None))
    assert named(verdict) == ("cpu", "search", "app3", "low")
    assert verdict.bottleneck is not None
    assert "only one kind of evidence" in verdict.bottleneck.why_not_more


def test_one_thread_at_its_limit_while_the_pool_is_not() -> None:
    """A single-threaded server on four cores is limited by its thread, not by the machine's CPU."""
    build = Build().host("nosql1", "nosql", cores=(0, 1, 2, 3))
    build.cpu("nosql1", 0.34, 0.34, cores=(0, 1, 2, 3), pressure=0.1)
    build.metric("nosql1", "cpu.busy_ratio", 0.985, "thread:valkey-server", noise=0.005)
    build.closed("burst", "nosql-burst", 50).operations("burst", "write", 20000, 0.0025)
    verdict = judged(build.generator())
    assert named(verdict) == ("cpu_thread", "nosql", "nosql1", "low")
    assert "one thread of the nosql tier (valkey-server on nosql1)" in verdict.summary.lower()


def test_one_thread_on_a_single_core_is_the_pool() -> None:
    """On one core, the thread's limit is the core's limit: kind cpu."""
    build = Build().host("nosql1", "nosql", cores=(0,)).cpu("nosql1", 0.98, 0.97, pressure=0.9)
    build.metric("nosql1", "cpu.busy_ratio", 0.97, "thread:valkey-server", noise=0.005)
    build.closed("burst", "nosql-burst", 50).operations("burst", "write", 20000, 0.0025)
    assert named(judged(build.generator()))[:3] == ("cpu", "nosql", "nosql1")


def test_an_allowance_below_the_cores_is_a_limit_of_its_own() -> None:
    """A tier at its CPU quota is named, although the machine's cores have spare capacity."""
    build = Build().host("search1", "search", cores=(0, 1)).cpu("search1", 0.3, 0.97, cores=(0, 1))
    build.metric("search1", "cpu.cores", 0.5, "tier:search", noise=0.0)
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:site", 40, 0.2)
    verdict = judged(build.generator())
    assert named(verdict) == ("cpu", "search", "search1", "low")
    assert "CPU limit" in verdict.summary


def test_cpu_that_other_programs_use_is_said() -> None:
    """A machine saturated by other processes gives no bottleneck of the farm."""
    build = Build().host("sql1", "sql", cores=(0, 1)).cpu("sql1", 0.99, 0.25, cores=(0, 1), pressure=0.9)
    build.closed("orders", "sql-mix", 4).operations("orders", "log_append", 400, 0.01)
    verdict = judged(build.generator())
    assert verdict.outcome == "inconclusive"
    assert "of the CPU of sql1 was used by other processes" in verdict.summary
    assert verdict.candidates[0].kind == "cpu"
    assert verdict.experiment is not None
    assert verdict.experiment.startswith("End the other processes on sql1")


def test_a_tier_that_uses_little_is_not_blamed_for_one_that_was_not_watched() -> None:
    """Of two tiers on saturated cores, one uses 4 % and one was not observed: no tier is named."""
    build = Build().host("sql1", "sql", cores=(0,)).host("nosql1", "nosql", cores=(0,))
    build.cpu("sql1", 0.97, 0.04, pressure=0.9)
    build.closed("orders", "sql-mix", 4).operations("orders", "log_append", 400, 0.01)
    verdict = judged(build.generator())
    assert verdict.outcome == "inconclusive"
    assert "processes that were not watched: nosql, or other processes" in verdict.summary
    assert verdict.experiment == "Watch the processes of nosql on sql1, and run the same plan again."


def test_nobody_is_blamed_for_cores_whose_use_was_not_measured() -> None:
    """Shared cores without process figures are named with low confidence and the reason."""
    build = shared_farm(Build())
    for host in ("web1", "search1", "sql1", "nosql1"):
        build.cpu(host, 0.97, pressure=0.9)
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:site", 80, 0.1)
    verdict = judged(build.generator())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.confidence == "low"
    assert "which tier used most of it was not measured" in verdict.summary


@pytest.mark.parametrize("nodes", [2, 3])
def test_all_nodes_of_a_tier_on_one_machine_count_as_its_use(nodes: int) -> None:
    """Several nodes of a store on one machine count together as the farm's use of the cores."""
    build = Build().host("sql1", "sql", cores=(0, 1))
    for number in range(nodes):
        name = f"nosql{number + 1}"
        build.host(name, "nosql", cores=(0, 1)).cpu(name, 0.98, 0.9 / nodes, cores=(0, 1), pressure=0.9)
    build.cpu("sql1", 0.98, 0.05, cores=(0, 1), pressure=0.9)
    build.closed("burst", "nosql-burst", 16).operations("burst", "write", 800, 0.02)
    verdict = judged(build.generator())
    assert verdict.bottleneck is not None, verdict.summary
    assert named(verdict)[:3] == ("cpu", "nosql", "nosql1")
    assert verdict.bottleneck.uses[0]["share_ratio"] == pytest.approx(0.92, abs=0.03)


def test_a_tier_beside_several_hosts_of_another_is_named_with_its_own_host() -> None:
    """A tier is named with its own host, not with a host of another tier on that machine."""
    build = Build()
    for name, tier, share in (("c1", "nosql", 0.02), ("c2", "nosql", 0.02), ("sql1", "sql", 0.9)):
        build.host(name, tier, cores=(0, 1)).cpu(name, 0.98, share, cores=(0, 1), pressure=0.9)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", 800, 0.01)
    verdict = judged(build.generator())
    assert named(verdict)[:3] == ("cpu", "sql", "sql1")
    assert verdict.bottleneck is not None
    [own] = [fact for fact in verdict.bottleneck.evidence if fact.instance == "tier:sql"]
    assert own.host == "sql1"


def test_capped_nodes_of_a_tier_have_a_memory_each() -> None:
    """Two nodes with memory limits are two resources, and the node that is short is named."""
    build = Build()
    for name, left in (("c1", 0.6), ("c2", 0.01)):
        build.host(name, "nosql", cores=(0, 1)).cpu(name, 0.3, 0.1, cores=(0, 1))
        build.metric(name, "mem.available_ratio", left, "tier:nosql", 0.0)
    build.closed("burst", "nosql-burst", 8).operations("burst", "write", 80, 0.1).generator()
    inputs = read_inputs(build.run())
    found = [one for one in find_resources(inputs, find_flows(inputs)) if one.type == "memory"]
    assert len({one.key for one in found}) == 2
    assert {one.hosts for one in found} == {("c1",), ("c2",)}


@pytest.mark.parametrize(
    ("kind", "whole", "remedy"),
    [
        ("thread", None, "run it on a faster core"),
        ("allowance", None, "allow it more CPU"),
        ("disk", "azure/ds12", "use a larger machine"),
        ("disk", None, "put it on a faster disk"),
        ("cpu", None, "give it more cores"),
    ],
)
def test_the_experiment_relieves_what_it_names(kind: ResourceType, whole: str | None, remedy: str) -> None:
    """The experiment changes the named resource: a thread, a quota or a machine's disk limit."""
    resource = Resource("x", kind, "a", ("sql1",), ("sql",), "x", whole=whole)
    found = ShareMeasures(used=0.99, witness=None)
    assert remedy in experiment((), [Suspicion(resource, "cpu", frozenset({"E1"}), found)])
