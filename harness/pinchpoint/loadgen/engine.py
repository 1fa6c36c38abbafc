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
from locust.env import Environment

from pinchpoint.loadgen.arrivals import LATEST_START_S
from pinchpoint.loadgen.recorder import Recorder
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

    Args:
        name: its name in the plan.
        scenario: the driver.
        numbers: the session numbers this process opens.
        starts: intended starts in seconds from the load's start; None for closed load.
        think_s: closed load's pause between two operations of a user.
        recorder: the process's recorder.
    """

    def __init__(
        self, name: str, scenario: Scenario, numbers: list[int], starts: Iterator[float] | None,
        think_s: float, recorder: Recorder,
    ) -> None:  # fmt: skip
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
        self._begin_ns = 0
        self._backlog: deque[int] = deque()
        self._coming: int | None = None

    @property
    def finished(self) -> bool:
        """Whether every user has found that there is nothing left to do."""
        return self.finished_users == self.users

    def begin(self) -> None:
        """Let the users, whose sessions are open by now, start."""
        self._begin_ns = time.perf_counter_ns()
        self._begin.set()

    def stop(self) -> None:
        """No further operation starts; what was due and has not started is dropped."""
        if not self._stop.is_set():
            self._stop.set()
            self._begin.set()
            self.admit(drop_all=True)

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

    def admit(self, *, drop_all: bool = False) -> None:
        """Move starts that have become due to the backlog; drop those that waited too long, or all."""
        if self._starts is None or not self._begin_ns:
            return
        now_ns = time.perf_counter_ns()
        while self._upcoming() <= now_ns:
            self._backlog.append(self._take_upcoming())
        oldest_ns = now_ns if drop_all else now_ns - round(LATEST_START_S * 1e9)
        while self._backlog and self._backlog[0] <= oldest_ns:
            self._recorder.drop(self.name, self._backlog.popleft())

    def _next_start(self) -> int | None:
        self.admit()
        if self._backlog:
            intended_ns = self._backlog.popleft()
        else:
            intended_ns = self._take_upcoming()
            while (wait_ns := intended_ns - time.perf_counter_ns()) > 0:
                if self._stop.wait(wait_ns / 1e9):
                    return None
            # Only who was free in time tells how punctual the generator is; a late start for want of a
            # free session is the farm's doing and counts as response time.
            self.send_lags_s.append((time.perf_counter_ns() - intended_ns) / 1e9)
        self.started[self._recorder.utc_ns(intended_ns) // 1_000_000_000] += 1
        return intended_ns

    def _upcoming(self) -> int:
        if self._coming is None:
            assert self._starts is not None  # noqa: S101 -- callers check; closed load has no schedule
            self._coming = self._begin_ns + round(next(self._starts) * 1e9)
        return self._coming

    def _take_upcoming(self) -> int:
        intended_ns = self._upcoming()
        self._coming = None
        self.scheduled[self._recorder.utc_ns(intended_ns) // 1_000_000_000] += 1
        return intended_ns


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
