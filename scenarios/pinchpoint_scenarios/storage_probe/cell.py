"""Records of a storage probe: a suite's requests, and a tool's results."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

FILE = "probe.data"
"""The file's name in the probe's folder. Tools run in that folder and get this name, never the folder's path:
fio reads a ``:`` in a path as the separator of two files."""

Role = Literal["log", "data", "tempdb"]
"""The kind of disk for such I/O: a log cannot issue more at once."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One line of a suite's table.

    Attributes:
        workload: the kind of I/O without its queue depth: ``RND4K write``. Cells of one workload differ in
            ``outstanding`` alone.
        block_bytes: size of an I/O; None if the tool does not report it (creating files).
        read_ratio: reads ÷ all I/O; None if not reported.
        random_ratio: I/O that does not follow the one before ÷ all I/O.
        outstanding: simultaneous I/Os; None if the tool does not report it.
        role: the role whose latency limit applies.
    """

    workload: str
    block_bytes: int | None = None
    read_ratio: float | None = None
    random_ratio: float | None = None
    outstanding: int | None = None
    role: Role = "data"

    @property
    def name(self) -> str:
        """``RND4K write, 32 outstanding``."""
        return (
            self.workload if self.outstanding is None else f"{self.workload}, {self.outstanding} outstanding"
        )


def size_name(size_bytes: int) -> str:
    """``512``, ``8K``, ``1M``."""
    for unit, name in ((2**20, "M"), (2**10, "K")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:g}{name}"
    return str(size_bytes)


def shape_name(block_bytes: int, read_ratio: float, random_ratio: float) -> str:
    """The name of such I/O: ``8K random read``, ``64K 50% random 67% read``."""
    what = {1.0: "read", 0.0: "write"}.get(read_ratio, f"{read_ratio:.0%} read")
    how = {1.0: "random", 0.0: "sequential"}.get(random_ratio, f"{random_ratio:.0%} random")
    return f"{size_name(block_bytes)} {how} {what}"


@dataclass(frozen=True, slots=True)
class Job:
    """One call of a tool.

    Attributes:
        tool: its name in ``TOOLS``.
        cells: the cells it fills, in the tool's order.
        seconds: duration of the measurement; None: until its work is done (it reads or writes the file once).
        flush_each: whether each write is on the disk before the next one begins.
        flush_every: number of writes before all are flushed; 0: never.
        uses_file: whether it uses the probe's file, which is written completely before.
        threads: number of the tool's threads that share the outstanding I/Os, each in its own part of the
            file.
        options: options of its tool alone.
    """

    tool: str
    cells: tuple[Cell, ...]
    seconds: float | None = None
    flush_each: bool = False
    flush_every: int = 0
    uses_file: bool = True
    threads: int = 1
    options: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def cell(self) -> Cell:
        """The only cell of a job that fills one."""
        [only] = self.cells
        return only

    @property
    def name(self) -> str:
        """Its cell's name; with several cells, its name in a list."""
        return self.cells[0].name if len(self.cells) == 1 else str(self.options.get("title", self.tool))


@dataclass(frozen=True, slots=True)
class ProbePlace:
    """Where a probe works.

    Attributes:
        folder: a folder of the probe's own; nothing outside is written.
        size_bytes: size of the file in it.
        device: the block device below it (``/dev/sdb1``); None if it has none (tmpfs, a network share).
        memory_bytes: the machine's memory.
        trial: number of the repetition, from 1: random positions differ between repetitions.
        root: whether the tools run as root.
    """

    folder: Path
    size_bytes: int
    device: str | None
    memory_bytes: int
    trial: int = 1
    root: bool = field(default_factory=lambda: os.geteuid() == 0)

    @property
    def file(self) -> Path:
        """The file that I/O goes to."""
        return self.folder / FILE


@dataclass(frozen=True, slots=True)
class CellSeries:
    """The course of one job over time.

    Attributes:
        step_s: seconds between two values.
        iops: I/Os per second in each step.
        latency_s: mean latency of the I/Os of each step; None if none ended.
    """

    step_s: float
    iops: tuple[float, ...]
    latency_s: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class CellFigures:
    """The results of one call of a tool for one cell. None: not reported.

    Attributes:
        seconds: duration of the measurement; None if not reported.
        reads_per_s: I/Os per second (of making files: operations).
        writes_per_s: likewise.
        read_bytes_per_s: bytes per second.
        write_bytes_per_s: likewise.
        times_ns: latency in nanoseconds -> number of I/Os, within the tool's precision.
        mean_s: mean latency.
        max_s: the longest.
        series: its course over time.
    """

    seconds: float | None
    reads_per_s: float | None = None
    writes_per_s: float | None = None
    read_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None
    times_ns: Mapping[int, int] | None = None
    mean_s: float | None = None
    max_s: float | None = None
    series: CellSeries | None = None
