"""bonnie++: a file of more than twice the memory, and apart from it small files; ten times (seed C)."""

from __future__ import annotations

from collections.abc import Sequence

from ..cell import Cell, Job
from ..suite import Suite
from ..tools.bonnie import FILES, LARGEST_SMALL_BYTES, THROUGHPUT

_SMALL = 16
"""Times 1,024 files, as bonnie++ counts them."""


def jobs(seconds: float) -> Sequence[Job]:  # noqa: ARG001 -- bonnie++ goes on until its work is done
    """Two calls; what each tells are cells."""
    large = Job(
        "bonnie++",
        tuple(Cell(f"bonnie {name}") for name in THROUGHPUT),
        uses_file=False,
        options={"title": "bonnie++ large file", "small_files": 0},
    )
    small = Job(
        "bonnie++",
        tuple(Cell(f"bonnie {name}") for name in FILES),
        uses_file=False,
        room_bytes=_SMALL * 1024 * LARGEST_SMALL_BYTES,
        options={"title": "bonnie++ small files", "small_files": _SMALL},
    )
    return [large, small]


SUITE = Suite(
    name="bonnie",
    about="bonnie++: a file of more than twice the memory, and 16,384 files of 8 to 16 KiB; ten times",
    jobs=jobs,
    repetitions=10,
    seconds=None,
    size_bytes=None,
)
