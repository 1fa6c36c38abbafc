"""Published storage tests give the published conclusions through a probe's verdict."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from harness.probe.build import declared, probe_of, trial_of

from pinchpoint.data.inputs import Limits
from pinchpoint.probe.compare import compare
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import DeclaredDisk, Probe, Trial
from pinchpoint_infra.catalogue import profile
from pinchpoint_scenarios.storage_probe import SUITES, Cell, CellSeries

PAGE = 8192
QOS = DeclaredDisk(limits=Limits(500, None, PAGE))


def published(figures: dict[Cell, float], said: DeclaredDisk | None = None) -> Probe:
    """Return a probe with these I/Os per second, one repetition each."""
    return probe_of(lambda cell, _: figures[cell], figures, repeat=1, said=said, course=False)


@pytest.mark.parametrize("said", [QOS, None], ids=["declared", "withheld"])
def test_the_capped_ssd(said: DeclaredDisk | None) -> None:
    """8 outstanding at 15.99 ms and 1,024 at 2.05 s: a cap, and 20 ms hold up to 8."""
    cells = {depth: Cell("8K random write", PAGE, 0.0, 1.0, depth) for depth in (8, 1024)}
    verdict = judge(published({cells[8]: 8 / 0.01599, cells[1024]: 1024 / 2.05}, said))
    assert verdict.kinds == {"disk_cap": ("8K random write",)}
    [workload] = verdict.workloads
    assert (workload.line_holds_to, workload.line_crossed_at) == (8, 1024)
    assert workload.load_class == "very light"


def test_the_hard_disk_under_the_same_cap() -> None:
    """Random writes of 288/s are the device's; sequential ones of 4.09 MB/s are at the cap."""
    random = Cell("8K random write", PAGE, 0.0, 1.0, 1024)
    sequential = Cell("8K sequential write", PAGE, 0.0, 0.0, 1024)
    verdict = judge(published({random: 2.36e6 / PAGE, sequential: 4.09e6 / PAGE}, QOS))
    assert verdict.kinds == {"disk_device": ("8K random write",), "disk_cap": ("8K sequential write",)}


class Measured:
    """A measured hard disk with a QoS of 500: its random reads have equal means by chance."""

    def __init__(self, uneven: float) -> None:
        self.uneven = uneven

    def __call__(self, cell: Cell, trial: int) -> float:
        """Return the I/Os per second; sequential ones are at the QoS limit."""
        random = {1: 243.3, 4: 267.8, 8: 288.4, 32: 280.8, 1024: 281.4}
        return random[cell.outstanding or 0] if cell.random_ratio else 499.0


@pytest.mark.parametrize(("uneven", "kind"), [(0.03, "disk_device"), (0.001, "disk_cap")])
def test_a_device_whose_means_agree_by_chance_is_no_cap(uneven: float, kind: str) -> None:
    """Equal means at three depths are a device if the seconds are uneven, and a cap if even."""
    cells = [
        Cell(f"8K {way} {done}", PAGE, reads, random, depth)
        for done, reads in (("read", 1.0), ("write", 0.0))
        for way, random in (("random", 1.0), ("sequential", 0.0))
        for depth in (1, 4, 8, 32, 1024)
        if (way, done) != ("random", "write")
    ]
    verdict = judge(probe_of(Measured(uneven), cells, "iometer", repeat=1))
    kinds = {one.workload: one.kind for one in verdict.workloads}
    assert kinds == {
        "8K random read": kind,
        "8K sequential read": "disk_cap",
        "8K sequential write": "disk_cap",
    }


def test_the_free_hard_disk_s_sequential_writes() -> None:
    """Below 20 ms up to 128 outstanding and 135 ms at 1,024: a relatively heavy load."""
    cells = {depth: Cell("8K sequential write", PAGE, 0.0, 0.0, depth) for depth in (8, 128, 1024)}
    rates = {8: 7000.0, 128: 128 / 0.0169, 1024: 1024 / 0.135}
    [workload] = judge(published({cells[depth]: rate for depth, rate in rates.items()})).workloads
    assert (workload.line_holds_to, workload.line_crossed_at) == (128, 1024)
    assert workload.load_class == "relatively heavy"


def test_the_free_ssd() -> None:
    """128.14 MB/s in blocks of 8 KB hold 20 ms up to 256 outstanding, and 69.37 ms at 1,024."""
    cells = {depth: Cell("8K random write", PAGE, 0.0, 1.0, depth) for depth in (256, 1024)}
    [workload] = judge(published({cells[256]: 128.14e6 / PAGE, cells[1024]: 1024 / 0.06937})).workloads
    assert (workload.line_holds_to, workload.line_crossed_at) == (256, 1024)
    assert workload.load_class == "heavy"


def test_its_points_are_consistent_and_name_nothing_by_that() -> None:
    """15.99 ms x 500/s = 8 and 2.05 s x 500/s = 1,024 fit Little's law, which names no kind."""
    for outstanding, latency_s in ((8, 0.01599), (1024, 2.05)):
        cell = Cell("8K random write", PAGE, 0.0, 1.0, outstanding)
        assert 500 * latency_s == pytest.approx(outstanding, rel=0.01)
        [workload] = judge(published({cell: outstanding / latency_s})).workloads
        assert workload.kind is None


def p10_writes() -> dict[Cell, float]:
    return {
        Cell("SEQ1M write", 2**20, 0.0, 0.0, 8): 170e6 / 2**20,
        Cell("SEQ1M write", 2**20, 0.0, 0.0, 1): 81e6 / 2**20,
        Cell("RND4K write", 4096, 0.0, 1.0, 32): 3568.0,
        Cell("RND4K write", 4096, 0.0, 1.0, 1): 1000.0,
    }


def test_a_p10_on_credits() -> None:
    """A P10 with one outstanding lacks concurrency, and with 32 is at its burst limit."""
    verdict = judge(published(p10_writes(), declared("azure/p10")))
    by_name = {cell.cell: cell for workload in verdict.workloads for cell in workload.cells}
    one, many = by_name["RND4K write, 1 outstanding"], by_name["RND4K write, 32 outstanding"]
    assert (one.kind, one.limit) == ("disk_concurrency", "burst")
    assert (many.kind, many.limit, many.exact) == ("disk_cap", "burst", True)
    large = by_name["SEQ1M write, 8 outstanding"]
    assert (large.kind, large.limit, large.exact) == ("disk_cap", "burst", True)
    assert verdict.contradicted is None
    assert verdict.declared_used["iops"] == pytest.approx(3568 / 500)
    said = (
        "With 1 outstanding, RND4K write reaches 29 % of its limit (1 ms each): only parallel I/O reaches it."
    )
    assert said in verdict.summary


def test_its_reads_are_flagged_and_not_averaged() -> None:
    """Reads up to the machine's limit with the host cache off are flagged as unexplained."""
    machine = profile("azure/d4s_v3")
    assert machine.iops is not None
    reads = {Cell("RND4K read", 4096, 1.0, 1.0, 32): machine.iops}
    verdict = judge(published(p10_writes() | reads, declared("azure/p10")))
    [why] = verdict.host_cache
    assert "RND4K read" in why
    assert "azure/p10" in why
    assert verdict.contradicted is None


READ = Cell("RND4K read", 4096, 1.0, 1.0, 32)
MIX = Cell("RND4K mix", 4096, 0.7, 1.0, 32)
WRITE = Cell("RND4K write", 4096, 0.0, 1.0, 32)


def uneven_p10(factors: tuple[float, ...]) -> Probe:
    """Return a P10 with unlimited reads, and writes at these shares of its limit by repetition."""

    def speed(cell: Cell, trial: int) -> float:
        if cell == WRITE:
            return 3500.0 * factors[trial - 1]
        return {READ: 10_003.0, MIX: 6_098.0}.get(cell) or p10_writes()[cell]

    cells = [*p10_writes(), READ, MIX]
    return probe_of(speed, cells, repeat=3, said=declared("azure/p10"), course=False)


def test_one_uneven_write_does_not_turn_cached_reads_into_a_wrong_declaration() -> None:
    """Writes 5 % above the limit are within their own spread and do not contradict the declaration."""
    verdict = judge(uneven_p10((1.05, 0.93, 1.055)))
    assert verdict.contradicted is None
    [why] = verdict.host_cache
    assert "RND4K read, 32 outstanding read 10,003 IOPS" in why
    assert "(1 more measurement with reads exceeded it)" in why
    assert verdict.declared_used["iops"] == pytest.approx(3675 / 500, rel=0.01)
    kinds = {one.workload: one.kind for one in verdict.workloads}
    assert (kinds["RND4K read"], kinds["RND4K mix"]) == (None, None)
    clear = judge(uneven_p10((1.12, 1.121, 1.122)))
    assert clear.contradicted is not None
    assert clear.host_cache == ()


def test_a_read_figure_that_depends_on_the_trial() -> None:
    """Reads that are slow in the first trial only are a host cache, as the page cache was dropped."""
    write, read = Cell("dd write", 2**20, 0.0, 0.0, 1), Cell("dd read", 2**20, 1.0, 0.0)
    probe = probe_of(lambda _cell, _trial: 60.0, [write, read], "sequential", repeat=12, course=False)
    probe.cells[read] = [
        Trial(
            number,
            "2026-01-01T00:00:00.000Z",
            10.0,
            read_bytes_per_s=60e6 if number == 1 else 3e8 + number * 1e6,
        )
        for number in range(1, 13)
    ]
    verdict = judge(probe)
    assert len(verdict.host_cache) == 1
    assert not verdict.over_time


def test_five_uneven_trials_show_the_cache_too() -> None:
    """Five uneven trials of reads with only the first at 60 MB/s show a host cache."""
    write, read = Cell("dd write", 2**20, 0.0, 0.0, 1), Cell("dd read", 2**20, 1.0, 0.0)
    probe = probe_of(lambda _cell, _trial: 57.0, [write, read], "sequential", repeat=5, course=False)
    probe.cells[read] = [
        Trial(number, "2026-01-01T00:00:00.000Z", 10.0, read_bytes_per_s=rate * 1e6)
        for number, rate in enumerate((60.3, 557, 798, 807, 1187), 1)
    ]
    [said] = judge(probe).host_cache
    assert "as fast: the first of 5 repetitions" in said
    assert said.endswith("writes did not, and the page cache of this machine was not involved")
    probe.cells[write] = probe.cells[write][:2]
    [said] = judge(probe).host_cache
    assert said.endswith("too few writes to decide whether the disk is warming up")
    scattered = [
        Trial(number, "2026-01-01T00:00:00.000Z", 10.0, read_bytes_per_s=rate * 1e6)
        for number, rate in enumerate((60.3, 80, 260, 110, 900), 1)
    ]
    probe.cells[read] = scattered
    assert judge(probe).host_cache == ()


def test_a_server_that_takes_half_an_hour_to_full_speed() -> None:
    """Writes that rise from 200 to 400/s in the first 30 min of eight hours are a warm-up."""
    cell = Cell("8K random write", PAGE, 0.0, 1.0, 8)
    steps = 8 * 360
    rates = tuple(200 + 200 * min(1.0, step / 180) + (step % 7 - 3) for step in range(steps))
    one = replace(
        trial_of(cell, 1, sum(rates) / steps, steps * 10.0),
        series=CellSeries(10.0, rates, tuple(8 / rate for rate in rates)),
    )
    probe = probe_of(lambda _cell, _trial: 400.0, [cell], "stability", repeat=1)
    probe.cells[cell] = [one]
    verdict = judge(probe)
    assert set(verdict.over_time) == {"disk_warm_up"}
    [workload] = verdict.workloads
    assert workload.course is not None
    assert workload.course.at_s is not None
    assert 300 < workload.course.at_s < 1800
    assert workload.outliers is not None
    assert workload.outliers.count == 0


def test_an_array_that_is_still_warming_up_is_no_array_s_gain() -> None:
    """An array's gain of 4.5 is inconclusive while the array is still warming up."""
    cell = Cell("8K random write", PAGE, 0.0, 1.0, 8)
    one = probe_of(lambda _cell, _trial: 400.0, [cell], "stability", repeat=1, seconds=600.0)
    eight = probe_of(lambda _cell, _trial: 1800.0, [cell], "stability", repeat=1, seconds=600.0)
    for probe, rises in ((one, False), (eight, True)):
        rates = tuple(
            (400.0 if not rises else 900.0 + 1200 * min(1.0, step / 500)) + step % 5 for step in range(600)
        )
        [trial] = probe.cells[cell]
        course = CellSeries(1.0, rates, tuple(8 / rate for rate in rates))
        probe.cells[cell] = [replace(trial, series=course)]
    found = compare(one, eight)
    assert found.changes[0].ratio == pytest.approx(4.5)
    assert found.changes[0].call == "inconclusive"
    assert any("still warming up" in warning for warning in found.warnings)


def test_the_same_rate_whatever_the_level_is_a_cap() -> None:
    """400/s for reads and writes at every depth, whatever the RAID level, are a cap."""
    cells = {depth: Cell("8K random write", PAGE, 0.0, 1.0, depth) for depth in (8, 32, 256)}
    more = {depth: Cell("8K random read", PAGE, 1.0, 1.0, depth) for depth in (8, 32, 256)}
    verdict = judge(published({cell: 400.0 for each in (cells, more) for cell in each.values()}))
    assert verdict.caps.iops is not None
    assert verdict.caps.iops.value == pytest.approx(400)


def test_each_published_test_is_one_documented_command() -> None:
    """The commands in docs/storage-probes.md name existing suites."""
    text = (Path(__file__).parents[3] / "docs" / "storage-probes.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|") and "pinchpoint probe DIR" in line]
    named = {name for row in rows for name in re.findall(r"--suite ([a-z-]+)", row)}
    assert len(rows) == 4
    assert named == {"iometer-knee", "bonnie", "stability", "crystaldiskmark", "sequential"}
    assert named <= set(SUITES)
