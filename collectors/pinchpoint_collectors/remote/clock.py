"""Measures the offset of a host's clock, repeatedly.

A host is asked for its time. The answer was read between the request and its arrival, so the estimate is the
middle, with half the round trip as error (Cristian 1989, "Probabilistic clock synchronization"). Of the
latest requests the one with the shortest round trip is the most exact.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pinchpoint_collectors.record import Sample

_NS = 1_000_000_000

WARN_OFFSET_S = 1.0
"""Offset in seconds above which the user is warned: the host's own logs and files no longer match the times
of the run."""

_READINGS = 30
_DRIFT_RATIO = 500e-6
"""Fastest drift between two clocks: the kernel's limit for NTP (adjtimex(2))."""


class _Observation(NamedTuple):
    """One answer: host's time - local time, half the round trip, time of arrival (all ns)."""

    offset_ns: int
    error_ns: int
    received_ns: int


class HostClock:
    """The clock of one host, once it has answered.

    Args:
        readings: number of the latest answers that count.
    """

    def __init__(self, readings: int = _READINGS) -> None:
        self._latest: deque[_Observation] = deque(maxlen=readings)

    def observe(self, sent_ns: int, host_ns: int, received_ns: int) -> None:
        """Add one answer of the host.

        An answer that arrived before its request is ignored, because the local clock was set meanwhile. An
        answer that drift cannot explain means that a clock was set, and earlier answers are forgotten.

        Args:
            sent_ns: time of the request by the local clock (UTC ns since 1970).
            host_ns: time of the host.
            received_ns: time of the answer by the local clock.
        """
        if received_ns < sent_ns:
            return
        new = _Observation(host_ns - (sent_ns + received_ns) // 2, (received_ns - sent_ns) // 2, received_ns)
        if self._latest and not _agree(self._best, new):
            self._latest.clear()
        self._latest.append(new)

    def shift(self, by_ns: int, error_ns: int) -> None:
        """Shift the known offset by an amount, because the host's clock was set.

        ``error_ns`` is the error of the amount.
        """
        moved = [
            _Observation(one.offset_ns + by_ns, one.error_ns + error_ns, one.received_ns)
            for one in self._latest
        ]
        self._latest.clear()
        self._latest.extend(moved)

    @property
    def known(self) -> bool:
        """Return whether the host has answered at least once."""
        return bool(self._latest)

    @property
    def offset_ns(self) -> int:
        """Return the host's clock - the local clock. Raises ``ValueError`` before the first answer."""
        return self._best.offset_ns

    @property
    def error_ns(self) -> int:
        """Return the error of the offset to either side. Raises ``ValueError`` before the first answer."""
        return self._best.error_ns

    def to_ours(self, host_ns: int) -> int:
        """Return a time of the host by the local clock. Raises ``ValueError`` before the first answer."""
        return host_ns - self.offset_ns

    def samples(self, time_ns: int, interval_s: float, hosts: Sequence[str], kind: str) -> Iterator[Sample]:
        """Yield ``collector.clock_offset_s`` and ``collector.clock_error_s`` of each host.

        They are null if unknown.
        """
        offset_s = self.offset_ns / _NS if self.known else None
        error_s = self.error_ns / _NS if self.known else None
        for host in hosts:
            yield Sample(time_ns, interval_s, host, "collector.clock_offset_s", kind, offset_s)
            yield Sample(time_ns, interval_s, host, "collector.clock_error_s", kind, error_s)

    def facts(self) -> dict[str, Any]:
        """Return the inventory's ``clock``: the offset at the time of the inventory."""
        return {
            "offset_s": self.offset_ns / _NS if self.known else None,
            "error_s": self.error_ns / _NS if self.known else None,
        }

    @property
    def _best(self) -> _Observation:
        if not self._latest:
            raise ValueError("the host's clock was not asked yet")
        return min(self._latest, key=lambda one: one.error_ns)


def _agree(old: _Observation, new: _Observation) -> bool:
    drift_ns = abs(new.received_ns - old.received_ns) * _DRIFT_RATIO
    return abs(new.offset_ns - old.offset_ns) <= new.error_ns + old.error_ns + drift_ns
