"""Run by test_threads.py in its own process: sessions that block in C code in one generator.

Prints one JSON object.
"""

from __future__ import annotations

from pinchpoint.loadgen import engine  # noqa: F401 -- first of all: it patches

# isort: split
import ctypes
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

import gevent
import gevent.event

from pinchpoint.loadgen.recorder import Recorder
from pinchpoint.loadgen.scenario_load import ScenarioLoad
from pinchpoint.loadgen.slots import SLOTS
from pinchpoint_scenarios.contract import Record

_C = ctypes.CDLL(None)


class Session:
    """A session that blocks in C, outside of gevent's control; the clock is read around the call."""

    def __init__(self, pause_s: float, fails: bool) -> None:
        self._pause_us = round(pause_s * 1e6)
        self._fails = fails
        self.closed = 0

    def perform(self, record: Record) -> bool:
        if self._fails:
            raise RuntimeError("an error of ours")
        start_ns = time.perf_counter_ns()
        _C.usleep(self._pause_us)
        record("wait", "ok", start_ns, time.perf_counter_ns(), 1)
        return True

    def close(self) -> None:
        self.closed += 1


class Scenario:
    """A ``Blocking`` scenario as the load engine sees it."""

    blocks = True

    def __init__(self, pause_s: float, *, fails: bool = False) -> None:
        self._pause_s = pause_s
        self._fails = fails
        self.sessions: list[Session] = []

    def session(self, number: int) -> Session:
        del number
        _C.usleep(20_000)  # a login, which blocks in C as well
        self.sessions.append(Session(self._pause_s, self._fails))
        return self.sessions[-1]


def drive(load: Mapping[str, Any], pause_s: float, length_s: float) -> dict[str, float]:
    """Return the records of a load of such sessions, and the longest pause of the loop."""
    lag_s = 0.0

    def tick() -> None:
        nonlocal lag_s
        while True:
            asked = time.perf_counter()
            gevent.sleep(0.005)
            lag_s = max(lag_s, time.perf_counter() - asked - 0.005)

    scenario, recorder = Scenario(pause_s), Recorder()
    share: Any = ScenarioLoad("blocked", scenario, load, 1, 0, frozenset(range(SLOTS)), recorder)  # type: ignore[arg-type]
    ticking = gevent.spawn(tick)
    begun = time.perf_counter()
    users = [gevent.spawn(share.work, gevent.event.Event()) for _ in range(share.users)]
    while share.open_users < share.users:
        gevent.sleep(0.001)
    opened_s = time.perf_counter() - begun
    share.begin(time.perf_counter_ns())
    gevent.sleep(length_s)
    share.stop()
    gevent.joinall(users, timeout=5, raise_error=True)
    ticking.kill()
    rows = recorder.take(2**62).rows("w")
    ours = [row for row in rows if row[4] == "wait"]
    return {
        "opened_s": opened_s,
        "lag_s": lag_s,
        "done": sum(row[6] for row in ours),
        "responses": sum(row[9] is not None for row in ours),
        "closed": sum(session.closed for session in scenario.sessions),
        "users": share.users,
    }


def failing() -> str:
    """Return the error of a user whose session raises."""
    scenario = Scenario(0.001, fails=True)
    load = {"model": "closed", "users": 1, "think_s": 0.0}
    share: Any = ScenarioLoad("blocked", scenario, load, 1, 0, frozenset(range(SLOTS)), Recorder())  # type: ignore[arg-type]
    user = gevent.spawn(share.work, gevent.event.Event())
    gevent.sleep(0.1)
    share.begin(time.perf_counter_ns())
    try:
        user.get(timeout=5)
    except RuntimeError as error:
        return str(error)
    return "nothing"


def main() -> None:
    """Run a closed load of long waits, one of short waits, an open load, and a failing session."""
    closed = {"model": "closed", "users": 20, "think_s": 0.0}
    found = {
        "long": drive(closed, 0.2, 1.0),
        "short": drive({"model": "closed", "users": 2, "think_s": 0.0}, 0.0005, 1.0),
        "open": drive({"model": "open", "rate_per_s": 100.0, "arrivals": "constant"}, 0.05, 1.0),
        "thinking": drive({"model": "closed", "users": 4, "think_s": 0.2}, 0.001, 1.0),
        "raised": failing(),
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
