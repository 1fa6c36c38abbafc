"""Capacity: each resource's demand per operation, its ceiling, and the headroom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.analysis.build import Build, Floats
from harness.analysis.test_levels import EACH_S, WARM_UP_S, climb, over_time
from harness.analysis.verdicts import judged

from pinchpoint.analysis import Verdict

MB = 1e6
LARGE = 65536


def demand(verdict: Verdict, **of: str) -> Any:
    [found] = [row for row in verdict.demand if all(row[key] == value for key, value in of.items())]
    return found


def with_machine(build: Build, machine: str, **attached: str) -> Build:
    """Set the entry of sql1's machine in farm.yaml, and how its disks are attached."""
    host = build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]
    host["machine"] = machine
    for role, way in attached.items():
        host["disks"][role]["attached"] = way
    return build


def two_disks(
    total: float, machine: str = "azure/ds12", size: float = LARGE, seed: int = 1, **attached: str
) -> Build:
    """Return a log and a data disk, each a P30, that share that limit of bytes per second."""
    caps = {"iops": 5000.0, "bytes_per_s": 200 * MB}
    build = Build(seed=seed)
    build.host(
        "sql1", "sql", cores=(0, 1), disks={"log": "sdc", "data": "sdd"}, limits={"log": caps, "data": caps}
    )
    build.cpu("sql1", 0.3, 0.25, cores=(0, 1))
    writes, share = build.noisy(total / size, 0.003), build.noisy(0.6, 0.05)
    for device, part in (("sdc", share), ("sdd", 1 - share)):
        each_s = 8 / (total / size * float(np.mean(part)))
        build.disk("sql1", device, writes * part, each_s, 0.0, busy=1.0, pressure=0.9, size_bytes=size)
    build.closed("orders", "sql-mix", 16).operations("orders", "log_append", 500, 0.032)
    return with_machine(build.generator(), machine, **attached)


# ---- a machine's own caps -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_machine_s_own_cap_is_found_behind_disks_that_have_room(seed: int) -> None:
    """128 MB/s on a DS12 with two P30 of 200 MB/s each: the machine's limit is named, not a disk's."""
    verdict = judged(two_disks(128 * MB, seed=seed))
    found = verdict.bottleneck
    assert found is not None, verdict.summary
    assert (found.kind, found.resource, found.instance) == ("disk_cap", "disk", "azure/ds12")
    assert (found.host, found.role, found.confidence) == ("sql1", None, "medium")
    [cap] = [fact for fact in found.evidence if fact.evidence == "E1"]
    assert "what the machine (azure/ds12) can do for all its disks together" in cap.fact
    assert cap.threshold == 128 * MB
    assert "the machine sql1 for all its disks together (azure/ds12)" in verdict.summary


def test_a_machine_with_room_is_the_next_hidden_limit() -> None:
    """A disk at 100 MB/s on a machine of 128 MB/s: the next ceiling is a gain of 28 %."""
    build = Build()
    build.host(
        "sql1", "sql", cores=(0, 1), disks={"log": "sdc"}, limits={"log": {"iops": 500.0, "bytes_per_s": 1e8}}
    )
    build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]["log"]["profile"] = "azure/p10"
    build.cpu("sql1", 0.2, 0.2, cores=(0, 1))
    build.disk("sql1", "sdc", 1e8 / 262144, 0.02, 0.003, busy=1.0, pressure=0.9, size_bytes=262144)
    build.closed("orders", "sql-mix", 8).operations("orders", "bulk", 100, 0.08)
    verdict = judged(with_machine(build.generator(), "azure/ds12"))
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.role == "log"
    assert verdict.next is not None
    assert (verdict.next.instance, verdict.next.role) == ("azure/ds12", None)
    assert verdict.next.gain_ratio == pytest.approx(0.28, abs=0.01)
    assert verdict.then is not None
    assert verdict.then.kind == "cpu"
    advice = verdict.advice[0]
    assert "azure/p20 (2,300 IOPS, 150 MB/s) instead of azure/p10 (500 IOPS, 100 MB/s)" in advice.what
    assert advice.gain_ratio == pytest.approx(0.28, abs=0.01)
    assert advice.limit_next == "the machine sql1 (azure/ds12), all its disks"


@pytest.mark.parametrize(("way", "expected"), [("network", 1.0), ("cached", 1.0), ("local", None)])
def test_how_a_disk_is_attached_says_which_cap_counts(way: str, expected: float | None) -> None:
    """A disk with host cache counts to the cached limits; a disk inside the machine to none."""
    verdict = judged(two_disks(128 * MB, log=way, data=way))
    rows = [row for row in verdict.demand if row["role"] is None and row["resource"] == "disk"]
    name = "azure/ds12" if way == "network" else "azure/ds12 (cached)"
    assert [row["instance"] for row in rows] == ([name] if expected else [])
    if expected:
        assert rows[0]["used_ratio"] == pytest.approx(expected, abs=0.01)


def test_whole_devices_count_once() -> None:
    """Each device counts once: an array instead of its disks, also without a role; local disks do not."""
    build = (
        Build().host("sql1", "sql", cores=(0, 1), disks={"log": "md0"}).cpu("sql1", 0.2, 0.2, cores=(0, 1))
    )
    build.manifest["hosts"]["sql1"]["disks"] = {
        "md0": {"members": ["sdc", "sdd"], "model": None},
        "sdc": {"members": [], "model": "Virtual Disk"},
        "sdd": {"members": [], "model": "Virtual Disk"},
        "sda": {"members": [], "model": "Virtual Disk"},
        "nvme0n1": {"members": [], "model": "Microsoft NVMe Direct Disk v2"},
    }
    for device, writes in (("md0", 600), ("sdc", 300), ("sdd", 300), ("sda", 40), ("nvme0n1", 5000)):
        build.disk("sql1", device, writes, 0.001)
    build.open("orders", "sql-mix", 100).operations("orders", "log_append", 100, 0.004)
    verdict = judged(with_machine(build.generator(), "azure/ds12"))
    assert demand(verdict, instance="azure/ds12")["used_ratio"] == pytest.approx(640 / 12800, rel=0.08)


def test_a_machine_nobody_knows_is_said() -> None:
    """A machine type that the catalogue lacks has unknown limits, and the verdict says so."""
    verdict = judged(two_disks(60 * MB, machine="azure/unheard-of"))
    assert any("the catalogue has no machine azure/unheard-of" in warning for warning in verdict.warnings)
    assert not [row for row in verdict.demand if row["role"] is None and row["resource"] == "disk"]


# ---- demand -------------------------------------------------------------------------------------


def test_levels_split_use_at_rest_from_what_an_operation_takes() -> None:
    """20 % use at rest and 1 ms of both cores per operation give a ceiling of 800/s."""
    levels = np.arange(50.0, 450.0, 50.0)
    build = Build(measure_s=EACH_S * len(levels), warm_up_s=WARM_UP_S)
    build.host("sql1", "sql", cores=(0, 1))
    offered = over_time(levels)
    build.cpu("sql1", 0.2 + offered * 0.001, 0.2 + offered * 0.001, cores=(0, 1), noise=0.01)
    build.steps("orders", "sql-mix", levels, EACH_S).operations(
        "orders", "log_append", offered, 0.004, noise=0.01
    )
    verdict = judged(build.generator(orders=(offered, offered)))  # type: ignore[arg-type]  # one a second
    assert verdict.outcome == "not_reached", verdict.summary
    row = demand(verdict, resource="cpu")
    assert row["base_ratio"] == pytest.approx(0.2, abs=0.02)
    assert row["each_s"] == pytest.approx(0.001, rel=0.05)
    assert row["ceilings_per_s"] == {"orders": pytest.approx(800, rel=0.05)}
    assert row["levels"] == len(levels)
    assert verdict.headroom_ratio == pytest.approx(1.0, abs=0.1)
    assert (verdict.headroom.how, verdict.headroom.scenario) == ("model", "orders")


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_what_does_not_grow_over_the_levels_is_no_next_bottleneck(seed: int) -> None:
    """A use that does not grow with the load is no next bottleneck; the log, which grows, is."""
    levels = np.arange(50.0, 350.0, 50.0)
    build = Build(measure_s=EACH_S * len(levels), warm_up_s=WARM_UP_S, seed=seed)
    build.host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"}, limits={"log": {"iops": 500}})
    offered = over_time(levels)
    job = 0.68 - 0.08 * offered / offered.max()
    build.cpu("sql1", job, job, cores=(0, 1), noise=0.01)
    build.disk("sql1", "sdb", offered, 0.001, 0.01, busy=0.3, pressure=0.1)
    build.steps("orders", "sql-mix", levels, EACH_S).operations(
        "orders", "log_append", offered, 0.004, noise=0.01
    )
    verdict = judged(build.generator(orders=(offered, offered)))  # type: ignore[arg-type]  # one a second
    assert verdict.outcome == "not_reached", verdict.summary
    assert verdict.next is not None
    assert (verdict.next.resource, verdict.next.role) == ("disk", "log")
    assert not [row for row in verdict.demand if row["resource"] == "cpu"]
    assert verdict.headroom_ratio == pytest.approx(500 / 300 - 1, abs=0.08)


def test_one_level_takes_all_use_for_the_operations_own() -> None:
    """From one load level the ceiling is X ÷ U for each scenario, and the assumption is stated."""
    build = Build().host("sql1", "sql", cores=(0, 1)).cpu("sql1", 0.4, 0.4, cores=(0, 1))
    build.open("orders", "sql-mix", 200).operations("orders", "log_append", 200, 0.004)
    build.open("crawl", "full-crawl", 10).operations("crawl", "document:site", 10, 0.1)
    row = demand(judged(build.generator()), resource="cpu")
    assert row["base_ratio"] is None
    assert row["ceilings_per_s"]["orders"] == pytest.approx(500, rel=0.06)
    assert row["ceilings_per_s"]["crawl"] == pytest.approx(25, rel=0.08)
    assert "as only one load level was measured" in row["assumes"]


def test_where_no_cap_is_known_there_is_no_use() -> None:
    """A disk without a declared limit has no ceiling, however busy it is."""
    build = (
        Build().host("sql1", "sql", cores=(0, 1), disks={"log": "sdc"}).cpu("sql1", 0.2, 0.2, cores=(0, 1))
    )
    build.disk("sql1", "sdc", 300, 0.002, busy=0.99)
    build.open("orders", "sql-mix", 200).operations("orders", "log_append", 200, 0.004)
    assert not [row for row in judged(build.generator()).demand if row["resource"] == "disk"]


def test_what_another_load_uses_is_not_what_comes_next() -> None:
    """The database's use by orders is not the next bottleneck of a load that another store limits."""
    build = Build().host("nosql1", "nosql", machine="n", cores=(0, 1)).cpu("nosql1", 0.98, 0.97, (0, 1), 0.9)
    build.host("sql1", "sql", machine="s", cores=(0, 1)).cpu("sql1", 0.4, 0.4, cores=(0, 1))
    build.closed("burst", "nosql-burst", 12).operations("burst", "record_write", 2000, 0.006, noise=0.02)
    build.open("orders", "sql-mix", 150).operations("orders", "point_read", 150, 0.005)
    verdict = judged(build.generator(orders=(150.0, 150.0)))
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.tier == "nosql"
    assert verdict.next is None
    assert demand(verdict, tier="sql")["ceilings_per_s"].keys() == {"orders"}


def test_what_others_read_is_not_the_load_s_use() -> None:
    """A backup's reads do not count as the load's own use of the data disk, so more cores still help."""
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"data": "sdc"}, limits={"data": {"iops": 400.0}})
    build.cpu("sql1", 0.99, 0.97, cores=(0, 1), pressure=0.9)
    build.disk("sql1", "sdc", 0, 0.01, 0.004, reads=400, busy=1.0, pressure=0.9)
    build.sessions("sql1", 11.8, IO__DataFileRead=0.02)
    build.closed("orders", "sql-mix", 12).operations("orders", "data_update", 500, 0.024, noise=0.02)
    verdict = judged(build.generator())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind == "cpu"
    assert verdict.next is None
    assert not [row for row in verdict.demand if row["resource"] == "disk"]


# ---- headroom -----------------------------------------------------------------------------------


def healthy(busy: float = 0.4) -> Build:
    build = Build().host("sql1", "sql", cores=(0, 1)).cpu("sql1", busy, busy, cores=(0, 1), noise=0.005)
    build.open("orders", "sql-mix", 200).operations("orders", "log_append", 200, 0.004, noise=0.01)
    return build.generator(orders=(200.0, 200.0))


def test_headroom_without_objectives_ends_at_the_first_ceiling() -> None:
    """Without objectives the headroom ends at the first ceiling: 40 % used gives 150 %."""
    found = judged(healthy()).headroom
    assert found.ratio == pytest.approx(1.5, abs=0.05)
    assert found.objectives_per_s == pytest.approx(500, rel=0.03)
    assert found.why == "until the CPU of sql is saturated"


def test_headroom_ends_where_times_reach_their_objective() -> None:
    """Headroom ends where R (1 - U) / (1 - U') reaches the objective: here at 75 % more load."""
    build = healthy()
    p95_s = judged(build).scenarios["orders"]["response_p95_s"]
    found = judged(build.objective(scenario="orders", p95_s=2 * p95_s)).headroom
    assert found.ratio == pytest.approx(0.75, abs=0.03)
    assert "p95 of orders reaches" in found.why
    assert "as those of a queue" in found.assumes


def test_headroom_of_times_is_that_of_what_they_wait_for_themselves() -> None:
    """Each scenario's headroom follows from the resource that it uses: the store's ends first."""
    build = Build().host("nosql1", "nosql", machine="n", cores=(0, 1)).cpu("nosql1", 0.8, 0.8, (0, 1))
    build.host("sql1", "sql", machine="s", cores=(0, 1)).cpu("sql1", 0.2, 0.2, cores=(0, 1))
    build.open("burst", "nosql-burst", 2000).operations("burst", "record_write", 2000, 0.002, noise=0.01)
    build.open("orders", "sql-mix", 150).operations("orders", "point_read", 150, 0.005, noise=0.01)
    build.generator(orders=(150.0, 150.0), burst=(2000.0, 2000.0))
    p95_s = judged(build).scenarios["orders"]["response_p95_s"]
    found = judged(build.objective(scenario="orders", p95_s=1.2 * p95_s)).headroom
    assert found.ratio == pytest.approx(0.25, abs=0.03)
    assert found.why == "until the CPU of nosql is saturated"
    [objective] = build.manifest["plan"]["objectives"]
    objective["p95_s"] = 1.05 * p95_s
    found = judged(build).headroom
    assert found.ratio == pytest.approx((1 - 0.8 / 1.05) / 0.2 - 1, abs=0.03)
    assert "p95 of orders reaches" in found.why


def test_headroom_of_a_missed_objective_is_not_known_by_one_level() -> None:
    """A missed objective at one level gives no headroom figure; the advice is a load in steps."""
    verdict = judged(healthy().objective(scenario="orders", p95_s=0.001))
    assert verdict.headroom_ratio is None
    assert "a load in steps shows" in verdict.headroom.why
    [row] = verdict.objectives
    assert row["holds"] == (
        "not held at this load (200/s); a load in steps shows the highest load at which it is met"
    )
    [row] = judged(healthy().objective(scenario="orders", p95_s=1.0)).objectives
    assert row["holds"] == "held at this load (200/s)"


def test_headroom_is_read_off_levels_where_there_are_some() -> None:
    """With levels, the headroom is read off: objectives were met up to 600/s, so none is left."""
    levels: Floats = np.arange(100.0, 900.0, 100.0)
    found = judged(climb(levels, 600).objective(scenario="orders", p95_s=0.05)).headroom
    assert found.how == "levels"
    assert found.ratio == pytest.approx(0.0, abs=0.03)
    assert found.objectives_per_s == pytest.approx(600, rel=0.03)
    none = judged(climb(levels, 600).objective(scenario="orders", p95_s=0.001)).headroom
    assert none.ratio is None
    assert "met at no level: try a load below 100/s" in none.why


def test_headroom_of_waiting_is_not_known() -> None:
    """Where latency limits and the log has spare capacity, the headroom is unknown."""
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"log": "loop1"}).cpu("sql1", 0.1, cores=(0, 1))
    build.disk("sql1", "loop1", 25, 0.035, 0.1, busy=0.9, pressure=0.8)
    build.closed("orders", "sql-mix", 1).operations("orders", "log_append", 25, 0.04)
    verdict = judged(build.generator())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind == "disk_latency"
    assert verdict.headroom_ratio is None
    assert "latency, not utilisation" in verdict.headroom.why


def test_what_is_used_alike_at_every_load_is_no_next_bottleneck() -> None:
    """Sessions that use 14 % of the connections at every load give no ceiling."""
    levels = np.arange(100.0, 900.0, 100.0)
    build = climb(levels, 600).metric("sql1", "db.connections_ratio", 0.14, noise=0.001)
    verdict = judged(build)
    rows = [row for row in (verdict.next, verdict.then) if row is not None]
    assert "pool" not in {row.kind for row in rows}
    assert verdict.headroom_ratio == 0.0, "what is judged came after the knee"
