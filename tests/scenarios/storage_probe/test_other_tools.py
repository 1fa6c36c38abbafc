"""Tests of dd, hdparm and bonnie++: recorded outputs with values computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from pinchpoint_scenarios.storage_probe import (
    SUITES,
    TOOLS,
    CellFigures,
    ProbePlace,
    ToolFailed,
    ToolMissing,
    tool,
)
from pinchpoint_scenarios.storage_probe.process import run
from pinchpoint_scenarios.storage_probe.tool import installed, last_words
from pinchpoint_scenarios.storage_probe.tools.bonnie import line
from pinchpoint_scenarios.storage_probe.tools.dd import copied
from pinchpoint_scenarios.storage_probe.tools.hdparm import timed

PLACE = ProbePlace(Path("/disk/pinchpoint-probe"), 2**26, "/dev/sdb", 8 * 2**30)

DD = """64+0 records in
64+0 records out
67108864 bytes (67 MB, 64 MiB) copied, 0.0428953 s, 1.6 GB/s
"""

HDPARM = """
/dev/sdb:
 Timing buffered disk reads: 602 MB in  3.00 seconds = 200.47 MB/sec
"""

LARGE = (
    "1.98,2.00a,probe,1,1731168315,63G,,8192,5,,,745124,100,980550,91,,,1203968,58,812.5,12,,,,,,,,,,,,,,,,,,,"
    "5650us,12027us,,1806us,478us,,,,,,\n"
)
SMALL = (
    "1.98,2.00a,probe,1,1731168315,,,8192,5,,,,,,,,,,,,,16,16384,8192,,16,9120,21,+++++,+++,15000,22,9000,20,"
    "+++++,+++,14000.5,25,,,,,,,586us,404us,3ms,3324us,837us,2s\n"
)


def measured(suite: str, name: str, stdout: str = "", stderr: str = "") -> dict[str, CellFigures]:
    """Return the figures of a tool's job from its output, by cell."""
    [job] = [job for job in SUITES[suite].jobs(1.0) if job.name == name]
    return {cell.workload: one for cell, one in TOOLS[job.tool].read(job, PLACE, stdout, stderr).items()}


def test_dd_by_hand() -> None:
    """From dd's 67,108,864 bytes in 0.0428953 s come 1,564,480,584 bytes/s, or 1,492 I/Os/s of 1 MiB."""
    assert copied(DD) == (67108864, 0.0428953)
    one = measured("sequential", "dd write, 1 outstanding", stderr=DD)["dd write"]
    assert one.write_bytes_per_s == pytest.approx(1564480584, rel=1e-6)
    assert one.writes_per_s == pytest.approx(1492.0, rel=1e-4)
    assert one.read_bytes_per_s == 0
    assert one.mean_s is None
    read = measured("sequential", "dd read", stderr=DD)["dd read"]
    assert read.read_bytes_per_s == pytest.approx(1564480584, rel=1e-6)
    assert read.reads_per_s is None  # the kernel reads ahead, so dd does not know the I/Os


def test_hdparm_by_hand() -> None:
    """From hdparm's 602 MiB in 3 s come 210,414,250 bytes per second."""
    assert timed(HDPARM, "") == (602 * 2**20, 3.0)
    one = measured("sequential", "hdparm read", HDPARM)["hdparm read"]
    assert one.read_bytes_per_s == pytest.approx(210414250.7)


def test_bonnie_s_large_file_by_hand() -> None:
    """The rates, seeks and maximum times of bonnie++'s large file are the ones computed by hand."""
    found = measured("bonnie", "bonnie++ large file", LARGE)
    assert found["bonnie block write"].write_bytes_per_s == 745124 * 1024
    assert found["bonnie block write"].max_s == pytest.approx(0.00565)
    assert (
        found["bonnie rewrite"].read_bytes_per_s == found["bonnie rewrite"].write_bytes_per_s == 980550 * 1024
    )
    assert found["bonnie block read"].read_bytes_per_s == 1203968 * 1024
    assert found["bonnie block read"].max_s == pytest.approx(0.001806)
    assert found["bonnie seeks"].reads_per_s == 812.5
    assert found["bonnie seeks"].max_s == pytest.approx(0.000478)


def test_bonnie_s_small_files_by_hand() -> None:
    """Rates of bonnie++'s small files are per second; +++++ (too fast to measure) has no figure, not 0."""
    found = measured("bonnie", "bonnie++ small files", SMALL)
    assert found["bonnie create files in order"].writes_per_s == 9120
    assert found["bonnie create files in order"].max_s == pytest.approx(0.000586)
    assert found["bonnie delete files in order"].max_s == pytest.approx(0.003)
    assert found["bonnie delete files at random"].writes_per_s == 14000.5
    assert found["bonnie delete files at random"].max_s == 2.0
    assert "bonnie read files in order" not in found
    assert len(found) == 4


@pytest.mark.parametrize(
    "text", ["", "dd: writing: No space left on device\n", "0 bytes copied, 0 s, 0 B/s\n"]
)
def test_dd_that_says_no_figure(text: str) -> None:
    with pytest.raises(ToolFailed, match="dd did not say"):
        copied(text)


def test_hdparm_that_says_no_figure() -> None:
    with pytest.raises(ToolFailed, match=r"hdparm did not say .*Permission denied"):
        timed("", "/dev/sdb: Permission denied\n")
    assert "only root" in TOOLS["hdparm"].why("", "/dev/sdb: Permission denied\n")


@pytest.mark.parametrize("text", ["", "1.97,1.97,probe\n", "Writing intelligently...done\n"])
def test_bonnie_that_prints_another_format(text: str) -> None:
    with pytest.raises(ToolFailed, match=r"CSV format 1\.98"):
        line(text, "")


def test_hdparm_needs_a_block_device() -> None:
    [job] = [job for job in SUITES["sequential"].jobs(1.0) if job.tool == "hdparm"]
    with pytest.raises(ToolFailed, match="no block device"):
        TOOLS["hdparm"].commands(job, ProbePlace(PLACE.folder, 2**26, None, 2**30))


def test_a_missing_tool_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "find", lambda _: None)
    with pytest.raises(ToolMissing, match=r"bonnie\+\+ is not installed.*apt-get install bonnie\+\+"):
        installed(TOOLS["bonnie++"])


def test_last_words() -> None:
    assert last_words("", " \n") == "it ended without a word"
    assert last_words("a\nb\n\n", "c") == "b"


def test_a_tool_inherits_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool's environment has no variables of farm.yaml, which other users might read."""
    monkeypatch.setenv("SP_PASSWORD", "canary")
    assert "canary" not in run(["env"], tmp_path, lambda: False).stdout
