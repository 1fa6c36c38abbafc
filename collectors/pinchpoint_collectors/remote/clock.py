"""Measures the offset of a host's clock, repeatedly.

A host is asked for its time; its answer is somewhere between our question and our reading of the answer, so
in the middle give or take half the round trip (Cristian 1989, "Probabilistic clock synchronization"). Of the
latest questions the one with the shortest round trip knows best.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pinchpoint_collectors.record import Sample

_NS = 1_000_000_000

WARN_OFFSET_S = 1.0
"""Beyond this a host's own logs and files no longer fit the run's times: a person is warned."""

_READINGS = 30
_DRIFT_RATIO = 500e-6
"""The most two clocks drift apart: the kernel lets NTP slew no faster (adjtimex(2))."""


class _Observation(NamedTuple):
    """One answer: host minus ours, half the round trip, when it came (all ns)."""

    offset_ns: int
    error_ns: int
    received_ns: int


class HostClock:
    """The clock of one host, if known.

    Args:
        readings: how many of the latest observations count.
    """

    def __init__(self, readings: int = _READINGS) -> None:
        self._latest: deque[_Observation] = deque(maxlen=readings)

    def observe(self, sent_ns: int, host_ns: int, received_ns: int) -> None:
        """Take one answer of the host.

        One that came before it was asked for is left out: our own clock was set meanwhile. One that no drift
        can bring together with those before it means that a clock was set: those before are forgotten.

        Args:
            sent_ns: when the host was asked, by our clock (UTC ns since 1970).
            host_ns: what its clock said.
            received_ns: when the answer was here, by our clock.
        """
        if received_ns < sent_ns:
            return
        new = _Observation(host_ns - (sent_ns + received_ns) // 2, (received_ns - sent_ns) // 2, received_ns)
        if self._latest and not _agree(self._best, new):
            self._latest.clear()
        self._latest.append(new)

    def shift(self, by_ns: int, error_ns: int) -> None:
        """The host's clock was set by this much, give or take ``error_ns``: what is known is moved along."""
        moved = [
            _Observation(one.offset_ns + by_ns, one.error_ns + error_ns, one.received_ns)
            for one in self._latest
        ]
        self._latest.clear()
        self._latest.extend(moved)

    @property
    def known(self) -> bool:
        """Whether the host has answered at all."""
        return bool(self._latest)

    @property
    def offset_ns(self) -> int:
        """The host's clock minus ours. Raises ``ValueError`` before the first answer: it is not 0 then."""
        return self._best.offset_ns

    @property
    def error_ns(self) -> int:
        """How wrong the offset may be, to either side. Raises ``ValueError`` before the first answer."""
        return self._best.error_ns

    def to_ours(self, host_ns: int) -> int:
        """A stamp of the host by our clock. Raises ``ValueError`` before the first answer."""
        return host_ns - self.offset_ns

    def samples(self, time_ns: int, interval_s: float, hosts: Sequence[str], kind: str) -> Iterator[Sample]:
        """``collector.clock_offset_s`` and ``collector.clock_error_s`` of each host, null while not known."""
        offset_s = self.offset_ns / _NS if self.known else None
        error_s = self.error_ns / _NS if self.known else None
        for host in hosts:
            yield Sample(time_ns, interval_s, host, "collector.clock_offset_s", kind, offset_s)
            yield Sample(time_ns, interval_s, host, "collector.clock_error_s", kind, error_s)

    def facts(self) -> dict[str, Any]:
        """For the inventory, under ``clock``: what was known when it was taken."""
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
