"""The session sampler goes on whatever the driver makes of one sample."""

from __future__ import annotations

import threading

import pytest

from pinchpoint_collectors.databases.session_sampler import SessionSample, SessionSampler
from pinchpoint_collectors.errors import CollectorError


@pytest.mark.parametrize(
    "error", [CollectorError("it is gone"), UnicodeDecodeError("utf-8", b"x", 0, 1, "x")]
)
def test_a_sample_that_fails_is_not_the_last_one(error: Exception) -> None:
    """Neither an error of ours nor one of the driver's ends the thread."""
    sampled = threading.Semaphore(0)
    failing = [error, error]

    def sample() -> SessionSample:
        if failing:
            raise failing.pop()
        sampled.release()
        return SessionSample(running=1)

    sampler = SessionSampler("test-sessions", sample, sample)
    try:
        assert sampled.acquire(timeout=10), "no sample came after the ones that failed"
        assert len(sampler.take()) >= 2
    finally:
        sampler.stop()
