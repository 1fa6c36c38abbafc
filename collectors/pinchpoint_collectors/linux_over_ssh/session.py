"""Talks with the script on a host over ssh and converts its answers."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux.inventory import machine_id
from pinchpoint_collectors.linux.machine import LinuxMachine
from pinchpoint_collectors.linux.processes import parse
from pinchpoint_collectors.linux.sources import machine_sources
from pinchpoint_collectors.linux_over_ssh import frame, hello
from pinchpoint_collectors.linux_over_ssh.frame import FileText, Frame, Timeline
from pinchpoint_collectors.linux_over_ssh.hello import Hello
from pinchpoint_collectors.linux_over_ssh.script import RECEIVE
from pinchpoint_collectors.linux_over_ssh.tiers import TiersThere
from pinchpoint_collectors.processes import Process
from pinchpoint_collectors.record import Sample, Watch
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.remote.clock import HostClock
from pinchpoint_collectors.remote.session import SshSession
from pinchpoint_collectors.remote.ssh import Address

_NS = 1_000_000_000

FILES = tuple(source.path for source in machine_sources((), {}, (), {}, page_bytes=1))
"""What is read over and over, in the order of a reading's sections; then come our own processes there."""


class LinuxHost:
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
        """One host for the inventory; see docs/metrics.md, "Inventory"."""
        return {**self._machine.facts(watch), **self._hello.cloud}

    def _own(self, sections: Sequence[FileText], time_ns: int, interval_s: float) -> Iterator[Sample]:
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


_HALF_STEP_NS = 5_000_000
_HALF_SECOND_NS = 500_000_000


class LoopSession(SshSession):
    """One loop that reads a host.

    Args:
        address: the host.
        script: what runs there (``script.script``).

    Raises:
        CollectorError: there is no ssh on this machine.
    """

    def __init__(self, address: Address, script: str) -> None:
        self.hello: Hello | None = None
        self.frames: deque[Frame] = deque()
        self.answers: dict[int, list[str]] = {}
        """What it said of its files, line by line, by the question's number; whole ones only."""
        self.stamps = HostClock()
        """The clock that readings are stamped with."""
        self._seconds = HostClock()
        self._answering: dict[int, list[str]] = {}
        super().__init__(address, RECEIVE)
        self._link.write(script)

    @property
    def greeted(self) -> bool:
        return self.hello is not None

    @property
    def has_reading(self) -> bool:
        return bool(self.frames) and self.stamps.known

    def ask_time(self) -> None:
        self._link.write(f"t {self._next_question()}\n")

    def ask_files(self, patterns: Sequence[str]) -> int:
        """Ask for files as they are now, each a pattern of the shell; the question's number.

        The answer's lines each begin with the file's path and a colon.
        """
        self._number += 1
        self._link.write(f"f {self._number} {' '.join(patterns)}\n")
        return self._number

    @property
    def wall(self) -> HostClock:
        """The host's clock of the day: that of the stamps, where it reports nanoseconds."""
        return self.stamps if self.hello is not None and self.hello.nanoseconds else self._seconds

    def why_ended(self, silent_s: float = 0.0) -> str:
        # Some login shells that are none say so on standard output.
        rest = self._link.rest if self.hello is None else ""
        said = "\n".join([rest, *self._said, self._link.errors])
        status = self._link.status()
        # ssh has the same status for a link that failed and for a command that a signal ended, but no words.
        silent = status == ssh.SSH_FAILED and not said.strip() and silent_s > ssh.ALIVE_INTERVAL_S
        if self.hello is not None and silent:
            return (
                f"{self._address}: the link was cut, nothing came for {silent_s:.0f} s; look at the network "
                "between here and there"
            )
        if self.hello is not None and (status != ssh.SSH_FAILED or not said.strip()):
            return f"{self._address}: what runs on the host for us was ended there (status {status})"
        return ssh.why(self._address, status, said)

    def _take(self, timeout_s: float) -> None:
        self._link.pump(timeout_s)
        now_ns = time.time_ns()
        for piece in self._link.pieces(frame.END):
            if self.hello is None and hello.BEGINS not in piece:
                self._said.append(piece)  # a banner
            elif self.hello is None:
                self.hello = self._understood(piece)
            else:
                self.frames.append(frame.parse(piece))
        for line in self._link.error_lines():
            self._hear(line, now_ns)

    def _understood(self, piece: str) -> Hello:
        try:
            return hello.parse(piece)
        except CollectorError as error:
            raise CollectorError(
                f"{self._address}: {error}; is it a Linux host with a POSIX shell?"
            ) from error

    def _hear(self, line: str, now_ns: int) -> None:
        word, _, said = line.partition(" ")
        number, _, rest = said.partition(" ")
        if word == "#t":
            self._hear_time(int(number), rest, now_ns)
        elif word == "#h":
            self._answering.setdefault(int(number), []).append(rest)
        elif word == "#H":
            self.answers[int(number)] = self._answering.pop(int(number), [])
        else:
            self._said.append(line)

    def _hear_time(self, number: int, said: str, now_ns: int) -> None:
        sent_ns = self._asked_ns.pop(number)
        stamp, seconds = (int(word) for word in said.split())
        if self.hello is not None and self.hello.nanoseconds:
            self.stamps.observe(sent_ns, stamp, now_ns)
            return
        # What goes in steps is off by half a step to either side, on top of half the round trip.
        self.stamps.observe(sent_ns - _HALF_STEP_NS, stamp + _HALF_STEP_NS, now_ns + _HALF_STEP_NS)
        day_ns = seconds * 1_000_000_000 + _HALF_SECOND_NS
        self._seconds.observe(sent_ns - _HALF_SECOND_NS, day_ns, now_ns + _HALF_SECOND_NS)
