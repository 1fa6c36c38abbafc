"""Run by test_moving_shares.py in its own process: shares of a load that grow.

Argument: the path of a locustfile. Prints one JSON object.
"""

from __future__ import annotations

from pinchpoint.loadgen import engine  # noqa: F401 -- first of all: it patches

# isort: split
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import gevent.event

from pinchpoint.loadgen.locust_load import LocustLoad
from pinchpoint.loadgen.recorder import Recorder
from pinchpoint.loadgen.scenario_load import ScenarioLoad
from pinchpoint.loadgen.slots import SLOTS
from pinchpoint_scenarios.contract import OK, Record

ALL, EVEN = frozenset(range(SLOTS)), frozenset(range(0, SLOTS, 2))
FOUR = {"model": "closed", "users": 4, "think_s": 0.0}
RAMP = {"model": "ramp", "start": {"users": 0}, "to": {"users": 4}, "over_s": 0.8}
OPEN = {"model": "open", "rate_per_s": 100.0, "arrivals": "constant"}
OPERATION_S = 0.3  # as long as the locustfile's task


class Driver:
    """A driver that records the numbers of all opened sessions."""

    def __init__(self) -> None:
        self.opened: list[int] = []

    def session(self, number: int) -> Driver:
        self.opened.append(number)
        return self

    def perform(self, record: Record) -> bool:
        start_ns = time.perf_counter_ns()
        gevent.sleep(OPERATION_S)
        record("work", OK, start_ns, time.perf_counter_ns())
        return True

    def close(self) -> None:
        """Do nothing."""


class Share:
    """A load in this process, and the errors of its users."""

    def __init__(self, load: ScenarioLoad, failures: list[str]) -> None:
        self.load = load
        self.failures = failures
        self._spawn(load.users)
        while load.open_users < load.users:
            gevent.sleep(0.001)
        load.begin(time.perf_counter_ns())

    def own_all(self) -> None:
        self._spawn(self.load.take_slots(ALL, time.perf_counter_ns(), None))

    def told(self, **more: object) -> dict[str, object]:
        load = self.load
        counts = {"users": load.users, "open": load.open_users, "finished": load.finished_users}
        return {**counts, "failures": self.failures, **more}

    def _spawn(self, users: int) -> None:
        for _ in range(users):
            user = gevent.spawn(self.load.work, gevent.event.Event())
            user.link_exception(lambda ended: self.failures.append(repr(ended.exception)))


def ours(load: Mapping[str, Any]) -> tuple[Share, Driver]:
    """Return a share of half a load, with a driver of Pinchpoint's own."""
    driver: Any = Driver()
    return Share(ScenarioLoad("s", driver, load, 1, 0, EVEN, Recorder()), []), driver


def of_a_file(path: Path, load: Mapping[str, Any]) -> tuple[Share, Recorder]:
    """Return a share of half a load, with a locustfile's users."""
    failures: list[str] = []
    recorder, scenario = Recorder(), SimpleNamespace(path=path, host=None)
    share: Any = LocustLoad(
        "s", scenario, load, 1, 0, EVEN, recorder,  # type: ignore[arg-type]
        report=lambda *_, **fields: failures.append(str(fields)),
        failed=lambda error: failures.append(repr(error)),
    )  # fmt: skip
    return Share(share, failures), recorder


def starts(recorder: Recorder) -> int:
    """Return the number of started users, as reported by the file's ``on_start``."""
    return sum(row[6] for row in recorder.take(2**62).rows("w") if row[4] == "start")


def closed() -> dict[str, object]:
    """Return the figures of a closed load whose share grows while users are working."""
    share, driver = ours(FOUR)
    gevent.sleep(OPERATION_S / 3)
    share.own_all()
    gevent.sleep(2 * OPERATION_S)
    return share.told(opened=driver.opened)


def paced() -> dict[str, object]:
    """Return the figures of an open load whose share grows, with the message sent twice."""
    share, driver = ours(OPEN)
    for _ in range(2):
        share.own_all()
        gevent.sleep(0.05)
    return share.told(opened=driver.opened)


def locusts(path: Path, load: Mapping[str, Any], wait_s: float) -> dict[str, object]:
    """Return the figures of a locustfile's users, half of which start later."""
    share, recorder = of_a_file(path, load)
    gevent.sleep(OPERATION_S / 3)
    share.own_all()
    gevent.sleep(wait_s)
    return share.told(starts=starts(recorder))


def main() -> None:
    """Run all loads, and print their figures."""
    path = Path(sys.argv[1])
    found = {
        "closed": closed(),
        "open": paced(),
        "locusts": locusts(path, FOUR, 2 * OPERATION_S),
        "waiting": locusts(path, RAMP, 1.2),  # later users exist already and wait
    }
    # what a locustfile prints is redirected, so print() would be, too
    os.write(1, json.dumps(found).encode())
    os._exit(0)  # the users continue


if __name__ == "__main__":
    main()
