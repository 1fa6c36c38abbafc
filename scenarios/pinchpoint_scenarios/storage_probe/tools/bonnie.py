"""Runs bonnie++ on one large file or on many small files. Its last line of output is CSV (format 1.98)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..cell import Cell, CellFigures, Job, ProbePlace
from ..results.bonnie import FILES, FORMATS, THROUGHPUT, TOO_FAST, figure
from ..tool import ToolFailed, last_words

_FORMAT = "1.98"
_MIB = 2**20
_LARGEST_BYTES, _SMALLEST_BYTES = 16384, 8192  # files of 8 to 16 KB, as in ``demo --seed c``


class Bonnie:
    """Runs bonnie++ in the probe's folder. bonnie++ removes its files at the end.

    Tests of single characters are left out, because they measure the CPU.
    """

    name = program = package = "bonnie++"

    def version(self) -> Sequence[str]:
        """Return a command whose help names bonnie++, with any exit status."""
        return [self.program, "-h"]

    def prepare(self, place: ProbePlace) -> Sequence[str]:  # noqa: ARG002 -- Tool's
        """Return no command: bonnie++ creates its own files."""
        return []

    def commands(self, job: Job, place: ProbePlace) -> Sequence[Sequence[str]]:
        """Return one call of bonnie++; as root it needs an option."""
        small = _thousands(int(job.options["small_files"]), place.size_bytes)
        sizes = [f"-s{place.size_bytes // _MIB}", "-n0"]
        if small:
            sizes = ["-s0", f"-n{small}:{_LARGEST_BYTES}:{_SMALLEST_BYTES}:{small}"]
        memory = [f"-r{_memory_mib(place)}"]
        user = ["-uroot"] if place.root else []
        return [[self.program, "-q", "-f", "-mprobe", "-d.", *sizes, *memory, *user]]

    def read(self, job: Job, place: ProbePlace, stdout: str, stderr: str) -> Mapping[Cell, CellFigures]:  # noqa: ARG002 -- Tool's
        """Return the values in the CSV. A test that was too fast to measure has no cell."""
        fields = line(stdout, stderr)
        places = FILES if job.options["small_files"] else THROUGHPUT
        figures = {}
        for cell, (name, (at, longest)) in zip(job.cells, places.items(), strict=True):
            if fields[at] and not fields[at].startswith(TOO_FAST):
                figures[cell] = figure(name, float(fields[at]), fields[longest])
        return figures

    def why(self, stdout: str, stderr: str) -> str:
        """Return the reason of a failure: the last line of the output."""
        return last_words(stderr, stdout)


def line(stdout: str, stderr: str) -> Sequence[str]:
    """Return the fields of bonnie++'s CSV line. Raises ``ToolFailed``."""
    words = last_words(stdout)
    fields = words.split(",")
    if fields[0] != _FORMAT or len(fields) != FORMATS[_FORMAT]:
        raise ToolFailed(
            f"bonnie++ printed no line of its CSV format {_FORMAT} ({FORMATS[_FORMAT]} fields): "
            f"{last_words(stderr, stdout)}"
        )
    return fields


def _thousands(asked: int, size_bytes: int) -> int:
    """Return the number of small files ÷ 1,024.

    They must not need more space than the large file (--size).
    """
    return min(asked, max(1, size_bytes // (1024 * _LARGEST_BYTES)))


def _memory_mib(place: ProbePlace) -> int:
    """Return the memory size in MiB for bonnie++, which refuses a file smaller than twice the memory.

    For a smaller file (--size), half of its size is used. The page cache then takes part, and the probe's
    notes say so.
    """
    return min(place.memory_bytes, place.size_bytes // 2) // _MIB
