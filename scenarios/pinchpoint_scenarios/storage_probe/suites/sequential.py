"""dd and hdparm, twelve times, ten seconds apart (seed E).

dd writes the file past the page cache and brings it to the disk; dd reads it after the page cache has let go
of it; hdparm reads the device itself, where there is one and the user may. If what is read gets faster from
trial to trial all the same, somebody else keeps it: a cache on the host.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..cell import Cell, Job
from ..suite import Suite

_BLOCK = 2**20


def jobs(seconds: float) -> Sequence[Job]:  # noqa: ARG001 -- a file is read whole, however long it takes
    """Three cells."""
    return [
        Job("dd", (Cell("dd write", _BLOCK, 0.0, 0.0, 1),), options={"of": "write"}),
        Job("dd", (Cell("dd read", _BLOCK, 1.0, 0.0),), options={"of": "read"}),
        Job("hdparm", (Cell("hdparm read", None, 1.0, 0.0),), uses_file=False),
    ]


SUITE = Suite(
    name="sequential",
    about="dd direct write, dd read with the page cache dropped, hdparm; 12 trials 10 s apart",
    jobs=jobs,
    repetitions=12,
    seconds=None,
    pause_s=10.0,
)
