"""Looks at a server's client sessions, some ten a second: who works, and who waits for what.

For servers that do not count what their sessions wait for. The names of waits begin with what is waited for:
``Lock:`` another session's lock, ``Log:`` the log to be on its disk, ``Data:`` pages of tables and indexes,
``Temp:`` temporary files, ``Client:`` the client; PostgreSQL's keep the server's own names.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pinchpoint_collectors.proc.value import Value

LOOK_EVERY_S = 0.1
IDLE_AFTER_S = 5.0
"""Where nobody has read for so long (data is being loaded, a report written), there are no looks."""

LOCK = "Lock:"


@dataclass(frozen=True, slots=True)
class Look:
    """What the client sessions, ours left out, were doing at one moment.

    Attributes:
        waiting: active sessions by what they waited for.
        running: active sessions that waited for nothing: on a CPU, or wanting one.
        idle_in_transaction: sessions whose client keeps a transaction open and does nothing in it.
        connections: all client sessions, ours and those that are hidden from our role included; None where
            looks do not tell.
        hidden: sessions of which our role may not see what they do; None where looks do not tell.
    """

    waiting: Mapping[str, int] = field(default_factory=dict)
    running: int = 0
    idle_in_transaction: int = 0
    connections: int | None = None
    hidden: int | None = None

    @property
    def locked(self) -> int:
        """Sessions that waited for a lock another session holds."""
        return sum(count for name, count in self.waiting.items() if name.startswith(LOCK))


def activity(looks: Sequence[Look], waits: Iterable[str]) -> Iterator[Value]:
    """Means over the looks of one interval (at least one), and the most that were blocked in any of them.

    Args:
        looks: those of the interval.
        waits: every wait to report, those with nobody waiting included.
    """
    count = len(looks)
    yield Value("db.sessions_active", "", sum(x.running + sum(x.waiting.values()) for x in looks) / count)
    yield Value("db.sessions_running", "", sum(x.running for x in looks) / count)
    for name in waits:
        yield Value("db.sessions_waiting", name, sum(x.waiting.get(name, 0) for x in looks) / count)
    yield Value("db.lock_waiters", "", sum(x.locked for x in looks) / count)
    yield Value("db.sessions_blocked", "", max(x.locked for x in looks))
    yield Value("db.sessions_idle_in_transaction", "", sum(x.idle_in_transaction for x in looks) / count)
    hidden = [x.hidden for x in looks if x.hidden is not None]
    if hidden:
        yield Value("db.sessions_hidden", "", sum(hidden) / len(hidden))


def counted(looks: Sequence[Look]) -> float | None:
    """The mean number of connections in those looks that tell; None where none does."""
    known = [look.connections for look in looks if look.connections is not None]
    return sum(known) / len(known) if known else None


def connections(count: float | None, limit: int | None) -> Iterator[Value]:
    """How many connections there are, and what share that is of those ordinary roles may have."""
    yield Value("db.connections", "", count)
    yield Value("db.connections_ratio", "", count / limit if count is not None and limit else None)


class Watcher:
    """A thread that looks at the sessions while somebody reads.

    Args:
        name: of its thread.
        look: one look, over a new connection if there is none. Raises ``CollectorError``.
        look_if_connected: the same; None where there is no connection now.
    """

    def __init__(
        self, name: str, look: Callable[[], Look], look_if_connected: Callable[[], Look | None]
    ) -> None:
        self._look = look
        self._look_if_connected = look_if_connected
        self._looks: list[Look] = []
        self._lock = threading.Lock()
        self._read_at = time.monotonic()
        self._stopping = threading.Event()
        self._cpu_s = 0.0  # of its thread, so far
        self._cpu_told_s = 0.0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def take(self) -> list[Look]:
        """The looks since the last call, and one made now: there is always one. Raises ``CollectorError``."""
        self._read_at = time.monotonic()
        last = self._look()
        with self._lock:
            looks, self._looks = self._looks, []
        return [*looks, last]

    def cpu_s(self) -> float:
        """CPU time the looks took since the last call."""
        told, self._cpu_told_s = self._cpu_told_s, self._cpu_s
        return self._cpu_told_s - told

    def stop(self) -> None:
        """End the thread. Safe to call twice."""
        self._stopping.set()
        self._thread.join(10)

    def _run(self) -> None:
        slot = time.monotonic()
        while True:
            # Anywhere in its slot, so that a load that keeps a beat is not always met at one point of it.
            at = slot + random.uniform(0, LOOK_EVERY_S)  # noqa: S311 -- no secret
            if self._stopping.wait(max(0.0, at - time.monotonic())):
                return
            slot = max(slot + LOOK_EVERY_S, time.monotonic() - LOOK_EVERY_S)
            if time.monotonic() - self._read_at < IDLE_AFTER_S:
                self._look_on()
                self._cpu_s = time.thread_time()

    def _look_on(self) -> None:
        try:
            look = self._look_if_connected()
        except Exception:  # noqa: BLE001 - a driver's own error must not end the looks either
            return  # the next reading fails for the same reason and says it, or it was but this one look
        if look is not None:
            with self._lock:
                self._looks.append(look)
