"""Run Cassandra sessions under gevent, as in a load generator; test_greenlets.py starts this program.

Arguments: a Cassandra's URL with its keyspace, its process id. Prints one JSON object.
"""

# ruff: noqa: E402 - gevent must patch the process before all other imports, as in a load generator

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import json
import sys
import time
from collections.abc import Callable

import gevent
from support import frozen

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.nosql_burst.params import NosqlBurstParams
from pinchpoint_scenarios.nosql_burst.records import Row
from pinchpoint_scenarios.nosql_burst.stores.cassandra import Cassandra

SESSIONS = 12
EACH = 5
FIELDS = [b"one", b"two"]


def driven(url: str, pid: int) -> dict[str, object]:
    """Test concurrent writes next to a clock, and a suspended node."""
    params = NosqlBurstParams.model_validate({"fields": 2, "timeout_s": "600ms"})
    place = Cassandra(Endpoint("nosql", url), "greenlets", params)
    place.claim(lambda _: None)
    sessions = [place.connect(number) for number in range(SESSIONS)]
    ticks: list[float] = []

    def tick() -> None:
        while True:
            ticks.append(time.perf_counter())
            gevent.sleep(0.01)

    def write(number: int) -> list[str]:
        return [sessions[number].write([(number * EACH + item, FIELDS)]) for item in range(EACH)]

    clock = gevent.spawn(tick)
    writing = [gevent.spawn(write, number) for number in range(SESSIONS)]
    gevent.joinall(writing, timeout=20, raise_error=True)
    outcomes = sorted({outcome for each in writing for outcome in each.get(timeout=0)})
    read = sessions[0].read(list(range(SESSIONS * EACH)))
    found = {
        "outcomes": outcomes,
        "read": read[0] == "ok" and read[1] == [FIELDS] * SESSIONS * EACH,
        **while_frozen(sessions[0].write, pid, ticks),
    }
    clock.kill()
    for session in sessions:
        session.close()
    place.remove()
    return found


def while_frozen(write: Callable[[list[Row]], str], pid: int, ticks: list[float]) -> dict[str, object]:
    """Test a write to a suspended node, other work meanwhile, and a write after the node continues."""
    with frozen(pid):
        begun, before = time.perf_counter(), len(ticks)
        late = write([(0, FIELDS)])
        late_s, ticked = time.perf_counter() - begun, len(ticks) - before
    gevent.sleep(0.5)
    after = [write([(0, FIELDS)]) for _ in range(3)]
    return {"late": late, "late_s": late_s, "ticked": ticked, "after": after[-1]}


def main() -> None:
    """Print the results."""
    url, pid = sys.argv[1], int(sys.argv[2])
    sys.stdout.write(json.dumps(driven(url, pid)))


if __name__ == "__main__":
    main()
