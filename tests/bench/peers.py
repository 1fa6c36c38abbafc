"""Compare client CPU per operation with the load generators that a user could choose instead of Pinchpoint.

The C tools of a server's own package are in ``commits``, ``crawl`` and ``nosql``. A peer that is not
installed gets a row without a value and with a note that names its source.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from bench.crawl import CONNECTIONS, fetched, site
from bench.generator import closed
from bench.load import BenchError, Load, cores, figures, measured_run
from bench.nosql import CONNECTIONS as SESSIONS
from bench.nosql import SET, written
from bench.pairs import interleaved
from bench.rows import Row
from bench.server import CLIENTS, Target, free_disk
from servers import killable_valkey

from pinchpoint_scenarios.contract import Endpoint

_SECONDS = 5
_BYTES = 2**10
_PAYLOAD_BYTES = 200
_GOAL = 1.0
_DONE = re.compile(r"transactions:\s+(\d+)")
_RATE = re.compile(r"transactions:\s+\d+\s+\(([\d.]+) per sec")
_ERRORS = re.compile(r"(?:ignored errors|reconnects):\s+[1-9]")

_K6 = """
import http from 'k6/http';
export const options = {vus: %d, duration: '%ds', discardResponseBodies: true};
export default function () { http.get('%s'); }
export function handleSummary(data) {
  const count = data.metrics.http_reqs.values;
  const failed = data.metrics.http_req_failed.values.passes;
  return {stdout: JSON.stringify([count.count, count.rate, failed])};
}
"""
_LOCUST = """
import json, sys, time
from locust import FastHttpUser, constant, task
from locust.env import Environment
import gevent
url, path, users, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
class Reader(FastHttpUser):
    host, wait_time = url, constant(0)
    @task
    def read(self):
        self.client.get(path)
environment = Environment(user_classes=[Reader])
runner = environment.create_local_runner()
runner.start(users, spawn_rate=users)
stats = environment.stats
while stats.total.num_requests < 20 * users:
    gevent.sleep(0.05)
count, begun, cpu = stats.total.num_requests, time.perf_counter(), time.process_time()
gevent.sleep(seconds)
count = stats.total.num_requests - count
took, cpu, failed = time.perf_counter() - begun, time.process_time() - cpu, stats.total.num_failures
runner.quit()
print(json.dumps([count, count / took, cpu, failed]))
"""
_SYSBENCH = """
function thread_init()
  connection = sysbench.sql.driver():connect()
end
function event()
  connection:query(string.format(
    "INSERT INTO log (session, sequence, payload) VALUES (%%d, %%d, '\\\\x%s')",
    sysbench.tid, sysbench.rand.uniform(1, 1000000000)))
end
"""


def rows() -> Iterator[Row]:
    """Yield one row per peer."""
    with site(pages=1) as served:
        document = "client CPU per document of 1 KiB"

        def ours() -> Load:
            return fetched(served.url, _BYTES, _SECONDS)

        yield _beside(document, "k6", "go install go.k6.io/k6@latest", ours, lambda: _k6(served.url))
        yield _beside(document, "FastHttpUser", "", ours, lambda: _locust(served.url))
    with free_disk() as target:
        yield _beside(
            "client CPU per log_append",
            "sysbench",
            "Debian: sysbench",
            lambda: target.ours(closed(CLIENTS), _SECONDS),
            lambda: _sysbench(target),
        )
    with killable_valkey("always") as server:
        os.sched_setaffinity(server.pid, cores()[0])
        endpoint = Endpoint("nosql", server.url)
        yield _beside(
            SET,
            "memtier_benchmark",
            "Debian 13: memtier-benchmark",
            lambda: written(endpoint),
            lambda: _memtier(server.url),
        )


def _beside(name: str, peer: str, source: str, ours: Callable[[], Load], its: Callable[[], Load]) -> Row:
    """Measure Pinchpoint and the peer in turn and return the row.

    ``source`` names the package of the peer's program; "" means that the peer is a program of this
    repository.
    """
    name = f"{name}, beside {peer}"
    if source and shutil.which(peer) is None:
        return Row(name, None, "us", peer, goal=_GOAL, met=False, note=f"needs {peer} ({source})")
    found = interleaved(ours, its)
    mine, others, ratio = found.medians(lambda load: load.cpu_us)
    return Row(name, mine, "us", peer, others, ratio, _GOAL, met=ratio <= _GOAL)


def _k6(url: str) -> Load:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        script = Path(folder, "read.js")
        script.write_text(_K6 % (CONNECTIONS, _SECONDS, f"{url}/{_BYTES}.bin"), encoding="utf-8")
        said, cpu_s = measured_run(
            ["k6", "run", "--quiet", "--no-usage-report", str(script)], {"GOMAXPROCS": "1"}
        )
    count, per_s, failed = json.loads(said)
    return _counted("k6", count, per_s, cpu_s, failed)


def _locust(url: str) -> Load:
    command = [sys.executable, "-c", _LOCUST, url, f"/{_BYTES}.bin", str(CONNECTIONS), str(_SECONDS)]
    count, per_s, cpu_s, failed = json.loads(measured_run(command)[0].splitlines()[-1])
    return _counted("FastHttpUser", count, per_s, cpu_s, failed)


def _sysbench(target: Target) -> Load:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        script = Path(folder, "append.lua")
        script.write_text(_SYSBENCH % os.urandom(_PAYLOAD_BYTES).hex(), encoding="utf-8")
        place = urlsplit(target.endpoint.url)
        server = {"host": place.hostname, "port": place.port, "user": place.username, "db": place.path[1:]}
        said, cpu_s = measured_run(
            [
                *("sysbench", "--db-driver=pgsql", f"--threads={CLIENTS}", f"--time={_SECONDS}"),
                *(f"--pgsql-{name}={value}" for name, value in server.items()),
                *(str(script), "run"),
            ],
            {"PGOPTIONS": target.options, "PGPASSWORD": place.password or ""},
        )
    done, rate, failed = _DONE.search(said), _RATE.search(said), _ERRORS.search(said)
    if done is None or rate is None:
        raise BenchError(f"sysbench measured nothing: {said.strip()[-300:]}")
    return _counted("sysbench", int(done[1]), float(rate[1]), cpu_s, int(bool(failed)))


def _memtier(url: str) -> Load:
    place = urlsplit(url)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        result = Path(folder, "result.json")
        _, cpu_s = measured_run(
            [
                *("memtier_benchmark", "-h", "127.0.0.1", "-p", str(place.port), "-a", str(place.password)),
                *("-t", "1", "-c", str(SESSIONS), "-d", "100", "--ratio=1:0", "--key-maximum=10000"),
                *(f"--test-time={_SECONDS}", f"--json-out-file={result}", "--hide-histogram"),
            ]
        )
        sets = json.loads(result.read_text(encoding="utf-8"))["ALL STATS"]["Sets"]
    return _counted("memtier_benchmark", sets["Count"], sets["Ops/sec"], cpu_s, 0)


def _counted(peer: str, count: float, per_s: float, cpu_s: float, failed: float) -> Load:
    if not count or failed:
        raise BenchError(f"{peer} measured nothing: {count:g} operations, {failed:g} of them failed")
    return figures(per_s, cpu_s / count * 1e6)
