"""Starts the process of the live page and sends it the state of the run each second, without waiting."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Self

from pinchpoint.base.errors import FarmUnavailable, InputError
from pinchpoint.base.redact import masked
from pinchpoint.live.state import LiveBoard, Watcher
from pinchpoint.plan import Farm, Plan
from pinchpoint.run.progress import Machine, ProgressDisplay

ADDRESS = "127.0.0.1"
_EVERY_S = 1.0
_GOODBYE_S = 0.5
_ROOM_BYTES = 4 << 20


class LivePage:
    """The process of the live page, and the connection to it.

    Args:
        port: port of the page on this machine; 0: any free port.
        otlp: address to which metrics are sent; None: no metrics are sent.

    Raises:
        InputError: metrics should be sent, but the exporter is not installed.
        FarmUnavailable: another process uses the port.
    """

    def __init__(self, port: int, otlp: str | None = None) -> None:
        _check_otlp(otlp)
        try:
            listening = socket.create_server((ADDRESS, port))
        except OSError as error:
            raise FarmUnavailable(
                f"--live: port {port} of {ADDRESS} cannot be used ({error.strerror}); "
                "give another: --live=PORT"
            ) from error
        with listening:
            self.url = f"http://{ADDRESS}:{listening.getsockname()[1]}/"
            # The socket keeps message boundaries. A message that does not fit is dropped, so that the run
            # never waits.
            self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _ROOM_BYTES)
                self._ours.setblocking(False)
                given = (listening.fileno(), theirs.fileno())
                command = [sys.executable, "-m", "pinchpoint.live.server", *map(str, given), otlp or ""]
                self._process = subprocess.Popen(
                    command, pass_fds=given, stdin=subprocess.DEVNULL, start_new_session=True
                )

    def send(self, state: Mapping[str, Any]) -> None:
        """Send a state. Drop it if the socket is full."""
        message = json.dumps(state, allow_nan=False).encode()
        with suppress(OSError):
            self._ours.send(message)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """End the process of the page after half a second.

        In that time, open pages learn that the run has ended.
        """
        self._ours.close()
        try:
            self._process.wait(_GOODBYE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _check_otlp(url: str | None) -> None:
    if url is None:
        return
    if not url.startswith(("http://", "https://")):
        raise InputError(
            f"--otlp: found {url!r}; allowed: http://HOST:PORT or https://HOST:PORT, such as :4318"
        )
    try:
        result = find_spec("opentelemetry.exporter.otlp.proto.http")
    except ModuleNotFoundError:
        result = None
    if result is None:
        raise InputError("--otlp: its library is not installed; run: pip install 'pinchpoint[otel]'")


class LiveDisplay(ProgressDisplay):
    """Progress display of one run that also feeds the live page."""

    def __init__(self, board: LiveBoard, page: LivePage, farm: Farm, plan: Plan) -> None:
        super().__init__(board)
        self._page = page
        self._watcher = Watcher(farm, plan, board)
        self._sent_s = 0.0
        self._at: tuple[str, float | None] = ("preparing", None)

    def say(self, sentence: str) -> None:
        super().say(sentence)
        self._send(masked(sentence))

    def watch(self, machines: Sequence[Machine], work: Mapping[str, int]) -> None:
        super().watch(machines, work)
        self._watcher.machines = machines

    def tick(self, phase: str, left_s: float) -> None:
        super().tick(phase, left_s)
        self._at = phase, left_s
        if time.monotonic() - self._sent_s >= _EVERY_S:
            self._send("")

    def end_live(self) -> None:
        super().end_live()
        if self._at[1] is not None:
            self._at = "the load has ended", None

    def _send(self, note: str) -> None:
        self._sent_s = time.monotonic()
        self._page.send(self._watcher.state(*self._at, note))
