"""Documents of many sessions in few requests.

While requests are going on, what other sessions bring piles up; the next request takes all of it. So a batch
is as large as the destination is slow, no session waits for a timer, and no thread is needed: one of the
    sessions
that brought something sends it for all.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ..failures import Failure

T = TypeVar("T")

REQUESTS = 4
"""Requests of one process that are going on at a time."""
_LONGEST = 500
_LARGEST_BYTES = 8 * 2**20  # a request's usual limit is 100 MB; the rule of thumb for good speed is 5 to 15


@dataclass(slots=True, eq=False)
class _Waiting(Generic[T]):
    """One session's entry. Its ``turn`` comes when it is done, or when it is to send ``batch``."""

    entry: T
    size_bytes: int
    turn: threading.Event = field(default_factory=threading.Event)
    batch: list[_Waiting[T]] = field(default_factory=list)
    failure: Failure | None = None


class Batches(Generic[T]):
    """Gathers entries into batches.

    Args:
        send: sends a batch; the failure of each entry, or None, in the same order. Raises ``Failure`` where
            the request as a whole failed.
        requests: how many may be going on.
    """

    def __init__(
        self, send: Callable[[Sequence[T]], Sequence[Failure | None]], requests: int = REQUESTS
    ) -> None:
        self._send = send
        self._free = requests
        self._queue: deque[_Waiting[T]] = deque()
        self._lock = threading.Lock()

    def add(self, entry: T, size_bytes: int) -> None:
        """Have an entry sent; returns when it has been taken. Raises its ``Failure``."""
        mine = _Waiting(entry, size_bytes)
        with self._lock:
            self._queue.append(mine)
            if self._free:
                self._free -= 1
                self._appoint()
        mine.turn.wait()
        if mine.batch:
            self._lead(mine.batch)
        if mine.failure is not None:
            raise mine.failure

    def _appoint(self) -> None:
        """Have whoever came first send what has come; to be called with the lock, and something waiting."""
        first = self._queue[0]
        size_bytes = 0
        while self._queue and len(first.batch) < _LONGEST:
            size_bytes += self._queue[0].size_bytes
            if first.batch and size_bytes > _LARGEST_BYTES:
                break
            first.batch.append(self._queue.popleft())
        first.turn.set()

    def _lead(self, batch: list[_Waiting[T]]) -> None:
        try:
            for waiting, failure in zip(batch, self._send([each.entry for each in batch]), strict=True):
                waiting.failure = failure
        except Failure as failure:
            for waiting in batch:
                waiting.failure = failure
        except BaseException as error:  # the session that sends for all is ended
            for waiting in batch:
                waiting.failure = Failure("connection_lost", f"{type(error).__name__}: {error}")
            raise
        finally:
            with self._lock:
                if self._queue:
                    self._appoint()
                else:
                    self._free += 1
            for waiting in batch:
                waiting.turn.set()
