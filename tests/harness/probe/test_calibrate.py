"""A farm.yaml is given what a probe found: where nothing is declared, all else as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from harness.probe.build import Disk, probe_of

from pinchpoint.errors import InputError
from pinchpoint.plan import load_farm
from pinchpoint.probe.calibrate import calibrate
from pinchpoint.probe.caps import Caps
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import Probe

FARM = """# ours
name: dev
environment: test
endpoints:
  sql: {url: "postgresql://loader@sql1/loadtest"}
tiers:
  sql:
    hosts:
      sql1:
        collect: [{kind: local}]   # here
        disks:
          log: {path: /srv/log}
          data: {path: /srv/data, limits: unknown}
          tempdb: {path: /srv/temp, profile: azure/p30}
"""

EMBEDDED = """name: dev
environment: test
embedded:
  tiers: [sql]
"""


def probe_on(disk: str, speed: Disk) -> Probe:
    probe = probe_of(speed)
    probe.where = replace(probe.where, farm="dev", disk=disk)
    return probe


def done(folder: Path, text: str, probe: Probe) -> tuple[Path, str]:
    file = folder / "farm.yaml"
    file.write_text(text)
    return file, calibrate(file, probe, judge(probe))


@pytest.mark.parametrize("role", ["log", "data"])
def test_what_is_not_declared_is_filled(tmp_path: Path, role: str) -> None:
    """A farm that is read again has the limits; comments and the other disks are as they were."""
    file, said = done(tmp_path, FARM, probe_on(f"sql.{role}", Disk(0.0005, 500, 60e6)))
    assert "500 IOPS" in said
    assert "60 MB/s" in said
    disks = load_farm(file).tiers["sql"].hosts["sql1"].disks
    limits = disks[role].resolved_limits
    assert limits is not None
    assert (limits.iops, limits.bytes_per_s) == (500, 60e6)
    text = file.read_text()
    assert "# ours" in text
    assert "# here" in text
    assert "tempdb: {path: /srv/temp, profile: azure/p30}" in text


def test_an_embedded_farm_that_declares_nothing(tmp_path: Path) -> None:
    file, _ = done(tmp_path, EMBEDDED, probe_on("sql.log", Disk(0.0005, 500, 60e6)))
    limits = load_farm(file).tiers["sql"].hosts["sql1"].disks["log"].resolved_limits
    assert limits is not None
    assert limits.iops == 500


def test_what_is_declared_is_not_overruled(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"declared already \(profile\).*take it out"):
        done(tmp_path, FARM, probe_on("sql.tempdb", Disk(0.0005, 500, 60e6)))
    assert (tmp_path / "farm.yaml").read_text() == FARM


def test_no_cap_but_a_curve(tmp_path: Path) -> None:
    """A disk that nothing holds: its latency over outstanding I/Os alone."""
    file, said = done(tmp_path, FARM, probe_on("sql.data", Disk(0.001)))
    assert "no cap" in said
    assert "its latency over 2 depths" in said
    limits = load_farm(file).tiers["sql"].hosts["sql1"].disks["data"].resolved_limits
    assert limits is not None
    assert limits.iops is None
    assert limits.latency == ((1.0, 0.001), (32.0, 0.001))


@pytest.mark.parametrize(("role", "depths"), [("log", [1.0]), ("data", [1.0, 4.0, 16.0, 64.0])])
def test_the_curve_is_that_of_the_role(tmp_path: Path, role: str, depths: list[float]) -> None:
    """Of a log its flushed writes, one at a time; of data 8 KiB, mostly reads, at every depth."""
    probe = probe_of(Disk(0.002, iops=1000), suite="database")
    probe.where = replace(probe.where, farm="dev", disk=f"sql.{role}")
    file, _ = done(tmp_path, FARM, probe)
    limits = load_farm(file).tiers["sql"].hosts["sql1"].disks[role].resolved_limits
    assert limits is not None
    assert limits.latency is not None
    assert [depth for depth, _ in limits.latency] == depths
    assert limits.latency[0][1] == pytest.approx(0.002)


def test_what_an_io_counts_as_is_kept(tmp_path: Path) -> None:
    """A cap that counts large I/Os in parts is written with the part."""
    probe = probe_on("sql.data", Disk(0.0005, 500, 60e6))
    verdict = judge(probe)
    assert verdict.caps.iops is not None
    parts = replace(verdict.caps.iops, unit_bytes=131072)
    file = tmp_path / "farm.yaml"
    file.write_text(FARM)
    calibrate(file, probe, replace(verdict, caps=Caps(parts, None)))
    limits = load_farm(file).tiers["sql"].hosts["sql1"].disks["data"].resolved_limits
    assert limits is not None
    assert limits.io_unit_bytes == 131072


def test_neither_cap_nor_latency(tmp_path: Path) -> None:
    """Where nothing was measured: the file stays as it is, and that is said."""
    probe = probe_on("sql.log", Disk(0.001))
    probe.cells = {}
    file, said = done(tmp_path, FARM, probe)
    assert "nothing was written" in said
    assert file.read_text() == FARM
