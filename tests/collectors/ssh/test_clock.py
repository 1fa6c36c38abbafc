"""Tests of the offset of a host's clock, with values computed by hand."""

from __future__ import annotations

import pytest

from pinchpoint_collectors.remote.clock import HostClock

MS = 1_000_000
S = 1_000 * MS


def test_the_answer_lies_in_the_middle_of_the_round_trip() -> None:
    """Sent at 10.000, received at 10.020, host time 12.510: the host is 2.5 s ahead, within 10 ms."""
    clock = HostClock()
    clock.observe(10 * S, 12 * S + 510 * MS, 10 * S + 20 * MS)
    assert clock.offset_ns == 2500 * MS
    assert clock.error_ns == 10 * MS
    assert clock.to_ours(13 * S) == 10 * S + 500 * MS


def test_the_shortest_round_trip_knows_best() -> None:
    """The offset comes from the shortest round trip; longer ones agree within their error."""
    clock = HostClock()
    clock.observe(0, 140 * MS, 200 * MS)
    clock.observe(1 * S, 1 * S + 51 * MS, 1 * S + 2 * MS)
    clock.observe(2 * S, 2 * S + 90 * MS, 2 * S + 100 * MS)
    assert clock.offset_ns == 50 * MS
    assert clock.error_ns == 1 * MS


def test_only_the_latest_count() -> None:
    """An old round trip is dropped after enough newer ones, because clocks drift."""
    clock = HostClock(readings=3)
    clock.observe(0, 1 * MS, 2 * MS)
    for second in (1, 2, 3):
        clock.observe(second * S, second * S + 10 * MS, second * S + 20 * MS)
    assert clock.error_ns == 10 * MS


def test_a_clock_that_was_set_is_noticed_at_once() -> None:
    """A clock step of an hour is detected at once, even with a longer round trip."""
    clock = HostClock()
    clock.observe(0, 1 * MS, 2 * MS)
    clock.observe(10 * S, 3610 * S + 20 * MS, 10 * S + 40 * MS)
    assert clock.offset_ns == 3600 * S
    assert clock.error_ns == 20 * MS


def test_drift_alone_is_no_setting() -> None:
    """A drift of 100 ppm over ten minutes (60 ms) is not taken for a clock step."""
    clock = HostClock()
    clock.observe(0, 1 * MS, 2 * MS)
    clock.observe(600 * S, 600 * S + 60 * MS + 5 * MS, 600 * S + 10 * MS)
    assert clock.error_ns == 1 * MS


def test_a_setting_that_is_known_of_moves_what_is_known() -> None:
    """A clock step of -3 s that the host reports, to 10 ms, corrects the known offset."""
    clock = HostClock()
    clock.observe(0, 1 * MS, 2 * MS)
    clock.shift(-3 * S, 10 * MS)
    assert clock.offset_ns == -3 * S
    assert clock.error_ns == 11 * MS


def test_an_answer_before_its_question_is_left_out() -> None:
    """A reply whose local times go backwards, after a local clock step, is ignored."""
    clock = HostClock()
    clock.observe(5 * S, 5 * S, 4 * S)
    assert not clock.known


def test_what_is_not_known_is_null_and_never_zero() -> None:
    """Before the first reply the samples are null, and a request for the offset is an error."""
    clock = HostClock()
    samples = list(clock.samples(7, 1.0, ["sql1", "web1"], "ssh"))
    assert [(each.host, each.metric, each.instance, each.value) for each in samples] == [
        ("sql1", "collector.clock_offset_s", "ssh", None),
        ("sql1", "collector.clock_error_s", "ssh", None),
        ("web1", "collector.clock_offset_s", "ssh", None),
        ("web1", "collector.clock_error_s", "ssh", None),
    ]
    assert clock.facts() == {"offset_s": None, "error_s": None}
    with pytest.raises(ValueError, match="not asked yet"):
        clock.to_ours(1)


def test_samples_are_in_seconds() -> None:
    """The offset's samples are in seconds."""
    clock = HostClock()
    clock.observe(0, 1500 * MS, 20 * MS)
    assert [each.value for each in clock.samples(7, 1.0, ["sql1"], "ssh")] == [1.49, 0.01]
