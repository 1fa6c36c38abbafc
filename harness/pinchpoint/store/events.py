"""Writes events.jsonl: one line per event, with a bound on repeated ones."""

from __future__ import annotations

import errno
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pinchpoint_collectors.common import legible

IN_FULL = 1_000
"""This many events of one name are written each."""
EVERY_S = 60.0
"""Those that follow share a line in this many seconds."""


class EventLog:
    """Writes events, those that come over and over as one line a minute that says how many it stands for.

    A host that answers late every second would otherwise fill the file, and the report, for hours. Such a
    line is the latest event, with ``stands_for``: how many happened since the line before it.

    Args:
        path: the file.
        clock: seconds that only rise.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        # Unbuffered: a line that did not fit is an error at once, and not again when the file is closed.
        self._file = path.open("ab", buffering=0)
        self._clock = clock
        self._written: Counter[str] = Counter()
        self._last_s: dict[str, float] = {}
        self._held: dict[str, tuple[int, Mapping[str, Any]]] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        """Take one event, its ``time`` and its name, ``event``, among the fields. Raises OSError."""
        name = event["event"]
        count = 1 + self._held.pop(name, (0, event))[0]
        now_s = self._clock()
        if self._written[name] >= IN_FULL and now_s - self._last_s[name] < EVERY_S:
            self._held[name] = count, event
        else:
            self._write(name, count, event)
            self._last_s[name] = now_s

    def close(self) -> None:
        """Write what was held back and close. Safe to call twice. Raises OSError."""
        if self._file.closed:
            return
        try:
            while self._held:
                name, (count, event) = self._held.popitem()
                self._write(name, count, event)
        finally:
            self._file.close()

    def _write(self, name: str, count: int, event: Mapping[str, Any]) -> None:
        line = {**event, "stands_for": count} if count > 1 else event
        self._append(json.dumps(legible.content(line), allow_nan=False, default=str).encode() + b"\n")
        self._written[name] += 1

    def _append(self, line: bytes) -> None:
        """The whole line, or nothing of it: what comes after a part of one would be no event either."""
        begun = os.fstat(self._file.fileno()).st_size
        if self._file.write(line) < len(line):  # a disk that has become full takes what fits
            self._file.truncate(begun)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
