"""What is known of a production store, whatever store it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pinchpoint.fit.figures import Figure


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a store did between two readings; what is None is not told.

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
class Store:
    """One production store.

    Attributes:
        family: whose driver of nosql-burst it takes: ``valkey``, ``cassandra``, ``mongodb``.
        product: what it is, in words, with its version where that is told.
        source: where all this comes from.
        stretches: what it did, in the order of time.
        sizes: bytes of a record, by each way there is to tell, the best first.
        keys: how many records it holds.
        expiring: which share of the records written will expire.
        lifetimes: after how many seconds, by each way there is to tell, the best first.
        durable: 1 where an acknowledged write is on the disk, 0 where it is not.
        notes: what a reader must know, as sentences.
        lacking: what production does and nosql-burst cannot do alike, likewise.
    """

    family: str
    product: str
    source: str
    stretches: Sequence[Stretch]
    sizes: Sequence[Figure] = ()
    keys: Figure | None = None
    expiring: Figure | None = None
    lifetimes: Sequence[Figure] = ()
    durable: Figure | None = None
    notes: Sequence[str] = ()
    lacking: Sequence[str] = ()

    @property
    def knows_operations(self) -> bool:
        """Whether it tells reads from writes."""
        return any(stretch.writes is not None for stretch in self.stretches)

    @property
    def span_s(self) -> tuple[float, float]:
        """From the first reading to the last, UTC seconds."""
        return self.stretches[0].began_s, self.stretches[-1].ended_s
