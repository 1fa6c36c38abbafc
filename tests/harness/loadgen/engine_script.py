"""Run by test_engine in its own process (Locust patches modules): a driver of known service time.

Arguments: JSON ``{"load", "seconds", "service_s", "stall": [from_s, to_s] or null, "end_after": n or null}``
and optionally ``"begun_ago_s"``, the age of the load when this worker joins. Prints the operations rows and
the loads' counters as JSON.
"""

from __future__ import annotations

from pinchpoint.loadgen import engine

# isort: split
import json
import sys
import time

import gevent

from pinchpoint.loadgen.recorder import Recorder
from pinchpoint.loadgen.scenario_load import ScenarioLoad
from pinchpoint.loadgen.slots import SLOTS
from pinchpoint_scenarios.contract import OK, Record

given = json.loads(sys.argv[1])
begun = 0.0
performed = 0


class Driver:
    def session(self, number: int) -> Driver:
        return self

    def perform(self, record: Record) -> bool:
        global performed
        if given["end_after"] is not None and performed >= given["end_after"]:
            return False
        performed += 1
        start = time.perf_counter_ns()
        passed = time.monotonic() - begun
        time.sleep(given["service_s"])
        if given["stall"] and given["stall"][0] <= passed < given["stall"][1]:
            time.sleep(given["stall"][1] - passed)
        if given.get("fail"):
            raise RuntimeError("a fault of ours")
        record("work", OK, start, time.perf_counter_ns(), 1)
        return True

    def close(self) -> None:
        """Do nothing."""


recorder = Recorder()
everything = frozenset(range(SLOTS))
load = ScenarioLoad("s", Driver(), given["load"], 1, 0, everything, recorder)  # type: ignore[arg-type]
failures: list[BaseException] = []
running = engine.Engine({"s": load}, failures.append)
running.open()
while not running.all_open:
    gevent.sleep(0.01)
begun = time.monotonic()
load.begin(time.perf_counter_ns() - round(given.get("begun_ago_s", 0) * 1e9))
while time.monotonic() - begun < given["seconds"] and not load.finished and not failures:
    gevent.sleep(0.05)
running.stop()
rows = recorder.take(2**62).rows("g1")
print(
    json.dumps(
        {
            "rows": rows,
            "finished": load.finished,
            "scheduled": sum(load.scheduled.values()),
            "started": sum(load.started.values()),
            "lags": load.send_lags_s,
            "failures": [str(failure) for failure in failures],
            "users": load.users,
        }
    )
)
