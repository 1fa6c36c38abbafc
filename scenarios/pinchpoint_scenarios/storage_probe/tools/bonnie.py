"""bonnie++: one large file, or many small ones; its last line is CSV (format 1.98)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..cell import Cell, CellFigures, Job, ProbePlace
from ..results.bonnie import FILES, FORMATS, THROUGHPUT, TOO_FAST, figure
from ..tool import ToolFailed, last_words

_FORMAT = "1.98"
_MIB = 2**20
_LARGEST_BYTES, _SMALLEST_BYTES = 16384, 8192  # seed C: files of 8 to 16 KB


class Bonnie:
    """Works in the folder it runs in; removes what it made. No single characters: those test the CPU."""

    name = program = package = "bonnie++"

    def version(self) -> Sequence[str]:
        """The command whose help names bonnie++, whatever its exit status."""
        return [self.program, "-h"]

    def prepare(self, place: ProbePlace) -> Sequence[str]:  # noqa: ARG002 -- Tool's
        """No preparation: bonnie++ makes its own files."""
        return []

    def commands(self, job: Job, place: ProbePlace) -> Sequence[Sequence[str]]:
        """One call; as root bonnie++ needs an option."""
        small = _thousands(int(job.options["small_files"]), place.size_bytes)
        sizes = [f"-s{place.size_bytes // _MIB}", "-n0"]
        if small:
            sizes = ["-s0", f"-n{small}:{_LARGEST_BYTES}:{_SMALLEST_BYTES}:{small}"]
        memory = [f"-r{_memory_mib(place)}"]
        user = ["-uroot"] if place.root else []
        return [[self.program, "-q", "-f", "-mprobe", "-d.", *sizes, *memory, *user]]

    def read(self, job: Job, place: ProbePlace, stdout: str, stderr: str) -> Mapping[Cell, CellFigures]:  # noqa: ARG002 -- Tool's
        """The CSV; a figure that was too fast to measure has no cell."""
        fields = line(stdout, stderr)
        places = FILES if job.options["small_files"] else THROUGHPUT
        figures = {}
        for cell, (name, (at, longest)) in zip(job.cells, places.items(), strict=True):
            if fields[at] and not fields[at].startswith(TOO_FAST):
                figures[cell] = figure(name, float(fields[at]), fields[longest])
        return figures

    def why(self, stdout: str, stderr: str) -> str:
        """The reason of a failure: the last line of the output."""
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


def _thousands(asked: int, size_bytes: int) -> int:
    """Times 1,024 small files: they take no more room than the large one (--size)."""
    return min(asked, max(1, size_bytes // (1024 * _LARGEST_BYTES)))


def _memory_mib(place: ProbePlace) -> int:
    """The memory size given to bonnie++: it refuses a file of less than twice as much.

    With a smaller file (--size) it is given half of that, and the page cache takes part: the probe says so.
    """
    return min(place.memory_bytes, place.size_bytes // 2) // _MIB
