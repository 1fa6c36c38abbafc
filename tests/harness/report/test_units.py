"""Values in base units as text: the right prefix at every size, and never 0 for unmeasured."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pinchpoint.base import units


@pytest.mark.parametrize(
    ("write", "value", "words"),
    [
        (units.seconds, 0.0, "0 s"),
        (units.seconds, 0.000001, "1 µs"),
        (units.seconds, 0.00035, "350 µs"),
        (units.seconds, 0.00099999, "1 ms"),
        (units.seconds, 0.0028, "2.8 ms"),
        (units.seconds, 0.99999, "1 s"),
        (units.seconds, 1.234, "1.23 s"),
        (units.seconds, 119.6, "2 min"),
        (units.seconds, 750.0, "12 min 30 s"),
        (units.seconds, 24536.0, "6 h 49 min"),
        (units.span, 43.6, "43.6 s"),
        (units.span, 750.0, "12 min"),
        (units.span, 7185.0, "2 h"),
        (units.span, 11_100.0, "3 h 5 min"),
        (units.bytes_, 0.0, "0 B"),
        (units.bytes_, 8192.0, "8.19 kB"),
        (units.bytes_, 200e6, "200 MB"),
        (units.bytes_, 999_999_999.0, "1 GB"),
        (units.per_second, 0.42, "0.42/s"),
        (units.per_second, 9.999, "10/s"),
        (units.per_second, 12_400.0, "12,400/s"),
        (units.percent, 0.004, "0.4 %"),
        (units.percent, 0.93, "93 %"),
        (units.percent, 0.996, "99.6 %"),
        (units.percent, 1.0, "100 %"),
    ],
)
def test_values_are_written_for_people(write: Callable[[float], str], value: float, words: str) -> None:
    """The size decides the prefix, also after rounding."""
    assert write(value) == words


@pytest.mark.parametrize("write", [units.seconds, units.bytes_, units.per_second, units.percent])
def test_what_was_not_measured_is_said_so(write: Callable[[float | None], str]) -> None:
    """``None`` has a text of its own."""
    assert write(None) == "not measured"


@pytest.mark.parametrize(
    ("metric", "value", "words"),
    [
        ("disk.write_latency_s", 0.0028, "2.8 ms"),
        ("disk.writes_per_s", 500.1, "500/s"),
        ("disk.write_bytes_per_s", 4.09e6, "4.09 MB/s"),
        ("mem.available_bytes", 8e9, "8 GB"),
        ("cpu.busy_ratio", 0.97, "97 %"),
        ("disk.outstanding", 7.9, "7.9"),
        ("disk.outstanding", None, "not measured"),
    ],
)
def test_a_metric_brings_its_unit(metric: str, value: float | None, words: str) -> None:
    """The unit follows from the last part of the metric's name."""
    assert units.of_metric(metric, value) == words


def test_a_level_is_a_rate_or_a_number_of_users() -> None:
    """A level is a rate or a number of users, as in a plan's steps and ramps."""
    assert units.load_level(50.0, "per_s") == "50/s"
    assert (units.load_level(1.0, "users"), units.load_level(1200.0, "users")) == ("1 user", "1,200 users")
