"""Run fast connections under gevent, as a load generator does; test_greenlets.py starts this program.

Arguments: the URLs of a PostgreSQL and a Valkey. Prints one JSON object.
"""

# ruff: noqa: E402 - gevent must patch the process before all other imports, as in a load generator

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import json
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import LiteralString

import gevent
import valkey

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.databases.contract import DatabaseFailure
from pinchpoint_scenarios.databases.native import FastConnection
from pinchpoint_scenarios.fastpath.readiness import readiness
from pinchpoint_scenarios.nosql_burst.params import NosqlBurstParams
from pinchpoint_scenarios.nosql_burst.stores.valkey import Valkey

SESSIONS = 20
RECORD = [(0, [b"x"])]


def took_s(work: Callable[[int], object]) -> float:
    """Return the seconds that ``work`` takes in twenty greenlets."""
    begun = time.perf_counter()
    gevent.joinall([gevent.spawn(work, number) for number in range(SESSIONS)], raise_error=True)
    return time.perf_counter() - begun


def connection(endpoint: Endpoint) -> FastConnection:
    """Return an open connection."""
    made = FastConnection(endpoint, application="greenlets", statement_timeout_s=5, greet=lambda _: None)
    made.try_open()
    return made


def sql(endpoint: Endpoint) -> dict[str, object]:
    """Test concurrent sleeps, large statements, a greenlet killed during a wait, and a killed session."""
    made = [connection(endpoint) for _ in range(SESSIONS)]
    slept_s = took_s(lambda number: made[number].execute("SELECT pg_sleep($1::float8)", [0.2]))
    content = os.urandom(2**20)
    large = [0] * SESSIONS

    def echo(number: int) -> None:
        large[number] = made[number].execute("SELECT $1::bytea", [content]).fetchall() == [(content,)]

    took_s(echo)
    waiting = gevent.spawn(made[0].execute, "SELECT pg_sleep(3)")
    gevent.sleep(0.1)
    waiting.kill()
    made[0].close()
    again = made[0].execute("SELECT 1").fetchall()
    lost = gevent.spawn(_outcome, made[1], "SELECT pg_sleep(3)")
    gevent.sleep(0.1)
    ((session,),) = (
        made[2]
        .execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'greenlets' AND state = 'active' "
            "AND query LIKE '%sleep(3)' ORDER BY backend_start DESC LIMIT 1"
        )
        .fetchall()
    )
    made[2].execute("SELECT pg_terminate_backend($1::int4)", [session])
    found = {
        "slept_s": slept_s,
        "large": large,
        "again": again,
        "lost": lost.get(timeout=5),
    }
    for each in made:
        each.close()
    return found


def _outcome(made: FastConnection, statement: LiteralString) -> str:
    try:
        made.execute(statement)
    except DatabaseFailure as failure:
        return failure.outcome
    return "ok"


def nosql(endpoint: Endpoint) -> dict[str, object]:
    """Test twenty writes while the server is blocked, then one write with a late reply."""
    store = Valkey(endpoint, "", NosqlBurstParams.model_validate({"timeout_s": "500ms"}))
    made = [store.connect(number) for number in range(SESSIONS)]
    first = [each.write(RECORD) for each in made]
    with valkey.Valkey.from_url(endpoint.url) as client:
        client.client_pause(300, all=True)
        paused_s = took_s(lambda number: made[number].write(RECORD))
        client.client_pause(1500, all=True)
        begun = time.perf_counter()
        late = made[0].write(RECORD)
        late_s = time.perf_counter() - begun
        gevent.sleep(1.2)
        after = made[0].write(RECORD)
        client.delete("0")
    for each in made:
        each.close()
    return {"first": first, "paused_s": paused_s, "late": late, "late_s": late_s, "after": after}


def waits() -> dict[str, object]:
    """Test waits that end in time, waits that time out, and successive waits on one descriptor."""
    here, there = socket.socketpair()
    ready = readiness(here.fileno())
    begun = time.perf_counter()
    silent = ready.wait_readable(time.monotonic() + 0.2)
    silent_s = time.perf_counter() - begun
    answered = []
    for _ in range(8):  # 0.8 s in all, each wait well within its time limit
        gevent.spawn_later(0.1, there.send, b"x")
        answered.append(ready.wait_readable(time.monotonic() + 0.3))
        here.recv(1)
    begun = time.perf_counter()
    again = ready.wait_readable(time.monotonic() + 0.3)
    again_s = time.perf_counter() - begun
    gevent.spawn_later(0.05, there.send, b"x")
    ready.wait_readable(time.monotonic() + 30.0)
    here.recv(1)
    begun = time.perf_counter()
    shorter = ready.wait_readable(time.monotonic() + 0.2)
    shorter_s = time.perf_counter() - begun
    writable = ready.wait_writable(time.monotonic() + 1.0)
    ready.close()
    ready.close()
    here.close()
    there.close()
    return {
        "silent": [silent, silent_s],
        "answered": answered,
        "again": [again, again_s],
        "shorter": [shorter, shorter_s],
        "writable": writable,
    }


def crowd() -> dict[str, object]:
    """Test more descriptors than one call reports, an unwaited end of stream, and a killed greenlet."""
    pairs = [socket.socketpair() for _ in range(200)]
    waits = [readiness(here.fileno()) for here, _ in pairs]
    woken: list[int] = []

    def wait(number: int) -> None:
        while waits[number].wait_readable(time.monotonic() + 5.0):
            woken.append(number)
            if pairs[number][0].recv(1) == b"":
                return

    greenlets = [gevent.spawn(wait, number) for number in range(1, len(pairs))]
    gevent.sleep(0.01)
    pairs[0][1].close()  # no greenlet waits for this end
    used_s = time.process_time()
    gevent.sleep(0.3)
    used_s = time.process_time() - used_s
    for _, there in pairs[1:]:
        there.send(b"x")
    gevent.sleep(0.05)
    first = sorted(woken)
    greenlets[0].kill()
    pairs[1][1].send(b"y")  # the greenlet that waited for it was killed
    for _, there in pairs[2:]:
        there.close()
    gevent.joinall(greenlets, timeout=5)
    return {
        "idle_s": used_s,
        "woken": first == list(range(1, len(pairs))),
        "ended": all(greenlet.dead for greenlet in greenlets),
        "late": [waits[number].wait_readable(time.monotonic() + 1.0) for number in (0, 1)],
        "left": [pairs[0][0].recv(1).decode(), pairs[1][0].recv(1).decode()],
        "reused": _reused(),
    }


def _reused() -> bool:
    """Return True if a wait works on a descriptor number that was closed and used again."""
    here, there = socket.socketpair()
    forgotten, number = readiness(here.fileno()), here.fileno()
    here.close()
    there.close()
    new, peer = socket.socketpair()
    if new.fileno() != number:  # the lowest free numbers are used, so one of the two has this number
        new, peer = peer, new
    ready = readiness(number)
    forgotten.close()
    gevent.spawn_later(0.05, peer.send, b"x")
    return ready.wait_readable(time.monotonic() + 2.0)


def main() -> None:
    """Run all tests in turn and print the results."""
    sql_url, nosql_url = sys.argv[1:]
    found = {
        "sql": sql(Endpoint("sql", sql_url)),
        "nosql": nosql(Endpoint("nosql", nosql_url)),
        "waits": waits(),
        "crowd": crowd(),
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
