"""How evenly a disk's rate varies, from readings of one second each with similar I/Os."""

from __future__ import annotations

import numpy as np
import pytest
from harness.analysis.disks import Capped, Distant, Seconds, Spindle, commits, reads
from harness.analysis.test_disks import data, log
from harness.analysis.verdicts import length

from pinchpoint.analysis import analyse
from pinchpoint.analysis.resources.disk.rate_response import RateResponse, io_response

SECONDS = 60
RATE = 310
PAGE = 8192


def disturbed_log() -> Seconds:
    """Return simulated readings of a log with the same pattern as ``disturbed``."""
    random = np.random.default_rng(5)
    found = Seconds(length(60))
    found.writes = np.round(random.normal(RATE, 1.0, found.length))
    found.time_s = random.normal(0.99, 0.002, found.length)
    found.bytes = np.asarray(PAGE * found.writes)
    committing = np.arange(found.length) % 6 == 3
    found.writes[committing], found.time_s[committing] = 292.0, 1.45
    found.bytes[committing] = 6 * PAGE * 292.0
    found.busy = np.full(found.length, 0.99)
    found.operations = np.asarray(2.5 * found.writes)
    found.operation_s = np.asarray(8.0 - random.random(found.length) / 10)
    return found


def disturbed(spread: float, seed: int) -> RateResponse:
    """Return the rate response of a log with one write outstanding; times spread by ``spread``.

    Every sixth second has larger writes by the file system: 292 I/Os, six times as large on average, with
    1.45 outstanding.
    """
    random = np.random.default_rng(seed)
    io = np.round(random.normal(RATE, spread * RATE**0.5, SECONDS))
    outstanding = np.round(random.normal(0.99, 0.002, SECONDS), 3)
    size = PAGE * io
    committing = np.arange(SECONDS) % 6 == 3
    io[committing], outstanding[committing] = 292.0, 1.45
    size[committing] = 6 * PAGE * 292.0
    return io_response(io, size, outstanding, np.ones(SECONDS), 1.0)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_few_larger_ios_do_not_make_a_regulator_uneven(seed: int) -> None:
    """Larger I/Os in a sixth of the seconds do not make a regulator look uneven."""
    found = disturbed(0.0, seed)
    assert found.spread == 0.0
    assert found.flat
    assert found.by_large


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_nor_do_they_make_a_device_even(seed: int) -> None:
    """Larger I/Os in a sixth of the seconds do not make a device with 40 % spread look even."""
    assert not disturbed(0.4, seed).flat


def test_what_follows_is_still_seen_to() -> None:
    """A rate that is proportional to the outstanding I/O is recognised as following it."""
    random = np.random.default_rng(3)
    outstanding = np.round(random.uniform(2, 4, SECONDS), 3)
    io = np.round(outstanding / 0.02)
    found = io_response(io, io * PAGE, outstanding, np.ones(SECONDS), 1.0)
    assert found.follows


def test_a_fast_device_is_as_even_as_a_regulator_and_the_verdict_says_so() -> None:
    """A device of 1,000 IOPS is as even as a regulator, so its cap has low confidence."""
    device = reads(Spindle(0.00095, 0.3), length(40), 16, every_s=3)
    found = analyse(data(device, 16).run()).bottleneck
    assert found is not None
    assert (found.kind, found.confidence) == ("disk_cap", "low")
    assert "a plain device can also be this steady" in found.why_not_more[0]


def test_a_fast_limit_is_evener_than_a_device() -> None:
    """A regulator of 1,000 IOPS is more even than a device: a cap of medium confidence."""
    found = analyse(data(reads(Capped(1000), length(40), 16, every_s=3), 16).run()).bottleneck
    assert found is not None
    assert (found.kind, found.confidence) == ("disk_cap", "medium"), found.why_not_more


def test_one_user_s_pauses_do_not_make_latency_a_declared_limit() -> None:
    """A user's pauses of 0.4 ms do not turn latency near a declared limit into a cap."""
    build = log(commits(Distant(0.0023, 0.0005), length(60), users=1), users=1)
    for host in build.manifest["farm"]["tiers"]["sql"]["hosts"].values():
        host["disks"]["log"].update(limits={"iops": 357.0}, resolved_limits={"iops": 357.0})
    found = analyse(build.run()).bottleneck
    assert found is not None
    assert found.kind == "disk_latency" or found.confidence == "low", found


def test_that_larger_ios_take_longer_makes_no_limit_for_sure() -> None:
    """Larger I/Os that take longer do not name a cap with more than low confidence."""
    build = log(disturbed_log(), users=8)
    found = analyse(build.run()).bottleneck
    assert found is not None
    assert found.kind == "disk_latency" or found.confidence == "low"
