"""Tests of readings from the wire, and of the time at which each file was read."""

from __future__ import annotations

from pinchpoint_collectors.linux_over_ssh import frame
from pinchpoint_collectors.linux_over_ssh.frame import Timeline
from pinchpoint_collectors.remote.clock import HostClock

MS = 1_000_000
S = 1_000 * MS


def text(stamp_ns: int, *uptimes: str) -> str:
    return f"#f {stamp_ns}\n" + "".join(f"{each} 99.00\nfile {at}\n" for at, each in enumerate(uptimes))


def times(timeline: Timeline, *frames: str) -> list[list[tuple[int, int]]]:
    return [list(timeline.times(frame.parse(each))) for each in frames]


def clock(offset_ns: int) -> HostClock:
    found = HostClock()
    found.observe(0, offset_ns, 0)
    return found


def test_stamps_are_ours_and_intervals_the_hosts() -> None:
    """Stamps use local time, intervals the host's: 2 s ahead, 1.000001 s apart, finer than the uptime."""
    first, second = times(Timeline(clock(2 * S)), text(1000 * S, "7.00"), text(1001 * S + 1000, "8.00"))
    assert first[0][0] == 998 * S
    assert second[0][0] == 999 * S + 1000
    assert second[0][1] - first[0][1] == S + 1000


def test_a_busy_host_reads_its_files_at_different_times() -> None:
    """A delay of 70 ms between two files counts; one step of the uptime clock does not."""
    (found,) = times(Timeline(clock(0)), text(1000 * S, "7.00", "7.01", "7.08"))
    assert [each[0] - found[0][0] for each in found] == [0, 0, 80 * MS]


def test_a_clock_that_is_set_bends_no_interval() -> None:
    """A clock step of an hour changes no interval; local stamps advance by one second."""
    offset = clock(0)
    first, second, third = times(
        Timeline(offset), text(1000 * S, "7.00"), text(4601 * S, "8.00"), text(4602 * S, "9.00")
    )
    assert second[0][1] - first[0][1] == S
    assert second[0][0] - first[0][0] == S
    assert third[0][0] - second[0][0] == S
    assert offset.offset_ns == 3600 * S
