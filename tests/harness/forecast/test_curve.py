"""Latency curve over outstanding I/Os: measured points, and values between and beyond them."""

from __future__ import annotations

import pytest

from pinchpoint.data.curve import Curve

POINTS = ((1.0, 0.010), (4.0, 0.020))


def test_at_the_points_it_is_what_was_measured() -> None:
    for shape in (0.0, 0.5, 1.0):
        curve = Curve(POINTS, shape=shape)
        assert [curve.latency_s(depth) for depth in (0.3, 1, 4)] == pytest.approx([0.01, 0.01, 0.02])


def test_between_two_points_it_lies_between_regulator_and_device() -> None:
    """Two outstanding I/Os lie between a regulator's 10 ms and a device's geometric mean."""
    regulator, middle, device = (Curve(POINTS, shape=shape).latency_s(2) for shape in (0.0, 0.5, 1.0))
    assert regulator == pytest.approx(0.010)
    assert device == pytest.approx(0.010 * 2**0.5)
    assert regulator < middle < device
    assert Curve(POINTS, shape=0.0).latency_s(3) == pytest.approx(3 / 200)


def test_a_disk_that_answers_sooner_when_more_is_asked_is_believed() -> None:
    """A measured latency that falls with more outstanding I/Os is used as it is."""
    falling = Curve(((1.0, 0.012), (4.0, 0.006)))
    assert falling.latency_s(1) == pytest.approx(0.012)
    assert 0.006 < falling.latency_s(2) < 0.012


def test_beyond_the_deepest_point_no_more_gets_done_where_that_is_all_it_can_do() -> None:
    assert Curve(POINTS).latency_s(16) == pytest.approx(16 / 200)
    assert Curve(POINTS, ends=False).latency_s(16) == pytest.approx(0.020)


def test_all_of_it_can_take_longer() -> None:
    twice = Curve(POINTS, ends=False).times(2)
    assert twice.latency_s(1) == pytest.approx(0.020)
    assert not twice.ends
