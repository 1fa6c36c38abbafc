"""A load generator: a child process of the controller that performs its part of a run.

It speaks JSON lines. From the controller on stdin: the assignment, then ``{"begin": [scenario, ...]}`` as
often as needed, then ``{"stop": true}``. To the controller on stdout: ``ready``, one ``second`` a second,
``event``, ``done`` when a scenario has no work left, ``stopped``; or ``failed`` with the reason. When stdin
ends, the controller is dead and the generator exits at once.
"""

from __future__ import annotations

from pinchpoint.loadgen import engine  # first of all: see there

# isort: split
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent
import numpy as np
from gevent.fileobject import FileObject
from gevent.threadpool import ThreadPool

from pinchpoint.loadgen.load import Assignment, make_scenario, scenario_seed, sessions, starts
from pinchpoint.loadgen.recorder import Recorder, Seconds
from pinchpoint.store.journal import JournalWriter
from pinchpoint_collectors.record import Sample
from pinchpoint_scenarios.errors import ScenarioError

_LAG_PROBE_S = 0.05
_PUNCTUAL_NICE = -10


class Generator:
    """One generator process."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._recorder = Recorder()
        self._journal = JournalWriter(Path(assignment.journal), assignment.name)
        # The journal is written by a real thread: a stalled disk must not stall the load.
        self._writer = ThreadPool(1)
        self._loads = {name: self._load(name) for name in assignment.scenarios}
        self._engine = engine.Engine(self._loads, self._fail)
        self._done: set[str] = set()
        self._loop_lag_s = 0.0
        self._cpu_s = time.process_time()

    def run(self, commands: FileObject) -> None:
        """Perform the assignment until told to stop."""
        self._engine.open()
        gevent.spawn(self._guarded, self._watch_loop)
        gevent.spawn(self._guarded, self._each_second)
        while not self._engine.all_open:
            gevent.sleep(0.01)
        _say(type="ready")
        for line in commands:
            command = json.loads(line)
            for name in command.get("begin", []):
                if name in self._loads:
                    self._loads[name].begin()
            if command.get("stop"):
                self._engine.stop()
                self._flush(before_s=2**62)
                self._journal.close()
                _say(type="stopped")
                return
        os._exit(1)  # the controller is gone: no one is left to tell, and nothing may keep this process

    def _load(self, name: str) -> engine.ScenarioLoad:
        work = self._assignment
        given, number, of = work.scenarios[name], work.worker, work.workers

        def event(event: str, **fields: Any) -> None:
            _say(type="event", event=event, scenario=name, **fields)

        scenario = make_scenario(name, given, work.endpoints, work.seed, number, of, event)
        load = given["load"]
        schedule = starts(load, scenario_seed(work.seed, name), number, of)
        think_s = float(load.get("think_s") or 0)
        return engine.ScenarioLoad(
            name, scenario, sessions(load, number, of), schedule, think_s, self._recorder
        )

    def _watch_loop(self) -> None:
        while True:
            asked = time.perf_counter()
            gevent.sleep(_LAG_PROBE_S)
            self._loop_lag_s = max(self._loop_lag_s, time.perf_counter() - asked - _LAG_PROBE_S)

    def _each_second(self) -> None:
        while True:
            # Once in every second, at a time of its own: siblings on the same core would delay each other,
            # and collectors read when the second begins.
            gevent.sleep(1 - (time.time() - self._assignment.beat_s) % 1)
            for load in self._loads.values():
                if load.users and load.finished and load.name not in self._done:
                    self._done.add(load.name)
                    _say(type="done", scenario=load.name)
            self._flush(before_s=int(time.time()))

    def _flush(self, before_s: int) -> None:
        seconds = self._recorder.take(before_s)
        now_ns = time.time_ns()
        samples = self._health(min(before_s, now_ns // 1_000_000_000), now_ns)
        self._recorder.follow_clock()
        written = self._writer.spawn(self._write, seconds, samples, now_ns).get()
        if isinstance(written, OSError):
            raise written
        _say(type="second", progress=written)

    def _write(self, seconds: Seconds, samples: list[Sample], now_ns: int) -> dict[str, Any] | OSError:
        # An error is handed over, not raised: the thread pool would print its traceback.
        try:
            self._journal.write_operations(seconds.rows(self._assignment.name), now_ns)
            self._journal.write_samples(samples)
        except OSError as error:
            return error
        return seconds.progress()

    def _health(self, before_s: int, now_ns: int) -> list[Sample]:
        """How well this generator kept up in the second that ended, as samples like any other."""
        cpu_s, self._cpu_s = time.process_time() - self._cpu_s, time.process_time()
        lag_s, self._loop_lag_s = self._loop_lag_s, 0.0
        host = self._assignment.name
        found = [
            Sample(now_ns, 1.0, host, "generator.cpu_ratio", "", cpu_s),
            Sample(now_ns, 1.0, host, "generator.loop_lag_s", "", lag_s),
            Sample(now_ns, 1.0, host, "generator.recorder_ok", "", 1.0),
        ]
        for name, load in self._loads.items():
            users = load.open_users - load.finished_users
            found.append(Sample(now_ns, 1.0, host, "generator.users", name, users))
            lags, load.send_lags_s = load.send_lags_s, []
            if lags:
                p99 = float(np.percentile(lags, 99))
                found.append(Sample(now_ns, 1.0, host, "generator.send_lag_s", name, p99, len(lags)))
            for metric, counter in (("scheduled", load.scheduled), ("started", load.started)):
                for second in [key for key in counter if key < before_s]:
                    time_ns = (second + 1) * 1_000_000_000
                    count = counter.pop(second)
                    found.append(Sample(time_ns, 1.0, host, f"generator.{metric}_per_s", name, count))
        return found

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 -- whatever it is, this generator no longer records
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        _say_failed(error)
        os._exit(1)


def _say(**message: Any) -> None:
    # One write per line: lines of different greenlets never mix. A dead controller ends the process.
    try:
        os.write(1, json.dumps(message, default=str).encode() + b"\n")
    except BrokenPipeError:
        os._exit(1)


def _say_failed(error: BaseException) -> None:
    match error:
        case ScenarioError():
            _say(type="failed", kind="environment", why=str(error))
        case OSError():
            _say(
                type="failed",
                kind="recorder",
                why=f"its journal cannot be written: {error.strerror or error}",
            )
        case _:
            _say(type="failed", kind="recorder", why=f"{type(error).__name__}: {error}")


def _take_place(assignment: Assignment) -> None:
    """Run on the assigned cores, and give way to generators that have a schedule to keep.

    A closed load's users start when they come to it; an open load's operations are late when another process
    has the core, and Linux lets a process run on for some milliseconds. SCHED_IDLE yields at once.
    """
    if assignment.cores:
        os.sched_setaffinity(0, assignment.cores)
    if all(given["load"]["model"] == "closed" for given in assignment.scenarios.values()):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    elif os.geteuid() == 0:  # nobody else may rise above other programs
        os.setpriority(os.PRIO_PROCESS, 0, _PUNCTUAL_NICE)


def main() -> None:
    """Entry of ``python -m pinchpoint.loadgen.generator``."""
    # The journal is encoded in a thread: with Python's 5 ms it would keep operations from starting on time.
    sys.setswitchinterval(0.0005)
    commands = FileObject(sys.stdin.fileno(), "rb", close=False)
    try:
        assignment = Assignment(**json.loads(commands.readline()))
        _take_place(assignment)
        generator = Generator(assignment)
    except Exception as error:  # noqa: BLE001 -- told to the controller, which tells the person
        _say_failed(error)
        return
    generator.run(commands)


if __name__ == "__main__":
    main()
