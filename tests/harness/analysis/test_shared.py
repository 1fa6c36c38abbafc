"""Shared resources: cores and storage shared by tiers, generators and machines; load balance of a tier."""

from __future__ import annotations

import pytest
from harness.analysis.build import MACHINE, Build
from harness.analysis.disks import Capped, Distant, commits, read_then_commit
from harness.analysis.verdicts import judged, length

from pinchpoint.report.explained import explanation_text


def web_and_sql(
    web: float | None, sql: float | None, *, web_told: bool = True, generator: float = 0.0
) -> Build:
    """Return saturated cores shared by web and sql; ``web_told``: web's cores are known."""
    build = Build().host("web1", "web", cores=(0, 1) if web_told else ()).host("sql1", "sql", cores=(0, 1))
    for host, share in (("web1", web), ("sql1", sql)):
        build.cpu(host, 0.985, share, cores=(0, 1), pressure=0.9, noise=0.004)
    build.manifest["generators"] = [{"worker": "generator1", "cores": [], "machine_id": MACHINE}]
    build.closed("crawl", "full-crawl", 12).operations("crawl", "document:sharepoint", 60, 0.2, noise=0.01)
    build.metric("generator1", "generator.users", 12.0, "crawl", 0.0)
    return build.generator(cpu=generator)


def test_a_tier_on_the_machine_that_nobody_watches_is_no_stranger() -> None:
    """An unobserved web tier on the machine is the experiment's subject, not "other processes"."""
    verdict = judged(web_and_sql(None, 0.15, web_told=False))
    assert verdict.outcome == "inconclusive"
    assert "processes that were not watched: web, or other processes" in verdict.summary
    assert verdict.experiment == "Watch the processes of web on sql1, and run the same plan again."


def test_a_tier_that_idles_was_watched_all_the_same() -> None:
    """A tier with measured use of 0.0 was observed, so other processes used the cores."""
    verdict = judged(web_and_sql(0.0, 0.15))
    assert verdict.outcome == "inconclusive"
    assert "was used by other processes" in verdict.summary
    assert verdict.experiment == "End the other processes on web1, and run the same plan again."


@pytest.mark.parametrize("waiting", [14.2, 1.0])
def test_full_cores_beside_a_hot_row_are_in_doubt_where_nobody_measured_whose_they_are(
    waiting: float,
) -> None:
    """Saturated cores of unknown use have low confidence beside a row lock that most sessions wait for."""
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("sql1", 0.985, cores=(0, 1), pressure=0.9, noise=0.004)
    build.disk("sql1", "sdb", 5, 0.0008, busy=0.01).sessions("sql1", 15.8, Lock__transactionid=waiting)
    build.closed("orders", "sql-mix", 16).operations("orders", "hot_update", 90, 16 / 90, noise=0.02)
    found = judged(build.metric("generator1", "generator.users", 16.0, "orders", 0.0).generator()).bottleneck
    assert found is not None
    told = any("which work keeps these cores busy was not measured" in why for why in found.why_not_more)
    assert (found.kind, told) == ("cpu", waiting > 8)
    assert found.confidence == ("low" if told else "medium")


def test_a_folder_has_no_processes_to_be_watched() -> None:
    """A tier of files has no processes, so the advice is to end the other processes."""
    build = Build().host("sql1", "sql", cores=(0, 1)).host("files1", "files", cores=())
    build.cpu("sql1", 0.99, 0.25, cores=(0, 1), pressure=0.9)
    build.closed("orders", "sql-mix", 4).operations("orders", "log_append", 400, 0.01)
    verdict = judged(build.generator())
    assert verdict.experiment is not None
    assert verdict.experiment.startswith("End the other processes on sql1")


def test_to_know_of_the_generator_is_not_to_know_which_tier_uses_the_cores() -> None:
    """A measured generator share does not attribute the rest of the shared cores to a tier."""
    verdict = judged(web_and_sql(None, None, generator=0.3))
    found = verdict.bottleneck
    assert found is not None
    assert found.confidence == "low"
    assert "which tier uses the shared cores was not measured" in found.why_not_more
    assert (found.tier, found.host, found.shared_with) == (None, "web1", ("web", "sql"))
    assert "the CPU shared by web and sql (web1)" in explanation_text(verdict.to_json())


def test_shared_cores_that_come_next_are_nobody_s_where_nobody_measured_whose_they_are() -> None:
    """Shared cores of unknown use that are 50 % busy are named without a tier."""
    build = Build()
    for tier in ("web", "search"):
        build.host(f"{tier}1", tier, cores=(0, 1)).cpu(f"{tier}1", 0.5, cores=(0, 1))
    build.open("crawl", "full-crawl", 50).operations("crawl", "document:sharepoint", 50, 0.01)
    verdict = judged(build.generator(crawl=(50.0, 50.0)))
    assert verdict.outcome == "not_reached"
    assert verdict.next is not None
    assert verdict.next.tier is None
    assert verdict.summary.endswith("Highest utilisation: CPU shared by web and search (web1), 50 %.")
    assert [row["tier"] for row in verdict.demand if row["resource"] == "cpu"] == [None]


def test_a_generator_that_uses_most_of_the_farm_s_cores_is_said_to() -> None:
    """A generator that uses 44 % of the shared cores is named, and the advice is to move it."""
    verdict = judged(web_and_sql(0.36, 0.15, generator=0.86))
    found = verdict.bottleneck
    assert found is not None
    assert (found.tier, found.confidence) == ("web", "low")
    assert "the load generator used 44 % of it, web 36 %" in verdict.summary
    assert "the load generator uses 44 % of it: move that first" in verdict.advice[0].text


def two_volumes(*, shared: bool) -> Build:
    """Return the log volumes of two machines, with one shared limit of 500 IOPS or independent."""
    seconds = length(60)
    log, data = read_then_commit(Capped(500), seconds, 12, 1, 1.0)
    if not shared:
        log, data = (commits(Distant(0.012, 0.003), seconds, users=8, seed=seed) for seed in (1, 2))
    build = Build()
    for number, found in enumerate((log, data), 1):
        build.host(f"sql{number}", "sql", machine=f"m{number}", cores=(0, 1), disks={"log": "sdb"})
        build.cpu(f"sql{number}", 0.2, 0.18, cores=(0, 1)).device(f"sql{number}", "sdb", found, 0.9)
    build.metric("generator1", "generator.users", 12.0, "orders", 0.0)
    return build.closed("orders", "sql-mix", 12).served("orders", "log_append", log).generator()


@pytest.mark.parametrize("shared", [True, False])
def test_volumes_of_two_machines_may_share_a_limit(*, shared: bool) -> None:
    """Two volumes whose sum is as flat as a regulator may share a limit, so the confidence is low."""
    found = judged(two_volumes(shared=shared)).bottleneck
    assert found is not None
    said = any("they may share a limit" in why for why in found.why_not_more)
    assert said == shared, found.why_not_more
    assert not shared or found.confidence == "low"


def web_hosts(*used: float) -> Build:
    build = Build()
    for number, busy in enumerate(used, 1):
        name = f"web{number}"
        build.host(name, "web", machine=f"m{number}", cores=(0, 1))
        build.cpu(name, busy, busy * 0.95, cores=(0, 1), pressure=0.9 if busy > 0.9 else 0.05, noise=0.004)
    build.closed("crawl", "full-crawl", 16).operations("crawl", "document:sharepoint", 80, 0.2)
    build.operations("crawl", "document:sharepoint/fetch", 80, 0.19)
    return build.metric("generator1", "generator.users", 16.0, "crawl", 0.0).generator()


def test_one_hot_host_of_three_is_a_matter_of_balance() -> None:
    """With hosts at 98, 30 and 28 %, the advice is to spread the load evenly: 1.9 times as much."""
    verdict = judged(web_hosts(0.98, 0.3, 0.28))
    evenly, more = verdict.advice
    assert "Spread the load of web evenly over its hosts" in evenly.text
    assert "web1 98 %, web2 30 %" in evenly.text
    assert evenly.gain_ratio == pytest.approx(0.88, abs=0.05)
    assert evenly is verdict.advice[0]
    assert "Add CPUs to web1, of the hosts of web" in more.text
    assert "then the CPU of web (web2) is the bottleneck" in more.text


def test_hosts_that_are_all_busy_are_not_told_to_share_better() -> None:
    """With hosts at 98 and 89 %, no advice is to spread the load evenly."""
    verdict = judged(web_hosts(0.98, 0.89))
    assert not [one for one in verdict.advice if "evenly" in one.text]


def test_two_machines_that_are_shared_are_told_apart() -> None:
    """Of two saturated shared machines, the deeper one is named and the other one is listed."""
    build = Build()
    for tier, share in (("web", 0.6), ("search", 0.35), ("sql", 0.7), ("nosql", 0.2)):
        machine = "a" if tier in {"web", "search"} else "b"
        build.host(f"{tier}1", tier, machine=machine, cores=(0, 1))
        build.cpu(f"{tier}1", 0.985, share, cores=(0, 1), pressure=0.9, noise=0.003)
    build.closed("crawl", "full-crawl", 16).operations("crawl", "document:sharepoint", 80, 0.2)
    build.metric("generator1", "generator.users", 16.0, "crawl", 0.0)
    verdict = judged(build.generator())
    assert verdict.summary.startswith("Bottleneck: CPU shared by sql and nosql (sql1). ")
    assert "Also saturated: CPU shared by web and search (web1)." in verdict.summary


def test_of_a_device_with_two_roles_both_are_to_be_moved() -> None:
    """For a device with the roles log and data, the advice is to move both roles."""
    roles = {"log": "sdb", "data": "sdb"}
    limits = {role: {"iops": 300.0} for role in roles}
    build = Build().host("sql1", "sql", cores=(0, 1), disks=roles, limits=limits)
    build.cpu("sql1", 0.2, 0.18, cores=(0, 1))
    build.disk("sql1", "sdb", 30, 0.04, 0.004, reads=270, busy=1.0, pressure=0.95)
    build.sessions("sql1", 11.8, IO__DataFileRead=10.4, IO__WalSync=0.9)
    build.closed("orders", "sql-mix", 12).operations("orders", "point_read", 270, 12 / 270, noise=0.01)
    verdict = judged(build.metric("generator1", "generator.users", 12.0, "orders", 0.0).generator())
    assert verdict.advice[0].target == "sql.log and sql.data"
    assert verdict.advice[0].text.startswith("Put sql.log and sql.data on a faster disk")
