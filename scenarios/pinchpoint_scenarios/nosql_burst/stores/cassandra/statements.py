"""What is said to the cluster about a record, and with which consistency, however it travels."""

from __future__ import annotations

from collections.abc import Sequence

from cassandra import ConsistencyLevel

from ...params import NosqlBurstParams
from ...records import Fields, Row

Values = tuple[int | bytes, ...]
"""What the places of a statement are given, in their order."""


class Statements:
    """The statements of one table.

    Args:
        table: its name, with its keyspace's.
        params: the scenario's.

    Attributes:
        create: makes the table, but for its options.
        write: writes a record: ``values`` are its.
        read: reads one: ``key`` are its.
        write_level: the consistency of writes, by the protocol's number.
        read_level: likewise of reads, which cannot ask for ANY.
        logged: whether a batch of writes is all or nothing.
    """

    def __init__(self, table: str, params: NosqlBurstParams) -> None:
        names = [f"field{number}" for number in range(params.fields)]
        columns, places = ", ".join(names), ", ".join("?" for _ in names)
        ttl = "" if params.ttl_s is None else f" USING TTL {max(1, round(params.ttl_s))}"
        typed = ", ".join(f"{name} blob" for name in names)
        self.create = (
            f"CREATE TABLE {table} (partition bigint, item bigint, {typed}, PRIMARY KEY ((partition), item))"
        )
        self.write = f"INSERT INTO {table} (partition, item, {columns}) VALUES (?, ?, {places}){ttl}"  # noqa: S608 - our own names
        self.read = f"SELECT {columns} FROM {table} WHERE partition = ? AND item = ?"  # noqa: S608 - our own names
        asked = params.cassandra.consistency
        self.write_level = int(getattr(ConsistencyLevel, asked))
        self.read_level = int(getattr(ConsistencyLevel, "ONE" if asked == "ANY" else asked))
        self.logged = params.cassandra.batch_type == "logged"
        self._width = params.partition_width

    def key(self, item: int) -> tuple[int, int]:
        """What ``read`` is given: a record's partition, and its number."""
        return item // self._width, item

    def values(self, row: Row) -> Values:
        """What ``write`` is given."""
        item, fields = row
        return (item // self._width, item, *fields)


def record(rows: Sequence[Sequence[bytes | None]]) -> Fields | None:
    """The record that ``read`` found; None where there is none."""
    return [value or b"" for value in rows[0]] if rows else None
