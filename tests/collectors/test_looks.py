"""Looks at a server's sessions, whatever the driver makes of one of them."""

from __future__ import annotations

import threading

import pytest

from pinchpoint_collectors.databases.looks import Look, Watcher
from pinchpoint_collectors.errors import CollectorError


@pytest.mark.parametrize(
    "error", [CollectorError("it is gone"), UnicodeDecodeError("utf-8", b"x", 0, 1, "x")]
)
def test_a_look_that_fails_is_not_the_last_one(error: Exception) -> None:
    """Neither an error of ours nor one of the driver's ends the thread that looks."""
    looked = threading.Semaphore(0)
    failing = [error, error]

    def look() -> Look:
        if failing:
            raise failing.pop()
        looked.release()
        return Look(running=1)

    watcher = Watcher("test-looks", look, look)
    try:
        assert looked.acquire(timeout=10), "no look came after the ones that failed"
        assert len(watcher.take()) >= 2
    finally:
        watcher.stop()
