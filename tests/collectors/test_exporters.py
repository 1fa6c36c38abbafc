"""Tests of exporters' series as samples, and of disks' places from recorded series."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.exporters import means, places, query
from pinchpoint_collectors.exporters.means import NAME, Points, Series
from pinchpoint_collectors.exporters.tables import EXPORTERS, NODE, WINDOWS, whose
from pinchpoint_collectors.imports.node_exporter import NodeExporter
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.record import Watch

T = 1_790_000_000.0


def series(name: str, *values: float, every_s: float = 15.0, **labels: str) -> Series:
    points = {T + every_s * at: value for at, value in enumerate(values)}
    return {NAME: name, "instance": "sql1:9182", **labels}, points


def values(
    exporter: means.Exporter, *found: Series, usual_s: float = 15.0
) -> dict[tuple[str, str], list[Any]]:
    told: dict[tuple[str, str], list[Any]] = {}
    for sample in means.samples(exporter, "sql1", found, usual_s):
        told.setdefault((sample.metric, sample.instance), []).append(sample.value)
    return told


def test_facts_of_a_machine_are_told_by_its_series() -> None:
    """Cores are counted by number and memory by size; a second processor group is in the core's name."""
    found = [
        series("windows_cpu_time_total", 50, core="0,0", mode="idle"),
        series("windows_cpu_time_total", 50, core="0,1", mode="idle"),
        series("windows_memory_physical_total_bytes", 8e9),
    ]
    facts = means.facts(WINDOWS, found)
    assert facts == {"os": "Windows", "cores": 2, "usable_cores": [0, 1], "memory_bytes": 8_000_000_000}
    assert means.core_of("1,3") == "1,3"


def test_an_interval_longer_than_two_and_a_half_usual_ones_is_a_gap() -> None:
    """An interval over two and a half times the usual one is a gap; two single points define no usual one."""
    found: Points = {T: 0.0, T + 60: 600.0, T + 75: 615.0}
    assert list(means.increases([found], 15.0)) == [(T + 75, 15.0, 15.0)]
    assert list(means.increases([found], 30.0)) == [(T + 60, 60.0, 600.0), (T + 75, 15.0, 15.0)]


def part(name: str, begin: int, *values: float, **labels: str) -> Series:
    """Return a series with the values of scrapes from number ``begin`` on."""
    labels_of, points = series(name, *values, every_s=15.0, **labels)
    return labels_of, {at + 15 * begin: value for at, value in points.items()}


def test_a_series_goes_on_under_other_labels() -> None:
    """When an exporter's pod is replaced, only the interval of each change is lost, in any series order."""
    parts = [
        part(name, begin, *(value + 10 * at for at in range(3)), pod=pod, **labels)
        for pod, begin, value in (("a", 0, 100.0), ("b", 3, 130.0), ("c", 6, 5.0))
        for name, labels in (
            ("node_disk_writes_completed_total", {"device": "sda"}),
            ("node_cpu_seconds_total", {"cpu": "0", "mode": "idle"}),
            ("node_cpu_seconds_total", {"cpu": "0", "mode": "user"}),
            ("node_memory_MemAvailable_bytes", {}),
            ("node_memory_MemTotal_bytes", {}),
            ("node_procs_running", {}),
        )
    ]
    for found in (parts, parts[::-1]):
        told: dict[str, list[int]] = {}
        for sample in means.samples(NODE, "sql1", found):
            if sample.instance in ("", "sda"):
                told.setdefault(sample.metric, []).append(round(sample.time_ns / 1e9 - T))
        assert {tuple(times) for times in told.values()} == {(15, 30, 60, 75, 105, 120)}
        assert {"disk.writes_per_s", "cpu.busy_ratio", "mem.available_ratio"} <= set(told)
        rates = values(NODE, *found)["disk.writes_per_s", "sda"]
        assert rates == [pytest.approx(10 / 15)] * 6, "no rise from one counter to another"


def test_partitions_show_their_disk_s_io_once_more_and_are_left_out() -> None:
    """Partitions, known by the kernel's naming, are left out; a disk with a similar name is kept."""
    there = ("sda", "sda1", "sdaa", "nvme0n1", "nvme0n1p2", "nvme0n10", "dm-0", "mmcblk0", "mmcblk0p1")
    assert means.whole_disks(there) == ["dm-0", "mmcblk0", "nvme0n1", "nvme0n10", "sda", "sdaa"]
    found = values(
        NODE,
        *(series("node_disk_reads_completed_total", 1, 16, device=name) for name in ("sda", "sda1")),
    )
    assert found == {("disk.reads_per_s", "sda"): [1.0]}


def test_whose_series_they_are_is_told_by_their_names() -> None:
    """The exporter is detected by most of the names; no series belongs to two exporters."""
    assert whose({"node_procs_running", "up"}) is NODE
    assert whose({"windows_cpu_time_total", "go_goroutines"}) is WINDOWS
    assert whose({"up"}) is None
    assert sum(len(each.names) for each in EXPORTERS) == len(
        {name for each in EXPORTERS for name in each.names}
    )


LAYOUT = places.layout(
    NODE,
    [
        *({NAME: NODE.disks, "device": name} for name in ("sda", "sda2", "nvme0n1", "dm-0")),
        {NAME: places.FILE_SYSTEMS, "mountpoint": "/", "device": "/dev/sda2", "fstype": "ext4"},
        {
            NAME: places.FILE_SYSTEMS,
            "mountpoint": "/var/lib/pg",
            "device": "/dev/mapper/vg-pg",
            "fstype": "xfs",
        },
        {NAME: places.FILE_SYSTEMS, "mountpoint": "/srv", "device": "nas:/export", "fstype": "nfs4"},
        {NAME: places.MAPPER, "device": "dm-0", "name": "vg-pg"},
    ],
)


@pytest.mark.parametrize(
    ("given", "device", "mount"),
    [
        ("/var/lib/pg/wal", "dm-0", "/var/lib/pg"),
        ("/var/lib/pgother", "sda", "/"),
        ("sda2", "sda", None),
        ("/dev/nvme0n1", "nvme0n1", None),
        ("/srv/share", None, "/srv"),
        ("sdz", None, None),
    ],
)
def test_a_role_is_resolved_to_its_whole_device(given: str, device: str | None, mount: str | None) -> None:
    """A path resolves to the deepest file system's device; a device without counters gives a reason."""
    found = places.role(LAYOUT, given)
    assert (found["device"], found["mount_point"]) == (device, mount)
    assert bool(found["why"]) == (device is None)


@pytest.mark.parametrize(
    ("given", "device"),
    [("l:", "L:"), ("L:\\data", "L:"), ("C:\\mnt\\log\\x", "C:\\mnt\\log"), ("Q:\\x", None)],
)
def test_a_role_on_windows_is_a_drive_or_a_mounted_folder(given: str, device: str | None) -> None:
    """On Windows a path resolves to the deepest volume, in any case of letters."""
    there = places.StorageLayout(("C:", "C:\\mnt\\log", "L:"), {}, {})
    assert places.role(there, given)["device"] == device


def test_a_mapped_device_hides_the_disks_below_it() -> None:
    """A mapped device hides the disks below it, because an exporter does not report its parts."""
    on_mapped, on_disk = (places.role(LAYOUT, given) for given in ("/var/lib/pg", "sda"))
    assert list(places.disks(LAYOUT, [on_mapped], [])) == ["dm-0"]
    assert list(places.disks(LAYOUT, [on_disk], [])) == ["nvme0n1", "sda"]


def watch(**options: Any) -> Watch:
    return Watch("sql1", "sql", options={"url": "http://p:9090", **options})


@pytest.mark.parametrize(
    ("options", "selected"),
    [
        ({}, 'instance=~"sql1(:[0-9]+)?"'),
        ({"instance": "10.0.0.1:9100"}, 'instance="10.0.0.1:9100"'),
        ({"instance": "db.example"}, 'instance=~"db\\\\.example(:[0-9]+)?"'),
        ({"labels": {"job": 'a"b'}}, 'job="a\\"b"'),
        ({"labels": {"job": "node"}, "instance": "x"}, 'job="node",instance=~"x(:[0-9]+)?"'),
    ],
)
def test_a_host_is_selected_by_its_name_or_as_told(options: dict[str, Any], selected: str) -> None:
    """The PromQL selector of a host is its name or its given labels, correctly quoted."""
    assert query.matchers(watch(**options), "here") == selected


def test_labels_that_are_none_are_explained() -> None:
    """Invalid labels give an error with the allowed form."""
    with pytest.raises(CollectorError, match="allowed: names and values"):
        query.matchers(watch(labels={"no-label": "x"}), "here")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15s", 15), ("1m30s", 90), ("500ms", 0.5), ("1h", 3600), ("", None), ("soon", None)],
)
def test_durations_of_prometheus(text: str, seconds: float | None) -> None:
    """Durations of Prometheus' configuration are parsed."""
    assert query.duration_s(text) == seconds


def test_several_exporters_that_fit_are_listed() -> None:
    """If several exporters match, the error lists the labels that differ."""
    found = [{"job": "node", "instance": "sql1:9100"}, {"job": "other", "instance": "sql1:9200"}]
    with pytest.raises(CollectorError, match=r"sql1:9100 \(job node\); sql1:9200 \(job other\); say which"):
        query.only_target("here", found)


@pytest.mark.parametrize(
    "content",
    [
        None,
        {"status": "error", "error": "too many samples"},
        {"status": "success", "data": {"resultType": "vector", "result": []}},
        {"status": "success", "data": {"resultType": "matrix", "result": [{"values": []}]}},
        {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "values": [[1]]}]}},
        {
            "status": "success",
            "data": {"resultType": "matrix", "result": [{"metric": {}, "values": [[-1, 1]]}]},
        },
    ],
)
def test_an_answer_that_is_none_is_explained(content: object) -> None:
    """An invalid reply gives a CollectorError."""
    with pytest.raises(CollectorError):
        list(query.matrix(content))


def test_what_is_no_number_is_no_point() -> None:
    """NaN, which Prometheus writes for an unknown value, is no point."""
    content = {
        "status": "success",
        "data": {"resultType": "matrix", "result": [{"metric": {}, "values": [[T, "NaN"], [T + 1, "2"]]}]},
    }
    assert list(query.matrix(content)) == [({}, {T + 1: 2.0})]


def test_a_saved_answer_of_either_exporter_is_imported() -> None:
    """A saved reply of either exporter is imported, with several hosts in a file."""
    found = [
        series("node_disk_writes_completed_total", 0, 150, 300, device="sda"),
        series("windows_logical_disk_writes_total", 0, 300, 600, volume="L:"),
    ]
    found[0][0].update(instance="app1:9100")  # type: ignore[attr-defined]  # our own dictionary
    result = [
        {"metric": labels, "values": [[at, str(value)] for at, value in points.items()]}
        for labels, points in found
    ]
    text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})
    told = FileFacts()
    samples = list(NodeExporter().read([text], Settings(), told))
    assert {(each.host, each.metric, each.instance, each.value) for each in samples} == {
        ("app1", "disk.writes_per_s", "sda", 10.0),
        ("sql1", "disk.writes_per_s", "L:", 20.0),
    }
    assert {host: facts["os"] for host, facts in told.hosts.items()} == {"app1": "Linux", "sql1": "Windows"}


def test_the_gaps_of_a_range_whose_labels_changed_are_said() -> None:
    """Gaps of a series with changed labels are reported, also in the shorter part."""
    name = "node_disk_writes_completed_total"
    first = part(name, 0, *range(9), device="sda", pod="a")
    points = {at: value for at, value in first[1].items() if not T + 75 <= at < T + 120}
    parts = [(first[0], points), part(name, 9, *range(20), device="sda", pod="b")]
    result = [
        {"metric": labels, "values": [[at, str(value)] for at, value in found.items()]}
        for labels, found in parts
    ]
    text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})
    told = FileFacts()
    times = [sample.time_ns // 10**9 - T for sample in NodeExporter().read([text], Settings(), told)]
    assert times == [15, 30, 45, 60, *range(150, 435, 15)]
    assert any(note.startswith("nothing was recorded of sql1 once from") for note in told.notes)
