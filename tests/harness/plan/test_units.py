"""Durations, sizes, rates and ratios: accepted and refused texts, and the messages."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pinchpoint.plan import units
from pinchpoint.plan.problems import BadValue


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.duration, "10m", 600.0),
        (units.duration, "250ms", 0.25),
        (units.duration, "12h", 43_200.0),
        (units.duration, "1h30m", 5400.0),
        (units.duration, "1.5s", 1.5),
        (units.duration, "2 min", 120.0),
        (units.duration, "500us", 0.0005),
        (units.duration, "1d", 86_400.0),
        (units.duration, 0, 0.0),
        (units.size, "8KiB", 8192),
        (units.size, "200MB", 200_000_000),
        (units.size, "1.5GiB", 1_610_612_736),
        (units.size, "512 B", 512),
        (units.rate, "200/s", 200.0),
        (units.rate, "6/min", 0.1),
        (units.rate, "36/h", 0.01),
        (units.rate, "0/s", 0.0),
        (units.byte_rate, "200MB/s", 200e6),
        (units.byte_rate, "60MiB/min", 1_048_576.0),
        (units.ratio, "5%", 0.05),
        (units.ratio, 0.05, 0.05),
        (units.ratio, "0.05", 0.05),
        (units.ratio, 1, 1.0),
        (units.ratio, "100%", 1.0),
    ],
)
def test_a_text_with_its_unit_becomes_base_units(
    parse: Callable[[object], float], text: object, value: float
) -> None:
    """Each documented unit is converted to the exact figure in base units."""
    assert parse(text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("parse", "text", "said"),
    [
        (units.duration, 10, f'"10" has no unit; allowed: {units.DURATION}; write 10s or 10ms'),
        (units.duration, "10", f'"10" has no unit; allowed: {units.DURATION}; write 10s or 10ms'),
        (units.duration, "-5s", f'"-5s" is less than 0; allowed: {units.DURATION}'),
        (units.duration, "soon", f'"soon" is not a duration; allowed: {units.DURATION}'),
        (units.duration, "10s ago", f'"10s ago" is not a duration; allowed: {units.DURATION}'),
        (units.duration, "", f'"" is not a duration; allowed: {units.DURATION}'),
        (units.duration, True, f"found the truth value true; allowed: {units.DURATION}"),
        (units.duration, ["10s"], f"found a list; allowed: {units.DURATION}"),
        pytest.param(units.duration, "9" * 400 + "s", "is too large", id="long"),
        pytest.param(units.duration, 10**5000, "found a number of more than 60 digits", id="enormous"),
        (units.size, 8192, f'"8192" has no unit; allowed: {units.SIZE}; write 8192B'),
        (units.size, "8kib", "nearest: KiB"),
        (units.size, "0.5B", '"0.5B" is not a whole number of bytes'),
        pytest.param(units.size, "9" * 400 + "TB", "is too large", id="long size"),
        (units.rate, 200, f'"200" has no unit; allowed: {units.RATE}; write 200/s'),
        (units.rate, "200/second", 'has the unknown unit "second"; allowed: s, min, h'),
        (units.rate, "200 per s", "is not a rate"),
        (units.byte_rate, "200MB", "is not a byte rate"),
        (units.byte_rate, "200/s", "is not a byte rate"),
        (units.ratio, 5, f'"5" is more than 1; allowed: {units.RATIO}; 5 percent is 5%'),
        (units.ratio, "150%", '"150%" is more than 1'),
        (units.ratio, -0.1, '"-0.1" is less than 0'),
        (units.ratio, float("nan"), '"nan" is not a ratio'),
        (units.ratio, None, "found nothing"),
        pytest.param(units.ratio, 10**5000, "found a number of more than 60 digits", id="enormous ratio"),
    ],
)
def test_what_is_refused_says_what_is_allowed(
    parse: Callable[[object], float], text: object, said: str
) -> None:
    """A missing or wrong unit, type or range is refused with its remedy."""
    with pytest.raises(BadValue) as raised:
        parse(text)
    assert said in str(raised.value)
