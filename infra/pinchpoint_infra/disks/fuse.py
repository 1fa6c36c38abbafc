"""Runs the FUSE process of an emulated disk: each read and write takes the time of the model.

``python -m pinchpoint_infra.disks.fuse CONFIG`` takes a JSON object: ``mount`` (an empty folder), ``file``
(name of the one file in it), ``backing`` (one file per column of data), ``size_bytes``, ``spec``, ``seed``,
``events`` (a file to which the process appends JSON lines).

The process reads JSON lines on stdin and answers each with one line. ``{"apply": true}`` starts the model
from its initial state, and false stops it; without the model, I/O passes at once. ``{"speed_ratio": RATIO}``
changes the speed of the model (1: its own). When stdin ends, I/O passes at once, because the farm then has no
supervisor and waits to be removed. The process ends when it is unmounted, and ignores all signals except
SIGKILL, because a device depends on it.
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
"""Largest number of I/Os in progress. Each has a sleeping thread."""


class Delayed(mfusepy.Operations):  # type: ignore[misc]  # mfusepy is untyped
    """A file system with one file, whose I/O is delayed."""

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
        """Start the model from its initial state, or let all I/O pass without delay."""
        with self._lock:
            self._disk = DiskModel(self._spec, self._seed, self._happened) if on else None

    def slow_to(self, ratio: float) -> None:
        """Set the speed of the model, if the model applies."""
        with self._lock:
            if self._disk is not None:
                self._disk.slow_to(ratio)

    def init_with_config(self, connection: Any, config: Any) -> None:
        """Let the kernel pass on all I/O at once, because loop devices send I/O in the background."""
        connection.max_background = connection.congestion_threshold = _THREADS
        config.nullpath_ok = 1

    def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:  # noqa: ARG002 -- libfuse's signature
        """Return the attributes of the root folder or of the file."""
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o700, "st_nlink": 2}
        return {"st_mode": stat.S_IFREG | 0o600, "st_nlink": 1, "st_size": self._size_bytes}

    def readdir(self, path: str, fh: int) -> list[str]:  # noqa: ARG002
        """Return the one file."""
        return [".", "..", self._file]

    def open(self, path: str, flags: int) -> int:  # noqa: ARG002
        """Do nothing: an open file has no state."""
        return 0

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:  # noqa: ARG002
        """Store the data after the time of the model."""
        wait = self._begin(offset, len(data), write=True)
        for part in parts(offset, len(data), len(self._backing)):
            os.pwrite(
                self._backing[part.column], data[part.begin : part.begin + part.size_bytes], part.offset
            )
        wait()
        return len(data)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:  # noqa: ARG002
        """Return the data. Ranges that were never written are zeros."""
        wait = self._begin(offset, size, write=False)
        pieces = []
        for part in parts(offset, size, len(self._backing)):
            piece = os.pread(self._backing[part.column], part.size_bytes, part.offset)
            pieces.append(piece.ljust(part.size_bytes, b"\0"))
        wait()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def fsync(self, path: str, datasync: int, fh: int) -> int:  # noqa: ARG002
        """Do nothing: a write is durable when it is acknowledged."""
        return 0

    def _begin(self, offset: int, size_bytes: int, *, write: bool) -> Callable[[], None]:
        """Begin an I/O. Return a function that waits for its end."""
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
    """Serve the file system until it is unmounted."""
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
