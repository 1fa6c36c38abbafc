"""Checks after a run that acknowledged writes can be read back.

Records are sampled by a hash of their number. Memory stays bounded in a long run, and the sample stays even:
when more records are stored than wanted, every other one is removed. Reading back waits for a server that
must restart first.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from ..contract import OK
from .records import LOADER, Contents, Fields, author_of
from .stores import Store

_HASH = 0x9E3779B97F4A7C15  # Fibonacci hashing scatters neighbouring numbers evenly
_MASK = 2**64 - 1
_EXAMPLES = 5

Before = tuple[int, ...]
"""The last acknowledged writes of a record; several if their order is unknown."""
_NEVER: Before = ()


@dataclass(slots=True)
class ReadBack:
    """The result of reading back the records with an acknowledged write.

    Attributes:
        records: number of records that were read back.
        confirmed: number of records with the last acknowledged write, or a later one.
        missing: number of records that are missing or have an older write.
        different: number of records whose content is not a write of this run, or incomplete.
        expired: number of missing records whose time to live has passed.
        examples: numbers of some missing or different records.
    """

    records: int = 0
    confirmed: int = 0
    missing: int = 0
    different: int = 0
    expired: int = 0
    examples: list[int] = field(default_factory=list)


class Ledger:
    """The writes of one worker to the records of its sample.

    Sessions share it, so several writes to one record may be in flight at once. Writes whose order is unknown
    are all acceptable afterwards, and so is a write whose answer was lost.

    Args:
        contents: contents of the records.
        most: largest number of records; None: all.
        ttl_s: time to live of a record in seconds; None: unlimited.
    """

    def __init__(self, contents: Contents, most: int | None, ttl_s: float | None) -> None:
        self.acknowledged = 0
        self._contents = contents
        self._most = most
        self._ttl_s = ttl_s
        self._below = _MASK if most != 0 else -1
        self._last: dict[int, Before] = {}
        self._unanswered: dict[int, set[int]] = {}
        self._begun_s: dict[int, dict[int, float]] = {}
        self._authors = {LOADER}

    def opened(self, author: int) -> None:
        """Record that a session of this worker begins to write, with its ``records.author``."""
        self._authors.add(author)

    def begin(self, item: int, write: int) -> Before:
        """Record that a write to a record begins. Pass the returned value to ``end``."""
        if self._ttl_s is not None and self._holds(item):
            self._begun_s.setdefault(item, {})[write] = time.monotonic()
        return self._last.get(item, _NEVER)

    def end(self, item: int, write: int, before: Before, *, ok: bool) -> None:
        """Record that a write has ended: acknowledged, or with a failure that leaves its result unknown."""
        if ok:
            self.acknowledged += 1
        # The code of ``_holds`` is inlined: a function call, or a product of long numbers, for every write
        # would be too slow.
        if self._below != _MASK and item * _HASH & _MASK > self._below:
            return
        if self._ttl_s is not None:
            # A record exists from the write that created it, and a failed write may have created nothing.
            begun_s = self._begun_s.get(item, {})
            for each in before if ok else (write,):
                begun_s.pop(each, None)
        if not ok:
            self._unanswered.setdefault(item, set()).add(write)
            return
        last = self._last.get(item, _NEVER)
        # Writes acknowledged before this write began are replaced. Those acknowledged meanwhile may be later.
        if last is before:
            self._last[item] = (write,)
        else:
            self._last[item] = (*(each for each in last if each not in before), write)
        if self._most is not None and len(self._last) > self._most:
            self._thin()

    def sample(self) -> list[int]:
        """Return the records to read back: all sampled records with an acknowledged write."""
        return sorted(self._last)

    def compare(self, items: Sequence[int], value: Sequence[Fields | None], into: ReadBack) -> None:
        """Compare the records that were read with the acknowledged writes."""
        for item, fields in zip(items, value, strict=True):
            into.records += 1
            kind = self._judged(item, fields)
            setattr(into, kind, getattr(into, kind) + 1)
            if kind in {"missing", "different"} and len(into.examples) < _EXAMPLES:
                into.examples.append(item)

    def _judged(self, item: int, fields: Fields | None) -> str:
        if fields is None:
            return "expired" if self._may_be_gone(item) else "missing"
        write = self._contents.writer(fields)
        if write is None:
            return "different"
        if write in self._last[item] or write in self._unanswered.get(item, ()):
            return "confirmed"
        # A write of another worker may have replaced the acknowledged one; a record loaded before the run may
        # not.
        return "missing" if author_of(write) in self._authors else "confirmed"

    def _may_be_gone(self, item: int) -> bool:
        if self._ttl_s is None:
            return False
        begun_s, last = self._begun_s.get(item, {}), self._last[item]
        over_s = time.monotonic() - (self._ttl_s - 1)  # stores count whole seconds of their own clock
        return any(begun_s[write] < over_s for write in last if write in begun_s)

    def _holds(self, item: int) -> bool:
        return item * _HASH & _MASK <= self._below

    def _thin(self) -> None:
        """Remove every other record, and accept no more records of the same kind."""
        self._below //= 2
        for table in (self._last, self._unanswered, self._begun_s):
            for item in [item for item in table if not self._holds(item)]:
                del table[item]


_STEP = 50  # number of records per read
READER = 0
"""Session number for reading back. Any number works, because the other sessions are closed."""


def read_back(store: Store, ledger: Ledger, within_s: float) -> tuple[ReadBack, str]:
    """Read every sampled record and compare it with the acknowledged writes.

    Args:
        store: store with the records.
        ledger: acknowledged writes.
        within_s: time limit in seconds. A store that does not answer is asked again until then.

    Returns:
        Returns the result, and why the rest could not be read ("": everything was read).
    """
    result = ReadBack()
    until = time.monotonic() + within_s
    remaining = iter(ledger.sample())
    connection = store.connect(READER)
    try:
        while items := list(islice(remaining, _STEP)):
            while True:
                connection.wait_until_due()
                outcome, fields = connection.read(items)
                if outcome == OK:
                    ledger.compare(items, fields, result)
                    break
                if time.monotonic() > until:
                    return result, f"the store did not answer a read ({outcome})"
                time.sleep(0.1)
            if time.monotonic() > until:
                left = len(list(remaining))
                return result, f"the time for it was over with {left:,} records left" if left else ""
    finally:
        connection.close()
    return result, ""
