"""Collector kind ``ssh``: a Linux host without installed software, over the system's own ssh.

A small shell loop runs on the host while the link is open (``linux_over_ssh/loop.sh``). It sends the texts
that ``local`` reads, and the same parsers read them. Their times are corrected by the measured offset of the
host's clock.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux.inventory import machine_id
from pinchpoint_collectors.linux.machine import LinuxMachine
from pinchpoint_collectors.linux.processes import parse
from pinchpoint_collectors.linux.sources import machine_sources
from pinchpoint_collectors.linux_over_ssh import frame, hello
from pinchpoint_collectors.linux_over_ssh.frame import FileText, Frame, Timeline
from pinchpoint_collectors.linux_over_ssh.hello import Hello
from pinchpoint_collectors.linux_over_ssh.script import RECEIVE, script
from pinchpoint_collectors.linux_over_ssh.tiers import RemoteTiers, parse_all
from pinchpoint_collectors.options import each_once, interval_s, process_names, say_the_same
from pinchpoint_collectors.processes import Process
from pinchpoint_collectors.record import Collector, Incident, Processes, Sample, Watch
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.remote.clock import HostClock
from pinchpoint_collectors.remote.collector import CONNECT_S, GAP_INTERVALS, NS, RemoteCollector
from pinchpoint_collectors.remote.session import SshSession
from pinchpoint_collectors.remote.ssh import Address

# The classes below communicate with the script on a host over ssh, and convert its answers.

_NS = 1_000_000_000

FILES = tuple(source.path for source in machine_sources((), {}, (), {}, page_bytes=1))
"""Files to read repeatedly in order. The collector's own processes on the host come last."""


class LinuxHost:
    """One host, from its first report on.

    Args:
        hello: first report of the host.
        watches: hosts of the farm on this machine.
        clock: clock of the times of readings.

    Raises:
        CollectorError: a disk in farm.yaml does not exist on the host.
    """

    def __init__(self, hello: Hello, watches: Sequence[Watch], clock: HostClock) -> None:
        self._hello = hello
        self._watches = tuple(watches)
        self.tiers = RemoteTiers(watches, hello)
        """Tiers that are only a part of the host."""
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
        """Return an id of the machine that changes when the host is restarted."""
        return machine_id(self._hello.files)

    @property
    def fractions(self) -> bool:
        """Return whether the host can be read more often than once a second."""
        return self._hello.fractions

    def samples(self, frame: Frame) -> list[Sample]:
        """Return the samples of a reading. The first reading gives only values that need no difference.

        Raises ``CollectorError`` for an invalid reading.
        """
        if len(frame.sections) <= len(FILES):
            raise CollectorError(f"a reading came with {len(frame.sections)} of more than {len(FILES)} parts")
        times = list(self._timeline.times(frame))
        result: list[Sample] = []
        interval_s = 0.0
        sources = self._machine.sources
        for source, section, (time_ns, now_ns) in zip(sources, frame.sections, times, strict=False):
            if source.path in self._machine.missing:
                continue
            if not section.text:
                raise CollectorError(f"{source.path} can no longer be read")
            reading = source.take(section.text, time_ns, now_ns)
            interval_s = reading.interval_s
            result += self._machine.samples(reading)
        if frame.processes is not None:
            time_ns, now_ns = times[-1]
            uptime_s = frame.sections[-1].uptime_ns / _NS
            result += self.tiers.cpu(frame.processes, time_ns, now_ns, uptime_s, interval_s)
        return [*result, *self._own(frame.sections[len(FILES) :], times[0][0], interval_s)]

    def facts(self, watch: Watch) -> dict[str, Any]:
        """Return the facts of one host for the inventory (docs/metrics.md, "Inventory")."""
        return {**self._machine.facts(watch), **self._hello.cloud}

    def _own(self, sections: Sequence[FileText], time_ns: int, interval_s: float) -> Iterator[Sample]:
        """Return the CPU time of the collector on the host: loop, children, shell, and sshd's session."""
        ours = {one.pid: one for one in (parse(each.text) for each in sections if each.text)}
        before, self._ours_before = self._ours_before, ours
        if before is None:
            return
        used_s = _ticks(before, ours) / self._hello.ticks_per_s
        for watch in self._watches:
            yield Sample(time_ns, interval_s, watch.host, "collector.cpu_s", "ssh/host", used_s)


def _ticks(before: Mapping[int, Process], after: Mapping[int, Process]) -> int:
    """Return ticks of processes, including ended children."""
    return sum(
        now.own + now.reaped - before[pid].own - before[pid].reaped
        for pid, now in after.items()
        if pid in before and before[pid].start == now.start
    )


_HALF_STEP_NS = 5_000_000
_HALF_SECOND_NS = 500_000_000


class LoopSession(SshSession):
    """One session with the loop that reads a host.

    Args:
        address: ssh address of the host.
        script: the script on the host (``script.script``).

    Raises:
        CollectorError: ssh is not installed on this machine.
    """

    def __init__(self, address: Address, script: str) -> None:
        self.hello: Hello | None = None
        self.frames: deque[Frame] = deque()
        self.answers: dict[int, list[str]] = {}
        """Number of a question -> lines of its answer; only complete answers."""
        self.stamps = HostClock()
        """Clock of the times of readings."""
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
        """Request the contents of files, given as shell patterns. Return the number of the question.

        Each line of the answer begins with the file's path and a colon.
        """
        self._number += 1
        self._link.write(f"f {self._number} {' '.join(patterns)}\n")
        return self._number

    @property
    def wall(self) -> HostClock:
        """Return the clock of the host: the one of the readings' times, if it has nanoseconds."""
        return self.stamps if self.hello is not None and self.hello.nanoseconds else self._seconds

    def why_ended(self, silent_s: float = 0.0) -> str:
        # Some accounts without a shell report this on standard output.
        rest = self._link.rest if self.hello is None else ""
        text = "\n".join([rest, *self._said, self._link.errors])
        status = self._link.status()
        # ssh has the same status for a failed link and for a command ended by a signal, but no message.
        silent = status == ssh.SSH_FAILED and not text.strip() and silent_s > ssh.ALIVE_INTERVAL_S
        if self.hello is not None and silent:
            return (
                f"{self._address}: the link was cut, nothing came for {silent_s:.0f} s; look at the network "
                "between here and there"
            )
        if self.hello is not None and (status != ssh.SSH_FAILED or not text.strip()):
            return f"{self._address}: what runs on the host for us was ended there (status {status})"
        return ssh.why(self._address, status, text)

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
        word, _, answer = line.partition(" ")
        number, _, rest = answer.partition(" ")
        if word == "#t":
            self._hear_time(int(number), rest, now_ns)
        elif word == "#h":
            self._answering.setdefault(int(number), []).append(rest)
        elif word == "#H":
            self.answers[int(number)] = self._answering.pop(int(number), [])
        else:
            self._said.append(line)

    def _hear_time(self, number: int, text: str, now_ns: int) -> None:
        sent_ns = self._asked_ns.pop(number)
        stamp, seconds = (int(word) for word in text.split())
        if self.hello is not None and self.hello.nanoseconds:
            self.stamps.observe(sent_ns, stamp, now_ns)
            return
        # A clock with steps has an error of half a step in addition to half the round trip.
        self.stamps.observe(sent_ns - _HALF_STEP_NS, stamp + _HALF_STEP_NS, now_ns + _HALF_STEP_NS)
        day_ns = seconds * 1_000_000_000 + _HALF_SECOND_NS
        self._seconds.observe(sent_ns - _HALF_SECOND_NS, day_ns, now_ns + _HALF_SECOND_NS)


_SHORTEST_S, _LONGEST_S = 0.1, 1.0
_SILENCE_S = 40.0
"""Seconds without a request after which the host ends the script."""
_WHOLE = "the host's sleep takes whole seconds only"


class SshKind:
    """Collector kind ``ssh`` of farm.yaml.

    The options are those of an ``Address``; ``interval`` (``200ms``: interval of readings, by default 1s);
    ``process`` (a name or a list of names: processes of the tier, if the host also runs others).
    """

    name = "ssh"
    options = ssh.OPTIONS | {"interval", "process"}
    public = ssh.PUBLIC | {"interval", "process"}

    def machine(self, watch: Watch) -> str:
        """Return the address: watches with the same address belong to one machine."""
        return " ".join(f"{key}={watch.options[key]}" for key in sorted(ssh.OPTIONS & watch.options.keys()))

    def check_options(self, watch: Watch) -> None:
        Address.of(watch.options)
        interval_s(watch.options, _SHORTEST_S, _LONGEST_S)
        process_names(watch, self.name)

    def connect(self, watches: Sequence[Watch]) -> Collector:
        """Log in, and read the host's facts. Raises ``CollectorError`` with the remedy."""
        first = watches[0]
        where = f"host {first.host!r}, collector 'ssh'"
        if sys.platform == "win32":
            raise CollectorError(
                f"{where}: runs on Linux and macOS; run Pinchpoint there, or watch this host by `kind: agent`"
            )
        each_once(watches, self.name)
        say_the_same(watches, ("interval",), where)
        try:
            address = Address.of(first.options)
            every_s = interval_s(first.options, _SHORTEST_S, _LONGEST_S)
        except CollectorError as error:
            raise CollectorError(f"{where}: {error}") from error
        return SshCollector(watches, address, every_s)


class SshCollector(RemoteCollector[LoopSession]):
    """Reads the output of the loop on a host.

    Args:
        watches: hosts of the farm on this machine.
        address: ssh address of the machine.
        interval_s: seconds between two readings.
        silence_s: seconds without a request after which the loop on the host ends.

    Raises:
        CollectorError: the host is not reachable, or differs from farm.yaml.
    """

    kind = "ssh"
    speaker = "its shell"

    def __init__(
        self,
        watches: Sequence[Watch],
        address: Address,
        interval_s: float = 1.0,
        silence_s: float = _SILENCE_S,
    ) -> None:
        super().__init__([_named(watch) for watch in watches], address)
        self._interval_s = interval_s
        places = sorted({place for watch in watches for place in watch.disks.values() if place[0] == "/"})
        wanted = any(watch.processes is not None for watch in self._watches)
        self._script = script(interval_s, silence_s, FILES, places, processes=wanted)
        self._host: LinuxHost
        self._is_first_reading = True
        try:
            session = self._open(CONNECT_S)
            self._ask(session)
            frame, tiers = self._first_frame(session), self._host.tiers
            tiers.find(parse_all(frame.processes or ""))
            tiers.prepare(session, time.monotonic() + CONNECT_S)
            self._inventory = {
                watch.host: {**self._host.facts(watch), "clock": session.wall.facts()}
                for watch in self._watches
            }
        except CollectorError:
            self.close()
            raise

    def _connect(self) -> LoopSession:
        return LoopSession(self._address, self._script)

    def _begin(self, session: LoopSession) -> None:
        assert session.hello is not None  # noqa: S101 - it has greeted us; shows the type checker
        host = LinuxHost(session.hello, self._watches, session.stamps)
        if self._inventory and self._host.machine_id != host.machine_id:
            self._why = f"{self._address}: the machine was started anew"
        self._host, self._is_first_reading = host, True
        if not host.fractions and self._interval_s < 1:
            wanted = {"wanted_s": self._interval_s, "interval_s": 1.0, "why": _WHOLE}
            self._incidents.append(Incident("interval_not_kept", wanted))
            self._interval_s = 1.0

    def _first_frame(self, session: LoopSession) -> Frame:
        """Wait for a first reading, which is kept for ``read``, and for the time of the host."""
        session.wait(time.monotonic() + CONNECT_S, lambda: session.answered and bool(session.frames))
        if not session.frames:
            raise CollectorError(f"{self._address}: it reported what it is, but sent no reading")
        return session.frames[0]

    def _taken(self, session: LoopSession) -> list[Sample]:
        result: list[Sample] = []
        while session.frames:
            samples = self._host.samples(session.frames.popleft())
            # After a gap the first reading covers no interval, so it would be an instant among seconds.
            result += () if self._is_first_reading and self._last_ns is not None else samples
            self._note_gap(samples[0].time_ns)
        return result

    def _answers(self, session: LoopSession, until_s: float) -> list[Sample]:
        session.wait(until_s, lambda: session.answered)
        return self._host.tiers.go_on(session)

    def _note_gap(self, time_ns: int) -> None:
        """Report the gap before the reading with a time."""
        before_ns, self._last_ns = self._last_ns, time_ns
        is_first, self._is_first_reading = self._is_first_reading, False
        if before_ns is None:
            return
        if is_first:
            self._report_gap(before_ns, time_ns, self._interval_s, self._why)
        elif time_ns - before_ns > GAP_INTERVALS * self._interval_s * NS:
            why = f"{self._address}: it was too busy to read itself in time; what was read covers all of it"
            self._report_gap(before_ns, time_ns, self._interval_s, why)


def _named(watch: Watch) -> Watch:
    """Return the watch with only the processes of farm.yaml, because ports are those of this machine."""
    names = process_names(watch, "ssh")
    return replace(watch, processes=Processes(names=names) if names else None)
