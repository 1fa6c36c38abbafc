"""Compare ODBC commits of the load engine's threads with a bare driver loop in as many threads.

Both run the statement of ``log_append`` with one connection per thread, on the same server, in turn. Each is
one process on the machine's last core.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import psutil
from bench.generator import SCENARIO, closed, generate
from bench.load import BenchError, Load, cores, take_place
from bench.pairs import interleaved
from bench.rows import Row
from bench.server import free_disk
from mariadbserver import mariadb
from scenarios.sql_servers.targets import by_odbc
from scenarios.support import made

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.databases.odbc.address import connection_string, parse
from pinchpoint_scenarios.databases.odbc.link import found_driver, keywords

CONNECTIONS = 8
_SECONDS = 4
_LIMIT_S = 60
_GOAL = 0.95
_PEER = "pyodbc loop"
_LOG_ONLY = {"operations": {"log_append": 1}}

_BARE = """
import json, sys, threading, time
import pyodbc
text, enter, statement, connections, seconds, size = json.loads(sys.argv[1])
pyodbc.pooling = False
sys.setswitchinterval(0.0005)
payload, counts, go = bytes(size), [0] * connections, threading.Event()
clocks = [[] for _ in range(connections)]
def work(number):
    connection = pyodbc.connect(text, autocommit=True)
    connection.execute(enter)
    cursor = connection.cursor()
    cursor.execute(statement, (number, 0, payload))
    times = clocks[number]
    go.wait()
    until, done = time.perf_counter() + seconds, 0
    while True:
        begun = time.perf_counter_ns()
        cursor.execute(statement, (number, done, payload))
        ended = time.perf_counter_ns()
        times.append(ended - begun)
        done += 1
        if ended >= until * 1e9:
            break
    counts[number] = done
threads = [threading.Thread(target=work, args=(number,)) for number in range(connections)]
for thread in threads:
    thread.start()
time.sleep(1)
cpu = time.process_time()
go.set()
for thread in threads:
    thread.join()
print(json.dumps([sum(counts) / seconds, (time.process_time() - cpu) / sum(counts)]))
"""
"""The shortest driver program that commits rows and measures their times: one prepared statement per
thread."""

_ENTER = {"postgresql": f"SET search_path = pinchpoint_{SCENARIO}", "mysql": f"USE pinchpoint_{SCENARIO}"}
_INSERT = "INSERT INTO log (session, sequence, payload) VALUES (?, ?, ?)"
_CAST_INSERT = "INSERT INTO log (session, sequence, payload) VALUES (?::int4, ?::int4, ?::bytea)"
_STATEMENT = {"postgresql": _CAST_INSERT, "mysql": _INSERT}


def rows() -> Iterator[Row]:
    """Yield one row per server."""
    with _postgresql() as endpoint:
        yield from _compared(endpoint, "postgresql", "PostgreSQL")
    with _mariadb() as endpoint:
        yield from _compared(endpoint, "mysql", "MariaDB")


def _compared(endpoint: Endpoint, kind: str, name: str) -> Iterator[Row]:
    found = interleaved(lambda: _ours(endpoint), lambda: _bare(endpoint, kind))
    ours, its, ratio = found.medians(lambda load: load.per_s)
    yield Row(
        f"commits/s by ODBC, {name}", ours, "1/s", _PEER, its, ratio, _GOAL, at_most=False, met=ratio >= _GOAL
    )
    ours, its, ratio = found.medians(lambda load: load.cpu_us)
    yield Row(f"client CPU per commit by ODBC, {name}", ours, "us", _PEER, its, ratio)


@contextmanager
def _postgresql() -> Iterator[Endpoint]:
    with free_disk() as target:
        yield Endpoint("sql", by_odbc(target.endpoint.url))


@contextmanager
def _mariadb() -> Iterator[Endpoint]:
    with mariadb() as server:
        # Move the existing threads to the server's cores; new threads inherit the cores.
        for thread in psutil.Process(server.process.pid).threads():
            os.sched_setaffinity(thread.id, cores()[0])
        endpoint = Endpoint("sql", server.url)
        scenario = made("sql-mix", {"sql": endpoint}, _LOG_ONLY, name=SCENARIO)
        scenario.prepare(lambda _: None)
        yield endpoint
        scenario.finish(keep_data=False)


def _ours(endpoint: Endpoint) -> Load:
    load, core = closed(CONNECTIONS), cores()[1]
    return generate(load, seconds=_SECONDS, cores=core, params=_LOG_ONLY, endpoint=endpoint)


def _bare(endpoint: Endpoint, kind: str) -> Load:
    address = parse(endpoint)
    text = connection_string(keywords(address, found_driver(endpoint, address), "bench"))
    given = json.dumps([text, _ENTER[kind], _STATEMENT[kind], CONNECTIONS, _SECONDS, 200])
    command = [sys.executable, "-c", _BARE, given]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        take_place(process.pid, punctual=False)
        said, wrong = process.communicate(timeout=_LIMIT_S)
    if process.returncode:
        raise BenchError(f"the bare loop failed: {wrong.strip()[-300:]}")
    rate, cpu_s = json.loads(said)
    return Load(rate, cpu_s * 1e6, np.empty(0), np.empty(0, dtype=np.int64))
