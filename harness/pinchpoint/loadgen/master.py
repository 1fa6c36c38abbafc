"""The run's end of the connections to load generators on other machines: a child process of the controller.

It speaks JSON lines with the controller and Locust's protocol with the workers. From the controller:
``{"to": worker, "message": {...}}``. To it: ``listening`` once; ``joined`` when a worker has said what it is
and its clock is known; what the workers say, with ``worker`` added; ``lost`` when one has been silent too
long. What workers measured goes to a journal here and no further.
"""

from __future__ import annotations

from pinchpoint.loadgen import engine  # first of all: see there

# isort: split
import json
import os
import sys
import time
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gevent
from gevent.fileobject import FileObject
from gevent.queue import Queue
from gevent.threadpool import ThreadPool

from pinchpoint.store.journal import JournalWriter
from pinchpoint_collectors.record import Sample

SILENT_S = 4.0
"""A worker says something every second; one that has not for so long is lost."""
_TICK_S = 1.0
_PINGS = 5
JOURNAL = "remote"


@dataclass(slots=True)
class _Peer:
    """A worker on another machine.

    Attributes:
        hello: what it said of itself.
        heard_s: when it last said anything.
        clock: (round trip, controller's clock minus its own) of every ping answered.
    """

    hello: dict[str, Any]
    heard_s: float
    clock: list[tuple[int, int]] = field(default_factory=list)


class Bridge:
    """Carries messages both ways.

    Args:
        host: the address to listen on.
        port: the port.
        journal: the run's journal folder.
    """

    def __init__(self, host: str, port: int, journal: str) -> None:
        self._peers: dict[str, _Peer] = {}
        self._inbox: Queue[tuple[str, dict[str, Any]]] = Queue()
        self._journal = JournalWriter(Path(journal), JOURNAL)
        self._writer = ThreadPool(1)
        # Only put aside: Locust swallows what a listener raises.
        self._master = engine.Master(host, port, lambda worker, message: self._inbox.put((worker, message)))

    def run(self, commands: FileObject) -> None:
        """Carry messages until the controller closes the pipe."""
        for loop in (self._hear, self._tick):
            gevent.spawn(loop).link_exception(_give_up)
        _say(type="listening")
        for line in commands:
            command = json.loads(line)
            self._master.send(command["to"], command["message"])
        self._journal.close()

    def _hear(self) -> None:
        while True:
            worker, message = self._inbox.get()
            peer = self._peers.get(worker)
            if peer is not None:
                peer.heard_s = time.monotonic()
            match message:
                case {"type": "hello"}:
                    self._greet(worker, message)
                case {"type": "waiting"}:
                    continue  # heard of it, and that is all there is to it
                case {"type": "pong", "sent_ns": sent_ns, "utc_ns": utc_ns} if peer is not None:
                    self._clock(worker, peer, sent_ns, utc_ns)
                case {"type": "second", "rows": rows, "samples": samples} if peer is not None:
                    self._write(worker, rows, samples)
                    _say(worker=worker, type="second", progress=message["progress"])
                case _ if peer is not None:
                    _say(worker=worker, **message)

    def _greet(self, worker: str, hello: dict[str, Any]) -> None:
        if worker in self._peers:
            return
        ours = version("pinchpoint")
        if hello["version"] != ours:
            why = f"the run is driven by Pinchpoint {ours}, this is {hello['version']}: install {ours} here"
            self._master.send(worker, {"refused": why})
            return
        self._peers[worker] = _Peer(hello, time.monotonic())
        self._ping(worker)

    def _ping(self, worker: str) -> None:
        self._master.send(worker, {"ping": time.time_ns()})

    def _clock(self, worker: str, peer: _Peer, sent_ns: int, utc_ns: int) -> None:
        now_ns = time.time_ns()
        peer.clock.append((now_ns - sent_ns, (sent_ns + now_ns) // 2 - utc_ns))
        if len(peer.clock) < _PINGS:
            self._ping(worker)
        elif len(peer.clock) == _PINGS:
            # The quickest answer had the least time to be delayed on one way only.
            round_trip_ns, offset_ns = min(peer.clock)
            _say(
                type="joined",
                worker=worker,
                host=peer.hello["host"],
                cores=peer.hello["cores"],
                clock_offset_ns=offset_ns,
                round_trip_ns=round_trip_ns,
            )

    def _write(self, worker: str, rows: list[list[Any]], samples: list[list[Any]]) -> None:
        def write() -> OSError | None:
            try:
                self._journal.write_operations(rows, time.time_ns())
                self._journal.write_samples(Sample(*sample) for sample in samples)
            except OSError as error:
                return error
            return None

        if error := self._writer.spawn(write).get():
            why = f"its journal cannot be written: {error.strerror or error}"
            _say(worker=worker, type="failed", kind="recorder", why=why)

    def _tick(self) -> None:
        while True:
            gevent.sleep(_TICK_S)
            for worker, peer in list(self._peers.items()):
                if time.monotonic() - peer.heard_s > SILENT_S:
                    del self._peers[worker]
                    _say(type="lost", worker=worker)
                else:
                    self._master.send(worker, {"tick": True})


def _give_up(greenlet: gevent.Greenlet) -> None:
    error = greenlet.exception
    _say(type="broken", why=f"{type(error).__name__}: {error}")
    os._exit(1)


def _say(**message: Any) -> None:
    try:
        os.write(1, json.dumps(message).encode() + b"\n")
    except BrokenPipeError:
        os._exit(1)  # a dead controller ends the process


def main() -> None:
    """Entry of ``python -m pinchpoint.loadgen.master HOST PORT JOURNAL``."""
    host, port, journal = sys.argv[1:]
    try:
        bridge = Bridge(host, int(port), journal)
    except OSError as error:
        _say(type="broken", why=f"cannot listen on {host}:{port}: {error}")
        return
    bridge.run(FileObject(sys.stdin.fileno(), "rb", close=False))


if __name__ == "__main__":
    main()
