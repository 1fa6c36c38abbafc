"""Ours: the crawl's HTTP client under gevent, asking for one document again and again, in its own process.

Arguments: the site's URL, the path, how many connections, seconds. Prints a JSON list: documents per second,
CPU time per document in microseconds.
"""

# ruff: noqa: E402 - the patches come before all other imports, as in a load generator

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import json
import sys
import time

import gevent

from pinchpoint_scenarios.full_crawl.http import Http

_WARM_UP_S = 0.5
_TIMEOUT_S = 10.0


def main() -> None:
    """Ask until the time is over; what is measured begins when all connections are warm."""
    url, path, connections, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    done = [0]
    over = False

    def fetch() -> None:
        http = Http(url, timeout_s=_TIMEOUT_S, headers={"User-Agent": "bench", "Accept": "*/*"})
        while not over:
            http.request("GET", path)
            done[0] += 1
        http.close()

    loops = [gevent.spawn(fetch) for _ in range(connections)]
    gevent.sleep(_WARM_UP_S)
    count, begun, cpu_s = done[0], time.perf_counter(), time.process_time()
    gevent.sleep(seconds)
    count, took_s, cpu_s = done[0] - count, time.perf_counter() - begun, time.process_time() - cpu_s
    over = True
    gevent.joinall(loops, raise_error=True)
    print(json.dumps([count / took_s, cpu_s / count * 1e6]))


if __name__ == "__main__":
    main()
