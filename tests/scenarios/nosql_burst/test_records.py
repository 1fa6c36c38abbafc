"""Tests of records and keys: the same for a seed, different for each worker, in YCSB's distributions."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from pinchpoint_scenarios.nosql_burst.params import NosqlBurstParams
from pinchpoint_scenarios.nosql_burst.records import Contents, WorkerKeys, stamp


def test_a_record_tells_which_write_made_it() -> None:
    """A record's bytes identify its write; a flipped bit, a cut, or other bytes do not."""
    contents = Contents(7, fields=3, field_bytes=10)
    fields = contents.of(stamp(41, 5))
    assert [len(field) for field in fields] == [10, 10, 10]
    assert contents.writer(fields) == stamp(41, 5)
    assert Contents(7, 3, 10).of(stamp(41, 5)) == fields
    assert Contents(8, 3, 10).of(stamp(41, 5)) != fields
    assert contents.of(stamp(41, 6)) != fields
    flipped = bytes([fields[2][0] ^ 1]) + fields[2][1:]
    for wrong in ([fields[0], fields[1], flipped], fields[:2], [b"x" * 10] * 3):
        assert contents.writer(wrong) is None


def test_records_too_small_for_a_stamp_say_so() -> None:
    """Records too small for a stamp are written, but do not identify their write."""
    contents = Contents(1, fields=1, field_bytes=3)
    assert len(contents.of(stamp(1, 1))[0]) == 3
    assert not contents.stamped
    assert contents.writer(contents.of(stamp(1, 1))) is None
    assert NosqlBurstParams.model_validate({"fields": 1, "field_bytes": 3}).record_bytes == 3
    with pytest.raises(ValueError, match="too small to be distinguished; write 8 bytes or more"):
        NosqlBurstParams.model_validate({"fields": 1, "field_bytes": 3, "verify": "all"})


def test_workers_share_the_records_out() -> None:
    """Three workers have disjoint shares of all records, and their inserts differ."""
    picked, inserted = [], []
    for worker in range(3):
        keys, random = WorkerKeys(100, "uniform", worker, 3), Random(1)
        picked.append({keys.pick(random) for _ in range(2000)})
        inserted.append({keys.insert() for _ in range(100)})
    assert set().union(*picked) == set(range(100))
    assert sum(map(len, picked)) == 100
    assert len(set().union(*inserted, range(100))) == 400


def test_more_workers_than_records_still_have_one() -> None:
    """A share is never empty and never beyond the existing records, also with more workers than records."""
    for worker in range(5):
        assert WorkerKeys(2, "zipfian", worker, 5).pick(Random(1)) in {0, 1}


def _drawn(distribution: str, keys: WorkerKeys | None = None) -> Counter[int]:
    keys, random = keys or WorkerKeys(1000, distribution, 0, 1), Random(1)
    return Counter(keys.pick(random) for _ in range(20_000))


def test_distributions_are_what_they_are_called() -> None:
    """Zipfian draws k in proportion to 1/k^0.99, as YCSB; 80/20 draws a fifth four fifths of the time."""
    even, zipfian, shares = _drawn("uniform"), _drawn("zipfian"), _drawn("80/20")
    assert max(even.values()) < 50
    share = 1 / sum(rank**-0.99 for rank in range(1, 1001))
    assert 0.95 * share < zipfian.most_common(1)[0][1] / 20_000 < 1.05 * share
    assert 0.78 < sum(count for _, count in shares.most_common(200)) / 20_000 < 0.85


def test_latest_prefers_what_was_inserted_last() -> None:
    """The distribution "latest" prefers the newest insert, or else the highest loaded record."""
    keys = WorkerKeys(1000, "latest", 0, 1)
    assert _drawn("latest", keys).most_common(1)[0][0] == 999
    new = [keys.insert() for _ in range(3)]
    for item in new:
        keys.inserted(item)
    assert [item for item, _ in _drawn("latest", keys).most_common(4)] == [*reversed(new), 999]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"operations": {"updaet": 1}}, "unknown operation 'updaet'; allowed: .*nearest: update"),
        ({"operations": {}}, "no operation is named; allowed: update, insert, read, read_modify_write"),
        ({"operations": {"read": 0}}, "greater than 0"),
        ({"distribution": "zipf"}, "'zipf' is no distribution; allowed: uniform, zipfian, latest"),
        ({"distribution": "0/20"}, "two percentages"),
        ({"cassandra": {"consistency": "MOST"}}, "LOCAL_QUORUM"),
        ({"mongodb": {"write_concern": 0}}, "add journal: false"),
        ({"ttl": "0s"}, "above zero"),
        ({"verify": -1}, "verify"),
        ({"verify": "some"}, "found 'some'; allowed: a whole number, or all"),
        ({"mongodb": {"write_concern": True}}, "found True; allowed: a whole number, or majority"),
        ({"keys": 0}, "keys"),
    ],
)
def test_what_cannot_be_meant_is_refused(params: dict[str, object], words: str) -> None:
    """An impossible parameter gives an error with the allowed values."""
    with pytest.raises(ValueError, match=words):
        NosqlBurstParams.model_validate(params)
