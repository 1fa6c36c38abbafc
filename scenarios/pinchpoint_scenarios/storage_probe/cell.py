"""Records of a storage probe: the I/O that a suite requests, and the results of a tool."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

FILE = "probe.data"
"""Name of the file in the probe's folder. Tools run in that folder and get only this name and no path,
because fio reads a ``:`` in a path as a separator of two files."""

Role = Literal["log", "data", "tempdb"]
"""Kind of disk that a cell measures. Its latency limit applies; a log disk has one write in flight."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of a suite's table.

    Attributes:
        workload: the kind of I/O without its queue depth: ``RND4K write``. Cells of one workload differ in
            ``outstanding`` alone.
        block_bytes: size of an I/O in bytes; None if the tool does not report it (creating files).
        read_ratio: reads ÷ all I/Os; None if not reported.
        random_ratio: I/Os that do not follow the previous one ÷ all I/Os; None if not reported.
        outstanding: number of simultaneous I/Os; None if the tool does not report it.
        role: kind of disk whose latency limit applies.
    """

    workload: str
    block_bytes: int | None = None
    read_ratio: float | None = None
    random_ratio: float | None = None
    outstanding: int | None = None
    role: Role = "data"

    @property
    def name(self) -> str:
        """Return the name with the queue depth: ``RND4K write, 32 outstanding``."""
        return (
            self.workload if self.outstanding is None else f"{self.workload}, {self.outstanding} outstanding"
        )


def size_name(size_bytes: int) -> str:
    """Return a size as short text: ``512``, ``8K``, ``1M``."""
    for unit, name in ((2**20, "M"), (2**10, "K")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:g}{name}"
    return str(size_bytes)


def shape_name(block_bytes: int, read_ratio: float, random_ratio: float) -> str:
    """Return the name of a kind of I/O: ``8K random read``, ``64K 50% random 67% read``."""
    what = {1.0: "read", 0.0: "write"}.get(read_ratio, f"{read_ratio:.0%} read")
    how = {1.0: "random", 0.0: "sequential"}.get(random_ratio, f"{random_ratio:.0%} random")
    return f"{size_name(block_bytes)} {how} {what}"


@dataclass(frozen=True, slots=True)
class Job:
    """One call of a tool.

    Attributes:
        tool: name of the tool in ``TOOLS``.
        cells: cells that the call measures, in the order of the tool.
        seconds: duration of the measurement; None: the tool reads or writes the file once.
        flush_each: whether each write must be on the disk before the next write begins.
        flush_every: number of writes after which all of them are flushed; 0: never.
        uses_file: whether the tool uses the probe's file, which is written completely in advance.
        threads: number of threads that share the outstanding I/Os, each in its own part of the file.
        options: options that only this tool has.
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
        """Return the cell of a job that has exactly one cell."""
        [only] = self.cells
        return only

    @property
    def name(self) -> str:
        """Return the name of the cell; for several cells, the title of the job."""
        return self.cells[0].name if len(self.cells) == 1 else str(self.options.get("title", self.tool))


@dataclass(frozen=True, slots=True)
class ProbePlace:
    """The folder and the machine of a probe.

    Attributes:
        folder: folder that belongs to the probe; nothing outside it is written.
        size_bytes: size of the file in the folder, in bytes.
        device: block device of the folder (``/dev/sdb1``); None if it has none (tmpfs, a network share).
        memory_bytes: memory of the machine in bytes.
        trial: number of the repetition, from 1. It seeds the random positions, so each repetition has others.
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
        """Return the path of the file that the tools read and write."""
        return self.folder / FILE


@dataclass(frozen=True, slots=True)
class CellSeries:
    """Rate and latency of a job over time.

    Attributes:
        step_s: length of a step in seconds.
        iops: I/Os per second in each step.
        latency_s: mean latency of each step in seconds; None if no I/O ended in the step.
    """

    step_s: float
    iops: tuple[float, ...]
    latency_s: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class CellFigures:
    """The results of one call of a tool for one cell. None means not reported.

    Attributes:
        seconds: duration of the measurement.
        reads_per_s: read I/Os per second; for small files, operations per second.
        writes_per_s: write I/Os per second; for small files, operations per second.
        read_bytes_per_s: bytes read per second.
        write_bytes_per_s: bytes written per second.
        times_ns: latency in nanoseconds -> number of I/Os, in the precision of the tool.
        mean_s: mean latency in seconds.
        max_s: longest latency in seconds.
        series: rate and latency over time.
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
