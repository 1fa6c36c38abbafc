"""``make bench``: what the load engine costs and how fast it is, beside C tools on the same server.

Ours and the peer take turns in one run; a figure is the median of five pairs. Both run on the machine's last
core, the server on the others. A goal that is missed is printed as it is. With ``SUITE=verdict`` it is the
analysis that is timed, with ``SUITE=nosql`` the writes to NoSQL stores alone, with ``SUITE=odbc`` commits by
ODBC, with ``SUITE=bridge`` what a probe predicts of an application is held against what is measured then,
with ``SUITE=collectors`` it is what watching costs, with ``SUITE=peers`` other load generators are
beside ours.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from bench import (
    bridge,
    collecting,
    commits,
    crawl,
    latency,
    nosql,
    odbc,
    peers,
    recording,
    scaling,
    share,
    storage,
    verdict,
)
from bench.load import BenchError
from bench.rows import Row, heading, line, write
from bench.server import free_disk

RESULT = Path(__file__).parents[2] / "build" / "bench.json"


def engine() -> Iterator[Row]:
    """The load engine's rows, in the order in which they are known; of the verdict's the smallest run."""
    yield recording.row()
    yield from _or_why_not("verdict", verdict.rows(["tenth"]))
    yield from _or_why_not("two workers", scaling.rows())
    with free_disk() as target:
        yield from _or_why_not("commits on a free disk", commits.rows(target))
        yield from _or_why_not("service times", latency.rows(target))
    yield from _or_why_not("commits on a slow log disk", storage.rows())
    yield from _or_why_not("durable writes to NoSQL stores", nosql.rows())
    yield from crawl_client()


def crawl_client() -> Iterator[Row]:
    """The rows of a crawl alone."""
    yield from _or_why_not("a crawl's client", crawl.rows())
    yield from _or_why_not("load generator's share of a crawl's CPU", share.rows())


def whole_verdict() -> Iterator[Row]:
    """The verdict on eight hours of twenty hosts, and on a tenth and a third of them."""
    yield from _or_why_not("verdict", verdict.rows())


def stores() -> Iterator[Row]:
    """The rows of NoSQL stores alone."""
    yield from _or_why_not("durable writes to NoSQL stores", nosql.rows())


def predictions() -> Iterator[Row]:
    """What probes predict, beside what is measured then."""
    yield from _or_why_not("predictions from probes", bridge.rows())


def collectors() -> Iterator[Row]:
    """The rows of watching alone."""
    yield from _or_why_not("watching", collecting.rows())


def other_tools() -> Iterator[Row]:
    """The tools that a user would pick in place of Pinchpoint."""
    yield from _or_why_not("other tools", peers.rows())


def by_odbc() -> Iterator[Row]:
    """The rows of ODBC alone."""
    yield from _or_why_not("commits by ODBC", odbc.rows())


SUITES = {
    "engine": engine,
    "bridge": predictions,
    "collectors": collectors,
    "odbc": by_odbc,
    "crawl": crawl_client,
    "nosql": stores,
    "peers": other_tools,
    "verdict": whole_verdict,
}
"""By the name that ``make bench SUITE=NAME`` takes."""


def _or_why_not(group: str, found: Iterator[Row]) -> Iterator[Row]:
    """The rows of a group; where a measurement fails, what is missing is one row that says why."""
    try:
        yield from found
    except BenchError as error:
        yield Row(group, None, "", met=False, note=str(error))


def main() -> int:
    """Entry of ``make bench``; the exit status is 0 if all was measured, whatever goals were met."""
    name = sys.argv[1] if len(sys.argv) > 1 else "engine"
    if name not in SUITES:
        print(f"bench: SUITE: found {name!r}; allowed: {', '.join(SUITES)}", file=sys.stderr)
        return 2
    found: list[Row] = []
    print(heading(), flush=True)
    for row in SUITES[name]():
        found.append(row)
        write(found, RESULT)
        print(line(row), flush=True)
    missed = sum(not row.met for row in found)
    print(f"\n{len(found) - missed} of {len(found)} met; {RESULT}")
    return int(any(row.value is None for row in found))


if __name__ == "__main__":
    sys.exit(main())
