"""Tests of the ledger: acknowledged writes must exist after the run, other writes may."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from pinchpoint_scenarios.nosql_burst import ledger as ledger_module
from pinchpoint_scenarios.nosql_burst.ledger import Ledger, ReadBack
from pinchpoint_scenarios.nosql_burst.records import LOADER, Contents, author, stamp

CONTENTS = Contents(1, fields=2, field_bytes=20)


def ledger(most: int | None = None, ttl_s: float | None = None) -> Ledger:
    made = Ledger(CONTENTS, most, ttl_s)
    made.opened(1)
    made.opened(2)
    return made


def wrote(book: Ledger, item: int, session: int, number: int, *, ok: bool = True) -> None:
    write = stamp(session, number)
    book.end(item, write, book.begin(item, write), ok=ok)


def found(book: Ledger, item: int, session: int, number: int) -> ReadBack:
    into = ReadBack()
    book.compare([item], [CONTENTS.of(stamp(session, number))], into)
    return into


def test_the_last_acknowledged_write_must_be_there() -> None:
    """An older write, loaded data, or no record is a loss; another worker's write is not."""
    book = ledger()
    wrote(book, 9, 1, 1)
    wrote(book, 9, 1, 2)
    assert found(book, 9, 1, 2).confirmed == 1
    assert found(book, 9, 1, 1).missing == 1
    assert found(book, 9, LOADER, 9).missing == 1
    assert found(book, 9, 77, 1).confirmed == 1
    into = ReadBack()
    book.compare([9], [None], into)
    assert (into.records, into.missing, into.examples) == (1, 1, [9])


def test_a_session_that_moved_is_another_worker_s() -> None:
    """A session on another worker begins with the same records, so its writes are no old writes."""
    book = Ledger(CONTENTS, None, None)
    book.opened(author(0, 5))
    for number in (1, 2):
        wrote(book, 9, author(0, 5), number)
    assert found(book, 9, author(0, 5), 1).missing == 1
    assert found(book, 9, author(1, 5), 1).confirmed == 1
    people = {author(worker, session) for worker in (0, 1, 999) for session in (0, 1, 99_999)}
    assert len(people | {LOADER}) == 10


def test_bytes_that_are_no_write_are_different() -> None:
    """A record with the right stamp and a wrong byte is different."""
    book = ledger()
    wrote(book, 9, 1, 1)
    into = ReadBack()
    book.compare([9], [[CONTENTS.of(stamp(1, 1))[0], b"x" * 20]], into)
    assert (into.different, into.missing, into.examples) == (1, 0, [9])


def test_a_write_without_an_answer_may_be_there_or_not() -> None:
    """After a lost reply both the last two writes are right, and the last is not acknowledged."""
    book = ledger()
    wrote(book, 9, 1, 1)
    wrote(book, 9, 1, 2, ok=False)
    assert found(book, 9, 1, 1).confirmed == found(book, 9, 1, 2).confirmed == 1
    assert book.acknowledged == 1
    wrote(book, 8, 1, 3, ok=False)
    assert book.sample() == [9], "a record without an acknowledged write cannot be lost"


def test_of_writes_at_the_same_time_either_may_win() -> None:
    """Of two overlapping writes either may remain; a write that began after both replaces both."""
    book = ledger()
    first, second = book.begin(9, stamp(1, 1)), book.begin(9, stamp(2, 1))
    book.end(9, stamp(1, 1), first, ok=True)
    book.end(9, stamp(2, 1), second, ok=True)
    assert found(book, 9, 1, 1).confirmed == found(book, 9, 2, 1).confirmed == 1
    wrote(book, 9, 1, 2)
    assert found(book, 9, 1, 1).missing == found(book, 9, 2, 1).missing == 1


def test_what_may_expire_is_not_missed() -> None:
    """A record that is missing after its time to live has expired; before that it is a loss."""
    short, long = ledger(ttl_s=1.0), ledger(ttl_s=60.0)
    for book in (short, long):
        wrote(book, 9, 1, 1)
    time.sleep(0.02)
    for book, kind in ((short, "expired"), (long, "missing")):
        into = ReadBack()
        book.compare([9], [None], into)
        assert getattr(into, kind) == 1


def test_a_write_that_failed_lengthens_no_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record's expiry follows its acknowledged write; with two overlapping writes either is right."""
    now = [100.0]
    monkeypatch.setattr(ledger_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    book = ledger(ttl_s=10.0)
    wrote(book, 9, 1, 1)
    early = book.begin(8, stamp(1, 2))
    now[0] = 106.0
    wrote(book, 9, 1, 3, ok=False)
    late = book.begin(8, stamp(2, 1))
    book.end(8, stamp(2, 1), late, ok=True)
    now[0] = 111.0

    def gone(item: int) -> ReadBack:
        into = ReadBack()
        book.compare([item], [None], into)
        return into

    assert gone(9).expired == 1
    assert gone(8).missing == 1
    book.end(8, stamp(1, 2), early, ok=True)
    assert gone(8).expired == 1
    wrote(book, 8, 1, 4)
    assert gone(8).missing == 1


def test_a_sample_stays_small_and_even() -> None:
    """Of 100,000 written records at most 1,000 are held, with an equal share of each tenth."""
    book = ledger(most=1_000)
    for item in range(100_000):
        wrote(book, item, 1, item)
        assert len(book._last) <= 1_000
    sample = book.sample()
    assert book.acknowledged == 100_000
    assert 400 <= len(sample) <= 1_000
    tenths = [sum(item // 10_000 == tenth for item in sample) for tenth in range(10)]
    assert min(tenths) > len(sample) / 20, tenths
    assert all(found(book, item, 1, item).confirmed for item in sample[:50])


def test_none_and_all() -> None:
    """``verify: 0`` holds no record, ``all`` every record."""
    none, every = ledger(most=0), ledger(most=None)
    for book in (none, every):
        for item in range(500):
            wrote(book, item, 1, item)
    assert (none.sample(), len(every.sample())) == ([], 500)
