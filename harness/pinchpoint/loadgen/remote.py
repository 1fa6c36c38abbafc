"""A load generator on another machine: one run's work for a master, over Locust's connection.

It says hello until a master answers, hears its assignment, performs it and ends. When nothing has been heard
for some seconds, the run's controller is gone or cannot be reached, and the load ends at once.
"""

from __future__ import annotations

from pinchpoint.loadgen import engine  # first of all: see there

# isort: split
import os
import socket
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import gevent
from gevent.queue import Empty, Queue
from gevent.threadpool import ThreadPool

from pinchpoint.errors import ExitStatus
from pinchpoint.loadgen.generator import Generator, say_failed
from pinchpoint.loadgen.load import Assignment
from pinchpoint.loadgen.recorder import Seconds
from pinchpoint_collectors.record import Sample

MASTER_SILENT_S = 5.0
"""The master says something every second; after so long without, this worker ends its load."""
_HELLO_S = 1.0
_LINGER_S = 1.0  # the last words travel
_LOOK_S = 1.0  # whether who started it is still there


class MasterLost(Exception):  # noqa: N818 -- what happened, not a fault
    """Nothing has been heard of the master for ``MASTER_SILENT_S``."""


class Connection:
    """The ``Link`` of a generator on another machine.

    Args:
        host: the master's.
        port: the master's.
    """

    def __init__(self, host: str, port: int) -> None:
        self._inbox: Queue[dict[str, Any]] = Queue()
        self._worker = engine.Worker(host, port, self._inbox.put)
        self._encoder = ThreadPool(1)  # histograms are encoded beside the load, not in its loop
        self._name = ""

    def assignment(self) -> Assignment:
        """Say hello until there is a run to take part in, and what is to be done in it."""
        known = False
        while True:
            if not known:
                self.say(
                    type="hello",
                    host=socket.gethostname(),
                    cores=sorted(os.sched_getaffinity(0)),
                    version=version("pinchpoint"),
                )
            message = self._next(MASTER_SILENT_S if known else _HELLO_S)
            match message:
                case None if known:
                    raise MasterLost
                case {"refused": why}:
                    tell(why)
                    sys.exit(ExitStatus.ENVIRONMENT)
                case {"assignment": given}:
                    assignment = Assignment(**given)
                    self._name = assignment.name
                    tell(f"takes part in a run as {assignment.name}: {', '.join(assignment.scenarios)}")
                    return assignment
                case None:
                    continue
                case {"tick": True}:
                    self.say(type="waiting")  # to the master, whoever says nothing is lost
            if not known:
                known = True
                tell("joined the master, waits for the run to begin")

    def commands(self) -> Iterator[dict[str, Any]]:
        """See ``Link``."""
        while (message := self._next(MASTER_SILENT_S)) is not None:
            if "tick" not in message:
                yield message
        tell(f"heard nothing of the master for {MASTER_SILENT_S:g} s: the load was ended")

    def say(self, **message: Any) -> None:
        """See ``Link``."""
        self._worker.send(message)

    def record(self, seconds: Seconds, samples: list[Sample], now_ns: int) -> None:
        """See ``Link``: sent, one message a second."""
        del now_ns
        rows, progress = self._encoder.spawn(lambda: (seconds.rows(self._name), seconds.progress())).get()
        self.say(type="second", rows=rows, samples=[list(one) for one in samples], progress=progress)

    def close(self) -> None:
        """See ``Link``."""

    def _next(self, timeout_s: float) -> dict[str, Any] | None:
        """The next message, pings answered; None after that long without any."""
        until = time.monotonic() + timeout_s
        while (left_s := until - time.monotonic()) > 0:
            try:
                message: dict[str, Any] = self._inbox.get(timeout=left_s)
            except Empty:
                return None
            if "ping" not in message:
                return message
            self.say(type="pong", sent_ns=message["ping"], utc_ns=time.time_ns())
        return None


def tell(sentence: str) -> None:
    """One line for the person who started the worker."""
    os.write(1, sentence.encode() + b"\n")


def _end_with(parent: int) -> None:
    """End at once when the `pinchpoint worker` that started this process was killed: nobody lends it now."""
    while os.getppid() == parent:
        gevent.sleep(_LOOK_S)
    os._exit(1)


def main() -> None:
    """Entry of ``python -m pinchpoint.loadgen.remote HOST PORT [PARENT]``; exits after one run."""
    sys.setswitchinterval(0.0005)  # see loadgen.local
    host, port, *parent = sys.argv[1:]
    if parent:
        gevent.spawn(_end_with, int(parent[0]))  # before the connection: that waits for a master
    link = Connection(host, int(port))
    try:
        generator = Generator(link.assignment(), link)
    except MasterLost:
        return
    except Exception as error:  # noqa: BLE001 -- told to the controller, which tells the person
        say_failed(link, error)
        tell(f"cannot take part: {error}")
        gevent.sleep(_LINGER_S)
        return
    generator.run()
    tell("the run has ended")
    gevent.sleep(_LINGER_S)


if __name__ == "__main__":
    main()
