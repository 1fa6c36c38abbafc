"""Kind ``ssh``: a Linux host with nothing of ours on it, over the system's own ssh.

A small shell loop runs there while we are connected (``linux_over_ssh/loop.sh``) and sends the same text that
``local`` reads here; the same parsers read it. Its stamps are corrected by what is known of its clock.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pinchpoint_collectors.common.times import utc
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux_over_ssh.connection import CONNECT_S, Connection
from pinchpoint_collectors.linux_over_ssh.frame import Frame
from pinchpoint_collectors.linux_over_ssh.host import FILES, Host
from pinchpoint_collectors.linux_over_ssh.script import script
from pinchpoint_collectors.linux_over_ssh.session import Session
from pinchpoint_collectors.record import Collector, Incident, Processes, Sample, Watch
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.remote.clock import WARN_OFFSET_S
from pinchpoint_collectors.remote.machine import each_once, interval_s, say_the_same
from pinchpoint_collectors.remote.session import Cost
from pinchpoint_collectors.remote.ssh import Address
from pinchpoint_collectors.tier_option import process_names

_NS = 1_000_000_000
_SHORTEST_S, _LONGEST_S = 0.1, 1.0

_PATIENCE_S = 0.8
"""A reading waits so long for what is about to come: no longer than the run's second."""
_IDLE_S = 20.0
"""Where nobody has read for so long (a run that prepares its data), there was no gap: nobody looked."""
_SILENCE_S = 40.0
"""The host ends what runs for us when it has not been asked for so long."""
_GAP_INTERVALS = 2.5
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
        """See ``record.Choosy``."""
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


class SshCollector:
    """Watches one machine, under the names of all hosts that are it.

    Args:
        watches: what is watched, all on this machine.
        address: where it is.
        interval_s: seconds between two readings there.
        silence_s: the host ends by itself when it has not been asked for so long.

    Raises:
        CollectorError: the host cannot be reached, or is not what farm.yaml says.
    """

    def __init__(
        self,
        watches: Sequence[Watch],
        address: Address,
        interval_s: float = 1.0,
        silence_s: float = _SILENCE_S,
    ) -> None:
        self._hosts = tuple(watch.host for watch in watches)
        self._address = address
        self._interval_s = interval_s
        places = sorted({place for watch in watches for place in watch.disks.values() if place[0] == "/"})
        watches = [_named(watch) for watch in watches]
        wanted = any(watch.processes is not None for watch in watches)
        text = script(interval_s, silence_s, FILES, places, processes=wanted)
        self._connection = Connection(address, text, watches)
        self._incidents: list[Incident] = []
        self._session: Session | None = None
        self._is_first_reading = True
        self._cost = Cost()
        self._last_ns: int | None = None
        self._told_offset_s = 0.0
        self._read_s = time.monotonic()
        try:
            session, host = self._connection.open(CONNECT_S)
            self._connection.ask()
            first = self._first_frame(session)
            host.tiers.find(first.processes or "")
            host.tiers.prepare(session, time.monotonic() + CONNECT_S)
            self._inventory = {
                watch.host: {**host.facts(watch), "clock": session.wall.facts()} for watch in watches
            }
        except CollectorError:
            self.close()
            raise

    def read(self) -> Sequence[Sample]:
        """What came since the reading before; see ``record.Collector``. Waits at most about a second."""
        now_s = time.monotonic()
        idle, self._read_s = now_s - self._read_s > _IDLE_S, now_s
        if idle:
            self._connection.close()
            self._last_ns = None
        session, host = self._connection.open(CONNECT_S if idle else _PATIENCE_S)
        if session is not self._session:
            self._begin(session, host)
        self._connection.ask()
        until_s = time.monotonic() + _PATIENCE_S
        session.wait(until_s, lambda: bool(session.frames) and session.stamps.known)
        samples = self._taken(session, host)
        session.wait(until_s, lambda: session.answered)
        return [*samples, *host.tiers.go_on(session), *self._own(session)]

    def incidents(self) -> Sequence[Incident]:
        """See ``record.Telling``."""
        told, self._incidents = self._incidents, []
        return told

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """Facts about each host when it was connected. See collectors/README.md, "Inventory"."""
        return self._inventory

    def close(self) -> None:
        """End what runs on the host, and the link. Safe to call twice."""
        self._connection.close()

    def _first_frame(self, session: Session) -> Frame:
        """A reading that stays there for ``read``, and an answer of the host's clock."""
        session.wait(time.monotonic() + CONNECT_S, lambda: session.answered and bool(session.frames))
        if not session.frames:
            raise CollectorError(f"{self._address}: it told what it is, but sent no reading")
        return session.frames[0]

    def _begin(self, session: Session, host: Host) -> None:
        """A session that was not there at the reading before."""
        self._session = session
        self._is_first_reading = True
        self._cost = Cost()
        if not host.fractions and self._interval_s < 1:
            self._incidents.append(
                Incident(
                    "interval_not_kept", {"wanted_s": self._interval_s, "interval_s": 1.0, "why": _WHOLE}
                )
            )
            self._interval_s = 1.0

    def _taken(self, session: Session, host: Host) -> list[Sample]:
        """The samples of the readings that have come. Raises ``CollectorError`` where none did for long."""
        if not session.frames or not session.stamps.known:
            self._connection.nothing_came()
            return []
        self._connection.came()
        found: list[Sample] = []
        while session.frames:
            samples = host.samples(session.frames.popleft())
            # After a gap the first reading covers no time: it would stand for an instant among seconds.
            found += () if self._is_first_reading and self._last_ns is not None else samples
            self._note_gap(samples[0].time_ns)
        return found

    def _note_gap(self, time_ns: int) -> None:
        """Tell the gap there is before the reading of that time."""
        before_ns, self._last_ns = self._last_ns, time_ns
        is_first, self._is_first_reading = self._is_first_reading, False
        if before_ns is None:
            return
        if is_first:
            self._tell_gap(before_ns, time_ns, self._connection.why)
        elif time_ns - before_ns > _GAP_INTERVALS * self._interval_s * _NS:
            why = f"{self._address}: it was too busy to read itself in time; what was read covers all of it"
            self._tell_gap(before_ns, time_ns, why)

    def _tell_gap(self, from_ns: int, to_ns: int, why: str) -> None:
        missed = max(0, round((to_ns - from_ns) / _NS / self._interval_s) - 1)
        span = {"from": utc(from_ns), "to": utc(to_ns)}
        self._incidents.append(
            Incident("gap", {**span, "missed": missed, "interval_s": self._interval_s, "why": why})
        )

    def _own(self, session: Session) -> Iterator[Sample]:
        """What watching costs here beside this thread, and how far the host's clock is off."""
        time_ns = time.time_ns()
        interval_s, cpu_s, received_bytes = self._cost.since(session)
        for host in self._hosts:
            yield Sample(time_ns, interval_s, host, "collector.cpu_s", "ssh/client", cpu_s)
            yield Sample(time_ns, interval_s, host, "collector.received_bytes", "ssh", received_bytes)
        yield from session.wall.samples(time_ns, interval_s, self._hosts, "ssh")
        if not session.wall.known:
            return
        offset_s = session.wall.offset_ns / _NS
        if abs(offset_s) > WARN_OFFSET_S and abs(offset_s - self._told_offset_s) > WARN_OFFSET_S:
            self._told_offset_s = offset_s
            self._incidents.append(Incident("clock_offset", session.wall.facts()))


def _named(watch: Watch) -> Watch:
    """With the processes that farm.yaml names, or none: who listens here is nothing to another machine."""
    names = process_names(watch, "ssh")
    return replace(watch, processes=Processes(names=names) if names else None)
