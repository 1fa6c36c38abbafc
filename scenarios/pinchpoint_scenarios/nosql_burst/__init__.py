"""Scenario nosql-burst: record operations on a key-value store, at the times of the load model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, ClassVar, cast

from ..addresses import place
from ..contract import Filled, Intent, Params, ScenarioContext, Sent, Target
from .ledger import Ledger, read_back
from .params import INSERT, READ, READ_MODIFY_WRITE, UPDATE, NosqlBurstParams
from .records import LOADER, Contents, WorkerKeys, author, stamp
from .session import NosqlBurstSession, UpdatesOnly
from .stores import store

__all__ = ["NosqlBurst", "NosqlBurstParams", "NosqlBurstSession"]

_PROGRESS_EVERY = 10_000


class NosqlBurst:
    """Writes records to the nosql tier, and reads them back."""

    use: ClassVar[str] = "nosql-burst"
    needs: ClassVar[frozenset[str]] = frozenset({"nosql"})
    writes: ClassVar[bool] = True
    ends: ClassVar[bool] = False
    params_model: ClassVar[type[Params]] = NosqlBurstParams

    def __init__(self, context: ScenarioContext) -> None:
        params = self._params = cast("NosqlBurstParams", context.params)
        self._seed, self._worker = context.seed, context.worker
        self._openings = itertools.count()
        self._event = context.event
        self._take_over = context.take_over
        self._endpoint = context.endpoints["nosql"]
        self._store = store(self._endpoint, context.name, params)
        self._contents = Contents(context.seed, params.fields, params.field_bytes)
        self._keys = WorkerKeys(params.keys, params.distribution, context.worker, context.workers)
        self._ledger = Ledger(self._contents, self._most(context.workers), params.ttl_s)

    def check(self) -> Mapping[str, Any]:
        """Connect to the store. Return its version and the durability of a write."""
        return {"nosql": self._store.check()}

    def intent(self) -> Intent:
        """Return what the run will write, from the parameters. Contacts no server."""
        params = self._params
        each = params.batch * params.record_bytes
        record = f"{params.batch:,} record(s) of {params.fields:,} fields of {params.field_bytes:,} bytes"
        says = {
            UPDATE: (f"write {record} among {params.keys:,}", params.batch),
            INSERT: (f"write {record} that were not there", params.batch),
            READ: ("read a record", 0),
            READ_MODIFY_WRITE: (f"read, then write {record}", params.batch),
        }
        total = sum(params.operations.values())
        loaded = [Filled("records", params.keys, params.keys * params.record_bytes)] if params.reads else []
        notes = ["beside the records: a mark that they are ours, and which run holds them"]
        if params.verify:
            some = "all records" if params.verify == "all" else f"up to {params.verify:,} records"
            notes.append(f"{some} with an acknowledged write are read back afterwards")
        return Intent(
            (Target(place(self._endpoint), self._store.what),),
            tuple(loaded),
            tuple(
                Sent(name, says[name][0], weight / total, says[name][1], each if says[name][1] else 0)
                for name, weight in params.operations.items()
            ),
            self._store.what,
            notes=tuple(notes),
        )

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Create an empty table or keyspace, with records if operations read them."""
        self._store.claim(progress, take_over=self._take_over)
        if self._params.reads:
            rows = ((item, self._contents.of(stamp(LOADER, item))) for item in range(self._params.keys))

            def loaded(count: int) -> None:
                if count % _PROGRESS_EVERY == 0 or count == self._params.keys:
                    progress(f"loaded {count:,} of {self._params.keys:,} records")

            self._store.load(rows, loaded)

    def session(self, number: int) -> NosqlBurstSession:
        """Open a session. If the store does not answer, the first operation reports it."""
        kind = UpdatesOnly if UpdatesOnly.suits(self._params) else NosqlBurstSession
        return kind(
            self._store.connect(number),
            number,
            author(self._worker, next(self._openings)),
            self._seed,
            self._params,
            self._contents,
            self._keys,
            self._ledger,
        )

    def verify(self) -> None:
        """Read back acknowledged writes. The event ``writes_read_back`` has the result."""
        wanted = self._params.verify
        if wanted == 0:
            return
        result, why = read_back(self._store, self._ledger, self._params.verify_within_s)
        if not self._contents.stamped:
            why = f"records of {self._params.record_bytes} bytes are too small to be distinguished"
        self._event(
            "writes_read_back",
            acknowledged=self._ledger.acknowledged,
            sample="all" if wanted == "all" else "sample",
            not_read=why,
            **asdict(result),
        )

    @property
    def verify_within_s(self) -> float:
        """Return the time limit of ``verify`` in seconds."""
        return self._params.verify_within_s

    def finish(self, *, keep_data: bool) -> None:
        """Delete the data of the scenario unless they are kept, and release the lock for other runs."""
        if keep_data:
            self._store.release()
        else:
            self._store.remove()

    def _most(self, workers: int) -> int | None:
        """Return the number of records that a worker remembers; all workers have the requested number."""
        if not self._contents.stamped:
            return 0
        return None if self._params.verify == "all" else math.ceil(self._params.verify / workers)
