"""Generates the records of nosql-burst and chooses a record for each operation. Both follow from the seed."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from random import Random

from ..skew import EVEN, ZIPFIAN, Pick, picker, zipfian_rank

Fields = list[bytes]
Row = tuple[int, Fields]
"""A record: its number, from which each store derives its key, and its fields."""

UNIFORM, LATEST = "uniform", "latest"
STAMP_BYTES = 8
"""Bytes at the start of a record: its author (27 bits) and the number of the author's write (37 bits)."""
LOADER = 2**27 - 1
"""Author of the records that were loaded before the run."""

# 27 bits: a worker has fewer than 100,000 sessions, and there are fewer than 1,000 workers
_SESSION_BITS = 17
_WRITE_BITS = 37  # writes of one author: four years at 1,000 per second
# contents are cut from a random pool, because new random bytes would cost more than a write
_POOL_BYTES = 2**20
_STEP = 7_919  # a prime, so that consecutive writes differ and the whole pool is used
_INSERTED = 40
"""Bits below the number of a worker in the numbers of records that it inserts, so that no two workers insert
the same."""

_SHARES = re.compile(r"\d{1,2}/\d{1,2}")


def draw(distribution: str) -> Pick:
    """Return a function that draws one of a number of records (``latest``: counted from the newest).

    Args:
        distribution: ``uniform``, ``zipfian``, ``latest``, or two percentages such as ``80/20``.

    Raises:
        ValueError: names the allowed values.
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
    """Return the number of a writer: a worker and one of its sessions.

    A session that moves to another worker, or returns, gets a new number, so that its writes have another
    author.
    """
    return worker << _SESSION_BITS | opening


def stamp(author: int, number: int) -> int:
    """Return an author's write ``number`` as a number that is unique over all authors."""
    return author << _WRITE_BITS | number


def author_of(write: int) -> int:
    """Return the number of the author of a write."""
    return write >> _WRITE_BITS


class Contents:
    """The contents of writes. Every write has different bytes, which identify it.

    Args:
        seed: seed of the scenario.
        fields: number of fields of a record.
        field_bytes: length of each field in bytes.
    """

    def __init__(self, seed: int, fields: int, field_bytes: int) -> None:
        self._bytes = fields * field_bytes
        self._field_bytes = field_bytes
        self._one = fields == 1
        self._stamped = self._bytes >= STAMP_BYTES
        self._pool = Random(seed).randbytes(_POOL_BYTES + self._bytes)  # noqa: S311 - workload, no secret

    @property
    def stamped(self) -> bool:
        """Return whether records are long enough to identify their author."""
        return self._stamped

    def of(self, write: int) -> Fields:
        """Return the fields of a write with a ``stamp``."""
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
        """Return the author of the write with these fields; None if they are not one complete write."""
        block = b"".join(fields)
        if not self._stamped or len(block) != self._bytes:
            return None
        write = int.from_bytes(block[:STAMP_BYTES], "big")
        return write if b"".join(self.of(write)) == block else None


class WorkerKeys:
    """The records of one worker: its share of the initial records, and those it inserted.

    Workers divide the first ``keys`` records by their number. A later worker shares with an earlier one.

    Args:
        keys: number of records before the run.
        distribution: distribution of the drawn records (see ``draw``).
        worker: number of this worker.
        workers: number of workers at the start.
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
        """Return one of the existing records."""
        if self._newest_first:
            return self._recent(random)
        return (self._draw(random, self._count) * self._workers + self._share) % self._keys

    def insert(self) -> int:
        """Return a new record."""
        self._next += 1
        return self._next

    def inserted(self, item: int) -> None:
        """Record that a record was inserted. It may be chosen from now on, if the newest are preferred."""
        if self._newest_first:
            self._inserted.append(item)

    def _recent(self, random: Random) -> int:
        new = len(self._inserted)
        age = self._draw(random, new + self._count)
        if age < new:
            return self._inserted[new - 1 - age]
        local = self._count - 1 - (age - new)
        return (local * self._workers + self._share) % self._keys
