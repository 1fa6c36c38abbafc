"""The only module that imports Locust (importing it monkey-patches the process: generators only).

Locust hosts the users, greenlets with a life cycle, here and later across machines. When operations start
and how they are timed is ours: Locust's pacing is closed-loop and its percentiles are bucketed.
"""

from __future__ import annotations

import locust  # first of all: it patches sockets, sleep and locks before others import them

# isort: split
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gevent
from gevent.event import Event
from gevent.queue import Queue
from locust.env import Environment

from pinchpoint.loadgen.alarm import Alarm
from pinchpoint.loadgen.arrivals import LATEST_START_S
from pinchpoint.loadgen.recorder import Recorder
from pinchpoint.store.schema import SEND, SENT
from pinchpoint_scenarios.contract import Scenario, Session

_STOP_S = 5.0  # how long operations in flight may take to end when the load stops

LOCUST_VERSION: str = locust.__version__


class _UserRecord:
    """One user's ``Record``: adds the intended start of the operation the user is performing."""

    __slots__ = ("_recorder", "_scenario", "intended_ns")

    def __init__(self, recorder: Recorder, scenario: str) -> None:
        self._recorder = recorder
        self._scenario = scenario
        self.intended_ns: int | None = None

    def __call__(self, operation: str, outcome: str, start_ns: int, end_ns: int, size_bytes: int = 0) -> None:
        intended_ns = None if "/" in operation else self.intended_ns
        self._recorder.add(self._scenario, operation, outcome, start_ns, end_ns, size_bytes, intended_ns)


class ScenarioLoad:
    """One scenario's share of the load in this process.

    Closed load: every user performs again as soon as it is free. Open load: a pacer puts intended starts into
    a queue when they are due, and free users take them from there.

    Args:
        name: its name in the plan.
        scenario: the driver.
        numbers: the session numbers this process opens.
        starts: intended starts in seconds from the load's start; None for closed load.
        think_s: closed load's pause between two operations of a user.
        recorder: the process's recorder.
    """

    def __init__(
        self,
        name: str,
        scenario: Scenario,
        numbers: list[int],
        starts: Iterator[float] | None,
        think_s: float,
        recorder: Recorder,
    ) -> None:
        self.name = name
        self.users = len(numbers)
        self.open_users = 0
        self.finished_users = 0
        self.scheduled: Counter[int] = Counter()  # by UTC second of the intended start
        self.started: Counter[int] = Counter()  # likewise, of those that did start
        self.send_lags_s: list[float] = []
        self._scenario = scenario
        self._numbers = deque(numbers)
        self._starts = starts
        self._think_s = think_s
        self._recorder = recorder
        self._begin = Event()
        self._stop = Event()
        self._due: Queue[int | None] = Queue()
        self._pacer: gevent.Greenlet | None = None

    @property
    def finished(self) -> bool:
        """Whether every user has found that there is nothing left to do."""
        return self.finished_users == self.users

    def begin(self) -> None:
        """Let the users, whose sessions are open by now, start."""
        if self._starts is not None:
            self._pacer = gevent.spawn(self._pace, self._starts, time.perf_counter_ns())
        self._begin.set()

    def stop(self) -> None:
        """No further operation starts; what was due and has not started is dropped."""
        if self._stop.is_set():
            return
        if self._pacer is not None:
            self._pacer.kill()
        self._stop.set()
        self._begin.set()
        while not self._due.empty():
            self._drop(self._due.get())
        for _ in range(self.users):
            self._due.put(None)  # whoever waits for a start learns that none will come

    def open_session(self) -> Session:
        """A session for the next user."""
        session = self._scenario.session(self._numbers.popleft())
        self.open_users += 1
        return session

    def work(self, session: Session) -> None:
        """One user's life: wait for the start, perform, again; returns at the end of load or work."""
        record = _UserRecord(self._recorder, self.name)
        self._begin.wait()
        while not self._stop.is_set():
            if self._starts is not None:
                record.intended_ns = self._next_start()
                if record.intended_ns is None:
                    return
            if not session.perform(record):
                self.finished_users += 1
                return
            if self._think_s:
                self._stop.wait(self._think_s)
            elif self._starts is None:
                gevent.sleep(0)  # a driver that never waits must not keep the others from running

    def _pace(self, starts: Iterator[float], begin_ns: int) -> None:
        with Alarm() as alarm:
            for start_s in starts:
                intended_ns = begin_ns + round(start_s * 1e9)
                alarm.wait_until(intended_ns)
                self.scheduled[self._second(intended_ns)] += 1
                self._due.put(intended_ns)
                # With every user stuck, starts would pile up for ever: those too late are dropped here.
                while self._too_late(self._due.peek()):
                    self._drop(self._due.get())

    def _next_start(self) -> int | None:
        free = self._due.empty()
        intended_ns: int | None = self._due.get()
        while self._too_late(intended_ns):
            self._drop(intended_ns)
            free = self._due.empty()
            intended_ns = self._due.get()
        if intended_ns is None:
            return None
        if free:
            # Only who was free in time tells how punctual the generator is; a late start for want of a
            # free session is the farm's doing and counts as response time.
            now_ns = time.perf_counter_ns()
            self.send_lags_s.append((now_ns - intended_ns) / 1e9)
            self._recorder.add(self.name, SEND, SENT, intended_ns, now_ns, 0, None)
        self.started[self._second(intended_ns)] += 1
        return intended_ns

    def _too_late(self, intended_ns: int | None) -> bool:
        return intended_ns is not None and time.perf_counter_ns() - intended_ns > LATEST_START_S * 1e9

    def _drop(self, intended_ns: int | None) -> None:
        if intended_ns is not None:
            self._recorder.drop(self.name, intended_ns)

    def _second(self, counter_ns: int) -> int:
        return self._recorder.utc_ns(counter_ns) // 1_000_000_000


class Engine:
    """Hosts all users of this process on Locust's local runner.

    Args:
        loads: the scenarios' shares, by name.
        failed: called once with a sentence when a session raised: an error of ours, or no session at all.
    """

    def __init__(self, loads: Mapping[str, ScenarioLoad], failed: Callable[[BaseException], None]) -> None:
        logging.getLogger("locust").setLevel(logging.CRITICAL)  # what goes wrong is told by us
        self._loads = loads
        classes = [_user_class(load, failed) for load in loads.values() if load.users]
        self._environment = Environment(user_classes=classes, stop_timeout=_STOP_S, reset_stats=False)
        self._runner = self._environment.create_local_runner()
        self._users = sum(load.users for load in loads.values())

    def open(self) -> None:
        """Open every session (returns when the users are spawned; sessions open concurrently)."""
        self._runner.start(self._users, spawn_rate=max(1, self._users), wait=True)

    @property
    def all_open(self) -> bool:
        """Whether every user has its session."""
        return all(load.open_users == load.users for load in self._loads.values())

    def stop(self) -> None:
        """Stop all load; operations in flight get a few seconds to end."""
        for load in self._loads.values():
            load.stop()
        self._runner.quit()


def _user_class(load: ScenarioLoad, failed: Callable[[BaseException], None]) -> type[locust.User]:
    def work(_user: locust.User) -> None:
        session: Session | None = None
        try:
            session = load.open_session()
            load.work(session)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the run's evidence is no longer valid
            failed(error)
        finally:
            if session is not None:
                session.close()
        raise locust.exception.StopUser

    attributes: dict[str, Any] = {
        "fixed_count": load.users,
        "tasks": [work],
        "wait_time": locust.constant(0),
        "abstract": False,
    }
    return type(f"User_{load.name}", (locust.User,), attributes)
