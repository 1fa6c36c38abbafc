"""Tests of the variants and noises: other limits, a missing collector, fewer samples."""

from __future__ import annotations

import copy
import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from ground_truth.noises import every, lost, without
from ground_truth.variants import VARIANTS, declared_times, withheld

from pinchpoint.store.schema import SAMPLES_SCHEMA


def manifest() -> dict[str, Any]:
    """Return a manifest with values that the variants may change and values that they may not."""
    limits = {"iops": 500.0, "bytes_per_s": 60e6, "io_unit_bytes": 8192}
    return {
        "name": "x",
        "farm": {
            "name": "x",
            "embedded": {"disks": {"sql.log": {"limits": {"iops": 400.0}}}},
            "tiers": {
                "sql": {
                    "hosts": {
                        "sql1": {
                            "machine": "azure/ds12",
                            "disks": {
                                "log": {"profile": "azure/s30", "resolved_limits": limits},
                                "data": {"device": "sdc", "limits": "unknown"},
                                "tempdb": {"limits": dict(limits), "resolved_limits": dict(limits)},
                            },
                        }
                    }
                }
            },
        },
        "hosts": {"sql1": {"roles": {"log": {"device": "loop1"}}}},
    }


def disks_of(found: dict[str, Any]) -> dict[str, Any]:
    """Return the disks that the manifest declares."""
    disks: dict[str, Any] = found["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]
    return disks


def test_no_variant_changes_what_it_is_given_or_keeps_how_the_farm_was_built() -> None:
    """Every variant is a new manifest without the farm's description; measurements stay the same."""
    given = manifest()
    before = copy.deepcopy(given)
    for change in VARIANTS.values():
        found = change(given)
        assert given == before
        assert "embedded" not in found["farm"]
        assert found["hosts"] == before["hosts"]


def test_withheld_limits_are_not_in_the_manifest_in_any_form() -> None:
    """A manifest with withheld limits has no limit, profile or machine type; the device name stays."""
    found = withheld(manifest())
    assert disks_of(found) == {"log": {}, "data": {"device": "sdc"}, "tempdb": {}}
    assert not any(word in json.dumps(found) for word in ("iops", "azure", "bytes_per_s"))


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_wrong_limits_are_wrong_in_every_figure_but_the_unit(factor: float) -> None:
    """Wrong limits are wrong in each figure but the I/O unit; a profile becomes its wrong figures."""
    disks = disks_of(declared_times(manifest(), factor))
    wrong = {"iops": 500.0 * factor, "bytes_per_s": 60e6 * factor, "io_unit_bytes": 8192}
    assert disks["log"] == {"limits": wrong, "resolved_limits": wrong}
    assert disks["tempdb"] == {"limits": wrong, "resolved_limits": wrong}
    assert disks["data"] == {"device": "sdc", "limits": "unknown"}


def test_a_manifest_without_declarations_has_no_variants() -> None:
    """A manifest without declarations (no tiers) stays the same."""
    bare = {"farm": {"name": "x", "embedded": {"tiers": ["sql"]}}}
    assert all(change(bare) == {"farm": {"name": "x"}} for change in VARIANTS.values())


def samples_of(seconds: int) -> pa.Table:
    """Return samples of two hosts, one reading a second: a rate, a latency, and a database metric."""
    rows = []
    for host in ("sql1", "web1"):
        for second in range(seconds):
            time_ns = (1_795_000_000 + second) * 10**9 + 7
            latency = None if second % 5 == 4 else 0.001 * (second % 5 + 1)
            operations = None if latency is None else float(second % 5 + 1)
            rows += [
                (time_ns, 1.0, host, "disk.writes_per_s", "vda", float(second), None),
                (time_ns, 1.0, host, "disk.write_latency_s", "vda", latency, operations),
                (time_ns, 1.0, host, "db.commits_per_s", "", 5.0, None),
                (time_ns, 1.0, host, "collector.ok", "local", 1.0, None),
                (time_ns, 1.0, host, "collector.ok", "postgres", 1.0, None),
                (time_ns, 1.0, host, "collector.cpu_s", "postgres/looks", 0.1, None),
            ]
    rows.append((1_795_000_000 * 10**9, 1.0, "generator1", "generator.scheduled_per_s", "orders", 9.0, None))
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(SAMPLES_SCHEMA.names, columns, strict=True)), schema=SAMPLES_SCHEMA)


def test_a_missing_collector_takes_its_own_samples_along() -> None:
    """Without a collector, only its own samples of its host are missing."""
    samples = samples_of(3)

    def left(host: str, kind: str) -> set[tuple[str, str]]:
        found = without(samples, host, kind)
        assert found.schema == SAMPLES_SCHEMA
        return set(zip(found["host"].to_pylist(), found["metric"].to_pylist(), strict=True))

    everything = left("nobody", "local")
    assert everything - left("sql1", "local") == {
        ("sql1", "disk.writes_per_s"),
        ("sql1", "disk.write_latency_s"),
    }
    assert everything - left("web1", "postgres") == {
        ("web1", "db.commits_per_s"),
        ("web1", "collector.cpu_s"),
    }
    still = without(samples, "sql1", "local").filter(pc.equal(pc.field("metric"), "collector.ok"))
    assert still.group_by(["host", "instance"]).aggregate([]).num_rows == 3


def test_seldom_samples_are_means_as_a_collector_would_have_read_them() -> None:
    """A slower rate is the mean over five seconds; latencies are weighted by operations."""
    found = every(samples_of(10), 5)
    rates = found.filter((pc.field("host") == "sql1") & (pc.field("metric") == "disk.writes_per_s")).sort_by(
        "time_ns"
    )
    assert rates["value"].to_pylist() == [2.0, 7.0]
    assert rates["interval_s"].to_pylist() == [5.0, 5.0]
    times = found.filter(
        (pc.field("host") == "sql1") & (pc.field("metric") == "disk.write_latency_s")
    ).sort_by("time_ns")
    # 1, 2, 3, 4 operations of 1, 2, 3, 4 ms: (1 + 4 + 9 + 16) / 10 = 3 ms.
    assert times["value"].to_pylist() == pytest.approx([0.003, 0.003])
    assert times["weight"].to_pylist() == [10.0, 10.0]
    assert found.filter(pc.field("metric") == "generator.scheduled_per_s").num_rows == 1
    nothing = samples_of(10).filter(pc.is_null(pc.field("value")))
    assert every(nothing, 5)["value"].to_pylist() == [None] * 4


def test_a_fifth_of_the_samples_is_lost_the_same_one_each_time() -> None:
    """A fifth of the samples is lost, as whole readings and single samples, the same ones for one seed."""
    samples = samples_of(1500)
    found = lost(samples, 0.2, 5)
    assert found.num_rows / samples.num_rows == pytest.approx(0.8, abs=0.02)
    assert found == lost(samples, 0.2, 5)
    assert found != lost(samples, 0.2, 6)
    readings = samples.group_by(["host", "time_ns"]).aggregate([]).num_rows
    left = found.group_by(["host", "time_ns"]).aggregate([]).num_rows
    # All six samples of a reading are lost one by one in about one reading of a million.
    assert left / readings == pytest.approx(0.8**0.5, abs=0.04)
