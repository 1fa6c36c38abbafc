"""Tests of RAID arrays: the disks of each I/O, and the cost of each level."""

from __future__ import annotations

import pytest
from infra.disks.test_model import Driver

from pinchpoint_infra.disks import DiskSpec
from pinchpoint_infra.disks.raid import CHUNK_BYTES, Level, RaidLayout, columns, parts

LEVELS: list[tuple[Level, int]] = [
    (0, 4),
    (1, 2),
    (1, 3),
    (4, 3),
    (4, 5),
    (5, 3),
    (5, 4),
    (6, 4),
    (6, 8),
    (10, 8),
]


@pytest.mark.parametrize(
    ("offset", "size"), [(0, 1), (CHUNK_BYTES - 1, 2), (5000, 10 * CHUNK_BYTES), (123456, 4096)]
)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_every_byte_lies_on_one_place_of_one_column(offset: int, size: int, count: int) -> None:
    """The parts of an I/O cover it without gaps, and no two bytes share a place on a disk."""
    found = list(parts(offset, size, count))
    assert [part.begin for part in found] == [sum(p.size_bytes for p in found[:n]) for n in range(len(found))]
    assert sum(part.size_bytes for part in found) == size
    assert all(part.column < count for part in found)
    places = {(p.column, p.offset + n * 512) for p in found for n in range(p.size_bytes // 512)}
    assert len(places) == sum(p.size_bytes // 512 for p in found)


@pytest.mark.parametrize(("level", "disks"), LEVELS)
def test_no_two_chunks_share_a_disk_s_place(level: Level, disks: int) -> None:
    """Data, copies and parity have a place of their own each and fill all disks evenly."""
    layout, data = RaidLayout(level, disks), columns(level, disks)
    rows = 4 * disks
    places = []
    for row in range(rows):
        (step,) = layout.steps(write=True, offset=row * data * CHUNK_BYTES, size_bytes=data * CHUNK_BYTES)
        places += [(one.disk, one.offset) for one in step]
        assert {one.size_bytes for one in step} == {CHUNK_BYTES}
    assert len(set(places)) == len(places) == rows * disks


@pytest.mark.parametrize(
    ("level", "disks", "reads", "writes"),
    [
        (0, 4, 0, 1),
        (1, 2, 0, 2),
        (10, 4, 0, 2),
        (5, 3, 1, 2),
        (4, 5, 2, 2),
        (5, 8, 2, 2),
        (6, 8, 3, 3),
        (6, 4, 1, 3),
    ],
)
def test_a_small_write_costs_what_its_level_says(level: Level, disks: int, reads: int, writes: int) -> None:
    """A small write costs 2 I/Os on a mirror, 4 with one parity, 6 with two; fewer at a row's short end."""
    *before, last = RaidLayout(level, disks).steps(write=True, offset=5 * CHUNK_BYTES + 4096, size_bytes=8192)
    assert sum(len(step) for step in before) == reads
    assert not any(one.write for step in before for one in step)
    assert len(last) == writes
    assert all(one.write and one.size_bytes == 8192 for one in last)


@pytest.mark.parametrize(
    ("level", "disks", "reads", "writes"),
    [
        (0, 4, 4.0, 4.0),
        (1, 2, 2.0, 1.0),
        (10, 4, 4.0, 2.0),
        (5, 8, 8.0, 2.0),
        (6, 8, 8.0, 8 / 6),
        (4, 5, 4.0, 0.5),
    ],
)
def test_random_io_at_the_cap_of_each_disk(level: Level, disks: int, reads: float, writes: float) -> None:
    """Random I/O reaches the level's multiple of one disk's IOPS; RAID 4 is limited by its parity disk."""
    for share, times in ((0.0, reads), (1.0, writes)):
        driver = Driver(DiskSpec(iops=100, stripes=disks, raid=level)).run(30, 128, writes=share)
        assert driver.rate(since=10) == pytest.approx(100 * times, rel=0.12)


def test_rows_written_whole_need_no_reads() -> None:
    """Sequential writes on a RAID 5 of four disks are as fast as three disks."""
    row = 3 * CHUNK_BYTES
    driver = Driver(DiskSpec(bytes_per_s=10e6, stripes=4, raid=5)).run(20, 4, size_bytes=row, sequential=True)
    assert driver.rate(since=2) * row == pytest.approx(30e6, rel=0.05)
