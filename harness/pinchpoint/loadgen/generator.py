"""Performs a load generator's part of a run, in a process of its own on this or another machine.

The controller sends commands: the assignment; ``{"begin": [scenario, ...], "at_ns": UTC}``, as often as
needed; ``{"own": {scenario: {"slots", "from_ns", "since_ns"}}}`` when the generator takes over slots;
``{"hold": {scenario: seconds}}`` when a load in steps climbs no further than at that time; ``{"stop":
true}``. The generator sends ``ready``, one ``second`` per second, ``event``, ``working`` (whether a scenario
has work left, at each change), ``busy`` (the longest time that it needs to check the load's results after the
load), and ``stopped``; or ``failed`` with the reason. A ``GeneratorLink`` carries the messages: pipes for a
child process of the controller (``local``), an encrypted connection for another machine (``remote``).
"""

from __future__ import annotations

from pinchpoint.loadgen import engine  # first: see engine

# isort: split
import math
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import gevent
import numpy as np

from pinchpoint.base.errors import InputError
from pinchpoint.base.redact import masked, masked_value
from pinchpoint.loadgen.assignment import Assignment
from pinchpoint.loadgen.locust_load import LocustLoad
from pinchpoint.loadgen.recorder import Recorder, Seconds
from pinchpoint.loadgen.scenario_load import ScenarioLoad
from pinchpoint.loadgen.scenarios import make_scenario
from pinchpoint.plan.arrivals import scenario_seed
from pinchpoint.plan.locustfile import Locustfile
from pinchpoint_collectors.linux.cgroups import CpuCaps
from pinchpoint_collectors.linux.files import read_text
from pinchpoint_collectors.record import Sample
from pinchpoint_scenarios.contract import Verified
from pinchpoint_scenarios.errors import ScenarioError

_LAG_PROBE_S = 0.1  # on an idle machine a wake-up takes as long as some operations
_CAP_PROBE_S = 10.0  # a quota may change, but reading it takes as long as some operations


class GeneratorLink(Protocol):
    """A generator's connection to the controller, for commands, messages and measurements."""

    def commands(self) -> Iterator[dict[str, Any]]:
        """Every command after the assignment; ends when the controller has ended."""
        ...

    def say(self, **message: Any) -> None:
        """Send a message to the controller."""
        ...

    def record(self, seconds: Seconds, samples: list[Sample], now_ns: int) -> None:
        """Store or send measurements, and report the progress. Raises OSError."""
        ...

    def close(self) -> None:
        """Finish storing or sending after the last measurements. Raises OSError."""
        ...


class GeneratorProcess:
    """The main object of one generator process.

    Args:
        assignment: the part of the run to perform.
        link: the connection to the controller.
    """

    def __init__(self, assignment: Assignment, link: GeneratorLink) -> None:
        self._assignment = assignment
        self._link = link
        self._recorder = Recorder(assignment.clock_offset_ns)
        self._verified: list[Verified] = []
        self._loads = {name: self._load(name) for name in assignment.scenarios}
        self._engine = self._made_engine()
        self._done: set[str] = set()
        self._loop_lag_s = 0.0
        self._probed_s = math.inf
        self._cpu_s = time.process_time()
        self._waited_s = _waited_s()
        self._caps = CpuCaps()
        self._allowed_cores: float | None = None
        self._allowed_until_s = 0.0

    def run(self) -> None:
        """Perform the assignment until the controller stops it."""
        self._engine.open()
        # The event loop calls the probe itself: a sleeping greenlet would take twice the time and wake as
        # late.
        probe = gevent.get_hub().loop.timer(_LAG_PROBE_S, _LAG_PROBE_S)
        probe.start(self._watch_loop)
        gevent.spawn(self._guarded, self._each_second)
        while not self._engine.all_open:
            gevent.sleep(0.01)
        self._link.say(type="ready")
        for command in self._link.commands():
            match command:
                case {"begin": names, "at_ns": at_ns}:
                    for name in set(names) & set(self._loads):
                        self._loads[name].begin(self._recorder.counter_ns(at_ns))
                case {"hold": held}:
                    for name in set(held) & set(self._loads):
                        self._loads[name].hold(held[name])
                case {"own": shares}:
                    for name in set(shares) & set(self._loads):
                        self._take_slots(name, **shares[name])
                case {"stop": True}:
                    self._guarded(self._stop)
                    return
        os._exit(1)  # the controller has ended; nothing may keep this process

    def _made_engine(self) -> engine.Engine:
        port = self._assignment.web_ui_port
        if port is None:
            return engine.Engine(self._loads, self._fail)

        def event(event: str, **fields: Any) -> None:
            self._link.say(type="event", event=event, **fields)

        made = engine.WebUiEngine(self._loads, self._fail, port, event)
        self._recorder.listener = made.hear
        return made

    def _take_slots(self, name: str, slots: list[int], from_ns: int, since_ns: int | None) -> None:
        since = None if since_ns is None else self._recorder.counter_ns(since_ns)
        self._engine.take_slots(name, frozenset(slots), self._recorder.counter_ns(from_ns), since)

    def _stop(self) -> None:
        self._engine.stop()
        for scenario in self._verified:
            self._link.say(type="busy", for_s=scenario.verify_within_s)
            scenario.verify()
        self._flush(before_s=2**62)
        self._link.close()
        self._link.say(type="stopped")

    def _load(self, name: str) -> ScenarioLoad:
        work = self._assignment
        given, seed = work.scenarios[name], scenario_seed(work.seed, name)

        def event(event: str, **fields: Any) -> None:
            self._link.say(type="event", event=event, scenario=name, **masked_value(fields))

        scenario = make_scenario(name, given, work.endpoints, work.seed, *work.ranks[name], event)
        if isinstance(scenario, Verified):
            self._verified.append(scenario)
        slots = frozenset(work.slots[name])
        load, worker, recorder = given["load"], work.worker, self._recorder
        if isinstance(scenario, Locustfile):
            return LocustLoad(
                name, scenario, load, seed, worker, slots, recorder, report=event, failed=self._fail
            )
        return ScenarioLoad(name, scenario, load, seed, worker, slots, recorder)

    def _watch_loop(self) -> None:
        now_s = time.perf_counter()
        self._loop_lag_s = max(self._loop_lag_s, now_s - self._probed_s - _LAG_PROBE_S)
        self._probed_s = now_s

    def _each_second(self) -> None:
        while True:
            # Once in every second, at a time of this generator's own: generators on the same core would delay
            # each other, and collectors read at the start of a second.
            gevent.sleep(1 - (time.time() - self._assignment.beat_s) % 1)
            for name, load in self._loads.items():
                finished = load.finished or self._engine.over
                if finished != (name in self._done):
                    self._done ^= {name}
                    self._link.say(type="working", scenario=name, working=not finished)
            self._flush(before_s=self._recorder.utc_ns(time.perf_counter_ns()) // 1_000_000_000)

    def _flush(self, before_s: int) -> None:
        seconds = self._recorder.take(before_s)
        now_ns = self._recorder.utc_ns(time.perf_counter_ns())
        samples = self._health(min(before_s, now_ns // 1_000_000_000), now_ns)
        self._recorder.follow_clock()
        self._link.record(seconds, samples, now_ns)

    def _health(self, before_s: int, now_ns: int) -> list[Sample]:
        """Samples of how well this generator kept up in the second that ended."""
        cpu_s, self._cpu_s = time.process_time() - self._cpu_s, time.process_time()
        lag_s, self._loop_lag_s = self._loop_lag_s, 0.0
        host = self._assignment.name
        samples = [
            Sample(now_ns, 1.0, host, "generator.cpu_ratio", "", cpu_s),
            Sample(now_ns, 1.0, host, "generator.loop_lag_s", "", lag_s),
            Sample(now_ns, 1.0, host, "generator.recorder_ok", "", 1.0),
        ]
        waited_s, self._waited_s = self._waited_s, _waited_s()
        if waited_s is not None and self._waited_s is not None:
            waited = max(0.0, self._waited_s - waited_s)
            samples.append(Sample(now_ns, 1.0, host, "generator.cpu_wait_ratio", "", waited))
        if (now_s := time.monotonic()) >= self._allowed_until_s:
            self._allowed_cores = self._caps.cap_cores([os.getpid()])
            self._allowed_until_s = now_s + _CAP_PROBE_S
        if self._allowed_cores is not None:
            samples.append(Sample(now_ns, 1.0, host, "generator.allowed_cores", "", self._allowed_cores))
        for name, load in self._loads.items():
            users = load.open_users - load.finished_users - load.waiting_users
            samples.append(Sample(now_ns, 1.0, host, "generator.users", name, users))
            lags, load.send_lags_s = load.send_lags_s, []
            if lags:
                p99 = float(np.percentile(lags, 99))
                samples.append(Sample(now_ns, 1.0, host, "generator.send_lag_s", name, p99, len(lags)))
            for metric, counter in (("scheduled", load.scheduled), ("started", load.started)):
                for second in [key for key in counter if key < before_s]:
                    time_ns = (second + 1) * 1_000_000_000
                    count = counter.pop(second)
                    samples.append(Sample(time_ns, 1.0, host, f"generator.{metric}_per_s", name, count))
        return samples

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 -- whatever it is, this generator no longer records
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        say_failed(self._link, error)
        os._exit(1)


def _waited_s() -> float | None:
    """Seconds for which this thread was ready to run but had no core so far; None if not counted."""
    try:
        return int(read_text("/proc/thread-self/schedstat").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def say_failed(link: GeneratorLink, error: BaseException) -> None:
    """Report to the controller why this generator must end: the farm failed, or recording failed."""
    match error:
        case ScenarioError() | InputError():
            link.say(type="failed", kind="environment", why=masked(str(error)))
        case OSError():
            why = f"its journal cannot be written: {error.strerror or error}"
            link.say(type="failed", kind="recorder", why=masked(why))
        case _:
            link.say(type="failed", kind="recorder", why=masked(f"{type(error).__name__}: {error}"))
