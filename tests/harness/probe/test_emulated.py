"""Probes of emulated disks with a known limit: the verdict must name that limit."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from emulateddisks import EmulatedDisks, emulated_disks
from support import run_cli

from pinchpoint_infra.catalogue import BurstAllowance
from pinchpoint_infra.disks import Device, DiskSpec, SlowStart

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices and mounts"),
    pytest.mark.slow,  # each takes half a minute or more, and rates within 3 % need an idle machine
]


class Probed:
    """Creates disks one after the other, and probes them."""

    def __init__(self, disks: EmulatedDisks) -> None:
        self.place = disks.place
        self._disks = disks

    def __call__(self, spec: DiskSpec, suite: str, *options: str) -> dict[str, Any]:
        """Return probe.json of a suite on such a disk."""
        disk = self._disks.build(spec)
        disk.apply(on=True, group=None)
        mount = self._disks.mount(disk)
        done = run_cli(
            "probe",
            mount,
            *("--suite", suite, "--size", "64MiB", *options, "--json"),
            "--out",
            self.place / "runs",
            timeout_s=170,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert not list(mount.iterdir())
        content: dict[str, Any] = json.loads(done.stdout)
        return content


@pytest.fixture
def probed() -> Iterator[Probed]:
    """Yield a prober, and check that its disks are removed afterwards."""
    with emulated_disks() as disks:
        yield Probed(disks)


def workload(content: dict[str, Any], name: str) -> dict[str, Any]:
    [found] = [one for one in content["verdict"]["workloads"] if one["workload"] == name]
    result: dict[str, Any] = found
    return result


def test_a_cap_is_found_within_3_percent(probed: Probed) -> None:
    """An undeclared limit of 400/s behind a round trip of 1 ms is found within 3 %."""
    content = probed(
        DiskSpec(iops=400, latency_s=0.001), "crystaldiskmark", "--repeat", "2", "--time-per-cell", "1500ms"
    )
    verdict = content["verdict"]
    assert verdict["caps"]["iops"]["value"] == pytest.approx(400, rel=0.03)
    assert verdict["limits_are"] == "found"
    assert workload(content, "RND4K write")["kind"] == "disk_cap"
    assert workload(content, "RND4K read")["kind"] == "disk_cap"


def test_both_caps_of_a_standard_disk(probed: Probed) -> None:
    """Both limits of 500/s and 60 MB/s are found, and the disk's type is named."""
    content = probed(
        DiskSpec(iops=500, bytes_per_s=60e6, latency_s=0.0005),
        "crystaldiskmark",
        "--repeat",
        "2",
        "--time-per-cell",
        "2s",
    )
    caps = content["verdict"]["caps"]
    assert caps["iops"]["value"] == pytest.approx(500, rel=0.03)
    assert caps["bytes_per_s"]["value"] == pytest.approx(60e6, rel=0.03)
    assert "azure/s30" in [one["name"] for one in content["verdict"]["behaves_like"]]


def test_a_round_trip_is_lack_of_concurrency(probed: Probed) -> None:
    """A constant latency of 10 ms is a lack of concurrency; 20 ms hold at every depth."""
    content = probed(DiskSpec(latency_s=0.010), "database", "--repeat", "2", "--time-per-cell", "2s")
    reads = workload(content, "data 8K read")
    assert reads["cells"][0]["kind"] == "disk_concurrency"
    assert reads["line_holds_to"] >= 16
    assert workload(content, "log 4K write")["kind"] in (None, "disk_latency")
    assert content["verdict"]["caps"]["iops"] is None


def test_a_device_is_no_cap(probed: Probed) -> None:
    """One I/O at a time of about 6 ms is a device without a limit."""
    content = probed(
        DiskSpec(device=Device(0.006, 0.003, 0.4)), "iometer", "--repeat", "2", "--time-per-cell", "2s"
    )
    assert content["verdict"]["caps"]["iops"] is None
    kind = workload(content, "8K random write")["kind"]
    assert kind == "disk_device"
    assert workload(content, "8K random write")["line_crossed_at"] == 8


def test_credits_run_out_in_the_course_of_a_stability_run(probed: Probed) -> None:
    """2,000/s for half a minute, then 200/s: the fall is reported with its rates and time."""
    spec = DiskSpec(iops=200, burst=BurstAllowance(2000, 200e6, 30), bytes_per_s=100e6)
    content = probed(spec, "stability", "--time-per-cell", "60s")
    assert content["verdict"]["over_time"] == {"disk_burst_exhausted": ["8K random write"]}
    course = workload(content, "8K random write")["course"]
    assert course["before"] == pytest.approx(2000, rel=0.2)  # the emulation's own CPU, on a busy machine
    assert course["after"] == pytest.approx(200, rel=0.05)


def test_a_new_disk_warms_up(probed: Probed) -> None:
    """A disk that rises from 20 % to full speed within 150 s is warming up, not cached."""
    spec = DiskSpec(iops=500, warm_up=SlowStart(0.2, 150))
    content = probed(spec, "stability", "--time-per-cell", "60s")
    assert set(content["verdict"]["over_time"]) == {"disk_warm_up"}
    assert content["verdict"]["host_cache"] == []


def test_reads_that_exceed_what_is_declared(probed: Probed) -> None:
    """Reads above a Standard disk's limits are flagged, while its writes keep them."""
    content = probed(
        DiskSpec(write_iops=500, write_bytes_per_s=60e6, read_iops=6000),
        "crystaldiskmark",
        *("--repeat", "2", "--time-per-cell", "2s", "--profile", "azure/s30"),
    )
    assert any("azure/s30" in why for why in content["verdict"]["host_cache"])
    assert content["verdict"]["contradicted"] is None


def test_another_cap_than_the_declared_one_is_said(probed: Probed) -> None:
    """A disk declared as a P30 (5,000) and built with 250 is reported with both figures."""
    content = probed(
        DiskSpec(iops=250),
        "crystaldiskmark",
        "--repeat",
        "2",
        "--time-per-cell",
        "2s",
        "--profile",
        "azure/p30",
    )
    assert "5,000 IOPS" in content["verdict"]["contradicted"]
    assert content["verdict"]["limits_are"] == "found"
    assert content["verdict"]["limits"]["iops"] == pytest.approx(250, rel=0.03)


@pytest.mark.farm
@pytest.mark.alone
def test_a_disk_of_an_embedded_farm_is_probed_and_calibrated(probed: Probed) -> None:
    """A farm's disk is started, probed under its limits and stopped; the line has its limit."""
    file = probed.place / "farm.yaml"
    built = {"tiers": ["nosql"], "disks": {"nosql.data": {"limits": {"iops": 300}, "latency": "1ms"}}}
    file.write_text(json.dumps({"name": "dev", "environment": "test", "embedded": built}))
    done = run_cli(
        *("probe", "--farm", file, "--disk", "nosql.data", "--suite", "crystaldiskmark", "--size", "64MiB"),
        *("--repeat", "2", "--time-per-cell", "1500ms", "--calibrate", "--out", probed.place / "runs"),
        timeout_s=170,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    [iops] = re.findall(r"^limits: \{iops: (\d+)", done.stdout, re.MULTILINE)
    assert int(iops) == pytest.approx(300, rel=0.03)
    assert "stopping farm dev" in done.stderr
