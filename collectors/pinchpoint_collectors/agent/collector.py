"""Kind ``agent``: a Linux host that records itself by ``pinchpoint-collect``, fetched over the system's ssh.

What was recorded while the link was cut is fetched afterwards: it leaves no gap, but where the host did not
record, or does not keep that long.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pinchpoint_collectors.agent.codec import Reading
from pinchpoint_collectors.agent.command import FOLDER
from pinchpoint_collectors.agent.session import Session
from pinchpoint_collectors.common.backoff import Backoff
from pinchpoint_collectors.common.times import utc
from pinchpoint_collectors.errors import CollectorError, OptionError
from pinchpoint_collectors.record import Collector, Incident, NotMeasured, Sample, Watch
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.remote.clock import WARN_OFFSET_S
from pinchpoint_collectors.remote.machine import each_once
from pinchpoint_collectors.remote.session import Cost
from pinchpoint_collectors.remote.ssh import Address

_NS = 1_000_000_000
_COMMAND = "pinchpoint-collect"
_CONNECT_S = 20.0
_PATIENCE_S = 0.8
"""A reading waits so long for what is about to come: no longer than the run's second."""
_IDLE_S = 20.0
"""Where nobody has read for so long (a run that prepares its data), nobody looked: it is not fetched."""
_SILENT_S = 3.0
"""Beyond this and two of its intervals, nothing that came is a failure."""
_GIVE_UP_S = 20.0
_ASK_S = 10.0
_FIRST_QUESTIONS = 5
_GAP_INTERVALS = 2.5


class AgentKind:
    """The kind ``agent`` of farm.yaml.

    Its options there: those of an ``Address``; ``command`` (``pinchpoint-collect`` on the host, where it is
    not on the user's path); ``folder`` (its ring there, where that is not the usual one).
    """

    name = "agent"
    options = ssh.OPTIONS | {"command", "folder"}
    public = ssh.PUBLIC | {"folder"}

    def machine(self, watch: Watch) -> str:
        """Watches of one address are about one machine."""
        return " ".join(f"{key}={watch.options[key]}" for key in sorted(self.options & watch.options.keys()))

    def check_options(self, watch: Watch) -> None:
        """See ``record.Choosy``."""
        Address.of(watch.options)
        _text(watch.options, "command", _COMMAND)
        _text(watch.options, "folder", FOLDER)

    def connect(self, watches: Sequence[Watch]) -> Collector:
        """Log in, and take the first reading. Raises ``CollectorError`` with the remedy."""
        first = watches[0]
        where = f"host {first.host!r}, collector 'agent'"
        each_once(watches, self.name)
        try:
            address = Address.of(first.options)
            command, folder = (
                _text(first.options, "command", _COMMAND),
                _text(first.options, "folder", FOLDER),
            )
        except CollectorError as error:
            raise CollectorError(f"{where}: {error}") from error
        return AgentCollector(watches, address, command, folder)


class AgentCollector:
    """Watches one machine, under the names of all hosts that are it.

    Args:
        watches: what is watched, all on this machine.
        address: where it is.
        command: ``pinchpoint-collect`` there.
        folder: its ring there.

    Raises:
        CollectorError: the host cannot be reached, does not record, or is not what farm.yaml says.
    """

    def __init__(self, watches: Sequence[Watch], address: Address, command: str, folder: str) -> None:
        self._watches = tuple(watches)
        self._hosts = tuple(watch.host for watch in watches)
        self._address, self._command, self._folder = address, command, folder
        self._backoff = Backoff(1.0, 30.0, jitter=0.0)
        self._session: Session | None = None
        self._begun = False
        self._why = ""
        self._since_ns: int | None = None
        self._incidents: list[Incident] = []
        self._told_offset_s = 0.0
        self._read_s = self._came_s = time.monotonic()
        self._opened_s = self._ask_at_s = 0.0
        self._questions = 0
        self._cost = Cost()
        self._tail_s = 0.0
        try:
            session = self._open(_CONNECT_S)
            self._inventory = self._facts(session)
        except CollectorError:
            self.close()
            raise

    def read(self) -> Sequence[Sample]:
        """What came since the reading before; see ``record.Collector``. Waits at most about a second."""
        now_s = time.monotonic()
        idle, self._read_s = now_s - self._read_s > _IDLE_S, now_s
        if idle:
            self.close()
            self._since_ns = None
        session = self._open(_CONNECT_S if idle else _PATIENCE_S)
        until_s = time.monotonic() + _PATIENCE_S
        self._ask(session)
        session.wait(until_s, lambda: bool(session.readings) and session.clock.known)
        return [*self._taken(session), *self._own(session)]

    def incidents(self) -> Sequence[Incident]:
        """See ``record.Telling``."""
        told, self._incidents = self._incidents, []
        return told

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """Facts about each host when it was connected. See collectors/README.md, "Inventory"."""
        return self._inventory

    def close(self) -> None:
        """End the link; what records there goes on. Safe to call twice."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _open(self, patience_s: float) -> Session:
        """The session there is, else a new one. Raises ``CollectorError`` while there is none."""
        now_s = time.monotonic()
        if self._session is None:
            if not self._backoff.due:
                raise CollectorError(self._why)
            self._session = Session(self._address, self._command, self._folder, self._since_ns)
            self._opened_s, self._begun = now_s, False
            self._ask_at_s, self._questions, self._cost, self._tail_s = 0.0, 0, Cost(), 0.0
        session = self._session
        if self._begun:
            return session
        session.wait(now_s + patience_s, lambda: session.hello is not None)
        if session.hello is None:
            if session.ended:
                self._lose(session.why_ended())
            if time.monotonic() - self._opened_s >= _CONNECT_S:
                self._lose(f"{self._address}: pinchpoint-collect said nothing within {_CONNECT_S:.0f} s")
            raise CollectorError(f"{self._why or self._address}; connecting again")
        self._begun, self._came_s = True, time.monotonic()
        self._backoff.succeeded()
        return session

    def _lose(self, why: str) -> None:
        self.close()
        self._backoff.failed()
        self._why = why
        raise CollectorError(why)

    def _ask(self, session: Session) -> None:
        """Ask for the time where that is due: some times at the begin, then now and then."""
        now_s = time.monotonic()
        if session.answered and now_s >= self._ask_at_s:
            session.ask_time()
            self._questions += 1
            self._ask_at_s = now_s if self._questions < _FIRST_QUESTIONS else now_s + _ASK_S

    def _facts(self, session: Session) -> dict[str, dict[str, Any]]:
        """The inventory of each host, from what is asked there and from a first reading."""
        for watch in self._watches:
            session.ask_inventory(watch)
        session.ask_time()
        session.wait(
            time.monotonic() + _CONNECT_S,
            lambda: len(session.inventories) == len(self._hosts) and session.answered,
        )
        if session.ended:
            raise CollectorError(session.why_ended())
        interval_s = self._interval_s(session)
        session.wait(time.monotonic() + _SILENT_S + 2 * interval_s, lambda: bool(session.readings))
        if not session.readings:
            raise CollectorError(self._silent("no reading came"))
        seen = {each.instance for each in session.readings[0].samples if each.metric == "disk.reads_per_s"}
        found = {}
        for watch in self._watches:
            said = session.inventories.get(watch.host, {"error": "it did not answer what it is"})
            if "error" in said:
                raise CollectorError(f"{self._address}: {said['error']}")
            facts = {**said["facts"], "clock": session.clock.facts()}
            facts["not_measured"] = [*facts["not_measured"], *_unseen(facts, seen)]
            found[watch.host] = facts
        return found

    def _taken(self, session: Session) -> list[Sample]:
        """The samples of the readings that have come. Raises ``CollectorError`` where none did for long."""
        now_s = time.monotonic()
        if not session.readings or not session.clock.known:
            silent_s = now_s - self._came_s
            if session.ended:
                self._lose(session.why_ended())
            if silent_s > _GIVE_UP_S + 2 * self._interval_s(session):
                self._lose(self._silent(f"nothing came for {silent_s:.0f} s"))
            if silent_s > _SILENT_S + 2 * self._interval_s(session):
                raise CollectorError(self._silent(f"nothing came for {silent_s:.0f} s"))
            return []
        self._came_s = now_s
        found: list[Sample] = []
        while session.readings:
            reading = session.readings.popleft()
            self._note_gap(session, reading)
            found += self._fanned_out(session, reading)
        return found

    def _fanned_out(self, session: Session, reading: Reading) -> Iterator[Sample]:
        """One reading by our clock, under the name of each host, with its tier's name."""
        for watch in self._watches:
            for sample in reading.samples:
                instance = sample.instance
                if instance.startswith("tier:"):
                    instance = f"tier:{watch.tier}"
                elif sample.metric.startswith("collector."):
                    if sample.metric != "collector.cpu_s":
                        continue  # how long a reading took there says nothing of ours
                    instance = "agent/host"
                time_ns = session.clock.to_ours(sample.time_ns)
                yield sample._replace(time_ns=time_ns, host=watch.host, instance=instance)

    def _note_gap(self, session: Session, reading: Reading) -> None:
        """Tell the gap there is before a reading: what came late is none."""
        before_ns, self._since_ns = self._since_ns, reading.at_ns
        interval_s = self._interval_s(session)
        if before_ns is None or reading.at_ns - before_ns <= _GAP_INTERVALS * interval_s * _NS:
            return
        hello = session.hello or {}
        if reading.at_ns == hello.get("oldest_ns") and hello.get("dropped"):
            why = (
                f"{self._address}: what it keeps ({hello['hours']:g} h, {hello['size_bytes']} bytes) did not "
                "reach back so far; make `hours` or `size_bytes` larger in its configuration"
            )
        else:
            why = f"{self._address}: it did not record meanwhile: it was stopped, or too busy"
        span = {
            "from": utc(session.clock.to_ours(before_ns)),
            "to": utc(session.clock.to_ours(reading.at_ns)),
        }
        missed = max(0, round((reading.at_ns - before_ns) / _NS / interval_s) - 1)
        self._incidents.append(
            Incident("gap", {**span, "missed": missed, "interval_s": interval_s, "why": why})
        )

    def _own(self, session: Session) -> Iterator[Sample]:
        """What fetching costs, and how far the host's clock is off."""
        time_ns = time.time_ns()
        interval_s, cpu_s, received = self._cost.since(session)
        tail_s, self._tail_s = session.tail_cpu_s - self._tail_s, session.tail_cpu_s
        for host in self._hosts:
            yield Sample(time_ns, interval_s, host, "collector.cpu_s", "agent/client", cpu_s)
            yield Sample(time_ns, interval_s, host, "collector.cpu_s", "agent/tail", tail_s)
            yield Sample(time_ns, interval_s, host, "collector.received_bytes", "agent", received)
        yield from session.clock.samples(time_ns, interval_s, self._hosts, "agent")
        if not session.clock.known:
            return
        offset_s = session.clock.offset_ns / _NS
        if abs(offset_s) > WARN_OFFSET_S and abs(offset_s - self._told_offset_s) > WARN_OFFSET_S:
            self._told_offset_s = offset_s
            self._incidents.append(Incident("clock_offset", session.clock.facts()))

    def _interval_s(self, session: Session) -> float:
        return float((session.hello or {}).get("interval_s", 1.0))

    def _silent(self, what: str) -> str:
        return (
            f"{self._address}: {what}; the link is slow or cut, or nothing records there: look with "
            "`systemctl status pinchpoint-collect`"
        )


def _unseen(facts: Mapping[str, Any], seen: set[str]) -> Iterator[dict[str, Any]]:
    """Disks with a role that the agent does not record: it watches whole disks, and others it is told."""
    said = {each["instance"] for each in facts["not_measured"] if each["metric"] == "disk.*"}
    for role, place in facts["roles"].items():
        device = place["device"]
        if device is not None and device not in seen | said:
            remedy = f"add {place['given']!r} to `disks` in its configuration and start it anew"
            why = f"pinchpoint-collect there does not record {device} (role {role})"
            yield asdict(NotMeasured("disk.*", device, why, remedy))


def _text(options: Mapping[str, Any], name: str, default: str) -> str:
    value = options.get(name, default)
    if not isinstance(value, str) or not value or value.startswith("-"):
        raise OptionError(name, f"found {value!r}; allowed: a path on the host")
    return value
