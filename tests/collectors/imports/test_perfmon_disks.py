"""Disks of a performance log, where physical ones and their drives are both there: each I/O counts once."""

from __future__ import annotations

from collectors.imports.logs import DISK, perfmon

from pinchpoint_collectors.imports.perfmon import Perfmon
from pinchpoint_collectors.imports.record import Found, Settings
from pinchpoint_collectors.record import Sample


def read(text: str) -> tuple[dict[tuple[str, str], list[Sample]], Found]:
    """(metric, instance) -> its samples; what else was found."""
    found = Found()
    series: dict[tuple[str, str], list[Sample]] = {}
    for sample in Perfmon().read(text.splitlines(keepends=True), Settings(), found):
        series.setdefault((sample.metric, sample.instance), []).append(sample)
    return series, found


LATENCY, QUEUE = "Avg. Disk sec/Write", "Current Disk Queue Length"


def test_what_a_drive_lacks_is_taken_from_its_disk() -> None:
    """Only the queue of the drive was logged: the latency is the disk's, weighted by the disk's rate."""
    counters = [
        rf"{DISK}\{QUEUE}",
        *(rf"\PhysicalDisk(1 L:)\{name}" for name in (QUEUE, LATENCY, "Disk Writes/sec")),
    ]
    series, found = read(perfmon([["3", "4", "0.004", "100"]], counters))
    assert {key: samples[0].value for key, samples in series.items()} == {
        ("disk.outstanding", "L:"): 3,
        ("disk.write_latency_s", "L:"): 0.004,
        ("disk.writes_per_s", "L:"): 100,
    }
    assert series["disk.write_latency_s", "L:"][0].weight == 1500
    assert any("PhysicalDisk 1 L: of SQL1: Avg. Disk sec/Write, Disk Writes/sec" in it for it in found.notes)


def test_a_disk_of_several_drives_is_kept_where_they_lack_something() -> None:
    """Whose I/O its latency is nobody knows; a disk that tells nothing new is left out. Both are said."""
    disk = rf"\PhysicalDisk(1 L: M:)\{LATENCY}"
    drives = [rf"\LogicalDisk({name}:)\{LATENCY}" for name in "LM"]
    series, found = read(perfmon([["0.004", "0.002"]], [disk, drives[0]]))
    assert {instance for _, instance in series} == {"1 L: M:", "L:"}, "nothing is known of M:"
    series, found = read(perfmon([["0.004", "0.002", "1"]], [disk, drives[0], rf"\LogicalDisk(M:)\{QUEUE}"]))
    assert {instance for metric, instance in series if "latency" in metric} == {"1 L: M:", "L:"}
    assert any("PhysicalDisk 1 L: M: of SQL1: Avg. Disk sec/Write were not" in note for note in found.notes)
    series, found = read(perfmon([["0.004", "0.002", "0.001"]], [disk, *drives]))
    assert {instance for _, instance in series} == {"L:", "M:"}
    assert "PhysicalDisk 1 L: M: of SQL1: left out, as its drives show the same I/O" in found.notes
