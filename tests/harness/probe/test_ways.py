"""Caps of reads or of writes alone: found by the rate they have in a mix, too, or by how evenly I/Os come."""

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
    """290 writes a second, reads as many as they like: what is written is held, what is read is not."""
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
    """290 writes a second are 967 I/Os of which 70 % are reads: at its cap, in whose terms it is told."""
    verdict = judge(probe_of(Disk(0.0005, write_iops=290), repeat=3))
    [mix] = [one for one in verdict.workloads if one.workload == "RND4K mix"]
    assert (mix.kind, mix.cells[-1].exact, mix.cells[-1].limit) == ("disk_cap", True, "found")
    assert "967 IOPS" in mix.cells[-1].why


def test_a_mix_is_held_by_the_writes_that_came_out_not_by_those_asked_for() -> None:
    """Asked for 70 % of reads, 71.4 % were drawn: 1,014 I/Os with 290 writes are at the cap."""
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
    """As the kernel's own throttle has them: 500 each, so that a mix gets 714 done, and no common cap is."""
    verdict = judge(probe_of(Disk(0.0005, read_iops=500, write_iops=500)))
    assert verdict.caps.limits is None
    assert verdict.caps.read_iops is not None
    assert verdict.caps.read_iops.value == pytest.approx(500, rel=0.01)
    assert verdict.caps.write_iops is not None
    assert verdict.caps.write_iops.value == pytest.approx(500, rel=0.01)
    for workload in ("RND4K read", "RND4K write", "RND4K mix"):
        assert kind_of(verdict, workload) == "disk_cap"


def test_a_common_cap_is_not_told_twice() -> None:
    """What holds all I/O explains what reads, or writes, stand at: there is one cap."""
    for disk in (Disk(0.0005, 500, 60e6), Disk(0.0005, 400, 400 * 2**19), Disk(0.0005, bytes_per_s=4.096e6)):
        for suite in ("crystaldiskmark", "iometer", "database"):
            names = {name for name, _ in judge(probe_of(disk, suite=suite)).caps}
            assert names <= {"iops", "bytes_per_s"}, (suite, names)


def even_writes(uneven: float) -> ProbeVerdict:
    """2,000 writes a second that one workload alone reaches, so evenly; reads are far from any cap."""
    cells = [cell for cell in cells_of("crystaldiskmark") if cell.workload in ("RND4K read", "RND4K write")]
    disk = Disk(0.001, write_iops=2000, uneven=uneven)
    return judge(probe_of(disk, cells))


def test_writes_that_come_as_evenly_as_no_device_serves_are_held() -> None:
    """One workload alone reaches the cap: nothing but a regulator lets through as many each second."""
    verdict = even_writes(0.0)
    assert verdict.caps.write_iops is not None
    assert verdict.caps.write_iops.value == pytest.approx(2000)
    assert "more even than any device" in verdict.caps.write_iops.why
    assert kind_of(verdict, "RND4K write") == "disk_cap"


@pytest.mark.parametrize(("apart", "kind"), [(0.1, None), (4.0, "disk_device")])
def test_repetitions_without_a_device_s_spread_are_called_none(apart: float, kind: str | None) -> None:
    """As measured: 409 writes a second, twice within 0.03 %, and no seconds: nobody can tell, nobody does."""
    cells = [cell for cell in cells_of("crystaldiskmark") if cell.workload == "RND4K write"]

    def speed(cell: Cell, trial: int) -> float:
        return 364.0 if cell.outstanding == 1 else 409 + (apart if trial == 1 else -apart)

    verdict = judge(probe_of(speed, cells, repeat=2, course=False))
    assert kind_of(verdict, "RND4K write") == kind


def test_one_workload_with_a_device_s_spread_shows_no_cap() -> None:
    """The same rate, seconds apart by some per cent: a device may do that."""
    verdict = even_writes(0.02)
    assert not dict(verdict.caps)
    assert kind_of(verdict, "RND4K write") != "disk_cap"


def test_rates_of_reads_that_agree_by_chance_are_no_cap() -> None:
    """As measured on a disk that nothing holds, once each: 390, 399 and 395 MB/s are read in three mixes."""
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
    """40 a second by one workload: whole I/Os cannot show a device's spread, so nothing is claimed."""
    cells = [cell for cell in cells_of("crystaldiskmark") if cell.workload == "RND4K write"]
    assert not dict(judge(probe_of(Disk(0.012, write_iops=40), cells)).caps)


def test_sequential_and_random_writes_that_a_device_serves_alike_are_no_cap() -> None:
    """A flash disk writes as many pages in any order, unevenly: the same rate is no regulator's."""
    service = {"read": 1 / 9000, "write": 1 / 1500}
    disk = Disk(
        0.0001,
        service_s=lambda cell: service[cell.workload.split()[-1]] * (cell.block_bytes or 0) / 8192,
        uneven=0.02,
    )
    assert not {name for name, _ in judge(probe_of(disk, suite="iometer", repeat=3)).caps} - {"bytes_per_s"}


def test_writes_held_below_what_is_declared_are_judged_by_what_was_found() -> None:
    """Declared 5,000 a second, which reads do; writes stop at 290: their own cap, not half-used room."""
    said = DeclaredDisk(limits=Limits(5000, None, None))
    verdict = judge(probe_of(Disk(0.0005, 5000, write_iops=290), suite="iometer", repeat=3, said=said))
    assert verdict.contradicted is None
    assert kind_of(verdict, "8K random write") == "disk_cap"
    assert "Writes are limited to 290 IOPS" in verdict.summary
    [write] = [one for one in verdict.workloads if one.workload == "8K random write"]
    assert (write.cells[-1].limit, write.cells[-1].exact) == ("found", True)


def test_an_application_meets_the_cap_of_its_own_mix() -> None:
    """All writes: 290 a second; half reads: 580 I/Os; reads alone: nothing holds them."""
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
