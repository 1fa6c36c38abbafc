"""Plausible readings are distinguished from impossible values before a run."""

from __future__ import annotations

from typing import Any

import pytest

from pinchpoint.run.preflight import absent, implausible, judge, moved, unread
from pinchpoint_collectors.record import Sample

MIB = 1 << 20


def sample(metric: str, value: float | None, instance: str = "", weight: float | None = None) -> Sample:
    return Sample(1, 1.0, "sql1", metric, instance, value, weight)


@pytest.mark.parametrize(
    ("metric", "value", "said"),
    [
        ("cpu.busy_ratio", 37.0, "plausible: up to 105 %"),
        ("cpu.busy_ratio", -0.1, "from 0 % on"),
        ("disk.write_latency_s", 2800.0, "plausible: up to 60 s"),
        ("disk.write_bytes_per_s", 3e13, "plausible: up to 1 TB/s"),
        ("disk.writes_per_s", float("nan"), "is nan"),
        ("mem.available_bytes", 9e9, "the machine has 8 GB"),
    ],
)
def test_what_is_in_another_unit_is_said(metric: str, value: float, said: str) -> None:
    """Values in another unit are reported: percent, ms, totals, too much memory."""
    found = implausible([sample(metric, value)], {"memory_bytes": 8e9})
    assert len(found) == 1
    assert metric in found[0]
    assert said in found[0]


def test_two_values_that_contradict_each_other() -> None:
    """A mean write of a gigabyte, or an interface faster than its speed, is a contradiction."""
    found = implausible(
        [
            sample("disk.writes_per_s", 20.0, "sda"),
            sample("disk.write_bytes_per_s", 2e10, "sda"),
            sample("net.sent_bytes_per_s", 2e8, "eth0"),
            sample("net.speed_bytes_per_s", 1.25e8, "eth0"),
        ],
        {},
    )
    assert [sentence.split(" is ")[0] for sentence in found] == [
        "a write on sda",
        "net.sent_bytes_per_s eth0",
    ]


def test_a_real_reading_is_plausible() -> None:
    """Full utilisation, no operations and a slow clock are plausible."""
    fine = [
        sample("cpu.busy_ratio", 1.0),
        sample("disk.read_latency_s", None, "sda", 0.0),
        sample("collector.clock_offset_s", -3.0, "ssh"),
        sample("cpu.run_queue", 40.0),
    ]
    assert implausible(fine, {"memory_bytes": 8e9}) == []


def test_null_is_lacking_unless_nothing_happened() -> None:
    """A null latency without operations is fine, and a null rate is a missing value."""
    samples = [
        sample("disk.read_latency_s", None, "sda", 0.0),
        sample("disk.reads_per_s", None, "sda"),
        sample("disk.reads_per_s", None, "sdb"),
        sample("cpu.steal_ratio", None),
    ]
    assert unread(samples) == ["disk.reads_per_s (sda, sdb)", "cpu.steal_ratio"]
    assert moved(samples) == (0, 0)


def test_a_disk_with_a_role_that_is_not_read_is_absent() -> None:
    """A disk with a role but without samples is missing, unless the inventory says why."""
    facts = {"roles": {"log": {"device": "sdb"}}, "not_measured": [{"metric": "mem.available_bytes"}]}
    found = absent([sample("cpu.busy_ratio", 0.1), sample("disk.reads_per_s", 1.0, "sda")], facts)
    assert found[0] == "disk.reads_per_s sdb"
    assert len(found) == 6
    assert absent([sample("db.connections", 3.0)], facts) == []


def test_the_write_is_seen_on_its_disk() -> None:
    """A write is seen on its disk and the disks below it, and on no other one."""
    disks: dict[str, dict[str, Any]] = {
        "dm-0": {"members": ["sda"]},
        "sda": {"members": []},
        "sdb": {"members": []},
    }
    seen: dict[str, float | None] = {"dm-0": 16.1 * MIB, "sda": 16.1 * MIB, "sdb": 4096.0}
    assert judge("/d", "dm-0", 16 * MIB, seen, disks).outcome == "ok"
    assert judge("/d", "sda", 16 * MIB, seen, disks).outcome == "ok"
    elsewhere = judge("/d", "sdb", 16 * MIB, seen, disks)
    assert elsewhere.outcome == "failed"
    assert elsewhere.remedy is not None
    assert "dm-0" in elsewhere.remedy
    also = judge("/d", "sda", 16 * MIB, seen | {"sdb": 17.0 * MIB}, disks)
    assert also.outcome == "warning"
    nowhere = judge("/d", "sdb", 16 * MIB, {"sdb": 0.0, "sda": 0.0}, disks)
    assert nowhere.outcome == "failed"
    assert "no other disk" in nowhere.why


def test_a_disk_that_says_nothing_was_not_measured() -> None:
    """A disk with null values was not measured, so nothing is concluded."""
    assert judge("/d", "sda", MIB, {"sda": None}, {}).outcome == "not measured"
