"""Connects the controller to a load generator: by pipes to a child process, or by the encrypted link."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from pinchpoint.base.objects import JsonObject
from pinchpoint_collectors.environment import child_environment

Hear = Callable[[dict[str, Any]], None]
Gone = Callable[[str], None]
_SHOWN = 80  # bytes of an invalid line that are shown, so that the user can find its origin


class GeneratorChannel(Protocol):
    """The messages to and from one generator."""

    def listen(self, hear: Hear, gone: Gone) -> None:
        """Pass every message to ``hear``, and at last the reason of the end to ``gone``, in a thread."""
        ...

    def send(self, message: JsonObject) -> None:
        """Send a message to the generator; does nothing if the generator has ended."""
        ...

    def close(self) -> None:
        """End the generator at once, whatever it is doing. Safe to call twice."""
        ...


class ChildProcess:
    """A child process that exchanges messages as JSON lines."""

    def __init__(self, module: str, *arguments: str, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # no data is left to flush when the pipe is closed
            env=dict(environment),
            start_new_session=True,  # the controller handles a Ctrl-C in the terminal
        )
        self._sending = threading.Lock()
        self._reader: threading.Thread | None = None

    def listen(self, hear: Hear, gone: Gone) -> None:
        self._reader = threading.Thread(target=self._read, args=(hear, gone), daemon=True)
        self._reader.start()

    def send(self, message: JsonObject) -> None:
        assert self.process.stdin is not None  # noqa: S101 -- opened as a pipe above
        try:
            with self._sending:
                self.process.stdin.write(json.dumps(message).encode() + b"\n")
        except (BrokenPipeError, ValueError):
            return  # the child has ended; the reader reports why

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()
        if self._reader and self._reader is not threading.current_thread():
            self._reader.join()

    def _read(self, hear: Hear, gone: Gone) -> None:
        assert self.process.stdout is not None  # noqa: S101 -- opened as a pipe above
        with self.process.stdout as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break  # the child ended while it wrote
                message = _message(line)
                if message is None:
                    gone(f"wrote what is no message: {line[:_SHOWN].decode(errors='replace').strip()!r}")
                    return  # later lines cannot be trusted; the child ends because its pipe is closed
                hear(message)
        gone(f"ended by itself in mid-run (exit status {self.process.wait()})")


def _message(line: bytes) -> dict[str, Any] | None:
    """The message on a line; None if the line has none."""
    try:
        result = json.loads(line)
    except ValueError:
        return None
    return result if isinstance(result, dict) and "type" in result else None


class LocalGenerator(ChildProcess):
    """A generator on this machine.

    Args:
        environment: environment variables of the generator.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        super().__init__("pinchpoint.loadgen.local", environment=environment)


class BridgeProcess:
    """The child process that carries messages to and from workers of other machines (``loadgen.master``).

    Args:
        host: address that the child listens on.
        port: port that the child listens on.
        journal: folder for the workers' measurements.
        token: the secret that the workers share with this run.
        joined: called with a worker's id and the worker's first message, from the reader's thread.
        reported: called with an event's name and fields, from the reader's thread.
    """

    def __init__(
        self,
        host: str,
        port: int,
        journal: str,
        token: str,
        joined: Callable[[str, dict[str, Any]], None],
        reported: Callable[..., None],
    ) -> None:
        self.broken: str | None = None
        self._closing = False
        self._joined = joined
        self._reported = reported
        self._peers: dict[str, tuple[Hear, Gone]] = {}
        self._lost: dict[str, str] = {}
        self._process = ChildProcess(
            "pinchpoint.loadgen.master", host, str(port), journal, environment=child_environment()
        )
        self._process.send({"token": token})  # by the pipe, because other users can read a command line
        self._process.listen(self._hear, self._gone)

    def channel(self, worker: str) -> GeneratorChannel:
        """The channel to a worker that has joined."""
        return RemoteGenerator(self, worker)

    def register(self, worker: str, hear: Hear, gone: Gone) -> None:
        """Set the receivers of a worker's messages and of the reason of its end."""
        self._peers[worker] = (hear, gone)
        if not self.reaches(worker):
            gone(self._lost[worker])

    def reaches(self, worker: str) -> bool:
        """Whether a worker that has joined is still connected."""
        return worker not in self._lost

    def send(self, worker: str, message: JsonObject) -> None:
        """Send a message to a worker."""
        self._process.send({"to": worker, "message": message})

    def close(self) -> None:
        """End the child process; workers notice missing messages. Safe to call twice."""
        self._closing = True
        self._process.close()

    def _hear(self, message: dict[str, Any]) -> None:
        worker = message.pop("worker", "")
        match message:
            case {"type": "listening"}:
                return
            case {"type": "broken", "why": why}:
                self.broken = why
            case {"type": "joined"}:
                self._lost.pop(worker, None)
                self._joined(worker, message)
            case {"type": "lost", "why": why, "dropped": dropped, "host": host}:
                # stored first, because ``register`` may run at the same time
                self._lost[worker] = f"{host} {why}" if host else why
                if dropped:
                    self._reported("worker_dropped", machine=host, why=why)
                if worker in self._peers:
                    self._peers[worker][1](self._lost[worker])
            case {"type": "unproved", "connections": connections}:
                self._reported("connections_unproved", connections=connections)
            case _ if worker in self._peers:
                self._peers[worker][0](message)

    def _gone(self, why: str) -> None:
        if self._closing:
            return  # this side has ended the child
        self.broken = self.broken or why
        for _, gone in self._peers.values():
            gone(f"the connection to workers of other machines {why}")


class RemoteGenerator:
    """A generator on another machine."""

    def __init__(self, bridge: BridgeProcess, worker: str) -> None:
        self._bridge = bridge
        self._worker = worker

    def listen(self, hear: Hear, gone: Gone) -> None:
        self._bridge.register(self._worker, hear, gone)

    def send(self, message: JsonObject) -> None:
        self._bridge.send(self._worker, message)

    def close(self) -> None:
        """Stop the worker, which also ends by itself without messages of the master or of this run."""
        self._bridge.send(self._worker, {"stop": True})
