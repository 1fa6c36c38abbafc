"""Readings as they come over the wire, and when each file was read."""

from __future__ import annotations

import pytest

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux_over_ssh import frame
from pinchpoint_collectors.linux_over_ssh.frame import Section, Timeline
from pinchpoint_collectors.remote.clock import HostClock

MS = 1_000_000
S = 1_000 * MS


def text(stamp_ns: int, *uptimes: str) -> str:
    return f"#f {stamp_ns}\n" + "".join(f"{each} 99.00\nfile {at}\n" for at, each in enumerate(uptimes))


def test_the_uptime_parts_the_files() -> None:
    """Two files, one of them empty because it went away, and a last one without its newline."""
    found = frame.parse("#f 42\n100.07 9.00\ncpu 1 2\nintr 5\n100.08 9.00\n100.10 9.01\nMemTotal: 5 kB")
    assert found == frame.Frame(
        42,
        (
            Section(100_070 * MS, "cpu 1 2\nintr 5\n"),
            Section(100_080 * MS, ""),
            Section(100_100 * MS, "MemTotal: 5 kB\n"),
        ),
    )


def test_an_empty_last_file_is_a_section_too() -> None:
    """What vanished between two readings must not shift the others."""
    assert frame.parse("#f 1\n5.00 1.00\na\n5.00 1.00").sections[-1] == Section(5 * S, "")


@pytest.mark.parametrize("broken", ["", "#f x\n1.00 2.00\na", "#f 1\nrubbish\n1.00 2.00\na", "#f 1\n"])
def test_a_damaged_reading_is_refused(broken: str) -> None:
    """With its begin, so that somebody can see what it was."""
    with pytest.raises(CollectorError, match="a reading came damaged"):
        frame.parse(broken)


def times(timeline: Timeline, *frames: str) -> list[list[tuple[int, int]]]:
    return [list(timeline.times(frame.parse(each))) for each in frames]


def clock(offset_ns: int) -> HostClock:
    found = HostClock()
    found.observe(0, offset_ns, 0)
    return found


def test_stamps_are_ours_and_intervals_the_hosts() -> None:
    """The host is 2 s ahead; between its readings passed 1.000001 s, which the uptime's steps cannot tell."""
    first, second = times(Timeline(clock(2 * S)), text(1000 * S, "7.00"), text(1001 * S + 1000, "8.00"))
    assert first[0][0] == 998 * S
    assert second[0][0] == 999 * S + 1000
    assert second[0][1] - first[0][1] == S + 1000


def test_a_busy_host_reads_its_files_at_different_times() -> None:
    """70 ms between two files count; one step of the uptime's clock does not."""
    (found,) = times(Timeline(clock(0)), text(1000 * S, "7.00", "7.01", "7.08"))
    assert [each[0] - found[0][0] for each in found] == [0, 0, 80 * MS]


def test_a_clock_that_is_set_bends_no_interval() -> None:
    """An hour forward between two readings one second apart; our stamps go on by one second."""
    offset = clock(0)
    first, second, third = times(
        Timeline(offset), text(1000 * S, "7.00"), text(4601 * S, "8.00"), text(4602 * S, "9.00")
    )
    assert second[0][1] - first[0][1] == S
    assert second[0][0] - first[0][0] == S
    assert third[0][0] - second[0][0] == S
    assert offset.offset_ns == 3600 * S
