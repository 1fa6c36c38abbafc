"""Parses one reading of all files of a host, with the time of each file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.remote.clock import HostClock

END = b"\n#e\n"

_UPTIME = re.compile(r"^(\d+)\.(\d\d) \d+\.\d\d\n", re.MULTILINE)
"""Pattern of /proc/uptime. No other file of the list has such a line."""
_STEP_NS = 10_000_000
"""Resolution of the uptime in ns."""
_SET_NS = 50_000_000
"""Difference between clock and uptime in ns, above which the clock was set."""
_SET_RATIO = 1e-3


class FileText(NamedTuple):
    """The text of one file, and the uptime just before it was read (ns)."""

    uptime_ns: int
    text: str


class Frame(NamedTuple):
    """One reading.

    Attributes:
        stamp_ns: clock of the host at the start of the reading, in ns.
        sections: files in order.
        processes: /proc/PID/stat of every process; None if not requested.
    """

    stamp_ns: int
    sections: tuple[FileText, ...]
    processes: str | None = None


def parse(text: str) -> Frame:
    """Parse the text before ``END``. Raises ``CollectorError`` if it is damaged."""
    head, _, rest = text.partition("\n")
    word, _, stamp = head.partition(" ")
    files, with_processes, processes = rest.partition("\n#p\n")
    before, *parts = _UPTIME.split(f"{files}\n")
    if word != "#f" or not stamp.isdigit() or before.strip() or not parts:
        raise CollectorError(f"a reading came damaged: {text[:80]!r}")
    sections = (
        FileText((int(parts[at]) * 100 + int(parts[at + 1])) * _STEP_NS, parts[at + 2])
        for at in range(0, len(parts), 3)
    )
    return Frame(int(stamp), tuple(sections), processes if with_processes else None)


class Timeline:
    """The times of readings by the local clock, and by a monotonic clock.

    The clock of the host is precise but may be set. Its uptime is monotonic but has steps of 10 ms.
    """

    def __init__(self, clock: HostClock) -> None:
        self._clock = clock
        self._before: Frame | None = None
        self._set_ns = 0

    def times(self, frame: Frame) -> Iterator[tuple[int, int]]:
        """Return for each file UTC ns by the local clock, and ns of a monotonic clock."""
        self._follow(frame)
        time_ns = self._clock.to_ours(frame.stamp_ns)
        now_ns = frame.stamp_ns - self._set_ns
        for section in frame.sections:
            # On a host with a saturated CPU, much time may pass between two files.
            later_ns = section.uptime_ns - frame.sections[0].uptime_ns
            later_ns = later_ns if later_ns > _STEP_NS else 0
            yield time_ns + later_ns, now_ns + later_ns

    def _follow(self, frame: Frame) -> None:
        before, self._before = self._before, frame
        if before is None:
            return
        passed_ns = frame.sections[0].uptime_ns - before.sections[0].uptime_ns
        jump_ns = frame.stamp_ns - before.stamp_ns - passed_ns
        if abs(jump_ns) > _SET_NS + passed_ns * _SET_RATIO:
            self._set_ns += jump_ns
            self._clock.shift(jump_ns, _STEP_NS)
