"""The only module that imports Locust (importing it monkey-patches the process: generators only).

Locust hosts the users, greenlets with a life cycle, and carries messages between machines. When operations
start and how they are timed is ours: Locust's pacing is closed-loop and its percentiles are bucketed.
"""

from __future__ import annotations

import locust  # first of all: it patches sockets, sleep and locks before others import them

# isort: split
import logging
from collections.abc import Callable, Mapping
from typing import Any

from locust.env import Environment
from locust.exception import RPCError
from locust.runners import MasterRunner, WorkerRunner

from pinchpoint.loadgen.users import ScenarioLoad

_STOP_S = 5.0  # how long operations in flight may take to end when the load stops
_MESSAGE = "pinchpoint"  # the one type of message of ours on Locust's connections

LOCUST_VERSION: str = locust.__version__


class Engine:
    """Hosts all users of this process on Locust's local runner.

    Args:
        loads: the scenarios' shares, by name.
        failed: called once with a sentence when a session raised: an error of ours, or no session at all.
    """

    def __init__(self, loads: Mapping[str, ScenarioLoad], failed: Callable[[BaseException], None]) -> None:
        logging.getLogger("locust").setLevel(logging.CRITICAL)  # what goes wrong is told by us
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
        """Another part of a scenario's load is done here from now on: see ``ScenarioLoad.own``."""
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


class Master:
    """Locust's master, as far as it carries messages to and from workers on other machines.

    Args:
        host: the address it listens on; ``*``: all of them.
        port: the TCP port.
        hear: called with a worker's id and its message.

    Raises:
        OSError: it cannot listen there.
    """

    def __init__(self, host: str, port: int, hear: Callable[[str, dict[str, Any]], None]) -> None:
        logging.getLogger("locust").setLevel(logging.CRITICAL)
        try:
            self._runner: MasterRunner = Environment().create_master_runner(host, port)
        except RPCError as error:
            raise OSError(str(error)) from error
        self._runner.register_message(_MESSAGE, lambda msg, **_: hear(msg.node_id, msg.data))

    def send(self, worker: str, message: Mapping[str, Any]) -> None:
        """Send one message to a worker; it is lost where the worker is gone."""
        self._runner.send_message(_MESSAGE, dict(message), client_id=worker)


class Worker:
    """Locust's worker, as far as it carries messages to and from a master.

    Args:
        host: the master's.
        port: the master's.
        hear: called with every message.
    """

    def __init__(self, host: str, port: int, hear: Callable[[dict[str, Any]], None]) -> None:
        logging.getLogger("locust").setLevel(logging.CRITICAL)
        self._runner: WorkerRunner = Environment().create_worker_runner(host, port)
        self._runner.register_message(_MESSAGE, lambda msg, **_: hear(msg.data))

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message; it waits while the master cannot be reached."""
        self._runner.send_message(_MESSAGE, dict(message))
