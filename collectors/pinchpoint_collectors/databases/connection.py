"""One connection to a server, for any number of threads, opened when somebody asks."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

Connection = TypeVar("Connection")
Row = TypeVar("Row")


class SharedConnection(ABC, Generic[Connection, Row]):
    """What the servers that are asked by statements share; how it is done is the driver's."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._lock = threading.Lock()

    def ask(self, statement: str) -> list[Row]:
        """The rows of one statement, over a new connection if there is none.

        Raises:
            RefusedError: our login may not ask this, or the server does not know it (where told apart).
            CollectorError: anything else.
        """
        with self._lock:
            return self._ask(self._connection or self._connect(), statement)

    def ask_if_connected(self, statement: str) -> list[Row] | None:
        """As ``ask``; None where there is no connection now."""
        with self._lock:
            return self._ask(self._connection, statement) if self._connection else None

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        with self._lock:
            self._drop()

    @abstractmethod
    def _connect(self) -> Connection:
        """Open one and keep it as ``_connection``. Raises ``CollectorError``."""

    @abstractmethod
    def _drop(self) -> None:
        """Close ``_connection`` and forget it, whatever state it is in."""

    @abstractmethod
    def _ask(self, connection: Connection, statement: str) -> list[Row]:
        """The rows of a statement; a connection that is lost is dropped."""
