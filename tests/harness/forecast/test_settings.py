"""``--set``: every bad one is a sentence that names it, what was found, what is allowed."""

from __future__ import annotations

import pytest

from pinchpoint.analysis.model.settings import Known, read_settings
from pinchpoint.base.errors import InputError

KNOWN = Known(
    ("sql.log", "sql.data"),
    ("sql", "search"),
    ("sql",),
    {"orders": False, "burst": True},
    ("sql.lock", "nosql.processes", "sql.network"),
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sql.lgo=azure/p30", ("sql.lgo", "allowed: sql.log, ", "nearest: sql.log")),
        ("sql.log", ("is no setting", "NAME=VALUE")),
        ("=azure/p30", ("is no setting",)),
        ("sql.log=", ("is no setting",)),
        ("sql.log=azure/p31", ("no disk", "azure/p30", "nearest: azure/p3")),
        ("sql.machine=azure/p30", ("no machine", "azure/ds12")),
        ("sql.log.latency=2", ("has no unit", "write 2s")),
        ("sql.log.latency=-2ms", ("less than 0",)),
        ("sql.log.iops=many", ("no number", "I/Os per second")),
        ("sql.log.iops=0", ("cannot be",)),
        ("sql.log.iops=nan", ("cannot be",)),
        ("sql.log.stripes=2.5", ("cannot be", "whole number of disks")),
        ("sql.log.bytes=200MB", ("byte rate",)),
        ("search.cpu=-1", ("cannot be", "cores")),
        ("search.cpu=1e9", ("cannot be", "4,096")),
        ("orders.rate=5/s", ("orders.rate", "allowed:")),
        ("burst.users=5", ("burst.users", "allowed:")),
        ("burst.rate=0", ("cannot be", "more than 0")),
        ("sql.lock=5", ("has no unit", "write 5s")),
        ("nosql.processes=1.5", ("cannot be", "whole number of processes")),
        ("sql.network=10MB", ("byte rate",)),
        ("search.lock=0ms", ("search.lock", "allowed:")),
    ],
)
def test_a_bad_setting_is_a_sentence(text: str, words: tuple[str, ...]) -> None:
    """It begins with the setting itself."""
    with pytest.raises(InputError) as refused:
        read_settings([text], KNOWN)
    assert str(refused.value).startswith(f"--set {text}: ")
    for word in words:
        assert word in str(refused.value)


def test_all_bad_settings_are_told_at_once() -> None:
    """One line each, and those that exclude each other as well."""
    with pytest.raises(InputError) as refused:
        read_settings(
            ["a=1", "sql.log=azure/p30", "sql.log.iops=5000", "search.cpu=1", "search.cpu=2"], KNOWN
        )
    assert len(refused.value.problems) == 3
    assert "has a profile as well" in str(refused.value)
    assert "given twice, as 1 and 2" in str(refused.value)


def test_settings_are_in_base_units() -> None:
    """Seconds, bytes per second, per second; the text is kept for people."""
    found = read_settings(
        ["sql.log=azure/p30", "sql.data.latency=2ms", "sql.data.bytes=200MB/s", "burst.rate=60/min"], KNOWN
    )
    assert [one.value for one in found] == ["azure/p30", 0.002, 200e6, 1.0]
    assert [one.what for one in found] == ["profile", "latency_s", "bytes_per_s", "rate_per_s"]
    assert found[3].text == "60/min"
