"""Collector kind ``agent``: a program on the host records, and its recording is fetched over ssh."""

from __future__ import annotations

import json
import shlex
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pinchpoint_collectors.agent.codec import VERSION, Decoder, RingReading
from pinchpoint_collectors.agent.command import FOLDER
from pinchpoint_collectors.common import legible
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.options import each_once, text
from pinchpoint_collectors.record import Collector, NotMeasured, Sample, Watch
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.remote.clock import HostClock
from pinchpoint_collectors.remote.collector import CONNECT_S, GAP_INTERVALS, NS, SILENT_S, RemoteCollector
from pinchpoint_collectors.remote.session import SshSession
from pinchpoint_collectors.remote.ssh import Address


class TailSession(SshSession):
    """One ``pinchpoint-collect tail`` process on the host.

    Args:
        address: ssh address of the host.
        command: ``pinchpoint-collect`` on the host.
        folder: folder of the ring on the host.
        since_ns: position in the ring after which readings are wanted; None: only future readings.

    Raises:
        CollectorError: ssh is not installed on this machine.
    """

    def __init__(self, address: Address, command: str, folder: str, since_ns: int | None) -> None:
        self.hello: dict[str, Any] | None = None
        self.readings: deque[RingReading] = deque()
        self.inventories: dict[str, dict[str, Any]] = {}
        """For each host, ``facts`` or ``error``."""
        self._clock = HostClock()
        self.tail_cpu_s = 0.0
        """CPU seconds of the ``tail`` process on the host, from its last report."""
        self._decoder = Decoder()
        words = [
            command,
            "tail",
            "--follow",
            "--folder",
            folder,
            "--since",
            "now" if since_ns is None else str(since_ns),
        ]
        super().__init__(address, shlex.join(words))

    @property
    def greeted(self) -> bool:
        return self.hello is not None

    @property
    def has_reading(self) -> bool:
        return bool(self.readings) and self.wall.known

    def ask_time(self) -> None:
        self._ask({"time": self._next_question()})

    @property
    def wall(self) -> HostClock:
        return self._clock

    def ask_inventory(self, watch: Watch) -> None:
        """Request facts about the host and about the disks of a watch's roles."""
        self._ask({"watch": {"host": watch.host, "tier": watch.tier, "disks": dict(watch.disks)}})

    def why_ended(self, silent_s: float = 0.0) -> str:  # noqa: ARG002 - ssh reports it by itself
        status = self._link.status()
        answer = "\n".join([*self._said, self._link.errors])
        words = [line for line in answer.splitlines() if line.startswith("pinchpoint-collect: ")]
        if words:
            return f"{self._address}: {words[-1]}"
        if status in (126, 127):
            return (
                f"{self._address}: no pinchpoint-collect is there (exit status {status}); install it by the "
                "role infra/ansible, say where it is with `command:`, or watch this host by `kind: ssh`"
            )
        if self.hello is not None and status != ssh.SSH_FAILED:
            return f"{self._address}: pinchpoint-collect was ended there (status {status})"
        return ssh.why(self._address, status, answer)

    def _ask(self, question: Mapping[str, Any]) -> None:
        self._link.write(json.dumps(question) + "\n")

    def _take(self, timeout_s: float) -> None:
        self._link.pump(timeout_s)
        now_ns = time.time_ns()
        for line in self._link.pieces():
            try:
                self._hear(line, now_ns)
            except (ValueError, KeyError) as error:
                if self.hello is None:
                    self._said.append(line)  # banner of the login shell
                    continue
                raise CollectorError(
                    f"{self._address}: pinchpoint-collect said what is not understood: {line[:80]!r}"
                ) from error
        self._said += self._link.error_lines()

    def _hear(self, line: str, now_ns: int) -> None:
        if line.startswith('{"at":'):
            self.readings.append(self._decoder.decode(line))
            return
        answer = legible.loads(line)
        if "hello" in answer:
            self.hello = self._understood(answer["hello"])
        elif "time" in answer:
            self._clock.observe(self._asked_ns.pop(answer["time"]), answer["ns"], now_ns)
            self.tail_cpu_s = answer["cpu_s"]
        else:
            self.inventories[answer["inventory"]] = answer

    def _understood(self, hello: dict[str, Any]) -> dict[str, Any]:
        if hello["version"] != VERSION:
            raise CollectorError(
                f"{self._address}: its pinchpoint-collect speaks version {hello['version']}, this one "
                f"{VERSION}; install the same release on both"
            )
        return hello


_COMMAND = "pinchpoint-collect"


class AgentKind:
    """Collector kind ``agent`` of farm.yaml.

    The options are those of an ``Address``, ``command`` (path of ``pinchpoint-collect`` on the host, if it is
    not on the user's path), and ``folder`` (folder of the ring, if it is not the default one).
    """

    name = "agent"
    options = ssh.OPTIONS | {"command", "folder"}
    public = ssh.PUBLIC | {"folder"}

    def machine(self, watch: Watch) -> str:
        """Return the address: watches with the same address belong to one machine."""
        return " ".join(f"{key}={watch.options[key]}" for key in sorted(self.options & watch.options.keys()))

    def check_options(self, watch: Watch) -> None:
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


class AgentCollector(RemoteCollector[TailSession]):
    """Fetches the readings that ``pinchpoint-collect`` records on a host.

    Args:
        watches: hosts of the farm on this machine.
        address: ssh address of the host.
        command: ``pinchpoint-collect`` on the host.
        folder: folder of the ring on the host.

    Raises:
        CollectorError: the host is not reachable, does not record, or differs from farm.yaml.
    """

    kind = "agent"
    speaker = _COMMAND

    def __init__(self, watches: Sequence[Watch], address: Address, command: str, folder: str) -> None:
        super().__init__(watches, address)
        self._command, self._folder = command, folder
        self._tail_s = 0.0
        try:
            self._inventory = self._facts(self._open(CONNECT_S))
        except CollectorError:
            self.close()
            raise

    def _connect(self) -> TailSession:
        return TailSession(self._address, self._command, self._folder, self._last_ns)

    def _begin(self, session: TailSession) -> None:  # noqa: ARG002 - its first words had it all
        self._tail_s = 0.0

    @property
    def _slow_s(self) -> float:
        return 2 * self._interval_s(self._session) if self._session is not None else 0.0

    @property
    def _remedy(self) -> str:
        where = "look with `systemctl status pinchpoint-collect`"
        return f"the link is slow or cut, or nothing records there: {where}"

    def _facts(self, session: TailSession) -> dict[str, dict[str, Any]]:
        """Return the inventory of each host, from the answers of the host and a first reading."""
        for watch in self._watches:
            session.ask_inventory(watch)
        session.ask_time()
        session.wait(
            time.monotonic() + CONNECT_S,
            lambda: len(session.inventories) == len(self._hosts) and session.answered,
        )
        if session.ended:
            raise CollectorError(session.why_ended())
        session.wait(time.monotonic() + SILENT_S + self._slow_s, lambda: bool(session.readings))
        if not session.readings:
            raise CollectorError(self._silent("no reading came"))
        seen = {each.instance for each in session.readings[0].samples if each.metric == "disk.reads_per_s"}
        result = {}
        for watch in self._watches:
            answer = session.inventories.get(watch.host, {"error": "it did not answer what it is"})
            if "error" in answer:
                raise CollectorError(f"{self._address}: {answer['error']}")
            facts = {**answer["facts"], "clock": session.wall.facts()}
            facts["not_measured"] = [*facts["not_measured"], *_unseen(facts, seen)]
            result[watch.host] = facts
        return result

    def _taken(self, session: TailSession) -> list[Sample]:
        samples: list[Sample] = []
        while session.readings:
            reading = session.readings.popleft()
            self._note_gap(session, reading)
            samples += self._fanned_out(session, reading)
        return samples

    def _fanned_out(self, session: TailSession, reading: RingReading) -> Iterator[Sample]:
        """Return one reading in this machine's time, repeated under the name and the tier of each host."""
        for watch in self._watches:
            for sample in reading.samples:
                instance = sample.instance
                if instance.startswith("tier:"):
                    instance = f"tier:{watch.tier}"
                elif sample.metric.startswith("collector."):
                    if sample.metric != "collector.cpu_s":
                        continue  # the host measures the duration of a reading
                    instance = "agent/host"
                time_ns = session.wall.to_ours(sample.time_ns)
                yield sample._replace(time_ns=time_ns, host=watch.host, instance=instance)

    def _note_gap(self, session: TailSession, reading: RingReading) -> None:
        """Report the gap before a reading. Late samples are no gap."""
        before_ns, self._last_ns = self._last_ns, reading.at_ns
        interval_s = self._interval_s(session)
        if before_ns is None or reading.at_ns - before_ns <= GAP_INTERVALS * interval_s * NS:
            return
        hello = session.hello or {}
        if reading.at_ns == hello.get("oldest_ns") and hello.get("dropped"):
            why = (
                f"{self._address}: what it keeps ({hello['hours']:g} h, {hello['size_bytes']} bytes) did not "
                "reach back so far; make `hours` or `size_bytes` larger in its configuration"
            )
        else:
            why = f"{self._address}: it did not record meanwhile: it was stopped, or too busy"
        from_ns, to_ns = session.wall.to_ours(before_ns), session.wall.to_ours(reading.at_ns)
        self._report_gap(from_ns, to_ns, interval_s, why)

    def _spent_there(self, session: TailSession) -> Iterable[tuple[str, float]]:
        tail_s, self._tail_s = session.tail_cpu_s - self._tail_s, session.tail_cpu_s
        return [("agent/tail", tail_s)]

    def _interval_s(self, session: TailSession) -> float:
        return float((session.hello or {}).get("interval_s", 1.0))


def _unseen(facts: Mapping[str, Any], seen: set[str]) -> Iterator[dict[str, Any]]:
    """Yield disks with a role that the agent does not record.

    It records only configured disks and whole disks.
    """
    answer = {each["instance"] for each in facts["not_measured"] if each["metric"] == "disk.*"}
    for role, place in facts["roles"].items():
        device = place["device"]
        if device is not None and device not in seen | answer:
            remedy = f"add {place['given']!r} to `disks` in its configuration and start it anew"
            why = f"pinchpoint-collect there does not record {device} (role {role})"
            yield asdict(NotMeasured("disk.*", device, why, remedy))


def _text(options: Mapping[str, Any], name: str, default: str) -> str:
    fits = text(options, name, lambda path: bool(path) and not path.startswith("-"), "a path on the host")
    return default if fits is None else fits
