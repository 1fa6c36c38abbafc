"""Runs a locustfile's users in a load generator: Locust performs them, Pinchpoint records their requests."""

from __future__ import annotations

from pinchpoint.loadgen import engine  # first: see engine

# isort: split
import json
import logging
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from gevent.event import Event

from pinchpoint.loadgen.load_schedule import most
from pinchpoint.loadgen.recorder import Recorder
from pinchpoint.loadgen.scenario_load import ScenarioLoad
from pinchpoint.plan.locustfile import Locustfile
from pinchpoint_scenarios.contract import OK
from pinchpoint_scenarios.errors import ScenarioError

MAX_NAMES = 500
"""Most names of requests that are kept apart: a file that names requests by URL would have endless names."""
OTHERS = "(other requests)"
_NAME_LENGTH = 200
_SLASH = "\u2215"
"""Replaces the slash in a request's name: a name with a slash would be a stage of an operation."""
_TASK = "task"
_LATE_S = 60.0
_REPORTED_MAX = 10  # most log records of one place, and most user errors of one kind, that are reported


class LocustLoad(ScenarioLoad):
    """The share of a locustfile's users in this process.

    Args:
        name: name of the scenario in the plan.
        scenario: the locustfile's path and host.
        load: the load model in its JSON form, in users.
        seed: the seed of the scenario.
        worker: number of this worker.
        slots: numbers of the load's slots that this worker owns.
        recorder: the process's recorder.
        report: called with an event's name and fields.
        failed: called with the error if a request could not be recorded.

    Raises:
        ScenarioError: the file is not on this machine, or cannot be imported.
    """

    def __init__(  # noqa: PLR0913 -- a load's own arguments and the two ways out
        self,
        name: str,
        scenario: Locustfile,
        load: Mapping[str, Any],
        seed: int,
        worker: int,
        slots: frozenset[int],
        recorder: Recorder,
        *,
        report: Callable[..., None],
        failed: Callable[[BaseException], None],
    ) -> None:
        super().__init__(name, scenario, load, seed, worker, slots, recorder)
        self._path = scenario.path
        self._hosted = _imported(scenario.path, scenario.host)
        self._hosted.listen(self._request, self._error)
        self._order = shared_out(self._hosted.classes, int(most(load)))
        self._living: set[engine.LocustUser] = set()
        self._report = report
        self._failed = failed
        self._names: dict[str, str] = {}
        self._errors: Counter[tuple[str, str]] = Counter()
        self._names_exceeded = False
        logging.getLogger().addHandler(_LogReporter(report))

    def begin(self, begin_ns: int) -> None:
        self._hosted.begin(self.users)
        super().begin(begin_ns)

    def stop(self) -> None:
        """Stop the load (``ScenarioLoad``); users end after their present task."""
        super().stop()
        for user in self._living:
            user.leave()

    def work(self, leaving: Event) -> None:
        """Run one user, from the begin of the load until the user ends by itself or the load ends."""
        number = self._numbers.popleft()
        user = self._hosted.user(self._order[number])
        self.open_users += 1
        self._begun.wait()
        self._wait_turn(number)
        if self._stop.is_set():
            return
        self._living.add(user)
        leaving.rawlink(lambda _: user.leave())
        try:
            user.run()
        finally:
            user.close()
            self._living.remove(user)
            if self._stop.is_set() and not self._living:
                self._hosted.end()
            self._left(number, leaving)
        if not (self._stop.is_set() or leaving.is_set()):
            self.finished_users += 1

    def _request(
        self,
        request_type: str,
        name: str | None,
        response_time: float,
        response_length: int | None = 0,
        exception: BaseException | str | None = None,
        response: object = None,
        start_time: float | None = None,
        **_more: object,
    ) -> None:
        """Record a request; Locust calls this when a request has ended."""
        now_ns = time.perf_counter_ns()
        try:
            spent_ns = round(response_time * 1e6)
            end_ns = now_ns - _since_ns(start_time, spent_ns)
            operation = self._operation(str(name or request_type))
            outcome = _outcome(exception, response)
            size = int(response_length or 0)
            self._recorder.add(self.name, operation, outcome, end_ns - spent_ns, end_ns, size, None)
        except Exception as error:  # noqa: BLE001 -- Locust would log it and go on with a hole in the evidence
            why = f"the request {name!r} of {self._path.name} cannot be recorded: {error}"
            self._failed(ScenarioError(why))

    def _error(self, user_instance: object, exception: BaseException, tb: TracebackType | None) -> None:
        """Record a task or an ``on_start`` that raised, as a failed operation; Locust calls this."""
        del user_instance
        now_ns, kind = time.perf_counter_ns(), type(exception).__name__
        self._recorder.add(self.name, _TASK, kind, now_ns, now_ns, 0, None)
        where = place(exception, tb, self._path)
        self._errors[kind, where] += 1
        if self._errors[kind, where] <= _REPORTED_MAX:
            self._report("task_failed", why=f"{self._path.name}: {where}{kind}: {exception}")

    def _operation(self, name: str) -> str:
        known = self._names.get(name)
        if known is not None:
            return known
        if len(self._names) >= MAX_NAMES:
            if not self._names_exceeded:
                self._names_exceeded = True
                self._report(
                    "too_many_names",
                    why=f"{self._path.name} has made requests of {MAX_NAMES} names; those of further names "
                    f'count as {OTHERS}. Give similar ones one name: self.client.get(url, name="/item/[id]")',
                )
            return OTHERS
        short = name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 1]}…"
        return self._names.setdefault(name, short.replace("/", _SLASH))


class _LogReporter(logging.Handler):
    """Reports warnings and errors that the file, or a library of the file, logs as events of the run."""

    def __init__(self, report: Callable[..., None]) -> None:
        super().__init__(logging.WARNING)
        self._report = report
        self._seen: Counter[tuple[str, int]] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Report the first records of each place in the code."""
        self._seen[record.pathname, record.lineno] += 1
        if self._seen[record.pathname, record.lineno] <= _REPORTED_MAX:
            self._report("logged", level=record.levelname.lower(), why=record.getMessage())


def shared_out(classes: Sequence[engine.UserClass], users: int) -> list[int]:
    """The class of each user, as a position in ``classes``; the same in every worker.

    As in Locust, fixed counts come first, then the weights, as evenly as possible from the first user on.
    """
    order = [place for place, one in enumerate(classes) for _ in range(one.fixed_count)]
    weights = {place: one.weight for place, one in enumerate(classes) if not one.fixed_count}
    given = dict.fromkeys(weights, 0)
    while weights and len(order) < users:
        lacking = min(weights, key=lambda place: (given[place] + 1) / weights[place])
        given[lacking] += 1
        order.append(lacking)
    return order[:users]


def place(error: BaseException, tb: TracebackType | None, path: Path) -> str:
    """The place in the locustfile where an error was raised, ``"line 12: "``; "" for another file."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"line {error.lineno}: "
    lines = [frame.lineno for frame in traceback.extract_tb(tb) if frame.filename == str(path)]
    return f"line {lines[-1]}: " if lines else ""


def _since_ns(start_time: float | None, spent_ns: int) -> int:
    """Nanoseconds since the request ended: a ``with`` block reports a request only when the block ends."""
    if start_time is None:
        return 0
    since_ns = time.time_ns() - round(start_time * 1e9) - spent_ns
    return since_ns if 0 < since_ns < _LATE_S * 1e9 else 0  # larger: the clock was set meanwhile


def _outcome(exception: BaseException | str | None, response: object) -> str:
    """The outcome of a request: ``ok``, ``http_500``, or the name of the exception."""
    if not exception:
        return OK
    status = getattr(response, "status_code", 0)
    if isinstance(status, int) and status >= 400:
        return f"http_{status}"
    return type(exception).__name__ if isinstance(exception, BaseException) else "failed"


def _imported(path: Path, host: str | None) -> engine.LocustUsers:
    """The users of a locustfile. Raises ``ScenarioError``."""
    if not path.is_file():
        raise ScenarioError(f"the locustfile {path} is not on this machine; put it there, as on the first")
    sys.stdout = sys.stderr  # output of the file must not mix with messages of this process
    try:
        return engine.LocustUsers(path, host)
    except BaseException as error:  # the file may raise anything, SystemExit too
        raise ScenarioError(f"{path}: {_cause(error, path)}") from error


def _cause(error: BaseException, path: Path) -> str:
    answer = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{place(error, error.__traceback__, path)}{type(error).__name__}: {answer}"


def main() -> None:
    """Entry of ``python -m pinchpoint.loadgen.locust_load PATH``: prints the file's user classes as JSON."""
    answer, path = os.dup(1), Path(sys.argv[1])
    os.dup2(2, 1)
    result: dict[str, Any]
    try:
        users = engine.LocustUsers(path, None)
    except BaseException as error:  # noqa: BLE001 -- the file may raise anything; it is reported, not raised
        result = {"error": _cause(error, path)}
    else:
        result = {"classes": [asdict(one) for one in users.classes], "has_shape": users.has_shape}
    os.write(answer, json.dumps(result).encode())
    os._exit(0)  # also ends everything that the file has started


if __name__ == "__main__":
    main()
