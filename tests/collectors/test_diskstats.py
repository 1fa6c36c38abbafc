"""/proc/diskstats of several kernels, and what becomes of its counters."""

from __future__ import annotations

import pytest

from pinchpoint_collectors.linux import diskstats
from pinchpoint_collectors.linux.diskstats import METRICS, DiskCounters
from pinchpoint_collectors.value import Value

OLD = DiskCounters(1000, 8000, 500, 2000, 16000, 900, 400, 1500, 100, 50)
NEW = DiskCounters(1010, 8160, 530, 2200, 19200, 1900, 1150, 3500, 190, 950)


def measured(old: DiskCounters, new: DiskCounters, **kwargs: object) -> dict[str, Value]:
    verified = ["sda"] if kwargs.get("verified") else []
    found = diskstats.values({"sda": old, "sda1": old}, {"sda": new, "sda1": new}, 2.0, ["sda"], verified)
    return {value.metric: value for value in found}


def test_every_metric_by_hand() -> None:
    """10 reads, 200 writes and 90 flushes in 2 s; partitions are left out because nobody asked for them."""
    found = measured(OLD, NEW)
    assert {value.instance for value in found.values()} == {"sda"}
    assert {metric: value.value for metric, value in found.items()} == {
        "disk.reads_per_s": 5,
        "disk.writes_per_s": 100,
        "disk.flushes_per_s": 45,
        "disk.read_bytes_per_s": 160 * 512 / 2,
        "disk.write_bytes_per_s": 3200 * 512 / 2,
        "disk.read_latency_s": pytest.approx(0.003),
        "disk.write_latency_s": pytest.approx(0.005),
        "disk.flush_latency_s": pytest.approx(0.01),
        "disk.outstanding": 1.0,
        "disk.busy_ratio": 0.375,
    }
    assert found["disk.write_latency_s"].weight == 200
    assert found["disk.read_latency_s"].weight == 10
    assert found["disk.flush_latency_s"].weight == 90
    assert found["disk.writes_per_s"].weight is None


def test_data_writes_where_flushes_were_verified_to_count_as_writes() -> None:
    """200 writes less 90 flushes; 1,000 ms less 900 ms."""
    found = measured(OLD, NEW, verified=True)
    assert found["disk.data_writes_per_s"].value == 55
    assert found["disk.data_write_latency_s"].value == pytest.approx(0.1 / 110)
    assert found["disk.data_write_latency_s"].weight == 110
    assert found["disk.writes_per_s"].value == 100  # what iostat shows stays beside it


def test_no_operations_give_no_latency() -> None:
    """Nothing was read or written: rates are a true 0, latencies are unknown with weight 0."""
    found = measured(OLD, OLD, verified=True)
    assert found["disk.writes_per_s"].value == 0
    for metric in ("read_latency_s", "write_latency_s", "flush_latency_s", "data_write_latency_s"):
        assert found[f"disk.{metric}"][2:] == (None, 0)


def test_counters_that_went_back_give_nothing_and_never_a_negative() -> None:
    """A reset of all counters, and the 32-bit wrap of one time column alone."""
    for value in measured(NEW, OLD, verified=True).values():
        assert value.value is None
        assert value.weight is None
    wrapped = measured(OLD._replace(outstanding_ms=2**32 - 10), NEW)
    assert wrapped["disk.outstanding"].value is None
    assert wrapped["disk.write_latency_s"].value == pytest.approx(0.005)
    wrapped = measured(OLD._replace(write_ms=2**32 - 10), NEW, verified=True)
    assert wrapped["disk.write_latency_s"][2:] == (None, None)
    assert wrapped["disk.data_write_latency_s"][2:] == (None, None)
    assert wrapped["disk.writes_per_s"].value == 100


def test_more_flushes_than_writes_in_an_interval_are_no_negative_rate() -> None:
    """The two counts of one flush may fall on both sides of a reading."""
    found = measured(OLD, OLD._replace(writes=2001, flushes=103, flush_ms=60), verified=True)
    assert found["disk.data_writes_per_s"].value is None
    assert found["disk.data_write_latency_s"].value is None


def test_a_kernel_without_flush_counters_sends_no_flush_metric() -> None:
    """Not measured is not zero."""
    old, new = (each._replace(flushes=None, flush_ms=None) for each in (OLD, NEW))
    assert not [metric for metric in measured(old, new) if "flush" in metric]


def test_a_disk_that_was_pulled_is_not_measured() -> None:
    """Its series shows the hole."""
    found = list(diskstats.values({"sda": OLD}, {}, 1.0, ["sda"], []))
    assert found == [Value(metric, "sda", None) for metric in METRICS]


def test_the_first_reading_has_no_rates() -> None:
    """There is nothing to compare with."""
    assert list(diskstats.values(None, {"sda": OLD}, 0.0, ["sda"], [])) == []
