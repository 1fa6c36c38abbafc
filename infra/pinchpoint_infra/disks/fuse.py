"""The FUSE process of an emulated disk: each read and write takes the time that the model computes.

``python -m pinchpoint_infra.disks.fuse CONFIG`` with a JSON object: ``mount`` (an empty folder), ``file``
(the name of the one file there), ``backing`` (one file per column of data), ``size_bytes``, ``spec``,
``seed``, ``events`` (a file it appends JSON lines to).

It takes JSON lines on stdin, ``{"apply": true}`` or false, or ``{"speed_ratio": RATIO}``, and answers each
with one line. The model begins anew with every ``true``, and goes on at another speed with a ratio (1: its
own); without it every I/O passes at once. So it does when stdin ends, because its farm is then without a
supervisor and waits to be removed. It ends when it is unmounted, and by no signal but SIGKILL: a device lies
on it.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mfusepy

from pinchpoint_collectors.common.times import utc
from pinchpoint_infra.codec import record
from pinchpoint_infra.disks.model import DiskModel
from pinchpoint_infra.disks.raid import parts
from pinchpoint_infra.disks.record import DiskSpec

_THREADS = 512
"""The most I/Os in progress: each has a sleeping thread."""


class Delayed(mfusepy.Operations):  # type: ignore[misc]  # mfusepy is untyped
    """A file system of one file."""

    use_ns = True

    def __init__(self, config: dict[str, Any]) -> None:
        self._spec = record(DiskSpec, config["spec"])
        self._size_bytes: int = config["size_bytes"]
        self._file: str = config["file"]
        self._seed: str = config["seed"]
        self._events = Path(config["events"])
        self._backing = [os.open(path, os.O_RDWR | os.O_CREAT, 0o600) for path in config["backing"]]
        self._lock = threading.Lock()
        self._disk: DiskModel | None = None

    def apply(self, *, on: bool) -> None:
        """Apply the model from its initial state, or let all I/O pass without delay."""
        with self._lock:
            self._disk = DiskModel(self._spec, self._seed, self._happened) if on else None

    def slow_to(self, ratio: float) -> None:
        """Set the speed ratio of the model, if it applies."""
        with self._lock:
            if self._disk is not None:
                self._disk.slow_to(ratio)

    def init_with_config(self, connection: Any, config: Any) -> None:
        """Loop devices send their I/O in the background: the kernel passes on all of it at once."""
        connection.max_background = connection.congestion_threshold = _THREADS
        config.nullpath_ok = 1

    def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:  # noqa: ARG002 -- libfuse's signature
        """The root folder, and the file in it."""
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o700, "st_nlink": 2}
        return {"st_mode": stat.S_IFREG | 0o600, "st_nlink": 1, "st_size": self._size_bytes}

    def readdir(self, path: str, fh: int) -> list[str]:  # noqa: ARG002
        """The one file."""
        return [".", "..", self._file]

    def open(self, path: str, flags: int) -> int:  # noqa: ARG002
        """No state per opening."""
        return 0

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:  # noqa: ARG002
        """Store the data after the model's time."""
        wait = self._begin(offset, len(data), write=True)
        for part in parts(offset, len(data), len(self._backing)):
            os.pwrite(
                self._backing[part.column], data[part.begin : part.begin + part.size_bytes], part.offset
            )
        wait()
        return len(data)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:  # noqa: ARG002
        """Return the data; unwritten ranges are zeros."""
        wait = self._begin(offset, size, write=False)
        pieces = []
        for part in parts(offset, size, len(self._backing)):
            piece = os.pread(self._backing[part.column], part.size_bytes, part.offset)
            pieces.append(piece.ljust(part.size_bytes, b"\0"))
        wait()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def fsync(self, path: str, datasync: int, fh: int) -> int:  # noqa: ARG002
        """A write is durable when acknowledged: nothing is left to flush."""
        return 0

    def _begin(self, offset: int, size_bytes: int, *, write: bool) -> Callable[[], None]:
        """Begin an I/O; the returned function waits for its end."""
        with self._lock:
            disk = self._disk
            if disk is None:
                return lambda: None
            first, *more = disk.steps(write=write, offset=offset, size_bytes=size_bytes)
            done_at = disk.admit(time.monotonic(), first)

        def wait() -> None:
            _until(done_at)
            for step in more:
                with self._lock:
                    ends_at = disk.admit(time.monotonic(), step)
                _until(ends_at)

        return wait

    def _happened(self, backend: int, what: str) -> None:
        line = json.dumps({"time": utc(), "what": what, "backend": backend})
        with self._events.open("a", encoding="utf-8") as events:
            events.write(line + "\n")


def _until(done_at: float) -> None:
    if (left_s := done_at - time.monotonic()) > 0:
        time.sleep(left_s)


def _obey(disk: Delayed) -> None:
    for line in sys.stdin:
        match json.loads(line):
            case {"apply": on}:
                disk.apply(on=on)
            case {"speed_ratio": ratio}:
                disk.slow_to(ratio)
        sys.stdout.write(line)
        sys.stdout.flush()
    disk.apply(on=False)


def main() -> None:
    """Serve until unmounted."""
    config = json.loads(sys.argv[1])
    for ignored in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(ignored, signal.SIG_IGN)  # libfuse keeps an existing handler
    disk = Delayed(config)
    threading.Thread(target=_obey, args=(disk,), daemon=True).start()
    mfusepy.FUSE(
        disk,
        config["mount"],
        foreground=True,
        direct_io=True,
        fsname="pinchpoint",
        max_threads=_THREADS,
        max_idle_threads=_THREADS,
    )


if __name__ == "__main__":
    main()
