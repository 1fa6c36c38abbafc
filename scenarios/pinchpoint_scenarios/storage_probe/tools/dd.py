"""Runs dd once over the whole file: a write past the page cache, or a read after dropping the page cache."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..cell import FILE, Cell, CellFigures, Job, ProbePlace
from ..tool import ToolFailed, last_words

_BLOCK = 2**20
_SAID = re.compile(r"^(\d+) bytes .*copied, ([0-9.e+-]+) s,", re.MULTILINE)


class Dd:
    """Runs dd of coreutils with blocks of 1 MiB. dd reports no latencies."""

    name = program = "dd"
    package = "coreutils"

    def version(self) -> Sequence[str]:
        """Return the command that prints a line such as ``dd (coreutils) 9.1``."""
        return [self.program, "--version"]

    def prepare(self, place: ProbePlace) -> Sequence[str]:
        """Return the command that writes every block once, so that no repetition meets new blocks."""
        return self._write(place)

    def commands(self, job: Job, place: ProbePlace) -> Sequence[Sequence[str]]:
        """Return the commands.

        Before a read, ``oflag=nocache`` without data drops the file from the cache.
        """
        if job.options["of"] == "write":
            return [self._write(place)]
        release_locks = [self.program, f"of={FILE}", "oflag=nocache", "conv=notrunc,fdatasync", "count=0"]
        return [release_locks, [self.program, f"if={FILE}", "of=/dev/null", *_blocks(place)]]

    def _write(self, place: ProbePlace) -> list[str]:
        how = ["if=/dev/zero", f"of={FILE}", "oflag=direct", "conv=notrunc,fdatasync"]
        return [self.program, *how, *_blocks(place)]

    def read(self, job: Job, place: ProbePlace, stdout: str, stderr: str) -> Mapping[Cell, CellFigures]:  # noqa: ARG002 -- Tool's
        """Return the result in dd's last line: ``1073741824 bytes (1.1 GB) copied, 0.5 s, 2.1 GB/s``."""
        size, seconds = copied(stderr)
        rate, each = size / seconds, size / _BLOCK / seconds
        if job.options["of"] == "write":
            done = CellFigures(seconds, 0.0, each, 0.0, rate)
        else:
            # The kernel reads ahead in sizes of its own, so the number of I/Os is unknown.
            done = CellFigures(seconds, read_bytes_per_s=rate, write_bytes_per_s=0.0)
        return {job.cell: done}

    def why(self, stdout: str, stderr: str) -> str:
        """Return the reason of a failure: the last line of the error output."""
        return last_words(stderr, stdout)


def copied(stderr: str) -> tuple[int, float]:
    """Return bytes and seconds from dd's last line. Raises ``ToolFailed``."""
    match = _SAID.search(stderr)
    if match is None or float(match[2]) <= 0:
        raise ToolFailed(f"dd did not say how much it copied in what time: {last_words(stderr)}")
    return int(match[1]), float(match[2])


def _blocks(place: ProbePlace) -> list[str]:
    return ["bs=1M", f"count={max(1, place.size_bytes // _BLOCK)}"]
