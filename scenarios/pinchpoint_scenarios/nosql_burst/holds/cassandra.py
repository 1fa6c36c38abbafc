"""A hold in Cassandra and ScyllaDB: rows of a partition that no record has, forgotten in time."""

from __future__ import annotations

from collections.abc import Callable
from random import SystemRandom
from typing import Any

from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

from .hold import Other

_PARTITION = -1
"""Records have partitions from 0 on."""


class CassandraLease:
    """A ``Lease``; see there. Every run that enters itself has a row, and looks for others' afterwards.

    Each writes at most nodes before it reads from most, so of two at least one sees the other, and where both
    do both step back. A lightweight transaction would let one of them in, but up to 2025.3 ScyllaDB has none
    in keyspaces with tablets.

    Args:
        table: the scenario's table, with its keyspace.
        acquire: gives a session of the library's.
        release: gives it back.
    """

    def __init__(self, table: str, acquire: Callable[[], Any], release: Callable[[], None]) -> None:
        self._acquire = acquire
        self._release = release
        self._session: Any = None
        self._item = SystemRandom().getrandbits(63)
        self._table = table

    def take(self, holder: str, for_s: int) -> Other | None:
        """See ``Lease``."""
        entered = self._entered()
        ours = entered.pop(self._item, None)
        if ours is None and entered:
            return _longest(entered)
        self._run(
            f"INSERT INTO {self._table} (partition, item, field0) VALUES (%s, %s, %s) USING TTL %s",  # noqa: S608 - our own names
            (_PARTITION, self._item, holder.encode(), for_s),
        )
        if ours is not None:
            return None  # whoever else was just seen does see us, and steps back
        entered = self._entered()
        entered.pop(self._item, None)
        if not entered:
            return None
        self.leave(holder)
        return _longest(entered)

    def leave(self, holder: str) -> None:
        """See ``Lease``."""
        del holder  # a row is one run's
        self._run(f"DELETE FROM {self._table} WHERE partition = %s AND item = %s", (_PARTITION, self._item))  # noqa: S608 - our own names

    def close(self) -> None:
        """See ``Lease``."""
        if self._session is not None:
            self._session = None
            self._release()

    def _entered(self) -> dict[int, Other]:
        query = f"SELECT item, field0, TTL(field0) FROM {self._table} WHERE partition = %s"  # noqa: S608 - our own names
        return {
            item: Other(holder.decode(errors="replace"), left_s)
            for item, holder, left_s in self._run(query, (_PARTITION,))
        }

    def _run(self, statement: str, values: tuple[Any, ...]) -> Any:
        if self._session is None:
            self._session = self._acquire()
        said = SimpleStatement(statement, consistency_level=ConsistencyLevel.QUORUM)
        return self._session.execute(said, values)


def _longest(entered: dict[int, Other]) -> Other:
    """Of several the one whose entry ends last."""
    return max(entered.values(), key=lambda other: other.left_s)
