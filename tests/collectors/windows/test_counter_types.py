"""Tests of the formulas of counter types, on raw values of real machines and computed ones."""

from __future__ import annotations

import pytest

from pinchpoint_collectors.windows.reading import TYPES, Formatted, Raw, grown

NAMES = {one.name: one for one in TYPES.values()}
PERF_PER_S = 10_000_000

REAL_LIFE_READ_TIME_100NS = 7_739_282_824
REAL_LIFE_READ_TIMER = 3_444_315_528
REAL_LIFE_READS = 1_129_605
"""Disk ``0 C:`` of a Windows machine with a 10 MHz performance counter, from the Checkmk agent (tests of its
winperf_phydisk plugin): Avg. Disk Read Queue Length, Avg. Disk sec/Read and its base, since the machine's
start."""


def cook(name: str, before: Raw, now: Raw) -> Formatted:
    return NAMES[name].cook(before, now, NAMES[name].large)


def raw(value: int, base: int | None = None, *, ticks: int = 0, sys: int = 0, per_s: int = PERF_PER_S) -> Raw:
    return Raw(value, base, ticks, sys, per_s)


def test_the_numbers_are_those_of_winperf_h() -> None:
    """The type numbers are those of Microsoft's tables of WMI counter types."""
    decimal = {
        "PERF_COUNTER_RAWCOUNT": 65536,
        "PERF_COUNTER_LARGE_RAWCOUNT": 65792,
        "PERF_RAW_FRACTION": 537003008,
        "PERF_LARGE_RAW_FRACTION": 537003264,
        "PERF_COUNTER_COUNTER": 272696320,
        "PERF_COUNTER_BULK_COUNT": 272696576,
        "PERF_AVERAGE_TIMER": 805438464,
        "PERF_100NSEC_TIMER": 542180608,
        "PERF_100NSEC_TIMER_INV": 558957824,
        "PERF_PRECISION_100NS_TIMER": 542573824,
        "PERF_COUNTER_QUEUELEN_TYPE": 4523008,
        "PERF_COUNTER_LARGE_QUEUELEN_TYPE": 4523264,
        "PERF_COUNTER_100NS_QUEUELEN_TYPE": 5571840,
    }
    assert {one.name: one.number for one in TYPES.values()} == decimal
    small = {name for name, one in NAMES.items() if not one.large}
    assert small == {
        "PERF_COUNTER_RAWCOUNT",
        "PERF_RAW_FRACTION",
        "PERF_COUNTER_COUNTER",
        "PERF_AVERAGE_TIMER",
        "PERF_COUNTER_QUEUELEN_TYPE",
    }


def test_a_real_timer_of_32_bits_has_wrapped() -> None:
    """The queue length's 64 bits and the timer's 32 bits differ by one wrap."""
    assert REAL_LIFE_READ_TIME_100NS - REAL_LIFE_READ_TIMER == 2**32
    just_before, reads = REAL_LIFE_READ_TIME_100NS - 2**32 - REAL_LIFE_READ_TIMER, 100
    assert just_before == 0
    # Growth across the wrap: 3,444,315,528 ticks of 100 reads.
    before, now = raw(2**32 - 1000, REAL_LIFE_READS - reads), raw(REAL_LIFE_READ_TIMER, REAL_LIFE_READS)
    assert cook("PERF_AVERAGE_TIMER", before, now) == Formatted(
        (REAL_LIFE_READ_TIMER + 1000) / 1e7 / 100, 100
    )


def test_latencies_of_a_real_volume_since_its_start() -> None:
    """The latency of a domain controller's HarddiskVolume1 is right: one read and four writes.

    The values are from issue 388 of windows_exporter.

    Its queue lengths have the same times in 100 ns, 0.4633 s and 0.0038 s, which gives the counter's
    frequency.
    """
    per_s = 2_338_337
    nothing = raw(0, 0, per_s=per_s)
    read = cook("PERF_AVERAGE_TIMER", nothing, raw(1_083_350, 1, per_s=per_s))
    write = cook("PERF_AVERAGE_TIMER", nothing, raw(8_885, 4, per_s=per_s))
    assert read.value == pytest.approx(4_633_000 / 1e7, rel=1e-4)
    assert write.value == pytest.approx(38_000 / 1e7 / 4, rel=1e-3)
    assert (read.weight, write.weight) == (1, 4)


def test_rates_of_a_real_interface() -> None:
    """Two raw readings of an Intel AX200 (the ServerBox monitor's tests), 1.053 s apart, give its rates."""
    apart = 134_288_934_066_370_000 - 134_288_934_055_840_000
    assert apart == 10_530_000
    received = cook("PERF_COUNTER_BULK_COUNT", raw(704_834_947), raw(704_836_663, ticks=apart))
    sent = cook("PERF_COUNTER_BULK_COUNT", raw(2_416_231_230), raw(2_416_234_467, ticks=apart))
    assert received.value == pytest.approx(1716 / 1.053)
    assert sent.value == pytest.approx(3237 / 1.053)


@pytest.mark.parametrize(
    ("name", "before", "now", "shown"),
    [
        # 500 in half a second.
        ("PERF_COUNTER_COUNTER", raw(2**32 - 200), raw(300, ticks=5_000_000), 1000.0),
        ("PERF_COUNTER_BULK_COUNT", raw(2**40), raw(2**40 + 4096, ticks=20_000_000), 2048.0),
        ("PERF_100NSEC_TIMER", raw(100), raw(2_500_100, sys=10_000_000), 25.0),
        ("PERF_100NSEC_TIMER_INV", raw(0), raw(7_500_000, sys=10_000_000), 25.0),
        # Idle time longer than the interval, as clocks report for an idle processor.
        ("PERF_100NSEC_TIMER_INV", raw(0), raw(10_100_000, sys=10_000_000), -1.0),
        ("PERF_PRECISION_100NS_TIMER", raw(0, 5), raw(4_000_000, 10_000_005), 40.0),
        ("PERF_COUNTER_100NS_QUEUELEN_TYPE", raw(0), raw(60_000_000, sys=20_000_000), 3.0),
        ("PERF_COUNTER_LARGE_QUEUELEN_TYPE", raw(0), raw(30_000_000, ticks=20_000_000), 1.5),
        ("PERF_COUNTER_QUEUELEN_TYPE", raw(2**32 - 10), raw(90, ticks=50), 2.0),
        ("PERF_COUNTER_RAWCOUNT", raw(9), raw(4), 4.0),
        ("PERF_LARGE_RAW_FRACTION", raw(0, 0), raw(950, 1000), 95.0),
    ],
)
def test_each_formula(name: str, before: Raw, now: Raw, shown: float) -> None:
    """Each formula gives the value computed by hand."""
    assert cook(name, before, now).value == pytest.approx(shown)


def test_no_operation_has_no_latency() -> None:
    """Without operations the latency is null with weight 0."""
    assert cook("PERF_AVERAGE_TIMER", raw(7, 3), raw(7, 3)) == Formatted(None, 0)


@pytest.mark.parametrize(
    ("name", "before", "now"),
    [
        ("PERF_COUNTER_BULK_COUNT", raw(2**40), raw(5, ticks=10_000_000)),
        ("PERF_COUNTER_BULK_COUNT", raw(1), raw(2)),  # two readings at the same time
        ("PERF_COUNTER_COUNTER", raw(1, ticks=9), raw(2, ticks=3)),
        ("PERF_100NSEC_TIMER", raw(9), raw(8, sys=10_000_000)),
        ("PERF_100NSEC_TIMER_INV", raw(9, sys=5), raw(10, sys=5)),
        ("PERF_PRECISION_100NS_TIMER", raw(1, 10), raw(2, 10)),
        ("PERF_PRECISION_100NS_TIMER", raw(1), raw(2)),
        ("PERF_AVERAGE_TIMER", raw(1), raw(2)),
        ("PERF_COUNTER_100NS_QUEUELEN_TYPE", raw(9), raw(3, sys=10)),
        ("PERF_LARGE_RAW_FRACTION", raw(0, 0), raw(0, 0)),
    ],
)
def test_what_cannot_be_known_is_none(name: str, before: Raw, now: Raw) -> None:
    """A 64-bit counter that went back, no time, or no base gives null."""
    assert cook(name, before, now).value is None


def test_only_a_small_counter_wraps() -> None:
    """Only a 32-bit counter wraps; a 64-bit counter that went back was reset."""
    assert grown(2**32 - 1, 1, large=False) == 2
    assert grown(2**63, 1, large=True) is None
