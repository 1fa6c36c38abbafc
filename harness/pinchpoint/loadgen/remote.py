"""Runs a load generator on another machine: one run's work for a controller that knows the worker's token.

The worker sends a hello until a controller answers, receives its assignment, performs the assignment if the
operator permits all that it uses, and ends. If no message arrives for some seconds, the run's controller has
ended or cannot be reached, and the load ends at once.
"""

from __future__ import annotations

from pinchpoint.loadgen import engine  # noqa: F401 -- first: see engine

# isort: split
import json
import os
import socket
import sys
import time
import uuid
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, NoReturn

import gevent
from gevent.queue import Empty, Queue
from gevent.threadpool import ThreadPool

from pinchpoint.base.errors import ExitStatus
from pinchpoint.loadgen.assignment import Assignment
from pinchpoint.loadgen.generator import GeneratorProcess, say_failed
from pinchpoint.loadgen.messages import (
    BadMessage,
    Late,
    Ping,
    Receiver,
    Sender,
    Tick,
    WorkerRefused,
    WorkMessage,
)
from pinchpoint.loadgen.permits import Permits
from pinchpoint.loadgen.recorder import Seconds
from pinchpoint.loadgen.wire import WireLine
from pinchpoint_collectors.record import Sample

MASTER_SILENT_S = 5.0
"""The controller sends a message every second; without one for this long, this worker ends its load."""
_HELLO_S = 1.0
_LINGER_S = 1.0  # time for the last message to be sent
_LOOK_S = 1.0  # interval of checks whether the parent process still runs


class MasterLost(Exception):  # noqa: N818 -- what happened, not a fault
    """The controller sent no message for ``MASTER_SILENT_S``."""


class RemoteLink:
    """The ``GeneratorLink`` of a generator on another machine.

    Args:
        host: address of the controller.
        port: port of the controller.
        token: the secret that controller and worker share.
    """

    def __init__(self, host: str, port: int, token: str) -> None:
        self._where = f"{host}:{port}"
        self._inbox: Queue[Any] = Queue()
        self._sender = Sender()
        self._line = WireLine(host, port, token, uuid.uuid4().bytes)
        self._encoder = ThreadPool(1)  # a thread encodes histograms and keeps the event loop free
        self._name = ""
        gevent.spawn(self._hear)

    def assignment(self) -> Assignment:
        """Say hello until a run accepts this worker; return its assignment."""
        known = warned = False
        while True:
            if not known and self._line.proved.is_set():
                self.say(
                    type="hello",
                    host=socket.gethostname(),
                    cores=sorted(os.sched_getaffinity(0)),
                    version=version("pinchpoint"),
                )
            if self._line.refused.is_set() and not self._line.proved.is_set() and not warned:
                warned = True
                report(
                    f"{self._where} answers, but it and this worker do not share a token, or it is no run of "
                    "this version of Pinchpoint: give both the same token; this worker goes on trying"
                )
            message = self._next(MASTER_SILENT_S if known else _HELLO_S)
            match message:
                case None if known:
                    raise MasterLost
                case WorkMessage(assignment=assignment):
                    self._name = assignment.name
                    report(f"takes part in a run as {assignment.name}: {', '.join(assignment.scenarios)}")
                    return assignment
                case None:
                    continue
                case Late():
                    known = True
                    report(
                        "joined after the run had begun; workers take part only from the beginning, so this "
                        "one waits for the next run"
                    )
                case Tick():
                    self.say(type="waiting")  # the controller counts a silent worker as lost
            if not known:
                known = True
                report("joined the run's controller, waits for the run to begin")

    def commands(self) -> Iterator[dict[str, Any]]:
        while (message := self._next(MASTER_SILENT_S)) is not None:
            if not isinstance(message, Tick):
                yield message.model_dump()
        report(f"heard nothing of the controller for {MASTER_SILENT_S:g} s: the load was ended")

    def say(self, **message: Any) -> None:
        self._line.send(self._sender.encoded(message))

    def record(self, seconds: Seconds, samples: list[Sample], now_ns: int) -> None:
        """Send the measurements, one message a second (``GeneratorLink``)."""
        del now_ns
        rows, progress = self._encoder.spawn(lambda: (seconds.rows(self._name), seconds.progress())).get()
        self.say(type="second", rows=rows, samples=[list(one) for one in samples], progress=progress)

    def close(self) -> None:
        """Does nothing, because all measurements were sent (``GeneratorLink``)."""

    def _hear(self) -> None:
        receiver = Receiver.of_controller()
        while True:
            try:
                self._inbox.put(receiver.taken(self._line.receive()))
            except BadMessage as why:
                _end(f"{self._where} sent what no controller sends ({why}): the load was ended")

    def _next(self, timeout_s: float) -> Any:
        """The next message that is no ping; None after ``timeout_s``. Pings are answered."""
        until = time.monotonic() + timeout_s
        while (left_s := until - time.monotonic()) > 0:
            try:
                message = self._inbox.get(timeout=left_s)
            except Empty:
                return None
            match message:
                case Ping(ping=sent_ns):
                    self.say(type="pong", sent_ns=sent_ns, utc_ns=time.time_ns())
                case WorkerRefused(refused=why):
                    _end(why)
                case _:
                    return message
        return None


def _end(why: str) -> NoReturn:
    report(why)
    os._exit(ExitStatus.ENVIRONMENT)  # ends the process in any state, from any greenlet


def report(sentence: str) -> None:
    """Print one line for the user who started the worker."""
    os.write(1, sentence.encode() + b"\n")


def _end_with(parent: int) -> None:
    """End at once when the `pinchpoint worker` that started this process has ended."""
    while os.getppid() == parent:
        gevent.sleep(_LOOK_S)
    os._exit(1)


def main() -> None:
    """Entry of ``python -m pinchpoint.loadgen.remote HOST PORT [PARENT]``; exits after one run.

    The first line of standard input has the token and the permits, because other users of this machine must
    not read them.
    """
    sys.setswitchinterval(0.0005)  # short, for the reason in loadgen.local
    host, port, *parent = sys.argv[1:]
    given = json.loads(sys.stdin.readline() or "{}")
    permits = Permits(tuple(given.get("variables", ())), tuple(given.get("folders", ())))
    if parent:
        gevent.spawn(_end_with, int(parent[0]))  # before the connection, which waits for a controller
    link = RemoteLink(host, int(port), given.get("token", ""))
    try:
        assignment = link.assignment()
        permits.check(assignment, socket.gethostname())
        generator = GeneratorProcess(assignment, link)
    except MasterLost:
        return
    except Exception as error:  # noqa: BLE001 -- reported to the controller, which reports it to the person
        say_failed(link, error)
        report(f"cannot take part: {error}")
        gevent.sleep(_LINGER_S)
        return
    generator.run()
    report("the run has ended")
    gevent.sleep(_LINGER_S)


if __name__ == "__main__":
    main()
