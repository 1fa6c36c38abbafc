"""Compare client CPU of durable writes to NoSQL stores with redis-benchmark and with a bare driver loop."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

from bench.generator import closed, generate
from bench.load import BenchError, Load, cores, figures, measured_run
from bench.pairs import interleaved
from bench.rows import Row
from cassandra.cluster import Cluster
from javaservers import cassandra
from servers import killable_valkey

from pinchpoint_scenarios.contract import Endpoint

CONNECTIONS, _MANY = 16, 1_000
_SECONDS = 3
_RECORD = {"fields": 1, "field_bytes": 100, "keys": 10_000}
_SETS = 10_000
_INSERTS = 2_000
SET, _INSERT = "client CPU per durable SET, recording included", "Cassandra inserts per client CPU second"
_BENCHMARK, _LOOP = "redis-benchmark", "cassandra-driver loop"
_SET_GOAL, _INSERT_GOAL = 1.0, 1.0

_BARE = """
import json, sys, time
from cassandra.cluster import Cluster
port, inserts, size = map(int, sys.argv[1:])
with Cluster(["127.0.0.1"], port=port, protocol_version=4) as cluster:
    session = cluster.connect("bench")
    insert = session.prepare("INSERT INTO bare (partition, item, field0) VALUES (?, ?, ?)")
    value = bytes(size)
    for item in range(200):
        session.execute(insert, (item, item, value))
    begun, cpu = time.perf_counter(), time.process_time()
    for item in range(inserts):
        session.execute(insert, (item, item, value))
    print(json.dumps([inserts / (time.perf_counter() - begun), (time.process_time() - cpu) / inserts]))
"""
"""The shortest driver program that inserts durably: one prepared statement, one operation at a time."""


def rows() -> Iterator[Row]:
    """Yield one row per store."""
    yield _sets()
    yield _sets(_MANY)
    yield _inserts()


def _sets(connections: int = CONNECTIONS) -> Row:
    name = SET if connections == CONNECTIONS else f"{SET}, {connections:,} connections"
    if shutil.which(_BENCHMARK) is None:
        return Row(name, None, "us", _BENCHMARK, goal=_SET_GOAL, met=False, note="needs redis-tools")
    with killable_valkey("always") as server:
        endpoint = Endpoint("nosql", server.url)
        os.sched_setaffinity(server.pid, cores()[0])
        found = interleaved(
            lambda: written(endpoint, connections), lambda: _redis_benchmark(server.url, connections)
        )
    ours, its, ratio = found.medians(lambda load: load.cpu_us)
    return Row(name, ours, "us", _BENCHMARK, its, ratio, _SET_GOAL, met=ratio <= _SET_GOAL)


def _inserts() -> Row:
    with cassandra() as server:
        port = urlsplit(server.url).port
        assert port is not None
        with Cluster(["127.0.0.1"], port=port, protocol_version=4) as cluster:
            session = cluster.connect()
            replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
            session.execute(f"CREATE KEYSPACE bench WITH replication = {replication}")
            columns = "partition bigint, item bigint, field0 blob, PRIMARY KEY ((partition), item)"
            for table in ("bare", "pinch_bench"):
                session.execute(f"CREATE TABLE bench.{table} ({columns})", timeout=60)
        endpoint = Endpoint("nosql", f"cassandra://127.0.0.1:{port}/bench")
        found = interleaved(lambda: written(endpoint), lambda: _bare_loop(port))
    ours, its, ratio = found.medians(lambda load: 1e6 / load.cpu_us)
    return Row(
        _INSERT, ours, "1/s", _LOOP, its, ratio, _INSERT_GOAL, at_most=False, met=ratio >= _INSERT_GOAL
    )


def written(endpoint: Endpoint, connections: int = CONNECTIONS) -> Load:
    """Measure Pinchpoint: a real generator process writes records of 100 bytes."""
    load, core = closed(connections), cores()[1]
    return generate(load, seconds=_SECONDS, cores=core, use="nosql-burst", params=_RECORD, endpoint=endpoint)


def _redis_benchmark(url: str, connections: int) -> Load:
    place = urlsplit(url)
    command = [_BENCHMARK, "-h", "127.0.0.1", "-p", str(place.port), "-a", str(place.password), "-t", "set"]
    command += ["-c", str(connections), "-d", "100", "-r", "10000", "-n", str(_SETS), "--csv"]
    said, cpu_s = measured_run(command)
    found = [line for line in said.splitlines() if '"SET"' in line]
    if not found:
        raise BenchError(f"redis-benchmark measured nothing: {said.strip()[-300:]}")
    return figures(float(found[0].split(",")[1].strip('"')), cpu_s / _SETS * 1e6)


def _bare_loop(port: int) -> Load:
    said, _ = measured_run([sys.executable, "-c", _BARE, str(port), str(_INSERTS), "100"])
    per_s, cpu_s = json.loads(said)
    return figures(per_s, cpu_s * 1e6)
