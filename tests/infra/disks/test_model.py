"""Tests of the time model of emulated disks with a simulated clock."""

from __future__ import annotations

import heapq
import statistics
from dataclasses import asdict
from random import Random

import pytest

from pinchpoint_infra.catalogue import BurstAllowance
from pinchpoint_infra.codec import record
from pinchpoint_infra.disks import Device, DiskSpec, SlowStart
from pinchpoint_infra.disks.model import CACHED_S, DiskModel
from pinchpoint_infra.disks.raid import Step

PAGE = 8192
THINK_S = 0.0001


class Driver:
    """Keeps ``depth`` I/Os in flight on a disk and records when each began and ended."""

    def __init__(self, spec: DiskSpec) -> None:
        self.happened: list[tuple[float, int, str]] = []
        self.now = 0.0
        self.disk = DiskModel(
            spec, "seed", lambda backend, what: self.happened.append((self.now, backend, what))
        )
        self.random = Random(1)
        self.done: list[tuple[float, float, bool]] = []

    def run(
        self,
        seconds: float,
        depth: int,
        *,
        size_bytes: int = PAGE,
        writes: float = 1.0,
        sequential: bool = False,
        think_s: float = THINK_S,
    ) -> Driver:
        """Run for some simulated seconds; each I/O starts ``think_s`` after the previous one has ended."""
        end = self.now + seconds
        waiting: list[tuple[float, int]] = [(self.now + number * 1e-6, number) for number in range(depth)]
        heapq.heapify(waiting)
        rest: dict[int, tuple[float, bool, tuple[Step, ...]]] = {}  # remaining steps of the I/Os in flight
        offset = 0
        while waiting[0][0] < end:
            self.now, number = heapq.heappop(waiting)
            if number in rest:
                begun, write, steps = rest.pop(number)
            else:
                write = self.random.random() < writes
                offset = offset + size_bytes if sequential else PAGE * self.random.randrange(2**18)
                begun = self.now
                steps = self.disk.steps(write=write, offset=offset, size_bytes=size_bytes)
            done = self.disk.admit(self.now, steps[0])
            if steps[1:]:
                rest[number] = begun, write, steps[1:]
                heapq.heappush(waiting, (done, number))
                continue
            self.done.append((begun, done, write))
            heapq.heappush(waiting, (done + think_s, number))
        self.now = end
        return self

    def rate(self, since: float = 0.0, *, write: bool | None = None) -> float:
        """Return I/Os per second that ended after ``since``."""
        ended = [at for _, at, way in self.done if since <= at < self.now and write in (None, way)]
        return len(ended) / (self.now - since)

    def mean_s(self, since: float = 0.0) -> float:
        """Return the mean time of an I/O, in seconds."""
        return statistics.fmean(done - begun for begun, done, _ in self.done if begun >= since)

    def per_second(self) -> list[int]:
        """Return the I/Os of each whole second, without the first second."""
        counts = [0] * int(self.now)
        for _, done, _ in self.done:
            if done < len(counts):
                counts[int(done)] += 1
        return counts[1:]


@pytest.mark.parametrize("iops", [40, 310, 730, 2000])
@pytest.mark.parametrize("depth", [1, 4, 32])
def test_a_cap_is_kept_and_reached_at_any_depth(iops: float, depth: int) -> None:
    """The rate is the limit at any queue depth, also with one I/O at a time."""
    driver = Driver(DiskSpec(iops=iops)).run(20, depth)
    assert driver.rate(since=1) == pytest.approx(iops, rel=0.01)
    assert statistics.pstdev(driver.per_second()) / iops < 0.02 + 1 / iops
    assert driver.mean_s(since=1) == pytest.approx(depth / iops - THINK_S, rel=0.05)


def test_reads_and_writes_share_a_cap_or_have_their_own() -> None:
    together = Driver(DiskSpec(iops=500)).run(20, 8, writes=0.5)
    assert together.rate(since=1) == pytest.approx(500, rel=0.01)
    apart = Driver(DiskSpec(read_iops=900, write_iops=300)).run(20, 32, writes=0.5)
    assert apart.rate(since=1, write=True) == pytest.approx(300, rel=0.02)
    assert apart.rate(since=1, write=False) <= 900


def test_a_byte_cap_counts_bytes() -> None:
    driver = Driver(DiskSpec(bytes_per_s=60e6)).run(20, 8, size_bytes=128 * 1024)
    assert driver.rate(since=1) * 128 * 1024 == pytest.approx(60e6, rel=0.01)


def test_an_io_counts_as_one_per_unit_begun() -> None:
    """An I/O counts as one per unit begun: 500 units/s of 8 KiB are 62.5 I/Os of 64 KiB, or 250 of 9 KiB."""
    assert Driver(DiskSpec(iops=500, io_unit_bytes=PAGE)).run(20, 8, size_bytes=65536).rate(
        1
    ) == pytest.approx(62.5, rel=0.02)
    assert Driver(DiskSpec(iops=500, io_unit_bytes=PAGE)).run(20, 8, size_bytes=9216).rate(
        1
    ) == pytest.approx(250, rel=0.02)


@pytest.mark.parametrize("depth", [1, 8, 64])
def test_a_latency_floor_holds_at_any_depth(depth: int) -> None:
    """With a minimum latency, the rate grows with the queue depth and the latency does not."""
    driver = Driver(DiskSpec(latency_s=0.035)).run(10, depth, think_s=0)
    assert min(done - begun for begun, done, _ in driver.done) > 0.0349999
    assert driver.mean_s() == pytest.approx(0.035)
    assert driver.rate(since=1) == pytest.approx(depth / 0.035, rel=0.02)


def test_jitter_comes_on_top_of_the_floor() -> None:
    driver = Driver(DiskSpec(latency_s=0.001, jitter_s=0.0005)).run(10, 4)
    times = [done - begun for begun, done, _ in driver.done]
    assert min(times) > 0.000999
    assert statistics.fmean(times) == pytest.approx(0.0015, rel=0.05)
    assert statistics.pstdev(times) == pytest.approx(0.0005, rel=0.1)


def test_a_floor_and_a_cap_do_not_add_up() -> None:
    """Below the limit the latency is the minimum; at the limit an I/O waits for the limit before it."""
    spec = DiskSpec(iops=500, latency_s=0.01)
    assert Driver(spec).run(10, 2).mean_s(since=1) == pytest.approx(0.01, rel=0.05)
    pressed = Driver(spec).run(20, 32)
    assert pressed.rate(since=1) == pytest.approx(500, rel=0.01)
    assert pressed.mean_s(since=1) == pytest.approx(32 / 500, rel=0.05)


def test_credits_last_as_long_as_azure_says() -> None:
    """A P10's full credits, (3,500 - 500) x 1,800 s = 5.4 million I/Os, last 30 s at 60 times the speed."""
    spec = DiskSpec(iops=500, burst=BurstAllowance(3500, 170e6, 1800), time_scale=60)
    driver = Driver(spec).run(50, 64)
    ((at, _, what),) = driver.happened
    assert what == "burst_credits_exhausted"
    assert at == pytest.approx(30, rel=0.02)
    counts = driver.per_second()
    assert statistics.fmean(counts[:27]) == pytest.approx(3500, rel=0.01)
    assert statistics.fmean(counts[32:]) == pytest.approx(500, rel=0.01)


def test_credits_at_half_the_burst_last_longer_and_come_back() -> None:
    """Credits last for credits ÷ (rate - baseline) seconds, and an idle disk earns its baseline."""
    spec = DiskSpec(iops=100, burst=BurstAllowance(1000, 1e9, 600), time_scale=60)  # credits: 9,000 I/Os
    driver = Driver(spec).run(40, 1, think_s=1 / 400 - 1 / 1000)  # about 400 I/Os per second
    exhausted = next(at for at, _, what in driver.happened if what == "burst_credits_exhausted")
    used = sum(1 for begun, _, _ in driver.done if begun <= exhausted)
    assert used - 100 * exhausted == pytest.approx(9000, rel=0.02)
    driver.now += 45  # half of the credits are earned again
    before = len(driver.happened)
    driver.run(30, 64)
    assert [what for _, _, what in driver.happened[before:]] == [
        "burst_credits_again",
        "burst_credits_exhausted",
    ]
    again = driver.happened[-1][0] - (driver.happened[before][0])
    assert again == pytest.approx(4500 / 900, rel=0.1)


def test_a_burst_of_one_cap_leaves_the_other_as_it_is() -> None:
    """As with gp2, a burst of IOPS does not change the byte limit; a limit without burst has no credits."""
    spec = DiskSpec(iops=300, bytes_per_s=128e6, burst=BurstAllowance(3000, 128e6, 2000), time_scale=60)
    driver = Driver(spec).run(10, 64)
    assert driver.happened == []
    assert driver.rate(since=1) == pytest.approx(3000, rel=0.01)


def test_a_warm_up_rises_to_full_speed() -> None:
    """A warm-up rises from 30 % to full speed over 30 minutes, here 30 seconds at 60 times the speed."""
    spec = DiskSpec(iops=1000, warm_up=SlowStart(0.3, 1800), time_scale=60)
    driver = Driver(spec).run(45, 16)
    counts = driver.per_second()
    assert counts[0] == pytest.approx(300 + 700 / 20, rel=0.1)
    assert counts[13] == pytest.approx(650, rel=0.1)
    assert statistics.fmean(counts[31:]) == pytest.approx(1000, rel=0.01)
    assert [what for _, _, what in driver.happened] == ["warmed_up"]


def test_a_host_s_cache_answers_what_was_read_before() -> None:
    """Repeated reads come from the host cache without a limit; writes do not; the oldest entry is evicted."""
    model = DiskModel(DiskSpec(bytes_per_s=2**20, host_cache_bytes=2 * 2**20), "s", lambda *_: None)

    def takes(now: float, offset: int, *, write: bool = False) -> float:
        (step,) = model.steps(write=write, offset=offset, size_bytes=2**20)
        return model.admit(now, step) - now

    assert takes(0, 0) == 0  # the first I/O starts at once
    assert takes(0, 2**20) == pytest.approx(1, abs=0.02)
    assert takes(10, 0) == pytest.approx(CACHED_S)
    assert takes(20, 0, write=True) == 0
    assert takes(20, 0, write=True) == pytest.approx(1, abs=0.02)
    assert takes(30, 0) == pytest.approx(CACHED_S)
    takes(40, 2 * 2**20)  # the third MiB evicts the second, which was read longest ago
    assert takes(40, 2**20) == pytest.approx(1, abs=0.02)


def test_a_device_serves_one_at_a_time_and_unevenly() -> None:
    """A device with one server has the same rate at any queue depth, and its rate varies by the second."""
    spec = DiskSpec(device=Device(0.008, 0.0005))
    one, many = Driver(spec).run(60, 1, think_s=0), Driver(spec).run(60, 32, think_s=0)
    assert many.rate(since=1) == pytest.approx(125, rel=0.15)
    assert one.rate(since=1) == pytest.approx(many.rate(since=1), rel=0.2)
    assert many.mean_s(since=2) == pytest.approx(32 * one.mean_s(since=2), rel=0.2)
    counts = many.per_second()
    assert statistics.pstdev(counts) / statistics.fmean(counts) > 0.04
    assert Driver(spec).run(10, 1, sequential=True, think_s=0).rate(1) > 8 * one.rate(1)


@pytest.mark.parametrize("stripes", [2, 4, 7])
def test_stripes_are_backends_of_their_own(stripes: int) -> None:
    """Each stripe is a backend of its own: all are busy at high queue depth, one at depth 1."""
    wide = Driver(DiskSpec(iops=100, stripes=stripes)).run(20, 32 * stripes)
    assert wide.rate(since=1) == pytest.approx(100 * stripes, rel=0.05)
    narrow = DiskSpec(latency_s=0.01, stripes=stripes)
    assert Driver(narrow).run(10, 1, think_s=0).rate(since=1) == pytest.approx(100, rel=0.02)


def test_a_spec_survives_the_way_to_the_supervisor() -> None:
    spec = DiskSpec(
        iops=5,
        burst=BurstAllowance(9, 8, 7),
        device=Device(1, 2),
        warm_up=SlowStart(0.5, 3),
        stripes=4,
        raid=6,
    )
    assert record(DiskSpec, asdict(spec)) == spec
