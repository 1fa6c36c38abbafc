"""Wait for a database in ten gevent sessions; test_crawl_databases.py starts this program.

Argument: the URL of a MariaDB. Prints the time of ten waits of 0.3 s and the number of loop iterations.
"""

# ruff: noqa: E402 - gevent must patch the process before all other imports, as in a load generator

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import json
import sys
import time

import gevent

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.full_crawl.database import CrawlDatabase


def main() -> None:
    """Run all ten sessions at the same time."""
    database = CrawlDatabase(Endpoint("sql", sys.argv[1]), "waiting")
    database.make()
    connections = [database.session(10, lambda: None) for _ in range(10)]
    for connection in connections:
        connection.try_open()
    turns = 0

    def turn() -> None:
        nonlocal turns
        while True:
            gevent.sleep(0.01)
            turns += 1

    turning = gevent.spawn(turn)
    begun = time.perf_counter()
    waits = [gevent.spawn(connection.execute, "SELECT SLEEP(0.3)") for connection in connections]
    gevent.joinall(waits, raise_error=True)
    waited_s = time.perf_counter() - begun
    turning.kill()
    for connection in connections:
        connection.close()
    database.drop()
    database.release()
    sys.stdout.write(json.dumps({"waited_s": waited_s, "turns": turns}))


if __name__ == "__main__":
    main()
