"""How evenly a disk's rate moves, told from a second's readings: of I/Os that resemble each other."""

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
    """The same seconds of a log, with what is read of them."""
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
    """A log with one write outstanding, each of which takes a time that spreads by so much around 1/310 s.

    Every sixth second the file system commits, too, in larger writes: 292 are done, 6 times as large on
    average, and 1.45 are outstanding.
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
    """A sixth of the seconds lies outside of the middle two thirds of all, and inside of none that tell."""
    found = disturbed(0.0, seed)
    assert found.spread == 0.0
    assert found.flat
    assert found.by_large


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_nor_do_they_make_a_device_even(seed: int) -> None:
    """Its times spread by 40 %, in the seconds without larger I/Os, too."""
    assert not disturbed(0.4, seed).flat


def test_what_follows_is_still_seen_to() -> None:
    """As many reads as users have time for, each as long as any: more outstanding is more done."""
    random = np.random.default_rng(3)
    outstanding = np.round(random.uniform(2, 4, SECONDS), 3)
    io = np.round(outstanding / 0.02)
    found = io_response(io, io * PAGE, outstanding, np.ones(SECONDS), 1.0)
    assert found.follows


def test_a_fast_device_is_as_even_as_a_regulator_and_the_verdict_says_so() -> None:
    """A thousand I/Os a second, whose times spread by 30 %: by their number alone a second spreads by 1 %."""
    device = reads(Spindle(0.00095, 0.3), length(40), 16, every_s=3)
    found = analyse(data(device, 16).run()).bottleneck
    assert found is not None
    assert (found.kind, found.confidence) == ("disk_cap", "low")
    assert "a plain device can also be this steady" in found.why_not_more[0]


def test_a_fast_limit_is_evener_than_a_device() -> None:
    """A thousand a second, let through one by one."""
    found = analyse(data(reads(Capped(1000), length(40), 16, every_s=3), 16).run()).bottleneck
    assert found is not None
    assert (found.kind, found.confidence) == ("disk_cap", "medium"), found.why_not_more


def test_one_user_s_pauses_do_not_make_latency_a_declared_limit() -> None:
    """A write takes 2.8 ms, its user 0.4: 310 a second; 357 are declared, as many as without the pauses."""
    build = log(commits(Distant(0.0023, 0.0005), length(60), users=1), users=1)
    for host in build.manifest["farm"]["tiers"]["sql"]["hosts"].values():
        host["disks"]["log"].update(limits={"iops": 357.0}, resolved_limits={"iops": 357.0})
    found = analyse(build.run()).bottleneck
    assert found is not None
    assert found.kind == "disk_latency" or found.confidence == "low", found


def test_that_larger_ios_take_longer_makes_no_limit_for_sure() -> None:
    """One write at a time, each 3.2 ms, and what the file system commits beside every five seconds."""
    build = log(disturbed_log(), users=8)
    found = analyse(build.run()).bottleneck
    assert found is not None
    assert found.kind == "disk_latency" or found.confidence == "low"
