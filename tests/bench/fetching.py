"""Fetch one document repeatedly with the crawl's HTTP client under gevent, in a process of its own.

Arguments: the site's URL, the path, the number of connections, seconds. Prints a JSON list: documents per
second, CPU time per document in microseconds.
"""

# ruff: noqa: E402 - gevent must patch the process before all other imports, as in a load generator

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import json
import sys
import time

import gevent

from pinchpoint_scenarios.full_crawl.http import Http

_WARM_UP = 20
"""Requests per connection before the measurement: on a busy machine a handshake can outlast a fixed warm-up
time."""
_TIMEOUT_S = 10.0


def main() -> None:
    """Send requests until the time is over; the measurement starts when all connections are warm."""
    url, path, connections, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    done = [0] * connections
    over = False

    def fetch(number: int) -> None:
        http = Http(url, timeout_s=_TIMEOUT_S, headers={"User-Agent": "bench", "Accept": "*/*"})
        while not over:
            http.request("GET", path)
            done[number] += 1
        http.close()

    loops = [gevent.spawn(fetch, number) for number in range(connections)]
    while min(done) < _WARM_UP:
        if broken := next((each.exception for each in loops if each.exception), None):
            raise broken
        gevent.sleep(0.05)
    count, begun, cpu_s = sum(done), time.perf_counter(), time.process_time()
    gevent.sleep(seconds)
    count, took_s, cpu_s = sum(done) - count, time.perf_counter() - begun, time.process_time() - cpu_s
    over = True
    gevent.joinall(loops, raise_error=True)
    print(json.dumps([count / took_s, cpu_s / count * 1e6]))


if __name__ == "__main__":
    main()
