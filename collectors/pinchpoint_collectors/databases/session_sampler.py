"""Samples the client sessions of a server ten times a second: running ones, and the waits of the others.

It is for servers that do not count the waits of sessions. The name of a wait begins with its kind: ``Lock:``
the lock of another session, ``Log:`` the log's write to disk, ``Data:`` pages of tables and indexes,
``Temp:`` temporary files, ``Client:`` the client. PostgreSQL's waits keep the server's own names.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pinchpoint_collectors.value import Value

SAMPLE_EVERY_S = 0.1
IDLE_AFTER_S = 5.0
"""Seconds without a reading after which sampling pauses, such as while data is loaded or a report is
written."""

LOCK = "Lock:"


@dataclass(frozen=True, slots=True)
class SessionSample:
    """The activity of the client sessions at one moment, without the collector's own session.

    Attributes:
        waiting: name of the wait -> number of active sessions.
        running: number of active sessions that do not wait. They use a CPU, or are ready to use one.
        idle_in_transaction: number of sessions whose client keeps a transaction open without a statement.
        connections: number of all client sessions, including the collector's own and hidden ones; None if the
            server does not list them.
        hidden: number of sessions whose activity the collector's role may not see; None if the server does
            not list them.
    """

    waiting: Mapping[str, int] = field(default_factory=dict)
    running: int = 0
    idle_in_transaction: int = 0
    connections: int | None = None
    hidden: int | None = None

    @property
    def blocked(self) -> int:
        """Return the number of sessions that waited for the lock of another session."""
        return sum(count for name, count in self.waiting.items() if name.startswith(LOCK))


def activity(samples: Sequence[SessionSample], waits: Iterable[str]) -> Iterator[Value]:
    """Return means over the samples of one interval (at least one sample), and the most blocked sessions.

    Args:
        samples: samples of the interval.
        waits: waits to report, including those without a session at present.
    """
    count = len(samples)
    yield Value("db.sessions_active", "", sum(x.running + sum(x.waiting.values()) for x in samples) / count)
    yield Value("db.sessions_running", "", sum(x.running for x in samples) / count)
    for name in waits:
        yield Value("db.sessions_waiting", name, sum(x.waiting.get(name, 0) for x in samples) / count)
    yield Value("db.lock_waiters", "", sum(x.blocked for x in samples) / count)
    yield Value("db.sessions_blocked", "", max(x.blocked for x in samples))
    yield Value("db.sessions_idle_in_transaction", "", sum(x.idle_in_transaction for x in samples) / count)
    hidden = [x.hidden for x in samples if x.hidden is not None]
    if hidden:
        yield Value("db.sessions_hidden", "", sum(hidden) / len(hidden))


def mean_connections(samples: Sequence[SessionSample]) -> float | None:
    """Return the mean number of connections over the samples that list them; None if none does."""
    known = [each.connections for each in samples if each.connections is not None]
    return sum(known) / len(known) if known else None


def connections(count: float | None, limit: int | None) -> Iterator[Value]:
    """Return the number of connections, and its share of the limit for ordinary roles."""
    yield Value("db.connections", "", count)
    yield Value("db.connections_ratio", "", count / limit if count is not None and limit else None)


class SessionSampler:
    """A thread that samples the sessions while readings come.

    Args:
        name: name of the thread.
        sample: returns one sample, over a new connection if there is none. Raises ``CollectorError``.
        sample_if_connected: returns one sample; None if there is no connection.
    """

    def __init__(
        self,
        name: str,
        sample: Callable[[], SessionSample],
        sample_if_connected: Callable[[], SessionSample | None],
    ) -> None:
        self._sample = sample
        self._sample_if_connected = sample_if_connected
        self._samples: list[SessionSample] = []
        self._lock = threading.Lock()
        self._read_at = time.monotonic()
        self._stopping = threading.Event()
        self._cpu_s = 0.0  # CPU seconds of the thread up to now
        self._cpu_reported_s = 0.0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def take(self) -> list[SessionSample]:
        """Return the samples since the last call, and a new one; never empty. Raises ``CollectorError``."""
        self._read_at = time.monotonic()
        last = self._sample()
        with self._lock:
            samples, self._samples = self._samples, []
        return [*samples, last]

    def cpu_s(self) -> float:
        """Return the CPU time of the thread since the last call, in seconds."""
        reported, self._cpu_reported_s = self._cpu_reported_s, self._cpu_s
        return self._cpu_reported_s - reported

    def stop(self) -> None:
        """End the thread. A second call does nothing."""
        self._stopping.set()
        self._thread.join(10)

    def _run(self) -> None:
        slot = time.monotonic()
        while True:
            # At a random point of each slot, so that a periodic load is not always sampled at the same point
            # of its period.
            at = slot + random.uniform(0, SAMPLE_EVERY_S)  # noqa: S311 -- no secret
            if self._stopping.wait(max(0.0, at - time.monotonic())):
                return
            slot = max(slot + SAMPLE_EVERY_S, time.monotonic() - SAMPLE_EVERY_S)
            if time.monotonic() - self._read_at < IDLE_AFTER_S:
                self._keep_one()
                self._cpu_s = time.thread_time()

    def _keep_one(self) -> None:
        try:
            sample = self._sample_if_connected()
        except Exception:  # noqa: BLE001 - a driver's own error must not end the sampling either
            return  # one sample is lost; if the cause stays, the next reading fails and reports it
        if sample is not None:
            with self._lock:
                self._samples.append(sample)
