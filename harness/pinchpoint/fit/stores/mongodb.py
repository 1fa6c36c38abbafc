"""Computes the work of a production MongoDB from two or more answers to ``serverStatus``."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pinchpoint.base.errors import InputError
from pinchpoint.fit import counters
from pinchpoint.fit.counters import CounterStep
from pinchpoint.fit.figures import ProductionFigure, plain
from pinchpoint.fit.stores.record import NAME, ProductionStore, StoreActivity
from pinchpoint_collectors.databases.mongodb import figure, is_same_server

_READS, _INSERTS, _UPDATES, _DELETES = (
    f"opcounters.{name}" for name in ("query", "insert", "update", "delete")
)
_RETURNED = "metrics.document.returned"
_EXPIRED = "metrics.ttl.deletedDocuments"
_JOURNAL = "wiredTiger.log.log bytes written"
_RECEIVED, _SENT = "network.bytesIn", "network.bytesOut"
_MUCH = 0.05
_CLOCKS_S = 5.0
"""Largest difference in seconds between the growth of the uptime and of the clock without a restart."""
_ALWAYS = (
    "how many documents there are, how long they live and how durable a write is, serverStatus does not "
    "report: keys, ttl and mongodb.write_concern are the defaults"
)
_FRAME = 16 + 4 + 1
"""Bytes of a message's header, its flags and the kind of its section (OP_MSG)."""
_DOCUMENTS = 1 + 4
"""Bytes of a section of documents besides its name: its kind and its length."""

Status = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StatusReading:
    """One answer to ``serverStatus``; implements ``Reading``."""

    status: Status

    @property
    def at_s(self) -> float:
        """The time of the answer, UTC seconds."""
        at: datetime = self.status["localTime"]
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()

    def number(self, place: str) -> float | None:
        """The counter at a dotted path; None if not reported."""
        return figure(self.status, place)

    def goes_on_from(self, earlier: StatusReading) -> bool:
        """Whether the server was not restarted since ``earlier``.

        In a container the process id stays the same after a restart, so the uptime must have grown with the
        clock.
        """
        passed_s = self.at_s - earlier.at_s
        lived_s = (self.status["uptimeMillis"] - earlier.status["uptimeMillis"]) / 1000
        return is_same_server(earlier.status, self.status) and abs(lived_s - passed_s) <= _CLOCKS_S


def store(answers: Sequence[Status], names: str) -> ProductionStore:
    """The figures of several answers of one server.

    Args:
        answers: answers of ``serverStatus``.
        names: the sources, in words.

    Raises:
        InputError: there is only one answer, the server was restarted between all of them, or was idle.
    """
    if len(answers) < 2:
        raise InputError(f"{names}: 1 answer of serverStatus; needed: two")
    ordered = sorted(map(StatusReading, answers), key=lambda answer: answer.at_s)
    steps = counters.steps(ordered)
    if not steps:
        raise InputError(f"{names}: the server was restarted between its answers; watch it without a restart")
    stretches = [_stretch(step) for step in steps]
    if not any(stretch.operations for stretch in stretches):
        raise InputError(f"{names}: no document was read or written meanwhile; watch it at a busy time")
    version = ordered[-1].status.get("version")
    return ProductionStore(
        family="mongodb",
        product=f"MongoDB {version}" if version else "MongoDB",
        source=names,
        stretches=stretches,
        sizes=list(_sizes(steps, names)),
        notes=(f"{names}: {_ALWAYS}",),
        lacking=list(_lacking(steps)),
    )


def _stretch(step: CounterStep[StatusReading]) -> StoreActivity:
    reads, inserts, updates = (step.grown(place) or 0.0 for place in (_READS, _INSERTS, _UPDATES))
    return StoreActivity(
        began_s=step.before.at_s,
        ended_s=step.after.at_s,
        operations=reads + inserts + updates,
        reads=reads,
        writes=inserts + updates,
        inserts=inserts,
        log_bytes=step.grown(_JOURNAL),
        received_bytes=step.grown(_RECEIVED),
    )


def _sizes(steps: Sequence[CounterStep[StatusReading]], names: str) -> Iterator[ProductionFigure]:
    """Bytes of a document, from bytes received per write and bytes sent per read."""
    reads, returned = counters.total(steps, _READS), counters.total(steps, _RETURNED)
    writes = counters.total(steps, _INSERTS) + counters.total(steps, _UPDATES)
    asked, written, answered = _overheads()
    received, sent = counters.total(steps, _RECEIVED), counters.total(steps, _SENT)
    if writes and received:
        each = (received - reads * asked) / writes
        yield ProductionFigure(
            each - written, f"{names}: about {plain(each)} bytes were received for a write"
        )
    if returned and sent:
        each = (sent - (reads + writes) * answered) / returned
        yield ProductionFigure(each, f"{names}: about {plain(each)} bytes were sent for a document read")


def _overheads() -> tuple[int, int, int]:
    """Bytes of nosql-burst's own messages without a document: (a read, a write, an answer)."""
    import bson  # noqa: PLC0415 -- a database's library, where one is read

    session = {"id": bson.Binary.from_uuid(uuid.UUID(int=0))}
    common = {"lsid": session, "$db": "pinchpoint"}
    table = f"pinchpoint_{NAME}"
    find = {"find": table, "filter": {"_id": 1}, "limit": 1, "singleBatch": True, **common}
    concern = {"w": "majority", "j": True}
    update = {"update": table, "ordered": True, "writeConcern": concern, **common}
    change = {"q": {"_id": 1}, "u": {"_id": 1, "field0": b""}, "multi": False, "upsert": True}
    answer = {"cursor": {"firstBatch": [{}], "id": 0, "ns": f"pinchpoint.{table}"}, "ok": 1.0}
    written = len(bson.encode(update)) + _DOCUMENTS + len("updates\0") + len(bson.encode(change))
    return _FRAME + len(bson.encode(find)), _FRAME + written, _FRAME + len(bson.encode(answer))


def _lacking(steps: Sequence[CounterStep[StatusReading]]) -> Iterator[str]:
    """Sentences about activity that nosql-burst cannot reproduce."""
    reads, returned = counters.total(steps, _READS), counters.total(steps, _RETURNED)
    deletes, expired = counters.total(steps, _DELETES), counters.total(steps, _EXPIRED)
    total = reads + deletes + counters.total(steps, _INSERTS) + counters.total(steps, _UPDATES)
    length_s = sum(step.length_s for step in steps)
    if reads and returned > 1.5 * reads:
        yield f"a query returns {returned / reads:.1f} documents in production, one here"
    if deletes > _MUCH * total:
        yield f"{plain(deletes / length_s)}/s deletions in production, none here"
    if expired:
        yield (
            f"{plain(expired / length_s)}/s documents expire in production, after an unknown time: "
            "`ttl` lets them expire here"
        )
