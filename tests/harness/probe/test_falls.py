"""Burst credits that are used up during a suite are reported, and the limit without credits is found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from harness.probe.build import Disk, cells_of, declared, kind_of, probe_of, trial_of

from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import DeclaredDisk, Probe
from pinchpoint_scenarios.storage_probe import Cell, CellSeries

_STEP_S = 0.05


@dataclass
class OnCredits:
    """A disk with credits, probed cell after cell with a second of settling before each.

    Attributes:
        base: I/Os per second without credits.
        burst: I/Os per second with credits.
        credits: I/Os beyond the base rate that full credits allow.
        bytes_per_s: limit in bytes per second.
        floor_s: minimal latency of an I/O in seconds.
    """

    base: float
    burst: float
    credits: float
    floor_s: float = 0.001
    bytes_per_s: float = 1e12

    def __post_init__(self) -> None:
        self.left = self.credits

    def measured(self, cell: Cell, seconds: float) -> tuple[float, ...]:
        """Return the I/Os per second for each second of a cell."""
        wanted = min((cell.outstanding or 1) / self.floor_s, self.bytes_per_s / (cell.block_bytes or 1))
        done = [self._done(wanted) for _ in range(round((seconds + 1) / _STEP_S))][round(1 / _STEP_S) :]
        each = round(1 / _STEP_S)
        return tuple(sum(done[at : at + each]) / each for at in range(0, len(done), each))

    def _done(self, wanted: float) -> float:
        rate = min(wanted, self.burst if self.left > 0 else self.base)
        self.left = min(self.credits, self.left + (self.base - rate) * _STEP_S)
        return rate


def probed(disk: OnCredits, suite: str, repeat: int, said: DeclaredDisk | None = None) -> Probe:
    """Return the suite's probe with all cells in turn, repeated."""
    cells = cells_of(suite)
    probe = probe_of(Disk(), cells, suite, repeat, said)
    rows = {cell: [] for cell in cells}  # type: ignore[var-annotated]
    for (number, cell), begun in zip(_order(cells, repeat), _instants(), strict=False):
        rates = disk.measured(cell, 5)
        made = trial_of(cell, number, sum(rates) / len(rates))
        course = CellSeries(1.0, rates, tuple((cell.outstanding or 1) / rate for rate in rates))
        rows[cell].append(replace(made, started=begun, series=course))
    probe.cells = rows
    return probe


def _order(cells: Sequence[Cell], repeat: int) -> Iterator[tuple[int, Cell]]:
    for number in range(1, repeat + 1):
        for cell in cells:
            yield number, cell


def _instants() -> Iterator[str]:
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    while True:
        yield begun.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        begun += timedelta(seconds=6.5)


@pytest.mark.parametrize("full", [3_000, 20_000, 60_000])
@pytest.mark.parametrize(("suite", "repeat"), [("crystaldiskmark", 5), ("database", 3), ("iometer", 1)])
def test_credits_that_are_used_up_are_named_and_the_cap_behind_them_is_found(
    suite: str, repeat: int, full: int
) -> None:
    """300/s behind a burst of 2,900/s is the limit, wherever the credits end, and no device."""
    verdict = judge(probed(OnCredits(300, 2900, full), suite, repeat))
    assert verdict.caps.iops is not None
    assert verdict.caps.iops.value == pytest.approx(300, rel=0.03)
    assert "disk_device" not in verdict.kinds
    assert "disk_warm_up" not in verdict.over_time
    assert not verdict.host_cache
    if full > 3_000:  # fewer credits are used before the first cell that queues for I/O
        assert verdict.over_time.get("disk_burst_exhausted"), verdict.summary
        assert "fell to a lower, constant rate" in verdict.summary


def test_credits_that_come_back_before_each_repetition() -> None:
    """A burst that ends within two seconds of each repetition is a burst, not a device."""
    cells = [
        Cell(f"8K random {way}", 8192, share, 1.0, depth)
        for way, share, deep in (("read", 1.0, 32), ("write", 0.0, 8))
        for depth in (1, deep)
    ]
    probe = probe_of(Disk(0.0025, 500), cells, repeat=5)
    rates = {8: (3400.0, 1800.0, 500.0, 500.0, 500.0), 32: (3500.0, 500.0, 500.0, 500.0, 500.0)}
    for one, trials in probe.cells.items():
        if one.outstanding in rates:
            course = rates[one.outstanding]
            probe.cells[one] = [
                replace(
                    trial_of(one, each.number, sum(course) / 5),
                    series=CellSeries(1.0, course, tuple((one.outstanding or 1) / rate for rate in course)),
                )
                for each in trials
            ]
    verdict = judge(probe)
    assert set(verdict.over_time["disk_burst_exhausted"]) == {"8K random write", "8K random read"}
    assert verdict.caps.iops is not None
    assert verdict.caps.iops.value == pytest.approx(500)
    assert "disk_device" not in verdict.kinds
    [write] = [one for one in verdict.workloads if one.workload == "8K random write"]
    assert write.course is not None
    assert (write.course.before, write.course.after, write.course.at_s) == (3400, 500, 2)


def test_a_p10_whose_credits_pass_sixty_times_faster() -> None:
    """A P10 with fast credits is compared with its burst and its baseline separately."""
    verdict = judge(
        probed(OnCredits(500, 3500, 90_000, bytes_per_s=100e6), "crystaldiskmark", 5, declared("azure/p10"))
    )
    assert verdict.over_time.get("disk_burst_exhausted")
    assert verdict.contradicted is None
    assert not verdict.host_cache
    assert "disk_device" not in verdict.kinds


def test_an_even_disk_has_no_credits() -> None:
    """Neither a capped disk nor a latency floor nor a device shows used-up credits."""
    service = {"read": 0.006, "write": 0.0035, "mix": 0.005}
    device = Disk(0.0001, service_s=lambda cell: service[cell.workload.split()[1]], uneven=0.04)
    for disk in (Disk(0.0005, 500, 60e6), Disk(0.001), device):
        probe = probe_of(disk)
        for (number, cell), begun in zip(_order(list(probe.cells), 5), _instants(), strict=False):
            probe.cells[cell][number - 1] = replace(probe.cells[cell][number - 1], started=begun)
        assert not judge(probe).over_time


def test_a_first_second_that_is_faster_once_is_no_burst() -> None:
    """One of five repetitions with a faster first second is no burst."""
    probe = probe_of(Disk(0.001, 500))
    [cell] = [cell for cell in probe.cells if cell.name == "RND4K write, 32 outstanding"]
    one = probe.cells[cell][2]
    assert one.series is not None
    probe.cells[cell][2] = replace(one, series=replace(one.series, iops=(900.0, *one.series.iops[1:])))
    assert not judge(probe).over_time


def test_a_stability_run_is_held_against_what_it_fell_to() -> None:
    """A P10 at 3,500/s for one minute and at 500/s for two is compared with its baseline."""
    [cell] = cells_of("stability")
    probe = probe_of(Disk(0.001, 1500), [cell], "stability", 1, declared("azure/p10"), seconds=180)
    rates = (3500.0,) * 60 + (500.0,) * 120
    course = CellSeries(1.0, rates, tuple(8 / rate for rate in rates))
    probe.cells[cell] = [replace(probe.cells[cell][0], series=course)]
    [workload] = judge(probe).workloads
    assert workload.kind == "disk_cap"
    assert (workload.cells[0].limit, workload.cells[0].exact) == ("declared", True)


def test_reads_before_credits_were_used_up_hide_no_cap_of_what_came_then() -> None:
    """Reads measured before the credits ended do not hide the limit of the later writes."""
    rates = {
        "SEQ1M read": (415.0, 676.0),
        "RND4K read": (279.0, 1644.0),
        "SEQ1M write": (144.0, 145.0),
        "RND4K write": (289.0, 290.0),
        "SEQ1M mix": (143.0, 145.0),
        "RND4K mix": (289.0, 290.0),
    }
    verdict = judge(
        probe_of(lambda cell, _: rates[cell.workload][(cell.outstanding or 0) > 1], repeat=1, course=False)
    )
    assert verdict.caps.iops is not None
    assert verdict.caps.iops.value == pytest.approx(290)
    assert verdict.caps.iops.unit_bytes == 2**19
    for workload in ("SEQ1M write", "RND4K write", "SEQ1M mix", "RND4K mix"):
        assert kind_of(verdict, workload) == "disk_cap"
    [why] = verdict.host_cache
    assert "Burst credits that were spent" in why
    assert kind_of(verdict, "RND4K read") is None


def test_reads_that_a_device_serves_faster_than_writes_are_no_cache() -> None:
    """Reads faster than writes on a device, with a mix between them, are not a cache."""
    service = {"read": 1 / 9000, "write": 1 / 1500, "mix": 1 / 3000}
    disk = Disk(0.0001, service_s=lambda cell: service[cell.workload.split()[1]], uneven=0.02)
    assert judge(probe_of(disk)).host_cache == ()
