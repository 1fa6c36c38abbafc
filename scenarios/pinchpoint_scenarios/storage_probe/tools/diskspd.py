"""Runs DiskSpd, the storage test of Windows. Its XML has percentiles and the rate over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pinchpoint_collectors.common.legible import ForeignFileError

from ..cell import FILE, Cell, CellFigures, Job, ProbePlace
from ..results.diskspd import DiskSpdXml
from ..tool import ToolFailed, last_words
from .fio import settles


class DiskSpd:
    """Runs DiskSpd past the cache of the operating system; writes of a log also bypass the cache of the disk.

    Durations are whole seconds. A latency is the time from the start of an I/O to its end.
    """

    name = program = "diskspd"
    package = "DiskSpd (github.com/microsoft/diskspd)"

    def version(self) -> Sequence[str]:
        """Return a command whose help names DiskSpd."""
        return [self.program, "-?"]

    def prepare(self, place: ProbePlace) -> Sequence[str]:
        """Return the command that writes the whole file and reads it for one second, the shortest time."""
        return [self.program, f"-c{place.size_bytes}", "-b1M", "-o1", "-t1", "-w0", "-d1", "-W0", "-Su", FILE]

    def commands(self, job: Job, place: ProbePlace) -> Sequence[Sequence[str]]:
        """Return one call of DiskSpd. Raises ``ToolFailed`` if DiskSpd cannot do the job."""
        cell = job.cell
        if job.seconds is None or cell.block_bytes is None or cell.read_ratio is None:
            raise ValueError(f"a job for DiskSpd needs seconds, a block size and a share of reads: {job}")
        if job.flush_every:
            raise ToolFailed(f"DiskSpd cannot flush after every {job.flush_every} writes")
        random = cell.random_ratio or 0.0
        order = [] if not random else ["-r"] if random == 1 else [f"-rs{round(random * 100)}"]
        options = [
            f"-b{cell.block_bytes}",
            f"-o{(cell.outstanding or 1) // job.threads}",
            f"-t{job.threads}",
            *([f"-T{place.size_bytes // job.threads}"] if job.threads > 1 and not random else []),
            f"-w{round((1 - cell.read_ratio) * 100)}",
            *order,
            f"-d{math.ceil(job.seconds)}",
            f"-W{math.ceil(settles(job))}",
            "-Sh" if job.flush_each else "-Su",
            f"-z{place.trial}",
            "-Z1M",
            "-L",
            "-D1000",
            "-Rxml",
            FILE,
        ]
        return [[self.program, *options]]

    def read(self, job: Job, place: ProbePlace, stdout: str, stderr: str) -> Mapping[Cell, CellFigures]:  # noqa: ARG002 -- Tool's
        """Return the figures in DiskSpd's XML, with the reader that ``import`` uses."""
        try:
            [result] = DiskSpdXml().read(stdout).results
        except (ForeignFileError, ValueError) as error:
            raise ToolFailed(
                f"DiskSpd did not print the XML that was expected: {error}: {last_words(stderr, stdout)}"
            ) from error
        if result.measured is None:
            raise ToolFailed(f"DiskSpd: {result.failed}")
        return {job.cell: result.measured}

    def why(self, stdout: str, stderr: str) -> str:
        """Return the reason of a failure: the last line of the output."""
        return last_words(stderr, stdout)
