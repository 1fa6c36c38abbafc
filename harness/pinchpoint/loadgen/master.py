"""Carries the controller's connections to load generators on other machines, in a child process.

The process exchanges JSON lines with the controller and ``messages`` with the workers. From the controller:
the token, then ``{"to": worker, "message": {...}}``. To the controller: ``listening`` once; ``joined`` when a
worker has sent its hello and its clock is known; the checked messages of workers, with ``worker`` added;
``lost`` with ``why`` when a worker was silent for too long or sent an invalid message; ``unproved`` when
connections did not prove that they know the token. The workers' measurements go to a journal of this process
and not to the controller.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gevent
from gevent.fileobject import FileObject
from gevent.threadpool import ThreadPool

from pinchpoint.loadgen.messages import (
    BadMessage,
    Pong,
    Receiver,
    Second,
    Sender,
    Waiting,
    WorkerHello,
    WorkMessage,
    check_second,
)
from pinchpoint.loadgen.wire import Door
from pinchpoint.store.journal import JournalWriter
from pinchpoint_collectors.record import Sample

SILENT_S = 4.0
"""A worker sends a message every second; a worker without a message for this long is lost."""
_SILENT = "could not be reached any more"
_TICK_S = 1.0
_PINGS = 5
_MOST_PEERS = 1000
_MOST_PER_S = 1000  # messages of one worker; a few are usual
JOURNAL = "remote"


@dataclass(slots=True)
class _Peer:
    """A worker on another machine.

    Attributes:
        hello: the worker's facts about itself.
        heard_s: time of the worker's last message (monotonic, seconds).
        joined_s: time at which the worker joined (UTC seconds).
        receiver: checks the worker's messages.
        asked_ns: the time in the last ping, nanoseconds; None: every ping was answered.
        clock: (round trip, controller's clock minus the worker's), in nanoseconds, of every answered ping.
        work: (name, scenarios) of the worker's assignment; None before the assignment.
        messages: number of the worker's messages in the present second.
    """

    hello: WorkerHello
    heard_s: float
    joined_s: float
    receiver: Receiver
    asked_ns: int | None = None
    clock: list[tuple[int, int]] = field(default_factory=list)
    work: tuple[str, frozenset[str]] | None = None
    messages: int = 0


class Bridge:
    """Carries messages between the controller and the workers.

    Args:
        host: address to listen on.
        port: port to listen on.
        journal: path of the run's journal folder.
        token: the secret that workers share with this run.
    """

    def __init__(self, host: str, port: int, journal: str, token: str) -> None:
        self._peers: dict[bytes, _Peer] = {}
        self._dropped: set[bytes] = set()
        self._unproved = 0
        self._sender = Sender()
        self._journal = JournalWriter(Path(journal), JOURNAL)
        self._writer = ThreadPool(1)
        self._door = Door(host, port, token)

    def run(self, commands: FileObject) -> None:
        """Carry messages until the controller closes the pipe."""
        for loop in (self._hear, self._tick):
            gevent.spawn(loop).link_exception(_give_up)
        _say(type="listening")
        for line in commands:
            command = json.loads(line)
            worker, message = bytes.fromhex(command["to"]), command["message"]
            if worker in self._peers and "assignment" in message:
                given = WorkMessage.model_validate_json(json.dumps(message)).assignment
                self._peers[worker].work = (given.name, frozenset(given.scenarios))
            self._send(worker, message)
        self._journal.close()

    def _send(self, worker: bytes, message: dict[str, Any]) -> None:
        self._door.send(worker, self._sender.encoded(message))

    def _hear(self) -> None:
        while True:
            worker, data = self._door.receive()
            if worker in self._dropped:
                continue
            try:
                self._take(worker, data)
            except BadMessage as why:
                self._drop(worker, f"sent what no load worker sends ({why})")

    def _take(self, worker: bytes, data: bytes) -> None:
        """Act on a worker's message. Raises ``BadMessage``."""
        peer = self._peers.get(worker)
        receiver = peer.receiver if peer else Receiver.of_worker()
        message = receiver.taken(data)
        if peer is None:
            if isinstance(message, WorkerHello):
                self._greet(worker, message, receiver)
            return  # a lost worker, or a worker of another run, gets no answer and ends
        peer.heard_s = time.monotonic()
        peer.messages += 1
        if peer.messages > _MOST_PER_S:
            raise BadMessage(f"more than {_MOST_PER_S} messages in a second")
        match message:
            case WorkerHello() | Waiting():
                return  # only the time is noted
            case Pong():
                self._clock(worker, peer, message)
            case _ if peer.work is None:
                raise BadMessage(f"{message.type} before it was given any work")
            case Second():
                check_second(message, *peer.work, peer.joined_s, time.time())
                self._write(worker, message)
                progress = {name: one.model_dump() for name, one in message.progress.items()}
                _say(worker=worker.hex(), type="second", progress=progress)
            case _:
                self._pass_on(worker, peer.work[1], message.model_dump())

    def _pass_on(self, worker: bytes, scenarios: frozenset[str], message: dict[str, Any]) -> None:
        if message.get("scenario", next(iter(scenarios))) not in scenarios:
            raise BadMessage(f"{message['type']}: of a scenario that is not its own")
        _say(worker=worker.hex(), **message)

    def _greet(self, worker: bytes, hello: WorkerHello, receiver: Receiver) -> None:
        ours = version("pinchpoint")
        if hello.version != ours:
            why = f"the run is driven by Pinchpoint {ours}, this is {hello.version}: install {ours} here"
            self._send(worker, {"refused": why})
            return
        if len(self._peers) < _MOST_PEERS:
            self._peers[worker] = peer = _Peer(hello, time.monotonic(), time.time(), receiver)
            self._ping(worker, peer)

    def _ping(self, worker: bytes, peer: _Peer) -> None:
        peer.asked_ns = now_ns = time.time_ns()
        self._send(worker, {"ping": now_ns})

    def _clock(self, worker: bytes, peer: _Peer, pong: Pong) -> None:
        if pong.sent_ns != peer.asked_ns:
            raise BadMessage("an answer that was not asked for")
        peer.asked_ns, now_ns = None, time.time_ns()
        peer.clock.append((now_ns - pong.sent_ns, (pong.sent_ns + now_ns) // 2 - pong.utc_ns))
        if len(peer.clock) < _PINGS:
            self._ping(worker, peer)
            return
        # The quickest answer had the least time for a delay in one direction.
        round_trip_ns, offset_ns = min(peer.clock)
        _say(
            type="joined",
            worker=worker.hex(),
            host=peer.hello.host,
            cores=peer.hello.cores,
            clock_offset_ns=offset_ns,
            round_trip_ns=round_trip_ns,
        )

    def _write(self, worker: bytes, second: Second) -> None:
        def write() -> OSError | None:
            try:
                self._journal.write_operations(second.rows, time.time_ns())
                self._journal.write_samples(Sample(*sample) for sample in second.samples)
            except OSError as error:
                return error
            return None

        if error := self._writer.spawn(write).get():
            why = f"its journal cannot be written: {error.strerror or error}"
            _say(worker=worker.hex(), type="unrecorded", why=why)

    def _drop(self, worker: bytes, why: str) -> None:
        """Ignore a worker from now on; all other workers continue."""
        peer = self._peers.pop(worker, None)
        if len(self._dropped) >= _MOST_PEERS and peer is None:
            return  # such peers know the token and were reported often enough
        self._dropped.add(worker)
        self._send(worker, {"refused": f"this worker {why}"})
        _say(type="lost", worker=worker.hex(), why=why, dropped=True, host=peer.hello.host if peer else "")

    def _tick(self) -> None:
        while True:
            slept_s = time.monotonic()
            gevent.sleep(_TICK_S)
            # While this process was stopped it received no messages, even if workers sent some.
            stood_s = max(0.0, time.monotonic() - slept_s - 2 * _TICK_S)
            for worker, peer in list(self._peers.items()):
                peer.messages = 0
                peer.heard_s += stood_s
                if time.monotonic() - peer.heard_s > SILENT_S:
                    del self._peers[worker]
                    _say(type="lost", worker=worker.hex(), why=_SILENT, dropped=False, host=peer.hello.host)
                else:
                    self._send(worker, {"tick": True})
            if self._door.unproved > self._unproved:
                self._unproved = self._door.unproved
                _say(type="unproved", connections=self._unproved)


def _give_up(greenlet: gevent.Greenlet) -> None:
    error = greenlet.exception
    _say(type="broken", why=f"{type(error).__name__}: {error}")
    os._exit(1)


def _say(**message: Any) -> None:
    try:
        os.write(1, json.dumps(message).encode() + b"\n")
    except BrokenPipeError:
        os._exit(1)  # without a controller this process ends


def main() -> None:
    """Entry of ``python -m pinchpoint.loadgen.master HOST PORT JOURNAL``; the first line has the token."""
    host, port, journal = sys.argv[1:]
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    # unproved connections use file descriptors for a while
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    commands = FileObject(sys.stdin.fileno(), "rb", close=False)
    token = json.loads(commands.readline() or b"{}").get("token", "")
    try:
        bridge = Bridge(host, int(port), journal, token)
    except OSError as error:
        _say(type="broken", why=f"cannot listen on {host}:{port}: {error}")
        return
    bridge.run(commands)


if __name__ == "__main__":
    main()
