"""A session's connection past the library: one node, one statement at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from cassandra.protocol import ErrorMessage

from pinchpoint_collectors.common.backoff import Backoff

from ....contract import OK
from ....fastpath.cql import CqlWire
from ...records import Fields, Row
from .failures import FAILURES, outcome_of, outcome_of_connecting
from .statements import Statements, record


class FastConnection:
    """Opened when needed and again, with pauses, when lost.

    Args:
        wire: how a statement travels.
        statements: what is said.
    """

    def __init__(self, wire: CqlWire, statements: Statements) -> None:
        self._wire = wire
        self._statements = statements
        self._backoff = Backoff()
        self._connect()

    def wait_until_due(self) -> None:
        """See ``contract.Connection``."""
        self._backoff.wait()

    def write(self, rows: Sequence[Row]) -> str:
        """See ``contract.Connection``."""
        if not self._wire.connected and (failure := self._connect()):
            return failure
        said = self._statements
        try:
            if len(rows) == 1:
                self._wire.execute(said.write, said.values(rows[0]), said.write_level, _now_us())
            else:
                values = [said.values(row) for row in rows]
                self._wire.batch(said.write, values, said.write_level, _now_us(), logged=said.logged)
        except FAILURES as error:
            return self._failed(error)
        return OK

    def read(self, items: Sequence[int]) -> tuple[str, list[Fields | None]]:
        """See ``contract.Connection``."""
        if not self._wire.connected and (failure := self._connect()):
            return failure, []
        said = self._statements
        try:
            found = [self._wire.execute(said.read, said.key(item), said.read_level, None) for item in items]
        except FAILURES as error:
            return self._failed(error), []
        return OK, [record(rows) for rows in found]

    def close(self) -> None:
        """See ``contract.Connection``."""
        self._wire.close()

    def _failed(self, error: BaseException) -> str:
        if not isinstance(error, ErrorMessage):
            self._wire.close()  # a late answer must not be taken for the next one
        return outcome_of(error)

    def _connect(self) -> str:
        try:
            self._wire.connect()
        except FAILURES as error:
            self._wire.close()
            self._backoff.failed()
            return outcome_of_connecting(error)
        self._backoff.succeeded()
        return ""


class Clock:
    """UTC microseconds that only rise in this process: of two writes to one record the later one must win.

    Whoever makes them: records are shared by all sessions of a process, and a clock may be set back.
    """

    def __init__(self) -> None:
        self._last_us = 0
        self._lock = threading.Lock()

    def now_us(self) -> int:
        """The time of one more write."""
        with self._lock:
            self._last_us = max(time.time_ns() // 1000, self._last_us + 1)
            return self._last_us


_now_us = Clock().now_us
