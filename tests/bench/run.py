"""``make bench``: what the load engine costs and how fast it is, beside C tools on the same server.

Ours and the peer take turns in one run; a figure is the median of five pairs. Both run on the machine's last
core, the server on the others. A goal that is missed is printed as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from bench import commits, latency, nosql, recording, scaling, storage
from bench.load import BenchError
from bench.rows import Row, heading, line, write
from bench.server import free_disk

RESULT = Path(__file__).parents[2] / "build" / "bench.json"


def rows() -> Iterator[Row]:
    """Every row, in the order in which it is known."""
    yield recording.row()
    yield from _or_why_not("two workers", scaling.rows())
    with free_disk() as target:
        yield from _or_why_not("commits on a free disk", commits.rows(target))
        yield from _or_why_not("service times", latency.rows(target))
    yield from _or_why_not("commits on a slow log disk", storage.rows())
    yield from _or_why_not("durable writes to NoSQL stores", nosql.rows())


def _or_why_not(group: str, found: Iterator[Row]) -> Iterator[Row]:
    """The rows of a group; where a measurement fails, what is missing is one row that says why."""
    try:
        yield from found
    except BenchError as error:
        yield Row(group, None, "", met=False, note=str(error))


def main() -> int:
    """Entry of ``make bench``; the exit status is 0 where all was measured, whatever goals were met."""
    found: list[Row] = []
    print(heading(), flush=True)
    for row in rows():
        found.append(row)
        write(found, RESULT)
        print(line(row), flush=True)
    missed = sum(not row.met for row in found)
    print(f"\n{len(found) - missed} of {len(found)} met; {RESULT}")
    return int(any(row.value is None for row in found))


if __name__ == "__main__":
    sys.exit(main())
