"""What a production MongoDB does with its documents, from two answers to ``serverStatus`` or more."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pinchpoint.base.errors import InputError
from pinchpoint.fit.figures import Figure, plain
from pinchpoint.fit.stores.record import NAME, Store, Stretch
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
"""Uptime and time of day may part by so much between two answers."""
_ALWAYS = (
    "how many documents there are, how long they live and how durable a write is, serverStatus does not "
    "tell: keys, ttl and mongodb.write_concern are the defaults"
)
_FRAME = 16 + 4 + 1
"""Of a message: its header, its flags, the kind of its one section (OP_MSG)."""
_DOCUMENTS = 1 + 4
"""Of a section of documents, beside its name: its kind and its length."""

Status = Mapping[str, Any]
Pair = tuple[Status, Status]


def store(answers: Sequence[Status], names: str) -> Store:
    """What several answers of one server tell together.

    Args:
        answers: as ``serverStatus`` gives them.
        names: where they come from, for people.

    Raises:
        InputError: there is one only, or none follows another of the same server.
    """
    ordered = sorted(answers, key=_at_s)
    if len(ordered) < 2:
        raise InputError(f"{names}: 1 answer of serverStatus; needed: two")
    pairs = [pair for pair in itertools.pairwise(ordered) if _follow(*pair)]
    if not pairs:
        raise InputError(
            f"{names}: no two of its answers are of one life of one server; watch it without a restart"
        )
    stretches = [_stretch(pair) for pair in pairs]
    if not any(stretch.operations for stretch in stretches):
        raise InputError(f"{names}: no document was read or written meanwhile; watch it at a busy time")
    version = ordered[-1].get("version")
    return Store(
        family="mongodb",
        product=f"MongoDB {version}" if version else "MongoDB",
        source=names,
        stretches=stretches,
        sizes=list(_sizes(pairs, names)),
        notes=(f"{names}: {_ALWAYS}",),
        lacking=list(_lacking(pairs)),
    )


def _at_s(answer: Status) -> float:
    at: datetime = answer["localTime"]
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _follow(before: Status, after: Status) -> bool:
    """Whether one server lived through the time between: in a container each life has the same process id."""
    passed_s = _at_s(after) - _at_s(before)
    lived_s = (after["uptimeMillis"] - before["uptimeMillis"]) / 1000
    return is_same_server(before, after) and passed_s > 0 and abs(lived_s - passed_s) <= _CLOCKS_S


def _grown(pair: Pair, place: str) -> float | None:
    before, after = (figure(status, place) for status in pair)
    return None if before is None or after is None or after < before else after - before


def _all(pairs: Sequence[Pair], place: str) -> float:
    return sum(_grown(pair, place) or 0.0 for pair in pairs)


def _stretch(pair: Pair) -> Stretch:
    reads, inserts, updates = (_grown(pair, place) or 0.0 for place in (_READS, _INSERTS, _UPDATES))
    return Stretch(
        began_s=_at_s(pair[0]),
        ended_s=_at_s(pair[1]),
        operations=reads + inserts + updates,
        reads=reads,
        writes=inserts + updates,
        inserts=inserts,
        log_bytes=_grown(pair, _JOURNAL),
        received_bytes=_grown(pair, _RECEIVED),
    )


def _sizes(pairs: Sequence[Pair], names: str) -> Iterator[Figure]:
    """The bytes of a document by what was received for a write, and sent for a read."""
    reads, returned = _all(pairs, _READS), _all(pairs, _RETURNED)
    writes = _all(pairs, _INSERTS) + _all(pairs, _UPDATES)
    asked, written, answered = _overheads()
    received, sent = _all(pairs, _RECEIVED), _all(pairs, _SENT)
    if writes and received:
        each = (received - reads * asked) / writes
        yield Figure(each - written, f"{names}: about {plain(each)} bytes were received for a write")
    if returned and sent:
        each = (sent - (reads + writes) * answered) / returned
        yield Figure(each, f"{names}: about {plain(each)} bytes were sent for a document read")


def _overheads() -> tuple[int, int, int]:
    """Bytes of nosql-burst's own messages without a record's: a read, a write, an answer."""
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


def _lacking(pairs: Sequence[Pair]) -> Iterator[str]:
    """What nosql-burst cannot do alike."""
    reads, returned = _all(pairs, _READS), _all(pairs, _RETURNED)
    deletes, expired = _all(pairs, _DELETES), _all(pairs, _EXPIRED)
    total = reads + deletes + _all(pairs, _INSERTS) + _all(pairs, _UPDATES)
    length_s = sum(_at_s(after) - _at_s(before) for before, after in pairs)
    if reads and returned > 1.5 * reads:
        yield f"a query returns {returned / reads:.1f} documents in production, one here"
    if deletes > _MUCH * total:
        yield f"{plain(deletes / length_s)}/s deletions in production, none here"
    if expired:
        yield (
            f"{plain(expired / length_s)}/s documents expire in production; after how long is not told: "
            "`ttl` lets them expire here"
        )
