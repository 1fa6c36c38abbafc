"""The only module that imports Locust (importing it monkey-patches the process: generators only).

Locust hosts the users, greenlets with a life cycle. When operations start and how they are timed is ours:
Locust's pacing is closed-loop and its percentiles are bucketed. So is what travels between machines
(``wire``): Locust's connection knows neither secrets nor proofs.
"""

from __future__ import annotations

import locust  # first of all: it patches sockets, sleep and locks before others import them

# isort: split
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gevent
from gevent.pool import Group
from locust import argument_parser
from locust.env import Environment
from locust.event import Events
from locust.stats import RequestStats
from locust.util.load_locustfile import load_locustfile

from pinchpoint.loadgen.users import ScenarioLoad

_STOP_S = 5.0  # how long operations in flight may take to end when the load stops

LOCUST_VERSION: str = locust.__version__


class Engine:
    """Hosts all users of this process on Locust's local runner.

    Args:
        loads: the scenarios' shares, by name.
        failed: called once with a sentence when a session raised: an error of ours, or no session at all.
    """

    def __init__(self, loads: Mapping[str, ScenarioLoad], failed: Callable[[BaseException], None]) -> None:
        logging.getLogger("locust").setLevel(logging.CRITICAL)  # what goes wrong is reported by us
        self._loads = loads
        self._classes = {name: _user_class(load, failed) for name, load in loads.items()}
        classes = list(self._classes.values())
        self._environment = Environment(user_classes=classes, stop_timeout=_STOP_S, reset_stats=False)
        self._runner = self._environment.create_local_runner()

    def open(self) -> None:
        """Spawn every user; sessions open concurrently."""
        for name, load in self._loads.items():
            self._spawn(name, load.users)

    @property
    def all_open(self) -> bool:
        """Whether every user has its session."""
        return all(load.open_users >= load.users for load in self._loads.values())

    def own(self, name: str, slots: frozenset[int], from_ns: int, since_ns: int | None) -> None:
        """More of a scenario's load is done here from now on: see ``ScenarioLoad.own``."""
        self._spawn(name, self._loads[name].own(slots, from_ns, since_ns))

    def stop(self) -> None:
        """Stop all load; operations in flight get a few seconds to end."""
        for load in self._loads.values():
            load.stop()
        self._runner.quit()

    def _spawn(self, name: str, users: int) -> None:
        # Without a target count: Locust would hold its own to it, and end users that have found no more work.
        if users:
            self._runner.spawn_users({self._classes[name].__name__: users})


def _user_class(load: ScenarioLoad, failed: Callable[[BaseException], None]) -> type[locust.User]:
    def work(_user: locust.User) -> None:
        try:
            load.work()
        except Exception as error:  # noqa: BLE001 -- whatever it is, the run's evidence is no longer valid
            failed(error)
        raise locust.exception.StopUser

    attributes: dict[str, Any] = {"tasks": [work], "wait_time": locust.constant(0), "abstract": False}
    return type(f"User_{load.name}", (locust.User,), attributes)


@dataclass(frozen=True, slots=True)
class UserClass:
    """What a locustfile says of one of its user classes.

    Attributes:
        name: the class's name.
        host: its own base URL, if it has one.
        is_http: whether it cannot be made without a base URL.
        weight: its share of the users.
        fixed_count: how many of it there are whatever the weights say; 0: the weights decide.
    """

    name: str
    host: str | None
    is_http: bool
    weight: float
    fixed_count: int


class LocustUsers:
    """The users of a plain locustfile, in an environment of its own.

    Args:
        path: the locustfile.
        host: the base URL of all its users; None: each class has its own.

    Raises:
        BaseException: whatever the file raises while it is imported, ``SystemExit`` included.
    """

    def __init__(self, path: Path, host: str | None) -> None:
        # The module's events are what a file registers its listeners on; none of another file are in these.
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
        """The file's user classes, those of weight 0 left out as Locust does."""
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
        """Who hears of every request, and of what tasks raise: Locust's events of these names."""
        self._events.request.add_listener(on_request)
        self._events.user_error.add_listener(on_error)

    def user(self, position: int) -> LocustUser:
        """A user of the class at this position of ``classes``, not started yet."""
        return LocustUser(self._classes[position](self._environment), self._runner.user_greenlets)

    def begin(self, users: int) -> None:
        """Notify the file's listeners that the test begins, with this many users here."""
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

    def run(self) -> None:
        """Live until it ends by itself or has to leave."""
        self._life = self._user.start(self._group)
        self._life.join()

    def leave(self) -> None:
        """End after the task that is going on, or at once while it waits for the next. Returns at once."""
        if self._life is not None:
            gevent.spawn(self._user.stop)

    def close(self) -> None:
        """End, whatever it is doing. Safe to call twice."""
        if self._life is not None:
            self._life.kill(block=False)


class _UserGroup(Group):  # type: ignore[misc]  # gevent ships no types
    """Greenlets of users; one whose ``on_start`` raised is over, and the user_error event has reported it."""

    def spawn(self, run: Callable[[locust.User], None], user: locust.User) -> gevent.Greenlet:
        def quietly(user: locust.User) -> None:
            try:
                run(user)
            except Exception as error:  # noqa: BLE001 -- gevent would print its traceback to the terminal
                logging.getLogger("locust").debug("a user has ended: %s", error)

        return super().spawn(quietly, user)


class _Totals(RequestStats):
    """Totals for listeners that ask for them; by name they would grow with every new URL or error message."""

    def log_request(self, method: str, name: str, response_time: int, content_length: int) -> None:  # noqa: ARG002 -- Locust's
        self.total.log(response_time, content_length)

    def log_error(self, method: str, name: str, error: Exception | str | None) -> None:  # noqa: ARG002 -- Locust's
        self.total.log_error(error)
