"""Calibration: a probe's limits and latencies as a line for farm.yaml."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from harness.probe.build import Disk, probe_of

from pinchpoint.plan import load_farm
from pinchpoint.plan.farm import DeclaredLimits
from pinchpoint.probe.calibrate import calibration
from pinchpoint.probe.caps import MeasuredCaps
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import Probe

FARM = """name: dev
environment: test
embedded:
  tiers: [sql]
tiers:
  sql:
    hosts:
      sql1:
        disks:
          {role}:
            {line}
"""


def probe_on(disk: str, speed: Disk, suite: str = "crystaldiskmark", repeat: int = 5) -> Probe:
    probe = probe_of(speed, suite=suite, repeat=repeat)
    probe.where = replace(probe.where, farm="dev", disk=disk)
    return probe


def pasted(folder: Path, role: str, said: str) -> DeclaredLimits:
    """Return the disk limits of a farm.yaml with the printed line."""
    comment, line = said.splitlines()
    assert comment.startswith(f"# sql.{role}, as measured")
    file = folder / "farm.yaml"
    file.write_text(FARM.format(role=role, line=line))
    limits = load_farm(file).tiers["sql"].hosts["sql1"].disks[role].resolved_limits
    assert limits is not None
    return limits


@pytest.mark.parametrize("role", ["log", "data"])
def test_caps_are_printed(tmp_path: Path, role: str) -> None:
    probe = probe_on(f"sql.{role}", Disk(0.0005, 500, 60e6))
    limits = pasted(tmp_path, role, calibration(probe, judge(probe)))
    assert (limits.iops, limits.bytes_per_s) == (500, 60e6)


def test_no_cap_but_a_curve(tmp_path: Path) -> None:
    """A disk without a limit gives a latency curve over outstanding I/Os only."""
    probe = probe_on("sql.data", Disk(0.001))
    said = calibration(probe, judge(probe))
    assert "no common limit" in said
    limits = pasted(tmp_path, "data", said)
    assert limits.iops is None
    assert limits.latency == ((1.0, 0.001), (32.0, 0.001))


@pytest.mark.parametrize(("role", "depths"), [("log", [1.0]), ("data", [1.0, 4.0, 16.0, 64.0])])
def test_the_curve_is_that_of_the_role(tmp_path: Path, role: str, depths: list[float]) -> None:
    """A log's curve has its flushed writes one at a time; data's has 8 KiB, mostly reads, at each depth."""
    probe = probe_on(f"sql.{role}", Disk(0.002, iops=1000), suite="database")
    limits = pasted(tmp_path, role, calibration(probe, judge(probe)))
    assert limits.latency is not None
    assert [depth for depth, _ in limits.latency] == depths
    assert limits.latency[0][1] == pytest.approx(0.002)


def test_what_an_io_counts_as_is_kept(tmp_path: Path) -> None:
    """A limit that counts large I/Os in parts is printed with the size of a part."""
    probe = probe_on("sql.data", Disk(0.0005, 500, 60e6))
    verdict = judge(probe)
    assert verdict.caps.iops is not None
    parts = replace(verdict.caps.iops, unit_bytes=131072)
    said = calibration(probe, replace(verdict, caps=MeasuredCaps(parts, None)))
    assert pasted(tmp_path, "data", said).io_unit_bytes == 131072


def test_neither_cap_nor_latency() -> None:
    """Without measured limits and latencies there is no line, and a message says so."""
    probe = probe_on("sql.log", Disk(0.001))
    probe.cells = {}
    said = calibration(probe, judge(probe))
    assert "neither a limit of sql.log nor its latency" in said
    assert "limits:" not in said


def test_a_suite_that_was_not_finished_gives_no_line() -> None:
    probe = probe_on("sql.log", Disk(0.0005, 500, 60e6))
    probe.state = "interrupted"
    said = calibration(probe, judge(probe))
    assert "continue with --resume" in said
    assert "limits:" not in said


def test_seconds_of_latency_can_be_read_again(tmp_path: Path) -> None:
    """1,024 outstanding at 500/s take 2.05 s: three digits, without an exponent before the unit."""
    probe = probe_on("sql.data", Disk(0.0005, 500), suite="iometer", repeat=1)
    limits = pasted(tmp_path, "data", calibration(probe, judge(probe)))
    assert limits.latency is not None
    depth, latency_s = limits.latency[-1]
    assert depth == 1024
    assert latency_s == pytest.approx(2.05)


@pytest.mark.parametrize(("role", "iops"), [("log", 290), ("data", None)])
def test_a_cap_of_writes_is_a_log_s(tmp_path: Path, role: str, iops: int | None) -> None:
    """A limit of writes is printed for a log only, because other disks are also read."""
    probe = probe_on(f"sql.{role}", Disk(0.0005, write_iops=290))
    said = calibration(probe, judge(probe))
    assert pasted(tmp_path, role, said).iops == iops
    assert ("no common limit of reads and writes" in said) == (iops is None)
