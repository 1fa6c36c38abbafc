"""bonnie++: one large file, or many small ones; its last line is CSV (format 1.98)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..cell import Cell, Job, Measured, ProbePlace
from ..tool import ToolFailed, last_words

_FORMAT = "1.98"
FORMATS: Mapping[str, int] = {"1.96": 48, "1.97": 48, "1.98": 50}
"""Its CSV's formats -> how many fields. Places below are of 1.98, with two more before the first figure."""
_TOO_FAST = "+"
"""bonnie++ prints ``+++++`` for what took less than half a second: it is not measured."""

THROUGHPUT: Mapping[str, tuple[int, int]] = {
    "block write": (11, 39),
    "rewrite": (13, 40),
    "block read": (17, 42),
    "seeks": (19, 43),
}
"""What it measures on one large file -> the fields of its figure and of its longest time."""

FILES: Mapping[str, tuple[int, int]] = {
    "create files in order": (26, 44),
    "read files in order": (28, 45),
    "delete files in order": (30, 46),
    "create files at random": (32, 47),
    "read files at random": (34, 48),
    "delete files at random": (36, 49),
}
"""Likewise of small files; figures are files per second."""

_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_LATENCY = re.compile(r"(\d+)(us|ms|s)")
_MIB = 2**20
LARGEST_SMALL_BYTES, _SMALLEST_BYTES = 16384, 8192  # seed C: files of 8 to 16 KB


class Bonnie:
    """Works in the folder it runs in; removes what it made. No single characters: those test the CPU."""

    name = program = package = "bonnie++"

    def version(self) -> Sequence[str]:
        """Its help names it, whatever its exit status."""
        return [self.program, "-h"]

    def prepare(self, place: ProbePlace) -> Sequence[str]:  # noqa: ARG002 -- Tool's
        """It makes its own."""
        return []

    def commands(self, job: Job, place: ProbePlace) -> Sequence[Sequence[str]]:
        """One call; as root bonnie++ needs an option."""
        small = int(job.options["small_files"])
        sizes = [f"-s{place.size_bytes // _MIB}", "-n0"]
        if small:
            sizes = ["-s0", f"-n{small}:{LARGEST_SMALL_BYTES}:{_SMALLEST_BYTES}:{small}"]
        memory = [f"-r{_memory_mib(place)}"]
        user = ["-uroot"] if place.root else []
        return [[self.program, "-q", "-f", "-mprobe", "-d.", *sizes, *memory, *user]]

    def read(self, job: Job, place: ProbePlace, stdout: str, stderr: str) -> Mapping[Cell, Measured]:  # noqa: ARG002 -- Tool's
        """The CSV; a figure that was too fast to measure has no cell."""
        fields = line(stdout, stderr)
        places = FILES if job.options["small_files"] else THROUGHPUT
        found = {}
        for cell, (name, (at, longest)) in zip(job.cells, places.items(), strict=True):
            if fields[at] and not fields[at].startswith(_TOO_FAST):
                found[cell] = figure(name, float(fields[at]), fields[longest])
        return found

    def why(self, stdout: str, stderr: str) -> str:
        """Its last line."""
        return last_words(stderr, stdout)


def line(stdout: str, stderr: str) -> Sequence[str]:
    """The fields of bonnie++'s CSV. Raises ``ToolFailed``."""
    words = last_words(stdout)
    fields = words.split(",")
    if fields[0] != _FORMAT or len(fields) != FORMATS[_FORMAT]:
        raise ToolFailed(
            f"bonnie++ printed no line of its CSV format {_FORMAT} ({FORMATS[_FORMAT]} fields): "
            f"{last_words(stderr, stdout)}"
        )
    return fields


def figure(name: str, value: float, longest: str) -> Measured:
    """Of a large file KiB per second (seeks: per second), of small ones files per second."""
    rate, longest_s = value * 1024, _seconds(longest)
    if name == "block write":
        return Measured(None, read_bytes_per_s=0.0, write_bytes_per_s=rate, max_s=longest_s)
    if name == "block read":
        return Measured(None, read_bytes_per_s=rate, write_bytes_per_s=0.0, max_s=longest_s)
    if name == "rewrite":  # each byte is read and written
        return Measured(None, read_bytes_per_s=rate, write_bytes_per_s=rate, max_s=longest_s)
    if name.startswith(("read", "seeks")):
        return Measured(None, reads_per_s=value, writes_per_s=0.0, max_s=longest_s)
    return Measured(None, reads_per_s=0.0, writes_per_s=value, max_s=longest_s)


def _seconds(text: str) -> float | None:
    found = _LATENCY.fullmatch(text)
    return int(found[1]) * _UNITS[found[2]] if found else None


def _memory_mib(place: ProbePlace) -> int:
    """The memory size given to bonnie++: it refuses a file of less than twice as much.

    With a smaller file (--size) it is given half of that, and the page cache takes part: the probe says so.
    """
    return min(place.memory_bytes, place.size_bytes // 2) // _MIB
