"""The records of nosql-burst and the choice of a record for each operation; both follow from the seed."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from random import Random

from ..skew import EVEN, ZIPFIAN, Pick, picker, zipfian_rank

Fields = list[bytes]
Row = tuple[int, Fields]
"""A record: its number, from which each store makes its key, and its fields."""

UNIFORM, LATEST = "uniform", "latest"
STAMP_BYTES = 8
"""A record begins with its author (27 bits) and which of the author's writes it was (37 bits)."""
LOADER = 2**27 - 1
"""The author of the records that were loaded before the run."""

_SESSION_BITS = 17  # of the 27: sessions that a worker opens stay below 100,000, workers below 1,000
_WRITE_BITS = 37  # of one author's writes: four years at 1,000 a second
_POOL_BYTES = (
    2**20
)  # contents are cut from so much randomness: making it anew would cost more than a write does
_STEP = 7_919  # a prime, so that neighbouring writes differ and the whole pool is used
_INSERTED = 40
"""Bits below a worker's own number in the numbers of records it inserts: no two workers insert the same."""

_SHARES = re.compile(r"\d{1,2}/\d{1,2}")


def draw(distribution: str) -> Pick:
    """How one of this many records is drawn (``latest``: counted from the newest).

    Args:
        distribution: ``uniform``, ``zipfian``, ``latest``, or two percentages such as ``80/20``.

    Raises:
        ValueError: naming what is allowed.
    """
    if distribution == LATEST:
        return lambda random, count: zipfian_rank(random, count) - 1
    if distribution in {UNIFORM, ZIPFIAN} or _SHARES.fullmatch(distribution):
        return picker(EVEN if distribution == UNIFORM else distribution)
    raise ValueError(
        f"{distribution!r} is no distribution; allowed: {UNIFORM}, {ZIPFIAN}, {LATEST}, or two percentages "
        "such as 80/20 (80 % of the operations go to 20 % of the records)"
    )


def author(worker: int, opening: int) -> int:
    """The number of a writer: a worker, and which of its sessions.

    A session that moves to another worker, or comes back, begins anew: its writes are another author's.
    """
    return worker << _SESSION_BITS | opening


def stamp(author: int, number: int) -> int:
    """An author's write ``number``, as one number that no other author's write has."""
    return author << _WRITE_BITS | number


def author_of(write: int) -> int:
    """The number of the writer of a write."""
    return write >> _WRITE_BITS


class Contents:
    """What is written: every write's bytes differ, and identify the write.

    Args:
        seed: of the scenario.
        fields: fields of a record.
        field_bytes: bytes of each.
    """

    def __init__(self, seed: int, fields: int, field_bytes: int) -> None:
        self._bytes = fields * field_bytes
        self._field_bytes = field_bytes
        self._one = fields == 1
        self._stamped = self._bytes >= STAMP_BYTES
        self._pool = Random(seed).randbytes(_POOL_BYTES + self._bytes)  # noqa: S311 - workload, no secret

    @property
    def stamped(self) -> bool:
        """Whether records are long enough to identify their writer."""
        return self._stamped

    def of(self, write: int) -> Fields:
        """The fields of a write, as ``stamp`` numbers it."""
        start = write * _STEP % _POOL_BYTES
        if self._stamped:
            block = write.to_bytes(STAMP_BYTES, "big") + self._pool[start : start + self._bytes - STAMP_BYTES]
        else:
            block = self._pool[start : start + self._bytes]
        if self._one:
            return [block]
        width = self._field_bytes
        return [block[at : at + width] for at in range(0, self._bytes, width)]

    def writer(self, fields: Sequence[bytes]) -> int | None:
        """The write that made these fields; None if no write of ours did, whole."""
        block = b"".join(fields)
        if not self._stamped or len(block) != self._bytes:
            return None
        write = int.from_bytes(block[:STAMP_BYTES], "big")
        return write if b"".join(self.of(write)) == block else None


class WorkerKeys:
    """The records of one worker: its share of those there were, and those it inserted.

    Workers share the first ``keys`` out by their number; a worker that came later shares with an earlier one.

    Args:
        keys: how many there were before the run.
        distribution: see ``draw``.
        worker: this worker's number.
        workers: how many there were at first.
    """

    def __init__(self, keys: int, distribution: str, worker: int, workers: int) -> None:
        self._keys = keys
        self._draw = draw(distribution)
        self._newest_first = distribution == LATEST
        self._share = worker % workers
        self._workers = workers
        self._count = max(1, -((self._share - keys) // workers))
        self._next = worker + 1 << _INSERTED
        self._inserted = array("q")

    def pick(self, random: Random) -> int:
        """One of the records there are."""
        if self._newest_first:
            return self._recent(random)
        return (self._draw(random, self._count) * self._workers + self._share) % self._keys

    def insert(self) -> int:
        """A record there has never been."""
        self._next += 1
        return self._next

    def inserted(self, item: int) -> None:
        """A record has arrived: it may be picked from now on, where the newest are preferred."""
        if self._newest_first:
            self._inserted.append(item)

    def _recent(self, random: Random) -> int:
        new = len(self._inserted)
        age = self._draw(random, new + self._count)
        if age < new:
            return self._inserted[new - 1 - age]
        local = self._count - 1 - (age - new)
        return (local * self._workers + self._share) % self._keys
