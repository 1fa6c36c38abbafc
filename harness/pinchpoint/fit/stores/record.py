"""Holds the work of a key-value store, and computes the sizes of its requests and answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pinchpoint.fit.figures import ProductionFigure


@dataclass(frozen=True, slots=True)
class StoreActivity:
    """The activity of a store between two readings; None if not reported.

    Attributes:
        began_s, ended_s: times of the two readings, UTC seconds.
        operations: number of records written or read.
        reads, writes: number of records read, and number of records written.
        inserts: writes of new records.
        log_bytes: bytes added to the log (append-only file, journal).
        received_bytes: bytes received from clients.
        server_s: seconds that the server spent in commands.
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
        """Seconds between the readings."""
        return self.ended_s - self.began_s


@dataclass(frozen=True, slots=True)
class ProductionStore:
    """One production store.

    Attributes:
        family: the driver of nosql-burst: ``valkey``, ``cassandra`` or ``mongodb``.
        product: the product in words, with its version if known.
        source: the source, in words.
        stretches: the activity between readings, in order of time.
        sizes: estimates of the bytes of a record, best first.
        keys: number of records in the store; None if not reported.
        expiring: share of the written records that will expire; None if not reported.
        lifetimes: estimates of the lifetime of a record in seconds, best first.
        durable: 1 if an acknowledged write is on the disk, 0 if not; None if not reported.
        notes: notes for the reader, as sentences.
        lacking: work of production that nosql-burst cannot reproduce, as sentences.
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
        """Whether the source separates reads from writes."""
        return any(stretch.writes is not None for stretch in self.stretches)

    @property
    def span_s(self) -> tuple[float, float]:
        """Times of the first and the last reading, UTC seconds."""
        return self.stretches[0].began_s, self.stretches[-1].ended_s


NAME = "records"
"""Name of the scenario in a fitted plan, which is a part of nosql-burst's keys."""
_PREFIX = len(f"pinchpoint:{NAME}:")
_NEW_ITEM = len(str(1 << 40))
"""Digits of the number of an inserted record (``nosql_burst/records.py``)."""
ANSWER_OK = len("+OK\r\n")
ANSWER_NONE = len("$-1\r\n")
PING = len("*1\r\n$4\r\nPING\r\n")
UNLINK = len("UNLINK")
_EXPIRY_ASKED = (2, 5)
"""Lengths of the words ``PX`` and a lifetime of seconds or minutes in milliseconds."""
_EXPIRY_KEPT = (4, 13)
"""Lengths of the words ``PXAT`` and a time in milliseconds, the form in the append-only file."""


def bulk(length: int) -> int:
    """Bytes of a bulk string of this length, with its framing."""
    return 1 + len(str(length)) + 2 + length + 2


def request(words: Sequence[int]) -> int:
    """Bytes of a command, from the lengths of its words."""
    return 1 + len(str(len(words))) + 2 + sum(bulk(length) for length in words)


def key(keys: float, insert_ratio: float) -> int:
    """The mean length of nosql-burst's keys.

    Args:
        keys: number of records at the start.
        insert_ratio: share of writes that insert records.
    """
    digits = len(str(max(0, round(keys) - 1)))
    return round(_PREFIX + digits * (1 - insert_ratio) + _NEW_ITEM * insert_ratio)


def payload_of_request(request_bytes: float, key_length: int, expiring_ratio: float, *, kept: bool) -> float:
    """Bytes of the value in a SET request of this size.

    Args:
        request_bytes: bytes of the request as received, or as written in the append-only file.
        key_length: bytes of the key.
        expiring_ratio: share of the requests that set an expiry.
        kept: True for a request in the append-only file, which has an absolute expiry time.
    """
    expiry = sum(bulk(length) for length in (_EXPIRY_KEPT if kept else _EXPIRY_ASKED))
    others = request((3, key_length)) + expiry * expiring_ratio
    return payload_of_bulk(request_bytes - others)


def payload_of_bulk(framed_bytes: float) -> float:
    """Bytes of the text in a bulk string of ``framed_bytes``; negative if the framing alone is larger."""
    frame = 1 + 2 + 2
    digits = len(str(max(1, round(framed_bytes - frame - 1))))
    return framed_bytes - frame - digits
