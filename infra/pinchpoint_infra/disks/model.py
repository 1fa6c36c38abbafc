"""Calculates when an I/O of an emulated disk ends. The functions are pure: the clock is an argument."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from pinchpoint_infra.disks.raid import CHUNK_BYTES, RaidLayout, Step
from pinchpoint_infra.disks.record import Device, DiskSpec

TOLERANCE_S = 0.01
"""Longest idle time in seconds that is made up for, as by a regulator with time slices."""
CACHED_S = 0.0003
"""Time of an I/O served by the host's cache, in seconds."""
RESUME_RATIO = 0.01
"""Share of the credits that must be back before bursting begins again, so that it does not flicker."""
_DRIFT_KEPT = 0.8

Say = Callable[[str], None]


@dataclass(slots=True)
class CellRate:
    """Limits a rate by the generic cell rate algorithm (ITU-T I.371). The rate is exact over any backlog."""

    per_s: float
    next_at: float = -math.inf

    def admit(self, now: float, amount: float, speed: float) -> float:
        """Return when an I/O of a given size may begin. ``speed`` multiplies the rate."""
        earliest = max(now, self.next_at - TOLERANCE_S)
        self.next_at = max(now, self.next_at) + amount / (self.per_s * speed)
        return earliest


@dataclass(slots=True)
class CreditRate:
    """Limits a rate with credits, spent at the burst rate and earned at the base rate, as Azure describes it.

    Full credits are ``(burst - base) x credit_s``. At a rate above the base they last for credits ÷ (rate -
    base) seconds.
    """

    base: CellRate
    burst: CellRate
    full: float
    left: float = field(init=False)
    since: float = -math.inf
    exhausted: bool = False

    def __post_init__(self) -> None:
        self.left = self.full

    def admit(self, now: float, amount: float, speed: float, say: Say) -> float:
        """Return when an I/O may begin (see ``CellRate.admit``)."""
        if self.exhausted:
            # Waiting I/O uses the base rate, so only an unused base rate earns credits.
            idle_s = max(0.0, now - self.base.next_at)
            self.left += idle_s * self.base.per_s
            if self.left > RESUME_RATIO * self.full:
                self.exhausted = False
                self.since = self.burst.next_at = now
                say("burst_credits_again")
        if not self.exhausted:
            earned = (now - self.since) * self.base.per_s if self.since > -math.inf else 0.0
            self.left = min(self.full, self.left + earned) - amount
            self.since = now
            if self.left >= 0:
                return self.burst.admit(now, amount, speed)
            self.exhausted, self.left = True, 0.0
            self.base.next_at = now
            say("burst_credits_exhausted")
        return self.base.admit(now, amount, speed)


@dataclass(slots=True)
class Regulated:
    """One limit of a disk.

    Attributes:
        way: direction: ``read``, ``write`` or None for both.
        of: limited quantity: ``io`` or ``bytes``.
    """

    way: str | None
    of: str
    rate: CellRate | CreditRate


class Backend:
    """One disk: first its limits, then the device, then the latency of the path.

    Args:
        spec: specification of the disk.
        random: generator of all random values.
        say: receives the names of events (``burst_credits_exhausted``, ``warmed_up``).

    Attributes:
        pace_ratio: speed: factor of limits and device, and divisor of the path's latency.
    """

    def __init__(self, spec: DiskSpec, random: Random, say: Say) -> None:
        self._spec = spec
        self._random = random
        self._say = say
        self._caps = list(_caps(spec))
        self._begun: float | None = None
        self._warm = spec.warm_up is None
        self.pace_ratio = 1.0
        self._free_at = -math.inf
        self._next_offset = -1
        self._drift = 0.0
        self._drift_at = -math.inf

    def admit(self, now: float, *, write: bool, offset: int, size_bytes: int) -> float:
        """Return when an I/O that arrives now ends, in seconds of the same monotonic clock."""
        speed = self._speed(now) * self.pace_ratio
        units = 1 if self._spec.io_unit_bytes is None else -(-size_bytes // self._spec.io_unit_bytes)
        begins = now
        for cap in self._caps:
            if cap.way in (None, "write" if write else "read"):
                amount = units if cap.of == "io" else size_bytes
                begins = max(begins, self._admit(cap.rate, now, amount, speed))
        if self._spec.device:
            begins = self._served(self._spec.device, begins, offset, size_bytes, speed)
        return begins + self._on_the_way(speed)

    def _admit(self, rate: CellRate | CreditRate, now: float, amount: float, speed: float) -> float:
        if isinstance(rate, CreditRate):
            return rate.admit(now, amount, speed, self._say)
        return rate.admit(now, amount, speed)

    def _speed(self, now: float) -> float:
        if self._begun is None:
            self._begun = now
        warm_up = self._spec.warm_up
        if self._warm or warm_up is None:
            return 1.0
        passed = (now - self._begun) * self._spec.time_scale / warm_up.over_s
        if passed >= 1:
            self._warm = True
            self._say("warmed_up")
            return 1.0
        return warm_up.from_ratio + (1 - warm_up.from_ratio) * passed

    def _served(self, device: Device, begins: float, offset: int, size_bytes: int, speed: float) -> float:
        mean_s = device.sequential_s if offset == self._next_offset else device.service_s
        self._next_offset = offset + size_bytes
        # parameter of a lognormal distribution with this spread
        sigma = math.sqrt(math.log1p(device.spread_ratio**2))
        takes_s = mean_s * self._random.lognormvariate(-(sigma**2) / 2, sigma)
        takes_s *= math.exp(self._wander(begins, device.spread_ratio / 3))
        self._free_at = max(begins, self._free_at) + takes_s / speed
        return self._free_at

    def _wander(self, now: float, deviation: float) -> float:
        """Return the slow variation of the device's speed: a first-order autoregression, one value per s."""
        if now - self._drift_at >= 1:
            shock = self._random.gauss(0, deviation * math.sqrt(1 - _DRIFT_KEPT**2))
            first = self._drift_at == -math.inf
            self._drift = self._random.gauss(0, deviation) if first else _DRIFT_KEPT * self._drift + shock
            self._drift_at = now
        return self._drift

    def _on_the_way(self, speed: float) -> float:
        more_s = self._random.expovariate(1 / self._spec.jitter_s) if self._spec.jitter_s else 0.0
        return (self._spec.latency_s + more_s) / speed


class HostCache:
    """The host's cache of a disk. It contains the chunks that were read last. Writes bypass it.

    Args:
        size_bytes: size of the cache in bytes; 0: no cache.
    """

    def __init__(self, size_bytes: int) -> None:
        self._most = size_bytes // CHUNK_BYTES
        self._chunks: OrderedDict[int, None] = OrderedDict()

    def read(self, offset: int, size_bytes: int) -> bool:
        """Return whether the cache contains all of a range. Afterwards it does."""
        if not self._most:
            return False
        chunks = range(offset // CHUNK_BYTES, -(-(offset + size_bytes) // CHUNK_BYTES))
        kept = all(chunk in self._chunks for chunk in chunks)
        for chunk in chunks:
            self._chunks[chunk] = None
            self._chunks.move_to_end(chunk)
        while len(self._chunks) > self._most:
            self._chunks.popitem(last=False)
        return kept


class DiskModel:
    """One disk, or an array of several disks, behind the host's cache.

    Args:
        spec: specification of each disk, with the number of disks in the array.
        seed: seed for the random generators; each disk has its own.
        say: receives the number of the disk and the event.
    """

    def __init__(self, spec: DiskSpec, seed: str, say: Callable[[int, str], None]) -> None:
        self._backends = [
            Backend(spec, Random(f"{seed}:{number}"), lambda what, number=number: say(number, what))  # type: ignore[misc]  # noqa: S311 -- mypy cannot type a lambda's default; no secret
            for number in range(spec.stripes)
        ]
        self._layout = RaidLayout(spec.raid, spec.stripes)
        self._cache = HostCache(spec.host_cache_bytes)

    def slow_to(self, ratio: float) -> None:
        """Set the speed from now on. Waiting I/O and credits do not change."""
        for backend in self._backends:
            backend.pace_ratio = ratio

    def steps(self, *, write: bool, offset: int, size_bytes: int) -> tuple[Step, ...]:
        """Return the disk steps of an I/O. Each step begins when the previous one ends.

        A read from the host's cache is one step without disk I/Os.
        """
        if not write and self._cache.read(offset, size_bytes):
            return ((),)
        return self._layout.steps(write=write, offset=offset, size_bytes=size_bytes)

    def admit(self, now: float, step: Step) -> float:
        """Return when a step that begins now ends: at the end of its last I/O."""
        if not step:
            return now + CACHED_S
        return max(
            self._backends[one.disk].admit(now, write=one.write, offset=one.offset, size_bytes=one.size_bytes)
            for one in step
        )


def _caps(spec: DiskSpec) -> Iterator[Regulated]:
    burst = spec.burst
    if spec.iops is not None:
        yield Regulated(None, "io", _rate(spec, spec.iops, burst.iops if burst else None))
    if spec.bytes_per_s is not None:
        yield Regulated(None, "bytes", _rate(spec, spec.bytes_per_s, burst.bytes_per_s if burst else None))
    apart = (
        ("read", "io", spec.read_iops),
        ("write", "io", spec.write_iops),
        ("read", "bytes", spec.read_bytes_per_s),
        ("write", "bytes", spec.write_bytes_per_s),
    )
    yield from (Regulated(way, of, CellRate(rate)) for way, of, rate in apart if rate is not None)


def _rate(spec: DiskSpec, base: float, burst: float | None) -> CellRate | CreditRate:
    credit_s = spec.burst.credit_s if spec.burst else None
    if burst is None or burst <= base:  # only the other limit has a burst
        return CellRate(base)
    if credit_s is None:
        return CellRate(burst)
    return CreditRate(CellRate(base), CellRate(burst), (burst - base) * credit_s / spec.time_scale)
