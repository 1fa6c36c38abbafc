"""Measures one machine over ssh: opens the link, reopens a lost link, and reports gaps."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NoReturn, TypeVar

from pinchpoint_collectors.common.backoff import Backoff
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Incident, Sample, Watch
from pinchpoint_collectors.remote.clock import WARN_OFFSET_S
from pinchpoint_collectors.remote.session import SessionCost, SshSession
from pinchpoint_collectors.remote.ssh import Address

NS = 1_000_000_000
CONNECT_S = 20.0
"""Time limit from the start of a connection to the first output of the host in seconds, with jump hosts."""
GAP_INTERVALS = 2.5
SILENT_S = 2.5
"""Silence in seconds above which a reading fails. After a shorter silence, the next reading has the data."""
_GIVE_UP_S = 20.0
"""Seconds of silence after which the link is given up. It is for a hung program, because ssh notices a dead
link earlier."""
_PATIENCE_S = 0.8
"""Longest wait of a reading for new data in seconds, within the second of the run."""
_IDLE_S = 20.0
"""Seconds without a reading after which there is no gap, because no reading was due (a run prepares its
data)."""
_ASK_S = 10.0
"""Seconds between requests for the time of the host, which also keep the link alive."""
_FIRST_QUESTIONS = 5

S = TypeVar("S", bound=SshSession)


class RemoteCollector(ABC, Generic[S]):
    """One machine for all its hosts, with at most one session at a time.

    A subclass defines how a session begins and what it reads (see ``record.Collector`` and
    ``record.GapReporter``).

    Args:
        watches: hosts of the farm on this machine.
        address: ssh address of the machine.
    """

    kind: str
    speaker: str
    """Return the name of the remote side for messages."""

    def __init__(self, watches: Sequence[Watch], address: Address) -> None:
        self._watches = tuple(watches)
        self._hosts = tuple(watch.host for watch in watches)
        self._address = address
        self._backoff = Backoff(1.0, 30.0, jitter=0.0)
        self._session: S | None = None
        self._greeted = False
        self._why = ""
        """Why the last session ended, or could not be opened."""
        self._last_ns: int | None = None
        """Time of the last reading; None if there was none, or none was due since."""
        self._incidents: list[Incident] = []
        self._reported_offset_s = 0.0
        self._cost = SessionCost()
        self._read_s = self._came_s = time.monotonic()
        self._opened_s = self._ask_at_s = 0.0
        self._questions = 0
        self._inventory: Mapping[str, Mapping[str, Any]] = {}

    def read(self) -> Sequence[Sample]:
        """Return the data since the last reading (see ``record.Collector``). Waits at most about a second."""
        now_s = time.monotonic()
        idle, self._read_s = now_s - self._read_s > _IDLE_S, now_s
        if idle:
            self.close()
            self._last_ns = None
        session = self._open(CONNECT_S if idle else _PATIENCE_S)
        self._ask(session)
        until_s = time.monotonic() + _PATIENCE_S
        session.wait(until_s, lambda: session.has_reading)
        samples: list[Sample] = []
        if session.has_reading:
            self._came_s = time.monotonic()
            self._backoff.succeeded()
            samples = self._taken(session)
        else:
            self._nothing_came(session)
        return [*samples, *self._answers(session, until_s), *self._own(session)]

    def incidents(self) -> Sequence[Incident]:
        reported, self._incidents = self._incidents, []
        return reported

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """Return facts about each host at the time of connecting (docs/metrics.md, "Inventory")."""
        return self._inventory

    def close(self) -> None:
        """End the link and the process on the host. A second call does nothing. ``read`` opens a new link."""
        if self._session is not None:
            self._session.close()
            self._session = None

    @abstractmethod
    def _connect(self) -> S:
        """Start a new session. Raises ``CollectorError`` if ssh is not installed on this machine."""

    @abstractmethod
    def _begin(self, session: S) -> None:
        """Process the host's greeting. Raises ``CollectorError`` if the host differs from farm.yaml."""

    @abstractmethod
    def _taken(self, session: S) -> list[Sample]:
        """Return the samples of the readings that have arrived."""

    def _answers(self, session: S, until_s: float) -> Iterable[Sample]:  # noqa: ARG002 - not every kind asks
        """Process answers other than readings. Waits at most until a monotonic time."""
        return ()

    def _spent_there(self, session: S) -> Iterable[tuple[str, float]]:  # noqa: ARG002 - not every kind reports it
        """Return instance and CPU seconds of the processes on the host since the last call."""
        return ()

    @property
    def _slow_s(self) -> float:
        """Return the additional seconds that a reading may take because its host is read rarely."""
        return 0.0

    @property
    def _remedy(self) -> str:
        """Return why no data may arrive, and the remedy."""
        return "the link is slow or cut, or the host stands still"

    def _open(self, patience_s: float) -> S:
        """Return the current session, or a new one. Raises ``CollectorError`` while there is none."""
        now_s = time.monotonic()
        if self._session is None:
            if not self._backoff.due:
                raise CollectorError(self._why)
            self._session = self._connect()
            self._opened_s, self._greeted, self._cost = now_s, False, SessionCost()
            self._ask_at_s, self._questions = 0.0, 0
        session = self._session
        if self._greeted:
            return session
        try:
            session.wait(now_s + patience_s, lambda: session.greeted)
            if session.greeted:
                self._begin(session)
        except CollectorError as error:
            self._lose(str(error))
        if not session.greeted:
            if session.ended:
                self._lose(session.why_ended())
            if time.monotonic() - self._opened_s >= CONNECT_S:
                self._lose(f"{self._address}: {self.speaker} said nothing within {CONNECT_S:.0f} s")
            raise CollectorError(f"{self._why or self._address}; connecting again")
        self._greeted, self._came_s = True, time.monotonic()
        return session

    def _lose(self, why: str) -> NoReturn:
        self.close()
        self._backoff.failed()
        self._why = why
        raise CollectorError(why)

    def _ask(self, session: S) -> None:
        """Request the time of the host if due: several times at the start, then regularly."""
        now_s = time.monotonic()
        if session.answered and now_s >= self._ask_at_s:
            session.ask_time()
            self._questions += 1
            self._ask_at_s = now_s if self._questions < _FIRST_QUESTIONS else now_s + _ASK_S

    def _nothing_came(self, session: S) -> None:
        """Raises ``CollectorError`` if the silence is longer than a late reading explains."""
        silent_s = time.monotonic() - self._came_s
        if session.ended:
            self._lose(session.why_ended(silent_s))
        answer = self._silent(f"nothing came for {silent_s:.0f} s")
        if silent_s > _GIVE_UP_S + self._slow_s:
            self._lose(answer)
        if silent_s > SILENT_S + self._slow_s:
            raise CollectorError(answer)

    def _silent(self, what: str) -> str:
        return f"{self._address}: {what}; {self._remedy}"

    def _report_gap(self, from_ns: int, to_ns: int, interval_s: float, why: str) -> None:
        missed = max(0, round((to_ns - from_ns) / NS / interval_s) - 1)
        self._incidents.append(Incident.gap(from_ns, to_ns, missed, interval_s, why))

    def _own(self, session: S) -> Iterator[Sample]:
        """Yield the cost of this collector outside of this thread, and the offset of the host's clock."""
        time_ns, kind, wall = time.time_ns(), self.kind, session.wall
        interval_s, cpu_s, received_bytes = self._cost.since(session)
        spent = ((f"{kind}/client", cpu_s), *self._spent_there(session))
        for host in self._hosts:
            for instance, used_s in spent:
                yield Sample(time_ns, interval_s, host, "collector.cpu_s", instance, used_s)
            yield Sample(time_ns, interval_s, host, "collector.received_bytes", kind, received_bytes)
        yield from wall.samples(time_ns, interval_s, self._hosts, kind)
        if not wall.known:
            return
        offset_s = wall.offset_ns / NS
        if abs(offset_s) > WARN_OFFSET_S and abs(offset_s - self._reported_offset_s) > WARN_OFFSET_S:
            self._reported_offset_s = offset_s
            self._incidents.append(Incident("clock_offset", wall.facts()))
