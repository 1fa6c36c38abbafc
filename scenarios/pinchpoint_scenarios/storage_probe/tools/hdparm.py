"""Runs hdparm -t, which measures sequential reads of the folder's block device. It writes nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..cell import Cell, CellFigures, Job, ProbePlace
from ..tool import ToolFailed, last_words

_SAID = re.compile(r"Timing buffered disk reads:\s*(\d+) MB in\s*([0-9.]+) seconds")
_MIB = 2**20


class Hdparm:
    """Reads the block device for three seconds. The user needs the right to read it."""

    name = program = package = "hdparm"

    def version(self) -> Sequence[str]:
        """Return the command that prints a version such as ``hdparm v9.65``."""
        return [self.program, "-V"]

    def prepare(self, place: ProbePlace) -> Sequence[str]:  # noqa: ARG002 -- Tool's
        """Return no command: hdparm reads the device and no file."""
        return []

    def commands(self, job: Job, place: ProbePlace) -> Sequence[Sequence[str]]:  # noqa: ARG002 -- Tool's
        """Return one call of hdparm. Raises ``ToolFailed`` if the folder has no block device."""
        if place.device is None:
            raise ToolFailed(
                "the folder lies on no block device (memory, a network share), so hdparm reads none"
            )
        return [[self.program, "-t", place.device]]

    def read(self, job: Job, place: ProbePlace, stdout: str, stderr: str) -> Mapping[Cell, CellFigures]:  # noqa: ARG002 -- Tool's
        """Return the result in `` Timing buffered disk reads: 602 MB in  3.00 seconds = 200.47 MB/sec``.

        hdparm's MB are MiB.
        """
        size_bytes, seconds = timed(stdout, stderr)
        rate = size_bytes / seconds
        return {job.cell: CellFigures(seconds, read_bytes_per_s=rate, write_bytes_per_s=0.0)}

    def why(self, stdout: str, stderr: str) -> str:
        """Return the reason of a failure: the last line of errors; with a remedy if rights are missing."""
        words = last_words(stderr, stdout)
        return f"{words}; only root may read a device" if "Permission denied" in words else words


def timed(stdout: str, stderr: str) -> tuple[int, float]:
    """Return bytes and seconds from hdparm's output. Raises ``ToolFailed``."""
    match = _SAID.search(stdout)
    if match is None or float(match[2]) <= 0:
        raise ToolFailed(f"hdparm did not say how much it read: {last_words(stderr, stdout)}")
    return int(match[1]) * _MIB, float(match[2])
