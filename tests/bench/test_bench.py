"""The benchmark's parts measure and report correctly, on a real server where they need one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from bench import latency, scaling, storage, verdict
from bench.generator import closed, open_load
from bench.load import Load
from bench.pairs import Pairs, interleaved
from bench.pgbench import log_append
from bench.rows import Row, line, write
from bench.server import free_disk
from scenarios.sql_mix.helpers import number

KEYS = {"name", "value", "unit", "peer", "peer_value", "ratio", "goal", "met"}


def load(per_s: float, *times_us: float) -> Load:
    return Load(per_s, 1.0, np.array(times_us or (1.0,)), np.ones(len(times_us) or 1, dtype=np.int64))


def test_pairs_take_turns_at_going_first() -> None:
    """Every other pair starts with the peer, and each measurement stays in its pair."""
    order: list[str] = []

    def one(name: str) -> str:
        order.append(name)
        return f"{name}{len(order)}"

    found = interleaved(lambda: one("a"), lambda: one("b"), pairs=3)
    assert "".join(order) == "abbaab"
    assert found == Pairs(["a1", "a4", "a5"], ["b2", "b3", "b6"])


def test_the_ratio_is_the_median_of_the_pairs() -> None:
    """A slowdown of the server in mid-run changes both figures but not their ratio."""
    found = Pairs([load(100), load(50), load(10)], [load(200), load(100), load(20)])
    assert found.medians(lambda each: each.per_s) == (50, 100, 0.5)


def test_percentiles_of_values_and_of_counters_agree() -> None:
    """Percentiles of single service times and of histogram buckets are the same."""
    values = load(1, *range(1, 1001))
    counted = Load(1, 1, np.array([250.0, 500.0, 990.0, 1000.0]), np.array([250, 250, 490, 10]))
    for percent, expected in ((50, 500), (99, 990), (99.9, 999)):
        assert values.percentile_us(percent) == expected
    assert [counted.percentile_us(percent) for percent in (50, 99, 99.9)] == [500, 990, 1000]


def test_the_peer_runs_the_operations_own_statement() -> None:
    """The pgbench script contains the operation's own statement, with each parameter as a variable."""
    script = log_append()
    assert script.endswith("VALUES (:client_id::int4, :sequence::int4, :payload::bytea);\n")
    assert "$" not in script


def test_rows_have_the_contracts_keys(tmp_path: Path) -> None:
    """A row in bench.json has the agreed keys, a note only if there is one, and null for a missing value."""
    rows = [
        Row("a", 1.5, "us", "pgbench", 1.0, 1.5, 1.2, met=False),
        Row("b", None, "1/s", met=False, note="why"),
    ]
    write(rows, tmp_path / "build" / "bench.json")
    first, second = json.loads((tmp_path / "build" / "bench.json").read_text())
    assert set(first) == KEYS
    assert second == dict.fromkeys(KEYS) | {"name": "b", "unit": "1/s", "met": False, "note": "why"}
    assert "<= 1.20" in line(rows[0])
    assert "NO" in line(rows[0])
    assert "not measured" in line(rows[1])
    assert "why" in line(rows[1])


def test_what_cannot_be_measured_here_is_not_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without root (no emulated disk) or with one core, a row has no value and states the reason."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    for row, words in ((next(storage.rows()), "needs root"), (next(scaling.rows()), "needs two cores")):
        assert row.value is None
        assert not row.met
        assert row.goal is not None
        assert words in row.note


def test_the_middle_and_the_tail_are_judged_by_their_own_rules() -> None:
    """The median must be within 2 % and 50 us of the peer's, the tail in the range of the peer's runs."""
    peer = [load(1, 1000), load(1, 1000), load(1, 1200)]
    for ours, middle, tail in (
        (1069, True, True),
        (1071, False, True),
        (929, False, False),
        (1201, False, False),
    ):
        found = Pairs([load(1, ours)] * 3, peer)
        assert latency.middle(found, 50).met is middle, ours
        assert latency.tail(found, 99).met is tail, ours


def test_time_that_falls_as_samples_grow_is_no_figure() -> None:
    """The scaling is reported as not measured if a longer run took less time than a shorter one."""
    assert verdict._linear(1e-7, 1.2e-7).met
    assert not verdict._linear(1e-7, 1.4e-7).met
    for early, late in ((1e-7, -1e-8), (-1e-7, 1e-8), (0.0, 1e-8)):
        found = verdict._linear(early, late)
        assert found.value is None
        assert not found.met


@pytest.mark.slow
@pytest.mark.farm
@pytest.mark.alone
def test_both_do_the_same_work_and_count_it(tmp_path: Path) -> None:
    """In a second each, Pinchpoint and pgbench write the rows that they count, with plausible times."""
    with free_disk() as target:
        count = "SELECT count(*) FROM pinchpoint_bench.log"
        ours = target.ours(closed(4), 1)
        after_ours = number(target.endpoint, count)
        peer = target.peer(1, clients=4)
        after_peer = number(target.endpoint, count)
        paced, paced_peer = target.ours(open_load(200), 2), target.peer(2, 200)
    assert ours.per_s <= after_ours, "rows of the warm-up are there, too"
    assert after_peer - after_ours == pytest.approx(2 * peer.per_s, rel=0.2), "its warm-up is a second"
    for each in (ours, peer, paced, paced_peer):
        assert 1 < each.cpu_us < 2000
    for each in (paced, paced_peer):
        assert each.per_s == pytest.approx(200, rel=0.3)
        assert 20 < each.percentile_us(50) <= each.percentile_us(99) < 1_000_000
