"""Layers of a Linux host's disks, by device names or kernel numbers."""

from __future__ import annotations

import pytest

from pinchpoint.imports.reading import counted_once, left_out_words


@pytest.mark.parametrize(
    ("disks", "judged"),
    [
        ("sda dm-0 md0 loop3", "sda"),
        ("dev8-0 dev8-1 dev8-16 dev65-0 dev135-240", "dev8-0 dev8-16 dev65-0 dev135-240"),
        ("dev202-0 dev202-1 dev202-16", "dev202-0 dev202-16"),
        ("dev8-0 dev9-0 dev7-16", "dev8-0"),
        ("dev259-0 dev259-1 dev9-127", "dev259-0 dev259-1"),
        ("dev8-0 dev252-0 dev252-16", "dev8-0 dev252-0 dev252-16"),
        ("dev8-0 dev253-0 dev253-1 dev253-16", "dev8-0"),
        ("dev8-0 dev253-0", "dev8-0"),
        ("dev253-0 dev253-1", "dev253-0 dev253-1"),
    ],
)
def test_disks_by_their_names_and_numbers(disks: str, judged: str) -> None:
    """A partition is no disk, nor is a device of another driver; without a known disk all count."""
    assert counted_once(disks.split(), []) == set(judged.split())


def test_what_was_named_stands_in_its_disks_place() -> None:
    """A device with a role replaces the disks below it, unless these are judged anyway."""
    disks = ["dev8-0", "dev65-0", "dev253-0"]
    assert counted_once(disks, ["dev65-0"]) == {"dev8-0", "dev65-0"}
    assert counted_once(disks, ["dev253-0"]) == {"dev253-0"}


def test_a_number_that_does_not_tell_is_said() -> None:
    """A device number that does not show its disk gives a message with the remedy."""
    words = left_out_words("db1", ["dev9-0", "dev253-0"])
    assert "db1: dev9-0, dev253-0 ignored" in words
    assert "the number does not show whether dev253-0 does" in words
    assert "number" not in left_out_words("db1", ["dm-0", "dev9-0", "dev8-1"])
