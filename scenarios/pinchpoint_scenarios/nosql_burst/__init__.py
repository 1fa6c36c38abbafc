"""nosql-burst: record writes to a key-value store; when they come is the load model's matter."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import Field

from ..contract import OK, Context, Params, Record
from ..duration import Seconds
from .records import records
from .stores import Connection, store

RECORD_WRITE = "record_write"


class NosqlBurstParams(Params):
    """``params`` of nosql-burst.

    Attributes:
        fields: fields of a record; one is written as a plain value, several as a hash.
        field_bytes: bytes of each field.
        keys: how many different records there are; a write takes one of them at random.
        timeout_s: after so long a write counts as failed (outcome ``timeout``).
        driver: ``fast``, or the plain ``library``, which costs this machine several times the CPU.
    """

    fields: Annotated[int, Field(ge=1, le=1000)] = 10  # YCSB's record: ten fields of 100 bytes
    field_bytes: Annotated[int, Field(ge=1, le=2**20)] = 100
    keys: Annotated[int, Field(ge=1)] = 10_000
    timeout_s: Seconds = 10.0
    driver: Literal["fast", "library"] = "fast"


class NosqlBurstSession:
    """Writes one record after the other."""

    def __init__(
        self, connection: Connection, made: Iterator[tuple[str, list[bytes]]], size_bytes: int
    ) -> None:
        self._connection = connection
        self._records = made
        self._size_bytes = size_bytes

    def perform(self, record: Record) -> bool:
        """Write one record and record it. There is always one more."""
        key, values = next(self._records)
        self._connection.wait_until_due()
        start_ns = time.perf_counter_ns()
        outcome = self._connection.write(key, values)
        end_ns = time.perf_counter_ns()
        record(RECORD_WRITE, outcome, start_ns, end_ns, self._size_bytes if outcome == OK else 0)
        return True

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._connection.close()


class NosqlBurst:
    """Drives the nosql tier with record writes."""

    use: ClassVar[str] = "nosql-burst"
    needs: ClassVar[frozenset[str]] = frozenset({"nosql"})
    writes: ClassVar[bool] = True
    ends: ClassVar[bool] = False
    params_model: ClassVar[type[Params]] = NosqlBurstParams

    def __init__(self, context: Context) -> None:
        self._seed = context.seed
        self._params = cast("NosqlBurstParams", context.params)
        self._store = store(context.endpoints["nosql"])
        self._prefix = f"pinchpoint:{context.name}:"

    def check(self) -> Mapping[str, Any]:
        """Reach the store; the facts are its version and how durable a write is."""
        return {"nosql": self._store.check()}

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Make sure that the prefix is ours, and empty."""
        self._store.claim(self._prefix, progress)

    def session(self, number: int) -> NosqlBurstSession:
        """Open session ``number``; where the store does not answer now, its first write says so."""
        params = self._params
        made = records(
            self._seed,
            number,
            prefix=self._prefix,
            keys=params.keys,
            fields=params.fields,
            field_bytes=params.field_bytes,
        )
        connection = self._store.connect(params.timeout_s, fast=params.driver == "fast")
        return NosqlBurstSession(connection, made, params.fields * params.field_bytes)

    def finish(self, *, keep_data: bool) -> None:
        """Delete our keys unless they are to be kept."""
        if not keep_data:
            self._store.remove(self._prefix)
