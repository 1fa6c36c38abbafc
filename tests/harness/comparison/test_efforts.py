"""CPU time per unit of work: what a tier's processes use per document, commit or burst."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from harness.analysis.build import Build
from harness.comparison.example import saved

from pinchpoint.comparison import compare, read_sides
from pinchpoint.comparison.sides import Effort, efforts_of
from pinchpoint.data.inputs import read_inputs
from pinchpoint.report.comparison import gather


def efforts(build: Build) -> dict[tuple[str, str, str], Effort]:
    return {one.thing: one for one in efforts_of(read_inputs(build.run()))}


def farm(*tiers: str, measure_s: int = 60, seed: int = 1) -> Build:
    """Return hosts of one machine, one core per tier."""
    build = Build(measure_s=measure_s, seed=seed)
    for tier in tiers:
        build.host(f"{tier}1", tier)
    return build.generator()


def test_a_tier_takes_its_cores_time_for_what_was_done() -> None:
    """A core 40 % busy with 80 commits/s gives 5 ms per commit, and so does its course."""
    build = farm("sql").cpu("sql1", 0.5, 0.4).closed("orders", "sql-mix", 8)
    build.operations("orders", "log_append", 80, 0.1, noise=0.01)
    one = efforts(build)["orders", "sql", "cpu_s"]
    assert one.value == pytest.approx(0.005, rel=0.05)
    assert one.per == "commit"
    assert one.course is not None
    assert one.course.value == one.value


def test_a_quota_counts_as_the_cores_it_is_of() -> None:
    """90 % of a quota of half a core for 45 documents/s gives 10 ms per document."""
    build = farm("search", "sql").cpu("search1", 0.5, 0.9).cpu("sql1", 0.5, 0.05)
    build.metric("search1", "cpu.cores", 0.5, "tier:search", 0.0)
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:share", 45, 0.1, noise=0.01)
    build.operations("crawl", "document:share/index", 45, 0.01, noise=0.01)
    found = efforts(build)
    assert found["crawl", "search", "cpu_s"].value == pytest.approx(0.01, rel=0.05)
    assert found["crawl", "search", "cpu_s"].per == "document"


def test_where_reads_are_among_them_it_is_an_operation() -> None:
    """A load with reads has CPU time per operation instead of per commit."""
    build = farm("sql").cpu("sql1", 0.5, 0.4).closed("orders", "sql-mix", 8)
    build.operations("orders", "log_append", 40, 0.1).operations("orders", "point_read", 40, 0.01)
    assert efforts(build)["orders", "sql", "cpu_s"].per == "operation"


def test_of_a_tier_that_two_scenarios_use_nobody_knows_whose_it_is() -> None:
    """A tier used by two scenarios has no CPU time per unit of work."""
    build = farm("sql", "search").cpu("sql1", 0.5, 0.4).cpu("search1", 0.5, 0.2)
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:share", 40, 0.1)
    build.open("orders", "sql-mix", 50).operations("orders", "log_append", 50, 0.01)
    found = efforts(build)
    for name in ("crawl", "orders"):
        one = found[name, "sql", "cpu_s"]
        assert one.value is None
        assert one.why == "crawl and orders work there, and which of them is busy is not known"
    assert found["crawl", "search", "cpu_s"].value == pytest.approx(0.005, rel=0.1)
    assert ("orders", "search", "cpu_s") not in found


def test_of_another_tier_everybody_may_be_the_one_who_works_there() -> None:
    """A tier that no scenario addresses directly counts only with a single scenario."""
    build = farm("sql", "app").cpu("sql1", 0.5, 0.4).cpu("app1", 0.5, 0.2)
    build.open("orders", "sql-mix", 50).operations("orders", "log_append", 50, 0.01)
    assert efforts(build)["orders", "app", "cpu_s"].value == pytest.approx(0.004, rel=0.1)
    build.open("more", "sql-mix", 50).operations("more", "log_append", 50, 0.01)
    assert efforts(build)["orders", "app", "cpu_s"].value is None


def test_without_cpu_samples_it_is_not_measured() -> None:
    """Without CPU samples, or on a shared machine, the CPU time is not measured."""
    build = farm("sql", "search").cpu("search1", 0.5, 0.2).closed("crawl", "full-crawl", 8)
    build.operations("crawl", "document:share", 40, 0.1)
    one = efforts(build)["crawl", "sql", "cpu_s"]
    assert (one.value, one.why) == (None, "no CPU samples of sql1")
    shared = farm("sql").cpu("sql1", 0.5).closed("orders", "sql-mix", 8)
    shared.operations("orders", "log_append", 80, 0.1)
    one = efforts(shared)["orders", "sql", "cpu_s"]
    assert one.value is None
    assert one.why == "its processes on sql1 were not watched, and it shares that machine"


def test_a_machine_of_its_own_stands_for_the_tier() -> None:
    """A machine of its own stands for the tier: two cores 50 % busy with 100 commits/s."""
    build = Build(measure_s=60).host("sql1", "sql", machine="a", cores=())
    build.manifest["generators"] = [{"worker": "generator1", "cores": [1], "machine_id": "b"}]
    build.cpu("sql1", 0.5, cores=(0, 1)).closed("orders", "sql-mix", 8).generator()
    build.operations("orders", "log_append", 100, 0.01, noise=0.01)
    assert efforts(build)["orders", "sql", "cpu_s"].value == pytest.approx(0.01, rel=0.05)


def test_all_hosts_of_a_tier_count_or_none() -> None:
    """A tier's CPU time needs samples of all its hosts."""
    build = (
        Build(measure_s=60)
        .host("app3", "search", machine="a")
        .host("app4", "search", machine="b")
        .generator()
    )
    build.cpu("app3", 0.5, 0.3).cpu("app4", 0.5, 0.3).closed("crawl", "full-crawl", 8)
    build.operations("crawl", "document:share", 100, 0.1, noise=0.01)
    assert efforts(build)["crawl", "search", "cpu_s"].value == pytest.approx(0.006, rel=0.05)
    build.host("app5", "search", machine="c")
    assert efforts(build)["crawl", "search", "cpu_s"].why == "no CPU samples of app5"


def test_a_burst_takes_what_is_used_from_its_begin_to_its_end() -> None:
    """A burst's CPU time covers its begin to its end: five seconds at 80 % are 4 s."""
    second = np.arange(70)
    peak = (second - 10) % 15 >= 10
    build = farm("nosql").cpu("nosql1", 0.9, np.where(peak, 0.8, 0.08), noise=0.0)
    build.burst("burst", 50, 500, 15, 5)
    rate = np.where(peak, 500.0, 50.0)
    build.operations("burst", "update", rate, 0.001, noise=0.0)
    build.metric("generator1", "generator.scheduled_per_s", rate, "burst", 0.0)
    found = efforts(build)
    one = found["burst", "nosql", "burst_cpu_s"]
    assert one.value == pytest.approx(4.0, rel=0.1)
    assert (one.per, one.course) == ("burst", None)
    assert found["burst", "nosql", "cpu_s"].value == pytest.approx(0.0016, rel=0.1)


def test_both_sides_are_held_against_each_other(tmp_path: Path) -> None:
    """Half the CPU time per commit is compared as 0.5 times, with an interval."""
    for name, share in (("old", 0.4), ("new", 0.2)):
        build = farm("sql", measure_s=90, seed=len(name) + int(share * 10)).cpu("sql1", 0.5, share)
        build.open("orders", "sql-mix", 80).operations("orders", "log_append", 80, 0.01, noise=0.02)
        build.manifest["farm"]["name"] = name
        saved(build.run(), tmp_path / name)
    name = "effort.orders.sql.cpu_s"
    done = compare(read_sides([tmp_path / "old"], [tmp_path / "new"]), metrics=[name])
    content = done.to_json()
    [row] = [one for one in content["changes"] if one["name"] == name]
    assert row["ratio"] == pytest.approx(0.5, rel=0.05)
    assert row["ci95"][0] < 0.5 < row["ci95"][1]
    assert (row["interval"], row["call"]) == ("within_run", "better")
    assert re.search(
        r"CPU time of sql for a commit of orders [45]\S* ms → 2\.\S+ ms", " ".join(done.main_changes)
    )
    cells = gather(content).tables["efforts"].cells()
    assert [line[:2] for line in cells] == [["sql", "commit of orders"]]
    assert cells[0][-1] == "the same"


def test_a_side_that_was_not_watched_has_a_reason_and_no_ratio(tmp_path: Path) -> None:
    """A side without samples has a reason in place of the ratio."""
    for name in ("seen", "unseen"):
        build = farm("sql").closed("orders", "sql-mix", 8).operations("orders", "log_append", 80, 0.1)
        build.manifest["farm"]["name"] = name
        saved((build.cpu("sql1", 0.5, 0.4) if name == "seen" else build).run(), tmp_path / name)
    done = compare(read_sides([tmp_path / "seen"], [tmp_path / "unseen"]))
    [one] = [one for one in done.changes if one.about == "effort"]
    assert one.pair.base == pytest.approx(0.005, rel=0.1)
    assert one.pair.ratio is None
    assert one.pair.why == "not known for unseen: no CPU samples of sql1"
    [cells] = gather(done.to_json()).tables["efforts"].cells()
    assert cells[3:6] == ["not known", "no ratio", "none"]
    assert cells[-1] == one.pair.why


def test_imported_samples_have_none() -> None:
    """Recordings have no operations, so they have no CPU time per unit of work."""
    build = Build(measure_s=60).host("sql1", "sql").cpu("sql1", 0.5, 0.4)
    build.manifest["plan"] = {}
    assert efforts(build) == {}
