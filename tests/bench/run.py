"""``make bench``: measure the cost and the speed of the load engine, compared with C tools on one server.

Pinchpoint and the peer take turns in one run; a figure is the median of five pairs. Both run on the machine's
last core, the server runs on the others. A missed goal is printed with its figure. ``SUITE=verdict`` measures
the analysis, ``SUITE=nosql`` the writes to NoSQL stores, ``SUITE=odbc`` the commits over ODBC,
``SUITE=bridge`` compares predictions from disk probes with measured throughput, ``SUITE=collectors`` measures
the collectors, ``SUITE=peers`` compares other load generators.
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
    """Yield the load engine's rows, each as soon as it is known, and the smallest verdict's rows."""
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
    """Yield the rows of a crawl."""
    yield from _or_why_not("a crawl's client", crawl.rows())
    yield from _or_why_not("load generator's share of a crawl's CPU", share.rows())


def whole_verdict() -> Iterator[Row]:
    """Yield the rows of the verdict on eight hours of twenty hosts, and on a tenth and a third of them."""
    yield from _or_why_not("verdict", verdict.rows())


def stores() -> Iterator[Row]:
    """Yield the rows of the NoSQL stores."""
    yield from _or_why_not("durable writes to NoSQL stores", nosql.rows())


def predictions() -> Iterator[Row]:
    """Yield the rows that compare predictions from probes with measurements."""
    yield from _or_why_not("predictions from probes", bridge.rows())


def collectors() -> Iterator[Row]:
    """Yield the rows of the collectors."""
    yield from _or_why_not("watching", collecting.rows())


def other_tools() -> Iterator[Row]:
    """Yield the rows of the load generators that a user could choose instead of Pinchpoint."""
    yield from _or_why_not("other tools", peers.rows())


def by_odbc() -> Iterator[Row]:
    """Yield the rows of commits over ODBC."""
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
"""Name that ``make bench SUITE=NAME`` takes -> function that yields the suite's rows."""


def _or_why_not(group: str, found: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows of a group; if a measurement fails, one row with the reason replaces the rest."""
    try:
        yield from found
    except BenchError as error:
        yield Row(group, None, "", met=False, note=str(error))


def main() -> int:
    """Run ``make bench``; return 0 if all was measured, whatever goals were met."""
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
