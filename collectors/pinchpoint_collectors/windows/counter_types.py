"""From raw performance counters to what the Performance Monitor would show: one formula per counter type.

Windows itself says of each counter which type it is (the qualifier ``CounterType`` of its property in the CIM
class). Types, formulas and symbols are those of winperf.h and of Microsoft's "Calculating Counter Values"
(learn.microsoft.com/windows/win32/perfctrs/calculating-counter-values) and "WMI Performance Counter Types"
(learn.microsoft.com/windows/win32/wmisdk/wmi-performance-counter-types): X is the counter, B its base, D the
time stamp and F its ticks per second; 0 and 1 are the readings before and now. A formula's place:

* rates, "Statistical"/"Counter" types: learn.microsoft.com/previous-versions/ms938545(v=msdn.10)
* ``PERF_AVERAGE_TIMER``: .../ms938538(v=msdn.10)
* ``PERF_100NSEC_TIMER``, ``..._INV``: .../ms938529(v=msdn.10), .../ms938533(v=msdn.10)
* queue lengths: .../windows/embedded/ms901178(v=msdn.10); technet.microsoft.com/library/cc781696(v=ws.10)
* precision timers: technet.microsoft.com/library/cc756128(v=ws.10)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pinchpoint_collectors.value import growth

_LARGE = 0x100
"""The bit of a type that says 64 bits (PERF_SIZE_LARGE of winperf.h)."""
_DWORD = 2**32
SYS_PER_S = 10_000_000
"""Ticks of Timestamp_Sys100NS in a second."""


class Raw(NamedTuple):
    """One counter as it was read.

    Attributes:
        value: the counter itself.
        base: what its type divides by (``NAME_Base``); None where it has none.
        perf_time: Timestamp_PerfTime, in ticks.
        sys_time: Timestamp_Sys100NS, in 100 ns.
        perf_per_s: Frequency_PerfTime, ticks per second.
    """

    value: int
    base: int | None
    perf_time: int
    sys_time: int
    perf_per_s: int


class Cooked(NamedTuple):
    """What the Performance Monitor would show, in its units (percentages go to 100); None: not known.

    Attributes:
        value: the figure.
        weight: of a mean of operations, how many there were; None where it is none.
    """

    value: float | None
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class CounterType:
    """One type of counter.

    Attributes:
        name: as winperf.h has it.
        number: likewise.
        cook: the formula; (before, now, whether the counter has 64 bits). Not asked where ``before`` is
            needed and missing.
        difference: whether it needs a reading before: the counter only ever grows.
    """

    name: str
    number: int
    cook: Callable[[Raw, Raw, bool], Cooked]
    difference: bool = True

    @property
    def large(self) -> bool:
        """Whether the counter has 64 bits; one of 32 bits wraps, and soon."""
        return bool(self.number & _LARGE)


def grown(before: int, now: int, *, large: bool) -> int | None:
    """How much a counter grew: one of 64 bits that went back was reset (None), one of 32 bits wrapped."""
    return growth(before, now) if large else (now - before) % _DWORD


def _rate(old: Raw, new: Raw, large: bool) -> Cooked:
    """(X1 - X0) / ((D1 - D0) / F)."""
    count, ticks = grown(old.value, new.value, large=large), new.perf_time - old.perf_time
    return Cooked(None if count is None or ticks <= 0 else count / (ticks / new.perf_per_s))


def _average_timer(old: Raw, new: Raw, large: bool) -> Cooked:
    """((X1 - X0) / F) / (B1 - B0): seconds per operation; the base counts in 32 bits."""
    spent, operations = grown(old.value, new.value, large=large), _operations(old, new)
    if spent is None or operations is None:
        return Cooked(None)
    return Cooked(spent / new.perf_per_s / operations if operations else None, operations)


def _operations(old: Raw, new: Raw) -> int | None:
    return None if old.base is None or new.base is None else grown(old.base, new.base, large=False)


def _timer_100ns(old: Raw, new: Raw, large: bool) -> Cooked:
    """100 (X1 - X0) / (D1 - D0), both in 100 ns."""
    spent, passed = grown(old.value, new.value, large=large), new.sys_time - old.sys_time
    return Cooked(None if spent is None or passed <= 0 else 100 * spent / passed)


def _timer_100ns_inverse(old: Raw, new: Raw, large: bool) -> Cooked:
    """100 (1 - (X1 - X0) / (D1 - D0)): the counter is the time in which there was nothing to do."""
    idle = _timer_100ns(old, new, large).value
    return Cooked(None if idle is None else 100 - idle)


def _precision_timer(old: Raw, new: Raw, large: bool) -> Cooked:
    """100 (X1 - X0) / (B1 - B0): the time stamp was taken with the counter, and comes as its base."""
    spent = grown(old.value, new.value, large=large)
    passed = None if old.base is None or new.base is None else new.base - old.base
    return Cooked(None if spent is None or passed is None or passed <= 0 else 100 * spent / passed)


def _queue_100ns(old: Raw, new: Raw, large: bool) -> Cooked:
    """(X1 - X0) / (D1 - D0), both in 100 ns: how many waited or were served, on average."""
    share = _timer_100ns(old, new, large).value
    return Cooked(None if share is None else share / 100)


def _queue(old: Raw, new: Raw, large: bool) -> Cooked:
    """(X1 - X0) / (D1 - D0), both in ticks of the performance counter."""
    spent, ticks = grown(old.value, new.value, large=large), new.perf_time - old.perf_time
    return Cooked(None if spent is None or ticks <= 0 else spent / ticks)


def _now(_: Raw, new: Raw, __: bool) -> Cooked:
    """X1: the count at this moment."""
    return Cooked(float(new.value))


def _share_now(_: Raw, new: Raw, __: bool) -> Cooked:
    """100 X1 / B1; of nothing no share is known."""
    return Cooked(100 * new.value / new.base if new.base else None)


_TYPES = (
    CounterType("PERF_COUNTER_RAWCOUNT", 0x00010000, _now, difference=False),
    CounterType("PERF_COUNTER_LARGE_RAWCOUNT", 0x00010100, _now, difference=False),
    CounterType("PERF_RAW_FRACTION", 0x20020400, _share_now, difference=False),
    CounterType("PERF_LARGE_RAW_FRACTION", 0x20020500, _share_now, difference=False),
    CounterType("PERF_COUNTER_COUNTER", 0x10410400, _rate),
    CounterType("PERF_COUNTER_BULK_COUNT", 0x10410500, _rate),
    CounterType("PERF_AVERAGE_TIMER", 0x30020400, _average_timer),
    CounterType("PERF_100NSEC_TIMER", 0x20510500, _timer_100ns),
    CounterType("PERF_100NSEC_TIMER_INV", 0x21510500, _timer_100ns_inverse),
    CounterType("PERF_PRECISION_100NS_TIMER", 0x20570500, _precision_timer),
    CounterType("PERF_COUNTER_QUEUELEN_TYPE", 0x00450400, _queue),
    CounterType("PERF_COUNTER_LARGE_QUEUELEN_TYPE", 0x00450500, _queue),
    CounterType("PERF_COUNTER_100NS_QUEUELEN_TYPE", 0x00550500, _queue_100ns),
)

TYPES: Mapping[int, CounterType] = {one.number: one for one in _TYPES}
"""The types that are understood, by their number."""
