"""Crawl with sessions of a crawl that test_resume.py has prepared, until the test kills this process.

Arguments: the crawl's endpoints and params as JSON, the number of sessions. Prints a line per finished
document.
"""

from __future__ import annotations

import json
import sys

from scenarios.support import Recorder, crawl, made

from pinchpoint_scenarios.contract import Endpoint


class GapReporter(Recorder):
    """A recorder that prints each finished document, so that the test knows when to kill."""

    def __call__(self, operation: str, outcome: str, start_ns: int, end_ns: int, size_bytes: int = 0) -> None:
        if "/" not in operation:
            sys.stdout.write(f"{operation} {outcome}\n")
            sys.stdout.flush()


def main() -> None:
    """Crawl to the end or until killed."""
    endpoints, params, sessions = json.loads(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
    given = {name: Endpoint(name, url, options) for name, (url, options) in endpoints.items()}
    crawl(made("full-crawl", given, params), sessions, GapReporter())


if __name__ == "__main__":
    main()
