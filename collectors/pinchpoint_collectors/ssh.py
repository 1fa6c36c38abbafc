"""Kind ``ssh``: a Linux host with nothing of ours on it, over the system's own ssh.

A small shell loop runs there while we are connected (``linux_over_ssh/loop.sh``) and sends the same text that
``local`` reads here; the same parsers read it. Its stamps are corrected by what is known of its clock.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux_over_ssh.frame import Frame
from pinchpoint_collectors.linux_over_ssh.script import script
from pinchpoint_collectors.linux_over_ssh.session import FILES, LinuxHost, LoopSession
from pinchpoint_collectors.linux_over_ssh.tiers import parse_all
from pinchpoint_collectors.options import each_once, interval_s, process_names, say_the_same
from pinchpoint_collectors.record import Collector, Incident, Processes, Sample, Watch
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.remote.collector import CONNECT_S, GAP_INTERVALS, NS, RemoteCollector
from pinchpoint_collectors.remote.ssh import Address

_SHORTEST_S, _LONGEST_S = 0.1, 1.0
_SILENCE_S = 40.0
"""The host ends what runs for us when it has not been asked for so long."""
_WHOLE = "the host's sleep takes whole seconds only"


class SshKind:
    """The kind ``ssh`` of farm.yaml.

    Its options there: those of an ``Address``; ``interval`` (``200ms``: how often the host reads itself, by
    default 1s); ``process`` (a name or a list of names: which processes are the tier's, where the host runs
    more).
    """

    name = "ssh"
    options = ssh.OPTIONS | {"interval", "process"}
    public = ssh.PUBLIC | {"interval", "process"}

    def machine(self, watch: Watch) -> str:
        """Watches of one address are about one machine."""
        return " ".join(f"{key}={watch.options[key]}" for key in sorted(ssh.OPTIONS & watch.options.keys()))

    def check_options(self, watch: Watch) -> None:
        Address.of(watch.options)
        interval_s(watch.options, _SHORTEST_S, _LONGEST_S)
        process_names(watch, self.name)

    def connect(self, watches: Sequence[Watch]) -> Collector:
        """Log in, and look at the host. Raises ``CollectorError`` with the remedy."""
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
    """Reads what the loop there sends.

    Args:
        watches: what is watched, all on this machine.
        address: where it is.
        interval_s: seconds between two readings there.
        silence_s: the host ends by itself when it has not been asked for so long.

    Raises:
        CollectorError: the host cannot be reached, or is not what farm.yaml says.
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
        """A reading that stays there for ``read``, and an answer of the host's clock."""
        session.wait(time.monotonic() + CONNECT_S, lambda: session.answered and bool(session.frames))
        if not session.frames:
            raise CollectorError(f"{self._address}: it reported what it is, but sent no reading")
        return session.frames[0]

    def _taken(self, session: LoopSession) -> list[Sample]:
        found: list[Sample] = []
        while session.frames:
            samples = self._host.samples(session.frames.popleft())
            # After a gap the first reading covers no time: it would stand for an instant among seconds.
            found += () if self._is_first_reading and self._last_ns is not None else samples
            self._note_gap(samples[0].time_ns)
        return found

    def _answers(self, session: LoopSession, until_s: float) -> list[Sample]:
        session.wait(until_s, lambda: session.answered)
        return self._host.tiers.go_on(session)

    def _note_gap(self, time_ns: int) -> None:
        """Report the gap before the reading of that time."""
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
    """With the processes that farm.yaml names, or none: who listens here is nothing to another machine."""
    names = process_names(watch, "ssh")
    return replace(watch, processes=Processes(names=names) if names else None)
