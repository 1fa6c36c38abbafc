"""A farm.yaml is given what a probe found: where nothing is declared, all else as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from harness.probe.build import Disk, probe_of

from pinchpoint.base.errors import InputError
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


def test_seconds_of_latency_can_be_read_again(tmp_path: Path) -> None:
    """1,024 outstanding at 500 a second take 2.05 s each: three digits, and no exponent before the unit."""
    probe = probe_of(Disk(0.0005, 500), suite="iometer", repeat=1)
    probe.where = replace(probe.where, farm="dev", disk="sql.data")
    file, _ = done(tmp_path, FARM, probe)
    limits = load_farm(file).tiers["sql"].hosts["sql1"].disks["data"].resolved_limits
    assert limits is not None
    assert limits.latency is not None
    depth, latency_s = limits.latency[-1]
    assert depth == 1024
    assert latency_s == pytest.approx(2.05)


BRACES = FARM.replace(
    """          log: {path: /srv/log}
""",
    """          log: {   # who wrote this
                 path:   /srv/log   # moved in May
               }
""",
)


def test_not_another_character_changes(tmp_path: Path) -> None:
    """Comments within braces, spaces, quotes, the order: all as it was, but for the one thing that is new."""
    file, _ = done(tmp_path, BRACES, probe_on("sql.log", Disk(0.0005, 500, 60e6)))
    text = file.read_text()
    new = text[text.index(", limits: {") : text.index("   # moved in May")]
    assert text.replace(new, "") == BRACES
    load_farm(file)


def test_line_ends_and_a_mark_at_the_begin_stay(tmp_path: Path) -> None:
    """A file from Windows stays one."""
    raw = b"\xef\xbb\xbf" + FARM.replace("\n", "\r\n").encode()
    file = tmp_path / "farm.yaml"
    file.write_bytes(raw)
    probe = probe_on("sql.log", Disk(0.0005, 500, 60e6))
    calibrate(file, probe, judge(probe))
    lines = file.read_bytes().splitlines(keepends=True)
    assert lines[0] == b"\xef\xbb\xbf# ours\r\n"
    assert all(line.endswith(b"\r\n") for line in lines)
    load_farm(file)


def test_a_file_that_is_linked_to_stays_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text(FARM)
    (tmp_path / "farm.yaml").symlink_to("real.yaml")
    probe = probe_on("sql.log", Disk(0.0005, 500, 60e6))
    calibrate(tmp_path / "farm.yaml", probe, judge(probe))
    assert (tmp_path / "farm.yaml").is_symlink()
    assert "limits: {iops: 500" in (tmp_path / "real.yaml").read_text()


def test_what_stands_for_two_disks_is_not_changed(tmp_path: Path) -> None:
    """An alias is both disks' words: nothing is written, and what could be is said."""
    text = FARM.replace("{path: /srv/log}", "&one {path: /srv/log}").replace(
        "data: {path: /srv/data, limits: unknown}", "data: *one"
    )
    with pytest.raises(InputError, match=r"an alias or a merge.*write there yourself: limits"):
        done(tmp_path, text, probe_on("sql.data", Disk(0.0005, 500, 60e6)))
    assert (tmp_path / "farm.yaml").read_text() == text
    assert [one.name for one in tmp_path.iterdir()] == ["farm.yaml"]


@pytest.mark.parametrize(("role", "iops"), [("log", 290), ("data", None)])
def test_a_cap_of_writes_is_a_log_s(tmp_path: Path, role: str, iops: int | None) -> None:
    """A log is written; other disks are asked for more than writes: it would be no limit of theirs."""
    file, said = done(tmp_path, FARM, probe_on(f"sql.{role}", Disk(0.0005, write_iops=290)))
    limits = load_farm(file).tiers["sql"].hosts["sql1"].disks[role].resolved_limits
    assert limits is not None
    assert limits.iops == iops
    assert ("no cap of reads and writes together" in said) == (iops is None)
