"""Tests of the suites: their cells and the tools' commands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pinchpoint_collectors.common.names import by_name
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.storage_probe import SUITES, TOOLS, Job, ProbePlace, suite

PLACE = ProbePlace(Path("/disk/pinchpoint-probe"), 2**30, "/dev/sdb", 8 * 2**30, trial=3)


@pytest.mark.parametrize("name", SUITES)
def test_every_cell_has_a_name_of_its_own(name: str) -> None:
    """Every cell has a unique name and an existing tool; cells of a workload differ only in queue depth."""
    cells = [cell for job in SUITES[name].jobs(5.0) for cell in job.cells]
    assert len({cell.name for cell in cells}) == len(cells)
    assert {job.tool for job in SUITES[name].jobs(5.0)} <= set(TOOLS)
    by_workload: dict[str, set[tuple[object, ...]]] = {}
    for cell in cells:
        same = (cell.block_bytes, cell.read_ratio, cell.random_ratio, cell.role)
        by_workload.setdefault(cell.workload, set()).add(same)
    assert all(len(found) == 1 for found in by_workload.values())


def test_crystaldiskmark_is_its_four_patterns_three_ways() -> None:
    """CrystalDiskMark has SEQ1M Q8T1 and Q1T1, RND4K Q32T1 and Q1T1; read, write, mix; five times."""
    chosen = SUITES["crystaldiskmark"]
    cells = [job.cell for job in chosen.jobs(5.0)]
    assert chosen.repetitions == 5
    assert {(cell.workload.split()[0], cell.outstanding) for cell in cells} == {
        ("SEQ1M", 8),
        ("SEQ1M", 1),
        ("RND4K", 32),
        ("RND4K", 1),
    }
    assert sorted({cell.read_ratio for cell in cells if cell.read_ratio is not None}) == [0.0, 0.7, 1.0]
    assert len(cells) == 12


def test_crystaldiskmark_3_has_512k() -> None:
    """CrystalDiskMark 3 has Seq, 512K and 4K at depth 1 and 4K at depth 32; all but Seq are random."""
    cells = [job.cell for job in SUITES["crystaldiskmark-3"].jobs(5.0)]
    kinds = {(cell.workload, cell.block_bytes, cell.random_ratio, cell.outstanding) for cell in cells}
    assert len(cells) == len(kinds) == 8
    assert ("512K read", 512 * 2**10, 1.0, 1) in kinds
    assert ("4K write", 4096, 1.0, 32) in kinds
    assert ("Seq write", 2**20, 0.0, 1) in kinds


def test_iometer_s_matrix() -> None:
    """The Iometer matrix has sizes, read and random shares, depths 1 to 1,024; the short suite is a part."""
    full = {job.cell for job in SUITES["iometer-full"].jobs(5.0)}
    short = {job.cell for job in SUITES["iometer"].jobs(5.0)}
    assert (len(full), len(short)) == (660, 40)
    assert short <= full
    assert {cell.outstanding for cell in full} == {2**power for power in range(11)}


def test_a_suite_whose_work_takes_as_long_as_it_takes_has_no_time_per_cell() -> None:
    """Suites of dd, hdparm and bonnie++ have no time per cell; all others have one."""
    untimed = {name for name, each in SUITES.items() if each.seconds is None}
    assert untimed == {"sequential", "bonnie"}
    for name, each in SUITES.items():
        assert {job.seconds for job in each.jobs(5.0)} == ({None} if name in untimed else {5.0}), name


@pytest.mark.parametrize(("size_bytes", "thousands"), [(2**36, 100), (2**26, 4), (2**20, 1)])
def test_small_files_take_no_more_room_than_the_large_one(size_bytes: int, thousands: int) -> None:
    """bonnie++ uses 102,400 small files, or fewer of 16 KiB if --size leaves less room."""
    _, job = SUITES["bonnie"].jobs(0.0)
    [command] = TOOLS["bonnie++"].commands(job, replace(PLACE, size_bytes=size_bytes))
    assert f"-n{thousands}:16384:8192:{thousands}" in command


def test_a_log_has_one_write_in_flight_on_the_disk() -> None:
    """The log's job writes with O_DSYNC and direct I/O at depth 1."""
    log = next(job for job in SUITES["database"].jobs(5.0) if job.cell.role == "log")
    [command] = TOOLS["fio"].commands(log, PLACE)
    assert {"--ioengine=psync", "--sync=dsync", "--direct=1", "--rw=write", "--bs=4096"} <= set(command)


def command_of(workload: str, outstanding: int) -> list[str]:
    [job] = [
        job
        for job in SUITES["iometer-full"].jobs(5.0)
        if (job.cell.workload, job.cell.outstanding) == (workload, outstanding)
    ]
    [command] = TOOLS["fio"].commands(job, PLACE)
    return list(command)


@pytest.mark.parametrize(
    ("workload", "options"),
    [
        ("8K random write", {"--rw=randwrite"}),
        ("8K sequential read", {"--rw=read"}),
        ("64K random 67% read", {"--rw=randrw", "--rwmixread=67"}),
        ("64K 50% random 33% read", {"--rw=randrw", "--rwmixread=33", "--percentage_random=50"}),
    ],
)
def test_what_fio_is_asked_for(workload: str, options: set[str]) -> None:
    command = command_of(workload, 128)
    common = {"--iodepth=128", "--direct=1", "--size=1073741824", "--randseed=3", "--runtime=5000ms"}
    assert options | common <= set(command)
    assert "--filename=probe.data" in command


def test_nothing_but_the_probe_s_file_is_written() -> None:
    """No command names the folder in which it runs; files are relative, devices are given."""
    for chosen in SUITES.values():
        for job in chosen.jobs(5.0):
            tool = TOOLS[job.tool]
            for command in (tool.prepare(PLACE), *tool.commands(job, PLACE)):
                for word in command[1:]:
                    path = word.rpartition("=")[2]
                    assert str(PLACE.folder) not in word
                    assert not path.startswith("/") or path in ("/dev/zero", "/dev/null", PLACE.device)


def test_unknown_and_double_names() -> None:
    with pytest.raises(ScenarioError, match=r"unknown suite 'databse'; allowed: .*; nearest: database"):
        suite("databse")
    one = SUITES["database"]
    with pytest.raises(ValueError, match="two suites are named 'database'"):
        by_name("suites", (one, one))


def test_a_job_of_fio_without_a_size_is_our_own_mistake() -> None:
    job = SUITES["sequential"].jobs(5.0)[0]
    with pytest.raises(ValueError, match="needs seconds"):
        TOOLS["fio"].commands(Job("fio", job.cells), PLACE)


def test_threads_multiply_what_is_outstanding_but_of_a_log() -> None:
    """Each thread has the suite's queue depth and its part of the file; a log has one writer."""
    jobs = SUITES["database"].threaded(4).jobs(5.0)
    by_name = {job.cell.workload: job for job in jobs}
    assert (by_name["log 4K write"].cell.outstanding, by_name["log 4K write"].threads) == (1, 1)
    reads = [job for job in jobs if job.cell.workload == "data 8K read"]
    assert [job.cell.outstanding for job in reads] == [4, 16, 64, 256]
    [command] = TOOLS["fio"].commands(reads[1], PLACE)
    assert {"--iodepth=4", "--numjobs=4", "--group_reporting=1", f"--size={2**28}"} <= set(command)
    # fio uses the last of repeated options
    assert command.index(f"--size={2**28}") > command.index(f"--size={2**30}")
    assert f"--offset_increment={2**28}" in command
    assert SUITES["sequential"].threaded(4).jobs(0.0) == SUITES["sequential"].jobs(0.0)
