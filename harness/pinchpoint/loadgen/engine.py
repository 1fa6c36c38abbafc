"""Runs users on Locust; the only module that imports Locust, because the import monkey-patches the process.

Locust hosts the users (greenlets with a life cycle). Pinchpoint decides when operations start and measures
their times, because Locust's pacing is closed-loop and Locust's percentiles are bucketed. Pinchpoint also
carries the messages between machines (``wire``), because Locust's connection has no secrets and no proofs.
"""

from __future__ import annotations

import locust  # first, because it patches sockets, sleep and locks before others import them

# isort: split
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flask
import gevent
import gevent.event
from gevent.pool import Group
from locust import argument_parser
from locust.env import Environment
from locust.event import Events
from locust.runners import STATE_CLEANUP, STATE_STOPPED
from locust.stats import RequestStats, stats_history
from locust.util.load_locustfile import load_locustfile

from pinchpoint.loadgen.recorder import NO_FAILURES
from pinchpoint.loadgen.scenario_load import ScenarioLoad

_HERE = "127.0.0.1"
_STOP_S = 5.0  # longest time for operations in flight to end when the load stops


class Engine:
    """Hosts all users of this process on Locust's local runner.

    Args:
        loads: scenario name -> this process's share of the load.
        failed: called once with the error if a session raised: an internal error, or no session was opened.
    """

    def __init__(self, loads: Mapping[str, ScenarioLoad], failed: Callable[[BaseException], None]) -> None:
        logging.getLogger("locust").setLevel(logging.CRITICAL)  # Pinchpoint reports errors itself
        self._loads = loads
        self._classes = {name: _user_class(load, failed) for name, load in loads.items()}
        classes: list[type[locust.User]] = list(self._classes.values())
        self._environment = Environment(user_classes=classes, stop_timeout=_STOP_S, reset_stats=False)
        self._runner = self._environment.create_local_runner()

    def open(self) -> None:
        """Spawn every user; the sessions open concurrently."""
        for name, load in self._loads.items():
            self._spawn(name, load.users)

    @property
    def all_open(self) -> bool:
        """Whether every user has an open session."""
        return all(load.open_users >= load.users for load in self._loads.values())

    @property
    def over(self) -> bool:
        """Whether the load was ended before the controller ended it."""
        return False

    def take_slots(self, name: str, slots: frozenset[int], from_ns: int, since_ns: int | None) -> None:
        """Take over slots of a scenario's load from now on: see ``ScenarioLoad.take_slots``."""
        self._spawn(name, self._loads[name].take_slots(slots, from_ns, since_ns))

    def stop(self) -> None:
        """Stop all load; operations in flight get a few seconds to end."""
        for load in self._loads.values():
            load.stop()
        self._runner.quit()

    def _spawn(self, name: str, users: int) -> None:
        # Without a target count, because Locust would replace users that ended for lack of work.
        if users:
            self._runner.spawn_users({self._classes[name].__name__: users})


class WebUiEngine(Engine):
    """Hosts the number of users that is set on Locust's page, from the page's Start to its Stop.

    The page shows the recorded operations in Locust's statistics.

    Args:
        loads: scenario name -> this process's share of a closed load; its users are the most that the page
            can set.
        failed: called once with the error if a session raised.
        port: port of the page on this machine.
        event: called with ``web_ui_ready`` and the page's ``url``, and with ``users_set`` and the ``users``
            of each scenario after each completed change of their number.
    """

    def __init__(
        self,
        loads: Mapping[str, ScenarioLoad],
        failed: Callable[[BaseException], None],
        port: int,
        event: Callable[..., None],
    ) -> None:
        super().__init__(loads, failed)
        self._failed = failed
        self._most = sum(load.users for load in loads.values())
        self._began = False
        events: Any = self._environment.events
        self._requests = events.request
        events.test_start.add_listener(self._begin)
        events.spawning_complete.add_listener(lambda **_: event("users_set", users=self._users()))
        self._environment.parsed_options = argument_parser.get_parser(default_config_files=[]).parse_args([])
        self._environment.parsed_options.num_users = self._most
        page: Any = self._environment.create_web_ui(_HERE, port, delayed_start=True)
        page.app.before_request(lambda: self._refused(port))
        self._page = page
        self._event, self._url = event, f"http://{_HERE}:{port}/"
        gevent.spawn(stats_history, self._runner)

    def open(self) -> None:
        """Open the page; the page's Start button spawns users."""
        self._page.start()
        self._page.greenlet.link_exception(lambda greenlet: self._failed(greenlet.exception))
        while not (self._page.server and self._page.server.started):
            gevent.sleep(0.01)
        self._event("web_ui_ready", url=self._url)

    @property
    def all_open(self) -> bool:
        """Whether Start was pressed; sessions open as users are spawned."""
        return self._began

    @property
    def over(self) -> bool:
        """Whether Stop was pressed."""
        return self._began and self._runner.state in (STATE_CLEANUP, STATE_STOPPED)

    def hear(
        self, scenario: str, operation: str, outcome: str, start_ns: int, end_ns: int, size_bytes: int
    ) -> None:
        """Report an operation to Locust as a request, without its stages (``recorder.Listener``)."""
        if "/" in operation:
            return
        self._requests.fire(
            request_type=scenario,
            name=operation,
            response_time=(end_ns - start_ns) / 1e6,
            response_length=size_bytes,
            exception=None if outcome in NO_FAILURES else outcome,
            context={},
        )

    def _begin(self, **_: object) -> None:
        self._began = True

    def _users(self) -> dict[str, int]:
        counts = self._runner.user_classes_count
        return {name: counts[made.__name__] for name, made in self._classes.items()}

    def _refused(self, port: int) -> flask.Response | None:
        """The refusal of a request that comes from another page, or that the run cannot fulfil; else None."""
        allowed = {f"{host}:{port}" for host in (_HERE, "localhost")}
        origin = flask.request.headers.get("Origin")
        if flask.request.host not in allowed or (origin and origin.partition("://")[2] not in allowed):
            return flask.Response("this page is for this machine alone\n", 403)
        if flask.request.path != "/swarm":
            return None
        users = flask.request.form.get("user_count", "")
        why = None
        if self.over:
            why = "The run is ending. Start another with: pinchpoint run --web-ui"
        elif not users.isdecimal() or not 1 <= int(users) <= self._most:
            why = f"Number of users: found {users}; allowed: 1 to {self._most}, the users of the plan"
        return flask.jsonify({"success": False, "message": why, "host": ""}) if why else None


class _User(locust.User):
    """A user with an event that is set when the user must leave."""

    abstract = True

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.leaving = gevent.event.Event()

    def stop(self, force: bool = False) -> bool:
        self.leaving.set()
        return bool(super().stop(force))


def _user_class(load: ScenarioLoad, failed: Callable[[BaseException], None]) -> type[_User]:
    def work(user: _User) -> None:
        try:
            load.work(user.leaving)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the run's evidence is no longer valid
            failed(error)
        raise locust.exception.StopUser

    attributes: dict[str, Any] = {
        "tasks": [work],
        "wait_time": locust.constant(0),
        "abstract": False,
        "weight": load.users,
    }
    return type(f"User_{load.name}", (_User,), attributes)


@dataclass(frozen=True, slots=True)
class UserClass:
    """The declarations of one user class of a locustfile.

    Attributes:
        name: name of the class.
        host: base URL of the class; None without one.
        is_http: whether a user of the class needs a base URL.
        weight: relative number of users of the class.
        fixed_count: number of users of the class, whatever the weights; 0: the weights decide.
    """

    name: str
    host: str | None
    is_http: bool
    weight: float
    fixed_count: int


class LocustUsers:
    """The users of a plain locustfile, in an environment of its own.

    Args:
        path: path of the locustfile.
        host: base URL of all users; None: each class has its own.

    Raises:
        BaseException: any exception that the file raises while it is imported, ``SystemExit`` included.
    """

    def __init__(self, path: Path, host: str | None) -> None:
        # A file registers its listeners on the module's events. New events contain no listeners of another
        # file.
        untyped: Any = Events
        self._events = locust.events = untyped()
        classes, shapes = load_locustfile(str(path))
        self.has_shape = bool(shapes)
        self._environment = Environment(
            user_classes=list(classes.values()),
            events=self._events,
            host=host,
            locustfile=path.name,
            parsed_options=argument_parser.get_parser(default_config_files=[]).parse_args([]),
        )
        self._environment.stats = _Totals(use_response_times_cache=False)
        self._classes = self._environment.user_classes
        self._runner = self._environment.create_local_runner()
        self._runner.user_greenlets = _UserGroup()
        for user_class in self._classes:
            user_class.host = host or user_class.host

    @property
    def classes(self) -> list[UserClass]:
        """The file's user classes; classes of weight 0 are left out, as in Locust."""
        return [
            UserClass(
                name=one.__name__,
                host=one.host,
                is_http=issubclass(one, locust.HttpUser | locust.FastHttpUser),
                weight=one.weight,
                fixed_count=one.fixed_count,
            )
            for one in self._classes
        ]

    def listen(self, on_request: Callable[..., None], on_error: Callable[..., None]) -> None:
        """Add listeners to Locust's events for requests and for exceptions of tasks."""
        self._events.request.add_listener(on_request)
        self._events.user_error.add_listener(on_error)

    def user(self, position: int) -> LocustUser:
        """A user of the class at ``position`` in ``classes``, not started yet."""
        return LocustUser(self._classes[position](self._environment), self._runner.user_greenlets)

    def begin(self, users: int) -> None:
        """Notify the file's listeners that the test begins, with the number of users in this process."""
        self._events.init.fire(environment=self._environment, runner=self._runner, web_ui=None)
        self._events.test_start.fire(environment=self._environment)
        self._events.spawning_complete.fire(user_count=users)

    def end(self) -> None:
        """Notify the file's listeners that the test has ended."""
        self._events.test_stop.fire(environment=self._environment)
        self._events.quitting.fire(environment=self._environment)


class LocustUser:
    """One user of a locustfile."""

    def __init__(self, user: locust.User, group: Group) -> None:
        self._user = user
        self._group = group
        self._life: gevent.Greenlet | None = None
        self._leaves = False

    def run(self) -> None:
        """Run the user until it ends by itself or must leave."""
        self._life = self._user.start(self._group)
        self._life.join()

    def leave(self) -> None:
        """End the user after its present task, or at once while it waits for the next. Does not block."""
        if self._life is not None and not self._leaves:
            self._leaves = True  # Locust raises if a user is stopped twice
            gevent.spawn(self._user.stop)

    def close(self) -> None:
        """End the user at once, whatever it is doing. Safe to call twice."""
        if self._life is not None:
            self._life.kill(block=False)


class _UserGroup(Group):  # type: ignore[misc]  # gevent ships no types
    """Greenlets of users; a user whose ``on_start`` raises ends, which the user_error event reports."""

    def spawn(self, run: Callable[[locust.User], None], user: locust.User) -> gevent.Greenlet:
        def quietly(user: locust.User) -> None:
            try:
                run(user)
            except Exception as error:  # noqa: BLE001 -- gevent would print its traceback to the terminal
                logging.getLogger("locust").debug("a user has ended: %s", error)

        return super().spawn(quietly, user)


class _Totals(RequestStats):
    """Locust's statistics as totals alone: entries by name would grow with each new URL or error message."""

    def log_request(self, method: str, name: str, response_time: int, content_length: int) -> None:  # noqa: ARG002 -- Locust's
        self.total.log(response_time, content_length)

    def log_error(self, method: str, name: str, error: Exception | str | None) -> None:  # noqa: ARG002 -- Locust's
        self.total.log_error(error)
