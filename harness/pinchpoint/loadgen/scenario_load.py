"""Performs one scenario's users in one generator process: when each performs, and with which session.

Closed load: every user performs again as soon as it is free. Open load: a pacer puts intended starts into a
queue when they are due, and free users take the starts from the queue. Slots (``loadgen.slots``) set the part
of the load in this process; it may grow during the load.
"""

from __future__ import annotations

import ctypes
import math
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

import gevent
from gevent.event import Event
from gevent.queue import Queue
from gevent.threadpool import ThreadPool

from pinchpoint.loadgen.load_schedule import session_numbers, starts, user_start_s
from pinchpoint.loadgen.recorder import Recorder
from pinchpoint.loadgen.slots import Arrival, ArrivalSchedule
from pinchpoint.plan.arrivals import LATEST_START_S
from pinchpoint.store.schema import GIVEN_UP, SEND, SENT, UNFINISHED
from pinchpoint_scenarios.contract import Blocking, Record, Scenario, Session

# Threads for sessions whose driver blocks in C code, so that the event loop is not blocked.
#
# A hop into a thread and back costs some 45 microseconds and a turn of the loop. So users that start again as
# soon as they are free hop once for many operations. The loop records these operations afterwards, because
# the recorder is not thread-safe.

_Recorded = tuple[str, str, int, int, int]
_Result = TypeVar("_Result")


class SessionThreads:
    """One thread for each session.

    Args:
        sessions: number of sessions.
    """

    def __init__(self, sessions: int) -> None:
        self._pool = ThreadPool(max(1, sessions))
        self._sessions = sessions

    def grow(self, sessions: int) -> None:
        """Allow for this number of further sessions."""
        self._sessions += sessions
        self._pool.maxsize = max(1, self._sessions)

    def call(self, function: Callable[[], _Result]) -> _Result:
        """The result of ``function``, run in a thread; an error of the function is raised."""
        # An error is returned and not raised in the thread, because the pool would print its traceback.
        result, error = self._pool.spawn(_done, function).get()
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]  # gevent ships no types


class ThreadedSession:
    """A ``Session`` that makes all its calls in threads.

    Args:
        threads: the threads that make the calls.
        scenario: the driver of the scenario.
        number: number of the session.
        stretch_s: time in seconds for which one ``perform`` goes on with further operations; 0: one
            operation.
        stopped: returns whether no further operation may start; called in the thread.
    """

    def __init__(
        self,
        threads: SessionThreads,
        scenario: Scenario,
        number: int,
        stretch_s: float,
        stopped: Callable[[], bool],
    ) -> None:
        self._threads = threads
        self._stretch_s = stretch_s
        self._stopped = stopped
        self._under_way = False
        self._session: Session = threads.call(lambda: scenario.session(number))

    def perform(self, record: Record) -> bool:
        """Perform operations for the length of the stretch; see ``Session``."""
        recorded: list[_Recorded] = []
        self._under_way = True
        try:
            going_on = self._threads.call(lambda: self._stretch(recorded))
            self._under_way = False
        finally:
            for row in recorded:
                record(*row)
        return going_on

    def close(self) -> None:
        """Close the connections, unless the driver still waits: then they end with the process."""
        if not self._under_way:
            self._threads.call(self._session.close)

    def _stretch(self, recorded: list[_Recorded]) -> bool:
        def record(operation: str, outcome: str, start_ns: int, end_ns: int, size_bytes: int = 0) -> None:
            recorded.append((operation, outcome, start_ns, end_ns, size_bytes))

        perform, until = self._session.perform, time.perf_counter() + self._stretch_s
        while perform(record):
            if time.perf_counter() >= until or self._stopped():
                return True
        return False


def _done(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return function(), None
    except Exception as error:  # noqa: BLE001 -- raised again by whoever asked
        return None, error


# Wakes a greenlet at an exact time.
#
# The timers of an event loop count in whole milliseconds: on an idle loop gevent wakes half a millisecond
# late, 1.1 ms at p99, which is half of the allowed delay of a punctual generator. A timerfd is a file that
# the kernel makes readable at the requested nanosecond; the loop is notified at once.

_CLOCK_MONOTONIC = 1  # the clock of time.perf_counter_ns() on Linux
_CLOEXEC_NONBLOCK = os.O_CLOEXEC | os.O_NONBLOCK
_ABSTIME = 1
_READ = 1  # event of gevent's loop: a file is readable


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class Alarm:
    """A timer for one greenlet at a time. Linux only."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = self._libc.timerfd_create(_CLOCK_MONOTONIC, _CLOEXEC_NONBLOCK)
        if self._file < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        hub = gevent.get_hub()
        self._hub = hub
        self._watcher = hub.loop.io(self._file, _READ)

    def wait_until(self, counter_ns: int) -> None:
        """Return when ``time.perf_counter_ns()`` has reached ``counter_ns``."""
        while time.perf_counter_ns() < counter_ns:
            value = _Timespec(counter_ns // 1_000_000_000, counter_ns % 1_000_000_000)
            setting = _Itimerspec(_Timespec(0, 0), value)
            if self._libc.timerfd_settime(self._file, _ABSTIME, ctypes.byref(setting), None):
                raise OSError(ctypes.get_errno(), "timerfd_settime")
            self._hub.wait(self._watcher)
            os.read(self._file, 8)

    def close(self) -> None:
        """Free the timer."""
        self._watcher.close()
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


STRETCH_S = 0.2
"""Seconds for which a user without think time performs in its thread before its operations are recorded."""
_BREATH = 1_000  # arrivals of other workers that are skipped before the event loop gets a turn
_AHEAD_S = 0.5  # seconds for which a schedule is read ahead


class ScenarioLoad:
    """One scenario's share of the load in this process.

    Args:
        name: name of the scenario in the plan.
        scenario: the driver of the scenario.
        load: the load model in its JSON form (``Assignment.scenarios``).
        seed: the seed of the scenario.
        worker: number of this worker, unique in the run.
        slots: numbers of the load's slots that this worker owns.
        recorder: the process's recorder.

    Attributes:
        users: number of sessions in this process.
        open_users: number of open sessions.
        finished_users: number of users that found no work left.
        waiting_users: number of users that will work when the load has grown far enough.
        scheduled: UTC second of the intended start -> number of arrivals.
        started: UTC second of the intended start -> number of arrivals that started.
        send_lags_s: delays in seconds of starts that a free user waited for.
    """

    def __init__(
        self,
        name: str,
        scenario: Scenario,
        load: Mapping[str, Any],
        seed: int,
        worker: int,
        slots: frozenset[int],
        recorder: Recorder,
    ) -> None:
        self.name = name
        self.open_users = 0
        self.finished_users = 0
        self.waiting_users = 0
        self.scheduled: Counter[int] = Counter()
        self.started: Counter[int] = Counter()
        self.send_lags_s: list[float] = []
        self._scenario = scenario
        self._load = load
        self._worker = worker
        self._slots = slots
        self._hold_s = math.inf
        self._starts = starts(load, seed, lambda: self._hold_s)
        self._think_s = float(load.get("think_s") or 0)
        self._recorder = recorder
        self._numbers = deque(session_numbers(load, worker, slots))
        self.users = len(self._numbers)
        blocks = isinstance(scenario, Blocking) and scenario.blocks
        self._threads = SessionThreads(self.users) if blocks else None
        self._begin_ns: int | None = None
        self._begun = Event()
        self._stop = Event()
        self._due: Queue[int | None] = Queue()
        self._schedule: ArrivalSchedule | None = None
        self._pacers: list[gevent.Greenlet] = []

    @property
    def finished(self) -> bool:
        """Whether the load has begun and every user has found no work left."""
        return self._begun.is_set() and self.finished_users >= self.users

    def begin(self, begin_ns: int) -> None:
        """Let the users, whose sessions are open, start at this value of the performance counter."""
        self._begin_ns = begin_ns
        if self._starts is not None:
            self._schedule = ArrivalSchedule(_walked(self._starts, begin_ns), begin_ns, self._slots)
            self._pacers.append(gevent.spawn(self._pace, self._schedule))
        self._begun.set()

    def hold(self, hold_s: float) -> None:
        """End the steps of a load: the level at ``hold_s`` seconds after the load's begin stays."""
        self._hold_s = hold_s

    def take_slots(self, slots: frozenset[int], from_ns: int, since_ns: int | None) -> int:
        """Take over more of the load from now on; see ``ArrivalSchedule.take_slots``.

        Returns the number of further sessions to open.
        """
        had, wanted = (session_numbers(self._load, self._worker, part) for part in (self._slots, slots))
        self._slots = slots
        gained = sorted(set(wanted) - set(had))
        self._numbers.extend(gained)
        self.users += len(gained)
        if self._threads is not None:
            self._threads.grow(len(gained))
        if self._schedule is not None:
            missed, late = self._schedule.take_slots(slots, from_ns, since_ns)
            for arrival in missed:
                self.scheduled[self._second(arrival.at_ns)] += 1
                self._drop(arrival.at_ns)
            self._pacers.append(gevent.spawn(self._pace, late))
        return len(gained)

    def stop(self) -> None:
        """Start no further operation, and drop the operations that are due."""
        if self._stop.is_set():
            return
        gevent.killall(self._pacers)
        self._stop.set()
        self._begun.set()
        while not self._due.empty():
            self._drop(self._due.get())
        for _ in range(self.users):
            self._due.put(None)  # wakes each user that waits for a start

    def work(self, leaving: Event) -> None:
        """Run one user: open a session, wait for the start, and perform until the load or the work ends.

        Args:
            leaving: set when this user must end before the load ends; another user may then take its place.
        """
        number = self._numbers.popleft()
        session = self._opened(number)
        self.open_users += 1
        try:
            self._begun.wait()
            self._perform(session, number, leaving)
        finally:
            session.close()
            self._left(number, leaving)

    def _left(self, number: int, leaving: Event) -> None:
        """Free the number of a user that had to leave."""
        if leaving.is_set() and not self._stop.is_set():
            self.open_users -= 1
            self._numbers.append(number)

    def _opened(self, number: int) -> Session:
        if self._threads is None:
            return self._scenario.session(number)
        at_once = self._starts is None and not self._think_s
        stretch_s = STRETCH_S if at_once else 0.0
        return ThreadedSession(self._threads, self._scenario, number, stretch_s, self._stop.is_set)

    def _perform(self, session: Session, number: int, leaving: Event) -> None:
        record = self._recorder.user(self.name)
        closed = self._starts is None
        if closed:
            self._wait_turn(number)
        loop, add = gevent.get_hub().loop, record.add
        while not (self._stop.is_set() or leaving.is_set()):
            turn = loop.iteration
            if not closed:
                intended_ns = self._next_start()
                if intended_ns is None:
                    return
                record.intended_ns = intended_ns
            begun_ns = time.perf_counter_ns()
            try:
                more = session.perform(add)
            except gevent.GreenletExit:
                # An operation that does not end in the given time is recorded, because it may show what
                # blocks the farm.
                add(UNFINISHED, GIVEN_UP, begun_ns, time.perf_counter_ns())
                raise
            if not more:
                self.finished_users += 1
                return
            if self._think_s:
                self._stop.wait(self._think_s)
            elif closed and loop.iteration == turn:
                gevent.sleep(0)  # a driver that did not wait must let other users run

    def _wait_turn(self, number: int) -> None:
        """Wait until this user of a closed load must work: at once, or when the load has grown far enough."""
        self.waiting_users += 1
        self._stop.wait(self._until_start_s(number))
        if user_start_s(self._load, number) > self._hold_s:
            self._stop.wait()  # the load stopped growing before this user's turn
        self.waiting_users -= 1

    def _until_start_s(self, number: int) -> float:
        begin_ns = self._begin_ns if self._begin_ns is not None else time.perf_counter_ns()
        starts_in_s = (begin_ns - time.perf_counter_ns()) / 1e9 + user_start_s(self._load, number)
        return max(0.0, starts_in_s)

    def _pace(self, arrivals: Iterable[Arrival]) -> None:
        with Alarm() as alarm:
            for arrival in arrivals:
                alarm.wait_until(arrival.at_ns)
                self.scheduled[self._second(arrival.at_ns)] += 1
                self._due.put(arrival.at_ns)
                # If every user is stuck, starts would pile up without end, so starts that are too late are
                # dropped here. The start just added may be too late as well, because a pacer that cannot keep
                # up reads starts that are long due.
                while not self._due.empty() and self._too_late(self._due.peek()):
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
            # Only users that were free in time show how punctual the generator is. A late start for lack of a
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


def _walked(starts_s: Iterator[float], begin_ns: int) -> Iterator[float]:
    """The starts, read at most ``_AHEAD_S`` ahead because others' arrivals are remembered for a limited time.

    The event loop gets turns in between.
    """
    for number, start_s in enumerate(starts_s, 1):
        ahead_s = start_s - (time.perf_counter_ns() - begin_ns) / 1e9
        if ahead_s > _AHEAD_S:
            gevent.sleep(ahead_s - _AHEAD_S)
        elif number % _BREATH == 0:
            gevent.sleep(0)
        yield start_s
