"""The work of a key-value store, and the sizes of its requests and answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pinchpoint.fit.figures import ProductionFigure


@dataclass(frozen=True, slots=True)
class StoreActivity:
    """The activity of a store between two readings; None is not reported.

    Attributes:
        began_s, ended_s: when they were taken, UTC seconds.
        operations: records that were written or read.
        reads, writes: of these.
        inserts: of the writes, those of new records.
        log_bytes: what came to its log (append-only file, journal).
        received_bytes: what clients sent.
        server_s: the server's time in commands.
    """

    began_s: float
    ended_s: float
    operations: float
    reads: float | None = None
    writes: float | None = None
    inserts: float | None = None
    log_bytes: float | None = None
    received_bytes: float | None = None
    server_s: float | None = None

    @property
    def length_s(self) -> float:
        """The time between them."""
        return self.ended_s - self.began_s


@dataclass(frozen=True, slots=True)
class ProductionStore:
    """One production store.

    Attributes:
        family: whose driver of nosql-burst it takes: ``valkey``, ``cassandra``, ``mongodb``.
        product: what it is, in words, with its version if known.
        source: where all this comes from.
        stretches: what it did, in the order of time.
        sizes: bytes of a record, by each way to measure it, the best first.
        keys: how many records it holds.
        expiring: which share of the records written will expire.
        lifetimes: after how many seconds, by each way to measure it, the best first.
        durable: 1 where an acknowledged write is on the disk, 0 if it is not.
        notes: what a reader must know, as sentences.
        lacking: what production does and nosql-burst cannot do, likewise.
    """

    family: str
    product: str
    source: str
    stretches: Sequence[StoreActivity]
    sizes: Sequence[ProductionFigure] = ()
    keys: ProductionFigure | None = None
    expiring: ProductionFigure | None = None
    lifetimes: Sequence[ProductionFigure] = ()
    durable: ProductionFigure | None = None
    notes: Sequence[str] = ()
    lacking: Sequence[str] = ()

    @property
    def knows_operations(self) -> bool:
        """Whether it separates reads from writes."""
        return any(stretch.writes is not None for stretch in self.stretches)

    @property
    def span_s(self) -> tuple[float, float]:
        """From the first reading to the last, UTC seconds."""
        return self.stretches[0].began_s, self.stretches[-1].ended_s


NAME = "records"
"""The scenario's name in a fitted plan; nosql-burst's keys carry it."""
_PREFIX = len(f"pinchpoint:{NAME}:")
_NEW_ITEM = len(str(1 << 40))
"""Digits of the number of a record that was inserted (``nosql_burst/records.py``)."""
ANSWER_OK = len("+OK\r\n")
ANSWER_NONE = len("$-1\r\n")
PING = len("*1\r\n$4\r\nPING\r\n")
UNLINK = len("UNLINK")
_EXPIRY_ASKED = (2, 5)
"""``PX``, and some ten seconds or minutes in milliseconds."""
_EXPIRY_KEPT = (4, 13)
"""``PXAT``, and a time in milliseconds: so it stands in the append-only file."""


def bulk(length: int) -> int:
    """A text of that length, with what frames it."""
    return 1 + len(str(length)) + 2 + length + 2


def request(words: Sequence[int]) -> int:
    """A command, by the lengths of its words."""
    return 1 + len(str(len(words))) + 2 + sum(bulk(length) for length in words)


def key(keys: float, insert_ratio: float) -> int:
    """The mean length of a key of nosql-burst's.

    Args:
        keys: how many records there are at first.
        insert_ratio: of the writes, how many are of new records.
    """
    digits = len(str(max(0, round(keys) - 1)))
    return round(_PREFIX + digits * (1 - insert_ratio) + _NEW_ITEM * insert_ratio)


def payload_of_request(request_bytes: float, key_length: int, expiring_ratio: float, *, kept: bool) -> float:
    """The value of a SET that is so long in all.

    Args:
        request_bytes: the request, or what of it stands in the append-only file.
        key_length: of its key.
        expiring_ratio: how many of them name when they expire.
        kept: whether the file keeps it.
    """
    expiry = sum(bulk(length) for length in (_EXPIRY_KEPT if kept else _EXPIRY_ASKED))
    others = request((3, key_length)) + expiry * expiring_ratio
    return payload_of_bulk(request_bytes - others)


def payload_of_bulk(framed_bytes: float) -> float:
    """The text that is so long with what frames it; less than 0 if none is so short."""
    frame = 1 + 2 + 2
    digits = len(str(max(1, round(framed_bytes - frame - 1))))
    return framed_bytes - frame - digits
