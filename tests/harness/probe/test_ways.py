"""Limits of reads or of writes alone: found from their rate in a mix, or from their even seconds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness.probe.build import Disk, cells_of, kind_of, probe_of

from pinchpoint.data.inputs import Limits
from pinchpoint.probe.disk import measured_disk
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import DeclaredDisk
from pinchpoint.probe.verdict import ProbeVerdict
from pinchpoint.report.probe import probe_text
from pinchpoint_scenarios.storage_probe import Cell


@pytest.mark.parametrize("suite", ["crystaldiskmark", "iometer", "database"])
def test_a_cap_of_writes_alone_is_found(suite: str) -> None:
    """A limit of 290 writes/s is found while reads are unlimited."""
    verdict = judge(probe_of(Disk(0.0005, write_iops=290), suite=suite, repeat=3))
    assert verdict.caps.write_iops is not None
    assert verdict.caps.write_iops.value == pytest.approx(290, rel=0.01)
    assert verdict.caps.limits is None
    assert verdict.caps.read_iops is None
    assert "Writes are limited to 290 IOPS" in verdict.summary
    writes = {
        "crystaldiskmark": "RND4K write",
        "iometer": "8K random write",
        "database": "checkpoint 8K write",
    }
    reads = {"crystaldiskmark": "RND4K read", "iometer": "8K random read", "database": "data 8K read"}
    assert kind_of(verdict, writes[suite]) == "disk_cap"
    assert kind_of(verdict, reads[suite]) == "disk_concurrency"


def test_a_mix_is_held_by_the_writes_in_it() -> None:
    """A mix with 70 % reads is at the write limit with 967 IOPS, which the reason states."""
    verdict = judge(probe_of(Disk(0.0005, write_iops=290), repeat=3))
    [mix] = [one for one in verdict.workloads if one.workload == "RND4K mix"]
    assert (mix.kind, mix.cells[-1].exact, mix.cells[-1].limit) == ("disk_cap", True, "found")
    assert "967 IOPS" in mix.cells[-1].why


def test_a_mix_is_held_by_the_writes_that_came_out_not_by_those_asked_for() -> None:
    """The drawn share of reads counts (71.4 %), not the requested one (70 %)."""
    probe = probe_of(Disk(0.0005, write_iops=290), repeat=3)
    for cell, trials in probe.cells.items():
        if cell.workload == "RND4K mix":
            probe.cells[cell] = [
                replace(one, reads_per_s=(one.writes_per_s or 0) * 2.5, mean_s=(one.mean_s or 0) / 1.05)
                for one in trials
            ]
    verdict = judge(probe)
    [mix] = [one for one in verdict.workloads if one.workload == "RND4K mix"]
    assert (mix.kind, mix.cells[-1].exact) == ("disk_cap", True)


def test_caps_of_reads_and_of_writes_that_no_mix_is_held_by_alone() -> None:
    """Separate limits of 500 reads/s and 500 writes/s are found, and no common limit."""
    verdict = judge(probe_of(Disk(0.0005, read_iops=500, write_iops=500)))
    assert verdict.caps.limits is None
    assert verdict.caps.read_iops is not None
    assert verdict.caps.read_iops.value == pytest.approx(500, rel=0.01)
    assert verdict.caps.write_iops is not None
    assert verdict.caps.write_iops.value == pytest.approx(500, rel=0.01)
    for workload in ("RND4K read", "RND4K write", "RND4K mix"):
        assert kind_of(verdict, workload) == "disk_cap"


def test_a_common_cap_is_not_told_twice() -> None:
    """A common limit is reported once, without separate limits of reads and writes."""
    for disk in (Disk(0.0005, 500, 60e6), Disk(0.0005, 400, 400 * 2**19), Disk(0.0005, bytes_per_s=4.096e6)):
        for suite in ("crystaldiskmark", "iometer", "database"):
            names = {name for name, _ in judge(probe_of(disk, suite=suite)).caps}
            assert names <= {"iops", "bytes_per_s"}, (suite, names)


def even_writes(uneven: float) -> ProbeVerdict:
    """Return the verdict on one workload at 2,000 writes/s with that spread; reads are unlimited."""
    cells = [cell for cell in cells_of("crystaldiskmark") if cell.workload in ("RND4K read", "RND4K write")]
    disk = Disk(0.001, write_iops=2000, uneven=uneven)
    return judge(probe_of(disk, cells))


def test_writes_that_come_as_evenly_as_no_device_serves_are_held() -> None:
    """Writes that are more even than any device's are limited, although one workload alone shows it."""
    verdict = even_writes(0.0)
    assert verdict.caps.write_iops is not None
    assert verdict.caps.write_iops.value == pytest.approx(2000)
    assert "more even than any device" in verdict.caps.write_iops.why
    assert kind_of(verdict, "RND4K write") == "disk_cap"


@pytest.mark.parametrize(("apart", "kind"), [(0.1, None), (4.0, "disk_device")])
def test_repetitions_without_a_device_s_spread_are_called_none(apart: float, kind: str | None) -> None:
    """Two repetitions within 0.03 % without seconds give no kind; within 2 % they are a device."""
    cells = [cell for cell in cells_of("crystaldiskmark") if cell.workload == "RND4K write"]

    def speed(cell: Cell, trial: int) -> float:
        return 364.0 if cell.outstanding == 1 else 409 + (apart if trial == 1 else -apart)

    verdict = judge(probe_of(speed, cells, repeat=2, course=False))
    assert kind_of(verdict, "RND4K write") == kind


def test_one_workload_with_a_device_s_spread_shows_no_cap() -> None:
    """The same rate with a spread of 2 % between seconds may be a device, so no limit is found."""
    verdict = even_writes(0.02)
    assert not dict(verdict.caps)
    assert kind_of(verdict, "RND4K write") != "disk_cap"


def test_rates_of_reads_that_agree_by_chance_are_no_cap() -> None:
    """Equal read rates of three mixes, measured once each on an unlimited disk, are no limit."""
    rates = {
        ("data 8K read", 1): 11598.0,
        ("data 8K read", 4): 34989.0,
        ("data 8K read", 16): 38823.0,
        ("data 8K read", 64): 47607.0,
        ("data 8K 70 % read", 1): 9140.0,
        ("data 8K 70 % read", 4): 33290.0,
        ("data 8K 70 % read", 16): 54934.0,
        ("data 8K 70 % read", 64): 69705.0,
        ("tempdb 64K half read", 1): 6856.0,
        ("tempdb 64K half read", 8): 12250.0,
        ("checkpoint 8K write", 32): 24619.0,
    }
    cells = [cell for cell in cells_of("database") if cell.role != "log"]
    probe = probe_of(
        lambda cell, _: rates[cell.workload, cell.outstanding or 0], cells, repeat=1, course=False
    )
    assert not dict(judge(probe).caps)


def test_few_writes_a_second_are_too_few_to_call_them_even() -> None:
    """40 writes/s of one workload are too few to judge the evenness, so no limit is found."""
    cells = [cell for cell in cells_of("crystaldiskmark") if cell.workload == "RND4K write"]
    assert not dict(judge(probe_of(Disk(0.012, write_iops=40), cells)).caps)


def test_sequential_and_random_writes_that_a_device_serves_alike_are_no_cap() -> None:
    """Equal but uneven rates of sequential and random writes are a device and no limit."""
    service = {"read": 1 / 9000, "write": 1 / 1500}
    disk = Disk(
        0.0001,
        service_s=lambda cell: service[cell.workload.split()[-1]] * (cell.block_bytes or 0) / 8192,
        uneven=0.02,
    )
    assert not {name for name, _ in judge(probe_of(disk, suite="iometer", repeat=3)).caps} - {"bytes_per_s"}


def test_writes_held_below_what_is_declared_are_judged_by_what_was_found() -> None:
    """Writes that end at 290/s below a declared 5,000/s have their own limit, which is used."""
    said = DeclaredDisk(limits=Limits(5000, None, None))
    verdict = judge(probe_of(Disk(0.0005, 5000, write_iops=290), suite="iometer", repeat=3, said=said))
    assert verdict.contradicted is None
    assert kind_of(verdict, "8K random write") == "disk_cap"
    assert "Writes are limited to 290 IOPS" in verdict.summary
    [write] = [one for one in verdict.workloads if one.workload == "8K random write"]
    assert (write.cells[-1].limit, write.cells[-1].exact) == ("found", True)


def test_an_application_meets_the_cap_of_its_own_mix() -> None:
    """A write limit of 290/s is 580 IOPS for half reads, and none for reads alone."""
    disk = measured_disk(probe_of(Disk(0.0005, write_iops=290), suite="database", repeat=3))
    for reads_ratio, held in ((0.0, 290), (0.5, 580)):
        limits = disk.limits_of(reads_ratio)
        assert limits is not None
        assert limits.iops == pytest.approx(held, rel=0.01)
    assert disk.limits_of(1.0) is None


def test_the_arithmetic_of_each_cap_is_in_the_terminal_too() -> None:
    probe = probe_of(Disk(0.0005, 500, 60e6))
    verdict = judge(replace(probe))
    text = " ".join(probe_text(probe, verdict).split())
    assert verdict.caps.iops is not None
    assert verdict.caps.iops.why in text
