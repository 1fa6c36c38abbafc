"""/proc/diskstats of several kernels, and what becomes of its counters."""

from __future__ import annotations

import pytest

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux import diskstats
from pinchpoint_collectors.linux.diskstats import METRICS, DiskCounters
from pinchpoint_collectors.value import Value

KERNEL_3_10 = """\
   8       0 sda 114273 35622 6303114 92718 96105 207122 9921448 512803 0 149332 605310
   8       1 sda1 1650 0 13168 337 6 0 4096 8 0 318 345
 253       0 dm-0 81022 0 5011202 71210 210312 0 8721440 1401112 0 101212 1472322
 104       0 cciss/c0d0 10 0 80 1 20 0 160 2 0 3 3
"""
KERNEL_4_18 = """\
 259       0 nvme0n1 500 3 40000 100 900 4 80000 300 2 350 400 7 0 56 1
 259       1 nvme0n1p1 400 3 30000 90 900 4 80000 300 0 340 390 7 0 56 1
"""
KERNEL_6_18 = """\
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 72771 25800 3448090 9171 10012 32225 2741408 5916 3 9072 15344 3974 35 313176 248 250 7
"""


def test_lines_of_fourteen_fields() -> None:
    """Kernels before 4.18: device mapper, partitions, and a slash that /sys writes as a mark."""
    parsed = diskstats.parse(KERNEL_3_10)
    assert list(parsed) == ["sda", "sda1", "dm-0", "cciss!c0d0"]
    assert parsed["sda"] == DiskCounters(
        114273, 6303114, 92718, 96105, 9921448, 512803, 149332, 605310, None, None
    )


def test_lines_of_eighteen_fields_have_discards_but_no_flushes() -> None:
    """The four discard fields must not be taken for flushes."""
    assert diskstats.parse(KERNEL_4_18)["nvme0n1"] == DiskCounters(
        500, 40000, 100, 900, 80000, 300, 350, 400, None, None
    )


def test_lines_of_twenty_fields_have_flushes() -> None:
    """Fields 16 and 17 by the kernel's numbering."""
    vda = diskstats.parse(KERNEL_6_18)["vda"]
    assert (vda.flushes, vda.flush_ms) == (250, 7)
    assert (vda.writes, vda.write_ms, vda.busy_ms, vda.outstanding_ms) == (10012, 5916, 9072, 15344)


def test_a_short_line_is_refused() -> None:
    """The error shows the line."""
    with pytest.raises(CollectorError, match="7 fields, expected 14"):
        diskstats.parse("8 1 sda1 1650 0 13168 337")


PATHS = """\
   0       0 nvme0c0n1 500 3 40000 100 900 4 80000 300 2 350 400 7 0 56 1 10 20
   0       0 nvme0c1n1 50 3 4000 10 90 4 8000 30 2 35 40 7 0 56 1 1 2
 259       1 nvme0n1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
"""


def test_paths_to_a_disk_are_added_up() -> None:
    """As kernels before 6.4 have it: the disk's own line is all zeros, and each path has its part."""
    found = diskstats.parse(PATHS, {"nvme0c0n1": "nvme0n1", "nvme0c1n1": "nvme0n1"})
    assert found == {"nvme0n1": DiskCounters(550, 44000, 110, 990, 88000, 330, 350, 440, 11, 22)}
    assert diskstats.parse(PATHS, {"nvme0n1": "nvme0n1"})["nvme0n1"].writes == 0
    old = diskstats.parse(KERNEL_4_18.replace("nvme0n1 ", "nvme0c0n1 "), {"nvme0c0n1": "nvme0n1"})
    assert old["nvme0n1"].flushes is None


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
