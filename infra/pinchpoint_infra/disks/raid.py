"""Calculates the disk I/Os of an array for one I/O: stripes, mirrors and parity, in chunks of 64 KiB.

=====  ===========================  ================================================================
level  a read                       a write
=====  ===========================  ================================================================
0      its chunks                   its chunks
1      one of the disks, by turns   all of them
10     one of each pair, by turns   both of each pair; the pairs are striped
4      its chunks                   its chunks and the parity, which lies on the last disk
5      likewise                     likewise; the parity changes its disk from row to row
6      likewise                     likewise, with two parities
=====  ===========================  ================================================================

A write of a whole row computes the parity from the new data. Any other write of level 4, 5 or 6 reads first,
as md does: either the overwritten data and the old parity, or the rest of the row, whichever needs fewer
disks.

Only the time is emulated. The files contain the data once, without copies and parity, because no disk can
fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

CHUNK_BYTES = 64 * 2**10
"""Chunk size: number of bytes on one disk before the next disk follows."""

Level = Literal[0, 1, 4, 5, 6, 10]
PARITIES: dict[Level, int] = {4: 1, 5: 1, 6: 2}
"""RAID level -> parity chunks in each row."""


@dataclass(frozen=True, slots=True)
class ColumnIo:
    """The part of an I/O in one column of an array's data.

    Attributes:
        column: number of the column; for RAID 0 it is the disk.
        offset: position in the column in bytes.
        begin: position in the I/O in bytes.
    """

    column: int
    offset: int
    begin: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DiskIo:
    """One I/O of one disk of the array."""

    disk: int
    write: bool
    offset: int
    size_bytes: int


Step = tuple[DiskIo, ...]
"""I/Os that several disks do at the same time."""


def columns(level: Level, disks: int) -> int:
    """Return the number of disks that contain data in an array."""
    if level == 1:
        return 1
    return disks // 2 if level == 10 else disks - PARITIES.get(level, 0)


def parts(offset: int, size_bytes: int, count: int) -> Iterator[ColumnIo]:
    """Yield the parts of an I/O in a number of columns, chunk by chunk."""
    if count == 1:
        yield ColumnIo(0, offset, 0, size_bytes)
        return
    begin = 0
    while begin < size_bytes:
        chunk, inside = divmod(offset + begin, CHUNK_BYTES)
        row, column = divmod(chunk, count)
        length = min(CHUNK_BYTES - inside, size_bytes - begin)
        yield ColumnIo(column, row * CHUNK_BYTES + inside, begin, length)
        begin += length


class RaidLayout:
    """Assigns the I/O of an array to its disks.

    Args:
        level: the RAID level.
        disks: number of disks in the array.
    """

    def __init__(self, level: Level, disks: int) -> None:
        self._level, self._disks = level, disks
        self._columns = columns(level, disks)
        self._copies = disks // self._columns if level in (1, 10) else 1
        self._turn = 0

    def steps(self, *, write: bool, offset: int, size_bytes: int) -> tuple[Step, ...]:
        """Return the I/Os of the disks, one step after the other."""
        result = list(parts(offset, size_bytes, self._columns))
        if self._level in PARITIES:
            return self._with_parity(result) if write else (_merged(self._placed(result, write=False)),)
        if self._copies == 1:
            return (_merged(DiskIo(one.column, write, one.offset, one.size_bytes) for one in result),)
        self._turn = (self._turn + 1) % self._copies
        copies = range(self._copies) if write else [self._turn]
        return (
            _merged(
                DiskIo(one.column * self._copies + copy, write, one.offset, one.size_bytes)
                for one in result
                for copy in copies
            ),
        )

    def _disk(self, row: int, place: int) -> int:
        """Return the disk of a column of a row. Columns after the last one are parity."""
        if self._level == 4:
            return place
        return (place - row) % self._disks

    def _placed(self, ios: Iterable[ColumnIo], *, write: bool) -> Iterator[DiskIo]:
        for one in ios:
            disk = self._disk(one.offset // CHUNK_BYTES, one.column)
            yield DiskIo(disk, write, one.offset, one.size_bytes)

    def _with_parity(self, ios: Sequence[ColumnIo]) -> tuple[Step, ...]:
        """Return reads, if a row is not written as a whole, and then writes."""
        rows: dict[int, list[ColumnIo]] = {}
        for one in ios:
            rows.setdefault(one.offset // CHUNK_BYTES, []).append(one)
        reads: list[DiskIo] = []
        writes: list[DiskIo] = []
        for row, touched in rows.items():
            first = min(one.offset for one in touched)
            length = max(one.offset + one.size_bytes for one in touched) - first
            parity = [
                DiskIo(self._disk(row, self._columns + number), True, first, length)
                for number in range(PARITIES[self._level])
            ]
            old = [*self._placed(touched, write=False), *(_read(one) for one in parity)]
            whole = {one.column for one in touched if one.size_bytes == length}
            rest = [
                DiskIo(self._disk(row, column), False, first, length)
                for column in range(self._columns)
                if column not in whole
            ]
            reads += old if len(old) <= len(rest) else rest
            writes += [*self._placed(touched, write=True), *parity]
        return (*([_merged(reads)] if reads else []), _merged(writes))


def _read(io: DiskIo) -> DiskIo:
    return DiskIo(io.disk, False, io.offset, io.size_bytes)


def _merged(ios: Iterable[DiskIo]) -> Step:
    """Merge adjacent chunks of one disk to one I/O."""
    on_each: dict[int, DiskIo] = {}
    for one in ios:
        before = on_each.get(one.disk)
        offset, length = (before.offset, before.size_bytes) if before else (one.offset, 0)
        on_each[one.disk] = DiskIo(one.disk, one.write, offset, length + one.size_bytes)
    return tuple(on_each.values())
