"""Rows of predictions state the distance, the range and the count correctly."""

from __future__ import annotations

from bench import bridge
from bench.bridge import LOADS, OTHERS, PRESET_ON, Pair

PAIR = Pair("commits, slower", 450.0, 400.0, 500.0, 480.0, 1000.0)


def test_a_pair_is_near_within_15_percent() -> None:
    assert PAIR.near
    assert not Pair("reads, capped", 450.0, 400.0, 500.0, 380.0, 1000.0).near


def test_a_row_has_both_figures_and_says_whether_the_range_holds() -> None:
    row = bridge.row(PAIR)
    assert (row.value, row.peer_value) == (450.0, 480.0)
    assert row.ratio == 450 / 480
    assert "holds" in row.note
    assert "missed" in bridge.row(Pair("reads, capped", 450.0, 400.0, 500.0, 380.0, 1000.0)).note


def test_there_are_ten_pairs_and_a_preset() -> None:
    """The loads and disks give ten pairs of commits and reads, and the preset has two disks."""
    assert len(OTHERS) * 2 >= 10
    assert set(PRESET_ON) <= set(OTHERS)
    assert {disk for disk, _ in LOADS.values()} == {"sql.log", "sql.data"}
