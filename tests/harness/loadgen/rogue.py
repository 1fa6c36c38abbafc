"""Peers that are neither Pinchpoint's controller nor its worker: raw ZeroMQ sockets with any messages."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import zmq

from pinchpoint.loadgen import wire

OTHER = "another-token-that-the-run-does-not-know"


class Peer:
    """A socket on either side of the connection."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self.socket = socket
        self.number = time.time_ns()
        self.work: dict[str, Any] = {}

    def say(self, message: dict[str, Any], *to: bytes) -> None:
        """Send a message as Pinchpoint's own peer would."""
        self.number += 1
        self.socket.send_multipart([*to, json.dumps({"number": self.number, "message": message}).encode()])

    def hear(self, timeout_s: float = 60.0) -> list[bytes] | None:
        """Return the next message's parts; None: no message."""
        return self.socket.recv_multipart() if self.socket.poll(round(timeout_s * 1000)) else None

    def message(self, timeout_s: float = 60.0) -> dict[str, Any]:
        """Return the next message of Pinchpoint's own peer."""
        parts = self.hear(timeout_s)
        assert parts is not None
        found: dict[str, Any] = json.loads(parts[-1])["message"]
        return found

    def until(self, key: str, timeout_s: float = 60.0) -> dict[str, Any]:
        """As a worker: return the next message with this key; answer pings and ticks meanwhile."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            message = self.message(timeout_s)
            if key in message:
                return message
            if "ping" in message:
                self.say({"type": "pong", "sent_ns": message["ping"], "utc_ns": time.time_ns()})
            elif "tick" in message:
                self.say({"type": "waiting"})
        raise AssertionError(f"no {key}")

    def take_part(self) -> bool:
        """As an idle worker: answer all messages, keep the assignment, and return False."""
        while parts := self.hear(0):
            message = json.loads(parts[-1])["message"]
            if "ping" in message:
                self.say({"type": "pong", "sent_ns": message["ping"], "utc_ns": time.time_ns()})
            elif "assignment" in message:
                self.work = message["assignment"]
                self.say({"type": "ready"})
            elif "tick" in message and self.work:
                self.say({"type": "working", "scenario": "burst", "working": True})
            elif "tick" in message:
                self.say({"type": "waiting"})
        return False

    def hello(self) -> None:
        """As a worker: send its description."""
        self.say({"type": "hello", "host": "rogue1", "cores": [0], "version": version("pinchpoint")})


@contextmanager
def peer(kind: int, token: str | None, port: int) -> Iterator[Peer]:
    """Yield a worker (DEALER) or controller (ROUTER) with the keys of a token; None: without keys."""
    context = zmq.Context()
    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.SNDTIMEO, 2000)  # a rejected peer has no address to send to
    try:
        if kind == zmq.ROUTER:
            if token is not None:
                socket.curve_publickey, socket.curve_secretkey = wire._keys(token, wire._CONTROLLER)
                socket.curve_server = True
            socket.bind(f"tcp://127.0.0.1:{port}")
        else:
            if token is not None:
                socket.curve_publickey, socket.curve_secretkey = wire._keys(token, wire._WORKER)
                socket.curve_serverkey = wire._keys(token, wire._CONTROLLER)[0]
            socket.connect(f"tcp://127.0.0.1:{port}")
        yield Peer(socket)
    finally:
        socket.close(0)
        context.destroy(0)
