"""A session of nosql-burst: performs one operation after the other."""

from __future__ import annotations

from itertools import accumulate
from random import Random
from time import perf_counter_ns

from ..contract import OK, Record
from .ledger import Ledger
from .params import INSERT, READ, READ_MODIFY_WRITE, UPDATE, NosqlBurstParams
from .records import Contents, WorkerKeys, stamp
from .stores import StoreConnection

MISSING = "missing_record"
"""Outcome of a read that finds nothing although the record must exist."""


class NosqlBurstSession:
    """Chooses operations and records and performs them. The choice depends only on the seed and the number.

    Args:
        connection: connection to the store.
        number: number of the session.
        author: number of the session in the records that it writes (``records.author``).
        seed: seed of the scenario.
        params: parameters of the scenario.
        contents: contents of writes.
        keys: existing records.
        ledger: acknowledged writes.
    """

    def __init__(
        self,
        connection: StoreConnection,
        number: int,
        author: int,
        seed: int,
        params: NosqlBurstParams,
        contents: Contents,
        keys: WorkerKeys,
        ledger: Ledger,
    ) -> None:
        self._connection = connection
        self._random = Random(f"{seed}:{number}")  # noqa: S311 - workload, no secret
        self._batch = params.batch
        self._record_bytes = params.record_bytes
        self._may_expire = params.ttl_s is not None
        self._contents = contents
        self._keys = keys
        self._ledger = ledger
        self._first = stamp(author, 0)
        self._writes = 0
        self._names = list(params.operations)
        self._shares = list(accumulate(params.operations.values()))
        ledger.opened(author)

    def perform(self, record: Record) -> bool:
        """Do one operation and record it. Returns True, because there is always another operation."""
        operation = self._names[0]
        if len(self._names) > 1:
            operation = self._random.choices(self._names, cum_weights=self._shares)[0]
        if operation == READ:
            self._read(record)
        else:
            self._write(record, operation)
        return True

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        self._connection.close()

    def _read(self, record: Record) -> None:
        item = self._keys.pick(self._random)
        self._connection.wait_until_due()
        start_ns = perf_counter_ns()
        outcome, size_bytes = self._find(item)
        record(READ, outcome, start_ns, perf_counter_ns(), size_bytes)

    def _find(self, item: int) -> tuple[str, int]:
        outcome, result = self._connection.read([item])
        if outcome != OK:
            return outcome, 0
        if result[0] is None:
            return (OK if self._may_expire else MISSING), 0
        return OK, self._record_bytes

    def _write(self, record: Record, operation: str) -> None:
        insert = operation == INSERT
        items = [self._keys.insert() if insert else self._keys.pick(self._random) for _ in range(self._batch)]
        first = self._first + self._writes + 1
        self._writes += self._batch
        rows = [(item, self._contents.of(first + place)) for place, item in enumerate(items)]
        self._connection.wait_until_due()
        before = [self._ledger.begin(item, first + place) for place, item in enumerate(items)]
        ok = False
        start_ns = perf_counter_ns()
        try:
            outcome = self._find(items[0])[0] if operation == READ_MODIFY_WRITE else OK
            if outcome == OK:
                outcome = self._connection.write(rows)
            end_ns = perf_counter_ns()
            ok = outcome == OK
        finally:  # the end of the load may also interrupt a write in flight
            for place, item in enumerate(items):
                self._ledger.end(item, first + place, before[place], ok=ok)
        record(operation, outcome, start_ns, end_ns, self._record_bytes * len(items) if ok else 0)
        if insert and ok:
            for item in items:
                self._keys.inserted(item)


class UpdatesOnly(NosqlBurstSession):
    """A session that updates one record at a time, which is the most frequent case.

    It does the same as ``NosqlBurstSession`` for the same seed and number, without the lists for several
    records, which take half of the time.
    """

    @staticmethod
    def suits(params: NosqlBurstParams) -> bool:
        """Return whether the parameters need only single updates."""
        return list(params.operations) == [UPDATE] and params.batch == 1

    def perform(self, record: Record) -> bool:
        item = self._keys.pick(self._random)
        self._writes += 1
        write = self._first + self._writes
        rows = [(item, self._contents.of(write))]
        connection, ledger = self._connection, self._ledger
        connection.wait_until_due()
        before = ledger.begin(item, write)
        ok = False
        start_ns = perf_counter_ns()
        try:
            outcome = connection.write(rows)
            end_ns = perf_counter_ns()
            ok = outcome == OK
        finally:  # the end of the load may also interrupt a write in flight
            ledger.end(item, write, before, ok=ok)
        record(UPDATE, outcome, start_ns, end_ns, self._record_bytes if ok else 0)
        return True
