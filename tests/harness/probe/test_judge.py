"""A probe's verdicts on simulated disks of known formula: right where due, and none where not."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from harness.probe.build import Disk, cells_of, declared, geometric, kind_of, probe_of, trial_of

from pinchpoint.data.inputs import Limits
from pinchpoint.probe.caps import PART_MATCH, PARTS
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import DeclaredDisk
from pinchpoint.probe.target import of_profile
from pinchpoint_infra.catalogue import catalogue, profile
from pinchpoint_scenarios.storage_probe import Cell

SUITES = ("crystaldiskmark", "iometer", "database")


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("said", [True, False], ids=["declared", "withheld"])
def test_a_cap_is_found_with_its_figures(suite: str, said: bool) -> None:
    """Limits of 500/s and 60 MB/s are found, declared or not, and the type is named."""
    probe = probe_of(Disk(0.0005, 500, 60e6), suite=suite, said=declared("azure/s30") if said else None)
    verdict = judge(probe)
    assert verdict.caps.iops is not None
    assert verdict.caps.iops.value == pytest.approx(500, rel=0.01)
    assert verdict.limits_are == ("declared" if said else "found")
    assert not verdict.contradicted
    assert "disk_cap" in verdict.kinds
    if suite == "crystaldiskmark":  # I/Os of 64 KiB do not reach 60 MB/s at 500/s
        assert verdict.caps.bytes_per_s is not None
        assert verdict.caps.bytes_per_s.value == pytest.approx(60e6, rel=0.01)
        assert "azure/s30" in {one.name for one in verdict.behaves_like}
    assert not verdict.over_time
    assert not verdict.host_cache


@pytest.mark.parametrize("suite", SUITES)
def test_a_declaration_that_is_wrong_by_two_is_contradicted(suite: str) -> None:
    """A limit declared as half or twice its value is contradicted, and the found limit is used."""
    for wrong in (250, 1000):
        probe = probe_of(
            Disk(0.0005, 500, 60e6), suite=suite, said=DeclaredDisk(limits=Limits(wrong, 60e6, None))
        )
        verdict = judge(probe)
        assert verdict.contradicted is not None, wrong
        assert "500 IOPS" in verdict.contradicted
        assert verdict.limits is not None
        assert verdict.limits.iops == pytest.approx(500, rel=0.01)
        assert "disk_cap" in verdict.kinds


def test_a_repetition_that_was_disturbed_hides_no_cap() -> None:
    """Disturbed repetitions (8 % slower, 10 % faster) do not hide limits of 137/s and 9 MB/s."""
    odd = {("RND4K write", 3): 0.92, ("RND4K mix", 2): 1.10}
    disk = Disk(0.0001, 137, 9e6)
    verdict = judge(
        probe_of(
            lambda cell, trial: disk(cell, trial) * odd.get((cell.workload, trial), 1.0),
            repeat=3,
            course=False,
        )
    )
    assert verdict.caps.iops is not None
    assert verdict.caps.iops.value == pytest.approx(137)
    assert verdict.caps.bytes_per_s is not None
    assert verdict.caps.bytes_per_s.value == pytest.approx(9e6)
    assert set(verdict.kinds) == {"disk_cap"}


@pytest.mark.parametrize(("repeat", "seconds", "told"), [(1, 1.0, False), (1, 5.0, True), (2, 1.0, True)])
def test_one_short_repetition_claims_no_kind(repeat: int, seconds: float, told: bool) -> None:
    """A single repetition of one second gives no kind, no limit and no cache."""
    disk = Disk(0.0005, 515, 60e6, uneven=0.02)
    verdict = judge(probe_of(disk, said=declared("azure/s30"), repeat=repeat, seconds=seconds, course=False))
    assert bool(verdict.kinds) == told
    assert (verdict.caps.limits is not None) == told
    cells = [cell for one in verdict.workloads for cell in one.cells]
    assert any(cell.used_ratio is not None for cell in cells) == told
    assert ("cannot show the kind of limit" in verdict.summary) != told
    if not told:
        assert not verdict.contradicted
        assert not verdict.host_cache
        assert "held by a cap" not in verdict.summary


def test_few_large_ios_are_counted_no_more_exactly_than_they_are() -> None:
    """17 or 18 large I/Os in 2 s are 6 % apart, and both are at the limit of 9 MB/s."""
    counts = {("SEQ1M read", 1): 18, ("SEQ1M write", 2): 18, ("SEQ1M mix", 1): 16}
    disk = Disk(0.0001, 137, 9e6)

    def speed(cell: Cell, trial: int) -> float:
        large = cell.workload.startswith("SEQ1M") and cell.outstanding == 8
        return counts.get((cell.workload, trial), 17) / 2 if large else disk(cell, trial)

    verdict = judge(probe_of(speed, repeat=2, seconds=2.0, course=False))
    assert verdict.caps.bytes_per_s is not None
    assert verdict.caps.bytes_per_s.value == pytest.approx(9e6, rel=0.03)
    assert set(verdict.kinds) == {"disk_cap"}


def test_a_workload_that_was_disturbed_speaks_not_against_a_cap() -> None:
    """One disturbed workload does not contradict the limit that reads and the mix show."""
    disk = Disk(0.0001, 137)
    verdict = judge(
        probe_of(
            lambda cell, trial: (
                disk(cell, trial) * (0.89 if cell.name == "RND4K write, 32 outstanding" and trial == 1 else 1)
            ),
            repeat=2,
            course=False,
        )
    )
    assert verdict.caps.iops is not None
    assert verdict.caps.iops.value == pytest.approx(137)


def test_one_at_a_time_just_below_a_cap_speaks_not_against_it() -> None:
    """130/s with one outstanding do not contradict a limit of 137/s, as the disk idles between."""
    disk = Disk(0.0005, 137)
    probe = probe_of(
        lambda cell, trial: disk(cell, trial) * (0.95 if cell.outstanding == 1 else 1.0), suite="database"
    )
    verdict = judge(probe)
    assert verdict.caps.iops is not None
    assert verdict.caps.iops.value == pytest.approx(137)
    assert "disk_device" not in verdict.kinds


def test_a_slow_log_of_a_disk_that_nothing_holds_is_its_latency() -> None:
    """A log of 11 ms on a disk without limits is named for its latency."""
    verdict = judge(probe_of(Disk(0.011), suite="database"))
    assert verdict.caps.limits is None
    assert kind_of(verdict, "log 4K write") == "disk_latency"
    [log] = [one for one in verdict.workloads if one.workload == "log 4K write"]
    assert "other workloads reached at least twice this rate" in log.cells[0].why
    assert kind_of(verdict, "data 8K read") == "disk_concurrency"


def test_a_log_whose_writes_may_be_held_is_not_called_slow() -> None:
    """A log whose writes may be limited or slow gets no kind."""
    cells = [Cell("log 4K write", 4096, 0.0, 0.0, 1, "log"), Cell("data 8K read", 8192, 1.0, 1.0, 64)]
    rates = dict(zip(cells, (90.0, 5000.0), strict=True))
    assert kind_of(judge(probe_of(lambda cell, _: rates[cell], cells)), "log 4K write") is None


def test_a_figure_that_is_not_declared_is_found() -> None:
    """An undeclared byte limit is found beside a declared IOPS limit, and both are used."""
    said = DeclaredDisk(limits=Limits(137, None, None))
    verdict = judge(probe_of(Disk(0.0001, 137, 9e6), said=said))
    assert verdict.limits is not None
    assert verdict.limits.iops == 137
    assert verdict.limits.bytes_per_s == pytest.approx(9e6)
    assert (verdict.limits_are, verdict.contradicted) == ("both", None)
    assert set(verdict.kinds) == {"disk_cap"}
    assert "137 IOPS, 9 MB/s (declared; measured where nothing is declared)" in verdict.summary


def test_a_striped_disk_behaves_like_so_many_of_its_type() -> None:
    """Two striped S30 are named as two S30 where two are declared, and not as one S30."""
    disk = Disk(0.0005, 1000, 120e6)
    found = judge(probe_of(disk, said=of_profile(profile("azure/s30"), 2)))
    assert "2 x azure/s30" in {one.type for one in found.behaves_like}
    assert not found.contradicted
    assert "azure/s30" not in {one.name for one in judge(probe_of(disk)).behaves_like}


def test_a_device_is_no_cap() -> None:
    """A device whose random reads, writes and mix have different rates has no limit."""
    service = {"read": 0.006, "write": 0.0035, "mix": 0.005}
    disk = Disk(
        0.0001,
        service_s=lambda cell: service[cell.workload.split()[1]] * (1 if cell.random_ratio else 0.4),
        uneven=0.04,
    )
    verdict = judge(probe_of(disk))
    assert verdict.caps.limits is None
    assert verdict.behaves_like == ()
    for way in service:
        assert kind_of(verdict, f"RND4K {way}") != "disk_cap"


def test_a_neighbour_that_was_disturbed_makes_no_latency_of_a_device() -> None:
    """A disturbed neighbouring depth does not turn a device into a latency."""
    rates = {1: 115.0, 8: 148.0, 32: 157.0, 128: 102.0, 1024: 150.0}
    cells = {depth: Cell("8K random write", 8192, 0.0, 1.0, depth) for depth in rates}
    probe = probe_of(
        lambda cell, _: rates[cell.outstanding or 0], cells.values(), "iometer", repeat=1, course=False
    )
    probe.cells[cells[1024]] = [replace(probe.cells[cells[1024]][0], mean_s=333 / 150.0)]
    assert kind_of(judge(probe), "8K random write") == "disk_device"


def test_a_peak_that_two_workloads_share_is_no_cap() -> None:
    """Two workloads with the same peak at 32 outstanding, and less beyond, show no limit."""
    rates = {1: (170, 196), 8: (396, 420), 32: (496, 492), 128: (398, 441), 1024: (248, 300)}
    cells = {
        Cell(f"64K sequential {way}", 65536, share, 0.0, depth): float(each[place])
        for depth, each in rates.items()
        for place, (way, share) in enumerate((("read", 1.0), ("write", 0.0)))
    }
    verdict = judge(probe_of(lambda cell, _: cells[cell], cells, "iometer", repeat=1, course=False))
    assert verdict.caps.limits is None
    assert verdict.behaves_like == ()


def test_a_device_over_many_depths_is_called_one() -> None:
    """Random writes of 288/s at every depth up to 1,024 are a device."""
    cells = [Cell("8K random write", 8192, 0.0, 1.0, depth) for depth in geometric(1, 1024)]
    verdict = judge(probe_of(Disk(service_s=lambda _: 1 / 288, uneven=0.04), cells, "iometer-full", repeat=1))
    assert verdict.kinds == {"disk_device": ("8K random write",)}


def test_two_depths_of_a_device_that_agree_by_chance_are_no_cap() -> None:
    """Equal rates at two of five depths, by chance, are a device and no limit."""
    rates = {1: 139.0, 8: 158.0, 32: 141.0, 128: 176.0, 1024: 158.5}
    cells = [Cell("8K random write", 8192, 0.0, 1.0, depth) for depth in rates]
    probe = probe_of(lambda cell, _: rates[cell.outstanding or 0], cells, "iometer", repeat=1, course=False)
    assert kind_of(judge(probe), "8K random write") == "disk_device"


def test_one_at_a_time_lacks_concurrency() -> None:
    """A round trip of 1 ms without a limit in reach is a lack of concurrency."""
    cells = [Cell("RND4K read", 4096, 1.0, 1.0, depth) for depth in (1, 8, 32)]
    verdict = judge(probe_of(Disk(0.001), cells))
    assert verdict.kinds == {"disk_concurrency": ("RND4K read",)}
    assert verdict.caps.limits is None  # the same rate at the same depth is no limit: no I/O queues


def test_the_same_rates_at_the_same_depth_are_no_cap() -> None:
    """Equal rates of all workloads at each depth are no limit on a disk with a latency floor."""
    verdict = judge(probe_of(Disk(0.001)))
    assert verdict.caps.limits is None
    assert set(verdict.kinds) == {"disk_concurrency"}


def test_a_slow_log_is_its_latency() -> None:
    """A log of 35 ms below limits of thousands per second is named for its latency."""
    probe = probe_of(
        Disk(0.035, 2000, 240e6), suite="database", said=DeclaredDisk(limits=Limits(2000, 240e6, None))
    )
    verdict = judge(probe)
    assert kind_of(verdict, "log 4K write") == "disk_latency"


def test_bytes_that_explain_all_are_one_cap() -> None:
    """A limit in units of 8 KiB is one limit in bytes for I/Os of 8 KiB and more."""
    disk = Disk(0.0005, bytes_per_s=500 * 8192)
    verdict = judge(probe_of(disk, suite="iometer", repeat=1))
    assert verdict.caps.iops is None
    assert verdict.caps.bytes_per_s is not None
    assert verdict.caps.bytes_per_s.value == pytest.approx(4.096e6, rel=0.01)
    assert set(verdict.kinds) == {"disk_cap"}


def test_large_ios_that_are_split_make_no_cap_of_bytes() -> None:
    """400/s with 1 MiB split into two parts is one limit in I/Os that counts parts."""
    verdict = judge(probe_of(Disk(0.0005, 400, 400 * 2**19)))
    assert verdict.caps.bytes_per_s is None
    assert verdict.caps.limits is not None
    assert verdict.caps.limits.iops == pytest.approx(400)
    assert verdict.caps.limits.io_unit_bytes == 2**19
    assert set(verdict.kinds) == {"disk_cap"}


def test_types_on_sale_are_not_taken_for_split_ios() -> None:
    """A type whose byte limit equals its IOPS times a part size is still named as that type."""
    alike = [
        entry
        for entry in catalogue().values()
        if entry.kind == "disk"
        and entry.iops
        and entry.bytes_per_s
        and any(abs(entry.bytes_per_s / entry.iops / part - 1) <= PART_MATCH for part in PARTS)
    ]
    assert len(alike) <= 2
    for entry in alike:
        found = judge(probe_of(Disk(0.0001, entry.iops, entry.bytes_per_s))).behaves_like
        assert entry.name in {one.name for one in found}


def test_credits_that_ran_out() -> None:
    """A rate that falls from 3,500 to 500/s after six of twelve repetitions is used-up credits."""
    base, burst = Disk(0.001, 500, 100e6), Disk(0.001, 3500, 170e6)
    probe = probe_of(lambda cell, trial: (burst if trial <= 6 else base)(cell, trial), repeat=12)
    verdict = judge(probe)
    assert "disk_burst_exhausted" in verdict.over_time
    assert "RND4K write" in verdict.over_time["disk_burst_exhausted"]
    assert verdict.caps.iops is not None
    assert verdict.caps.iops.value == pytest.approx(500, rel=0.01)
    assert "disk_warm_up" not in verdict.over_time


def test_credits_that_ran_out_within_one_long_cell() -> None:
    """A rate that falls from 3,500 to 500/s within one cell is used-up credits, by its seconds."""
    [cell] = cells_of("stability")
    probe = probe_of(Disk(0.001, 3500), [cell], "stability", repeat=1, seconds=180)
    [one] = probe.cells[cell]
    assert one.series is not None
    rates = (3500.0,) * 60 + (500.0,) * 120
    probe.cells[cell] = [replace(one, series=replace(one.series, iops=rates))]
    verdict = judge(probe)
    assert verdict.over_time == {"disk_burst_exhausted": (cell.workload,)}
    [workload] = verdict.workloads
    assert workload.course is not None
    assert workload.course.at_s == pytest.approx(60, abs=2)
    assert workload.course.after / workload.course.before == pytest.approx(1 / 7, rel=0.05)


def test_a_disk_that_warms_up() -> None:
    """Reads and writes that get faster over the repetitions are a warm-up and not a cache."""
    probe = probe_of(lambda cell, trial: Disk(0.001, 200 + 30 * trial, 60e6)(cell, trial), repeat=12)
    verdict = judge(probe)
    assert "disk_warm_up" in verdict.over_time
    assert not verdict.host_cache


def test_a_disk_that_warms_up_within_one_cell() -> None:
    """A noisy rise from 150 to 500/s within one cell is a warm-up."""
    [cell] = cells_of("stability")
    probe = probe_of(Disk(0.001, 400), [cell], "stability", repeat=1, seconds=50)
    [one] = probe.cells[cell]
    assert one.series is not None
    for number in range(20):
        chance = random.Random(number)
        rates = tuple((150 + 350 * min(1, step / 40)) * chance.uniform(0.9, 1.1) for step in range(50))
        probe.cells[cell] = [replace(one, series=replace(one.series, iops=rates))]
        assert set(judge(probe).over_time) == {"disk_warm_up"}, number


def test_reads_that_depend_on_the_trial_are_a_cache_on_the_host() -> None:
    """Reads that are fast from the second trial on, without faster writes, are a host cache."""
    slow, fast = Disk(0.0005, 500, 60e6), Disk(0.0005, 8000, 800e6)

    def speed(cell: Cell, trial: int) -> float:
        return (fast if trial > 1 and cell.read_ratio == 1 else slow)(cell, trial)

    verdict = judge(probe_of(speed, repeat=12))
    [why] = verdict.host_cache
    assert "writ" in why
    assert "disk_warm_up" not in verdict.over_time
    assert verdict.caps.iops is None or verdict.caps.iops.value == pytest.approx(500, rel=0.02)


def test_steady_repetitions_are_steady() -> None:
    """Random differences between twenty repetitions are no change over time and no cache."""
    for number in range(10):
        disk = Disk(0.001, 500 + number, 60e6, uneven=0.02)
        verdict = judge(probe_of(disk, repeat=20))
        assert not verdict.over_time, number
        assert not verdict.host_cache, number


def test_reads_above_the_catalogue_are_flagged() -> None:
    """A P10's reads of 9,000/s are flagged and excluded from the limits."""
    obeys, beyond = Disk(0.001, 500, 100e6), Disk(0.0005, 9000, 500e6)
    probe = probe_of(
        lambda cell, trial: (beyond if cell.read_ratio == 1 else obeys)(cell, trial),
        said=declared("azure/p10"),
    )
    verdict = judge(probe)
    assert any("azure/p10" in why for why in verdict.host_cache)
    assert verdict.contradicted is None
    assert verdict.caps.iops is None or verdict.caps.iops.value == pytest.approx(500, rel=0.02)


@pytest.mark.parametrize(
    ("iops", "holds", "crossed", "load"),
    [(500, 8, 16, "very light"), (6500.0, 128, 256, "relatively heavy"), (1e9, 1024, None, "very heavy")],
)
def test_where_the_line_is_crossed(iops: float, holds: int, crossed: int | None, load: str) -> None:
    """20 ms at 500/s are 10 outstanding: the line holds at 8 and is crossed at 16."""
    cells = [Cell("8K random write", 8192, 0.0, 1.0, depth) for depth in geometric(1, 1024)]
    [found] = judge(probe_of(Disk(0.00001, iops), cells, "iometer-full", repeat=1)).workloads
    assert (found.line_holds_to, found.line_crossed_at, found.load_class) == (holds, crossed, load)


def test_what_was_not_outstanding_is_said() -> None:
    """The outstanding I/O is computed from Little's law where a queue of 128 limits 1,024."""
    cell = Cell("8K random write", 8192, 0.0, 1.0, 1024)
    probe = probe_of(lambda _cell, _trial: 500.0, [cell], repeat=1)
    probe.cells[cell] = [replace(one, mean_s=128 / 500) for one in probe.cells[cell]]
    [[found]] = [one.cells for one in judge(probe).workloads]
    assert found.really_outstanding == pytest.approx(128)


def test_nothing_measured_is_no_verdict() -> None:
    """If all trials failed, there is no kind and no limit, and the summary says so."""
    probe = probe_of(Disk())
    for cell, trials in probe.cells.items():
        probe.cells[cell] = [replace(one, failed="no such tool") for one in trials]
    verdict = judge(probe)
    assert (verdict.kinds, verdict.workloads, verdict.limits) == ({}, (), None)
    assert "Nothing was measured" in verdict.summary


def test_an_unfinished_probe_says_so() -> None:
    probe = probe_of(Disk(0.0005, 500, 60e6))
    probe.state = "interrupted"
    assert "not finished" in judge(probe).summary


def test_one_trial_of_one_cell_says_nothing_of_limits() -> None:
    """One trial of one cell shows no limit, as outstanding ÷ rate is the latency of any disk."""
    cell = Cell("RND4K read", 4096, 1.0, 1.0, 8)
    probe = probe_of(Disk(0.001, 500), [cell], repeat=1)
    probe.cells[cell] = [trial_of(cell, 1, 500.0)]
    verdict = judge(probe)
    assert verdict.kinds == {}
    assert verdict.caps.limits is None
