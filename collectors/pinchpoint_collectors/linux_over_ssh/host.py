"""A Linux host as one session sees it: its disks and roles, and what each of its readings says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux.inventory import machine_id
from pinchpoint_collectors.linux.machine import LinuxMachine
from pinchpoint_collectors.linux.processes import parse
from pinchpoint_collectors.linux.sources import machine_sources
from pinchpoint_collectors.linux_over_ssh.frame import Frame, Section, Timeline
from pinchpoint_collectors.linux_over_ssh.hello import Hello
from pinchpoint_collectors.linux_over_ssh.tiers import TiersThere
from pinchpoint_collectors.processes import Process
from pinchpoint_collectors.record import Sample, Watch
from pinchpoint_collectors.remote.clock import HostClock

_NS = 1_000_000_000

FILES = tuple(source.path for source in machine_sources((), {}, (), {}, page_bytes=1))
"""What is read over and over, in the order of a reading's sections; then come our own processes there."""


class Host:
    """One host, from its first words on.

    Args:
        hello: what it said of itself.
        watches: what is watched there.
        clock: of what its readings are stamped with.

    Raises:
        CollectorError: a disk of farm.yaml is not there.
    """

    def __init__(self, hello: Hello, watches: Sequence[Watch], clock: HostClock) -> None:
        self._hello = hello
        self._watches = tuple(watches)
        self.tiers = TiersThere(watches, hello)
        """The tiers that are only part of it."""
        missing = hello.missing
        self._machine = LinuxMachine(
            hello.files,
            watches,
            hello.page_bytes,
            self.tiers,
            lambda source: source.missing(missing[source.path]) if source.path in missing else None,
        )
        self._timeline = Timeline(clock)
        self._ours_before: dict[int, Process] | None = None

    @property
    def machine_id(self) -> str | None:
        """Another after the host was started anew."""
        return machine_id(self._hello.files)

    @property
    def fractions(self) -> bool:
        """Whether it can read itself more often than once a second."""
        return self._hello.fractions

    def samples(self, frame: Frame) -> list[Sample]:
        """What a reading says, since the one before; of the first only what needs no difference.

        Raises ``CollectorError`` for one that is not understood.
        """
        if len(frame.sections) <= len(FILES):
            raise CollectorError(f"a reading came with {len(frame.sections)} of more than {len(FILES)} parts")
        times = list(self._timeline.times(frame))
        found: list[Sample] = []
        interval_s = 0.0
        sources = self._machine.sources
        for source, section, (time_ns, now_ns) in zip(sources, frame.sections, times, strict=False):
            if source.path in self._machine.missing:
                continue
            if not section.text:
                raise CollectorError(f"{source.path} can no longer be read")
            reading = source.take(section.text, time_ns, now_ns)
            interval_s = reading.interval_s
            found += self._machine.samples(reading)
        if frame.processes is not None:
            time_ns, now_ns = times[-1]
            uptime_s = frame.sections[-1].uptime_ns / _NS
            found += self.tiers.cpu(frame.processes, time_ns, now_ns, uptime_s, interval_s)
        return [*found, *self._own(frame.sections[len(FILES) :], times[0][0], interval_s)]

    def facts(self, watch: Watch) -> dict[str, Any]:
        """One host for the inventory; see collectors/README.md, "Inventory"."""
        return self._machine.facts(watch)

    def _own(self, sections: Sequence[Section], time_ns: int, interval_s: float) -> Iterator[Sample]:
        """CPU time of what runs there for us: the loop and what it starts, its shell, and sshd's session."""
        ours = {one.pid: one for one in (parse(each.text) for each in sections if each.text)}
        before, self._ours_before = self._ours_before, ours
        if before is None:
            return
        used_s = _ticks(before, ours) / self._hello.ticks_per_s
        for watch in self._watches:
            yield Sample(time_ns, interval_s, watch.host, "collector.cpu_s", "ssh/host", used_s)


def _ticks(before: Mapping[int, Process], after: Mapping[int, Process]) -> int:
    """Ticks that processes used, ended children included."""
    return sum(
        now.own + now.reaped - before[pid].own - before[pid].reaped
        for pid, now in after.items()
        if pid in before and before[pid].start == now.start
    )
