"""Runs a process such as ssh with two pipes. Each read has a timeout."""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

_CHUNK_BYTES = 1 << 18
_PIPE_BYTES = 1 << 20
"""Size of the pipe in bytes. It must take the output between two readings; otherwise the sender is
delayed."""
_END_S = 1.0


class PipedProcess:
    """A running process whose output is collected in pieces. Only one thread may use it.

    Args:
        command: program and its arguments. The process gets no terminal and no signals of this process.
        environment: environment variables of the process; None: those of this process.

    Raises:
        OSError: the process cannot be started (``FileNotFoundError``: the program is not installed).
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            bufsize=0,
            start_new_session=True,
        )
        self.received_bytes = 0
        self.errors = ""
        """Output on standard error that was not read yet."""
        self._out = bytearray()
        self._selector = selectors.DefaultSelector()
        for stream, take in (
            (self._process.stdout, self._take_out),
            (self._process.stderr, self._take_error),
        ):
            assert stream is not None  # noqa: S101 - pipes were asked for; shows the type checker
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ, take)
        _widen(self._process.stdout)

    def pump(self, timeout_s: float) -> bool:
        """Read all available output, and wait for it if there is none. Return whether output came."""
        came = False
        if not self._selector.get_map():
            return False
        for key, _ in self._selector.select(timeout_s):
            came |= self._drain(key)
        return came

    def pieces(self, end: bytes = b"\n") -> Iterator[str]:
        """Return standard output in pieces that end with ``end``, which is removed.

        An incomplete piece is kept for the next call.
        """
        while (result := self._out.find(end)) >= 0:
            piece = bytes(self._out[:result])
            del self._out[: result + len(end)]
            yield piece.decode("utf-8", "replace")

    @property
    def rest(self) -> str:
        """Return the last line of standard output without a line end."""
        return self._out.decode("utf-8", "replace")

    def error_lines(self) -> list[str]:
        """Remove and return the complete lines of standard error."""
        whole, newline, rest = self.errors.rpartition("\n")
        if not newline:
            return []
        self.errors = rest
        return whole.splitlines()

    def write(self, text: str, until_s: float | None = None) -> bool:
        """Write to the process. Returns False if its input is closed, or not read until a monotonic time."""
        assert self._process.stdin is not None  # noqa: S101 - a pipe was asked for
        data = text.encode()
        try:
            if until_s is not None:
                data = self._within(data, self._process.stdin.fileno(), until_s)
            else:
                self._process.stdin.write(data)
                data = b""
        # The process has ended, or its input was closed here: `ended` reports this.
        except (BrokenPipeError, ValueError):
            return False
        return not data

    @staticmethod
    def _within(data: bytes, descriptor: int, until_s: float) -> bytes:
        """Write what the pipe accepts until a time. Return the rest."""
        os.set_blocking(descriptor, False)
        room = select.poll()
        room.register(descriptor, select.POLLOUT)
        try:
            while data and room.poll(max(0.0, until_s - time.monotonic()) * 1000):
                with contextlib.suppress(BlockingIOError):
                    data = data[os.write(descriptor, data) :]
        finally:
            os.set_blocking(descriptor, True)
        return data

    @property
    def pid(self) -> int:
        """Return the id of the process on this machine."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Return whether the process has closed both streams and all of their output is read."""
        return not self._selector.get_map()

    def status(self) -> int:
        """Return the exit status of a process that has ended. A process that is still running is killed."""
        try:
            return self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def close(self) -> None:
        """End the process. Its input is closed first, so that it can end normally. Safe to call twice."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        end = time.monotonic() + _END_S
        # The process cannot end while its output is not read.
        while not self.ended and time.monotonic() < end:
            self.pump(end - time.monotonic())
        if self._process.poll() is None:
            self._process.terminate()
        self.status()
        self._selector.close()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _drain(self, key: selectors.SelectorKey) -> bool:
        came = False
        while True:
            try:
                chunk = os.read(key.fd, _CHUNK_BYTES)
            except BlockingIOError:
                return came
            if not chunk:
                self._selector.unregister(key.fileobj)
                return came
            came = True
            self.received_bytes += len(chunk)
            key.data(chunk)

    def _take_out(self, chunk: bytes) -> None:
        self._out += chunk

    def _take_error(self, chunk: bytes) -> None:
        self.errors += chunk.decode("utf-8", "replace")


def _widen(stream: IO[bytes] | None) -> None:
    """Enlarge the pipe, if this system can."""
    if sys.platform != "linux" or stream is None:
        return
    import fcntl  # noqa: PLC0415 - only here: Windows has none

    # The user's limit for pipes is reached: the default of 64 KiB stays.
    with contextlib.suppress(PermissionError):
        fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
