"""Results of other storage tools become probes: judged, reported and compared like Pinchpoint's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from harness.probe.build import Disk, probe_of
from scenarios.storage_probe import result_files as files
from support import run_cli

from pinchpoint.base.errors import InputError
from pinchpoint.cli.probe import probe as probe_command
from pinchpoint.imports import HostPlaces, read_places
from pinchpoint.probe.compare import compare
from pinchpoint.probe.figures import figures
from pinchpoint.probe.imported import imported
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import Probe, load
from pinchpoint_scenarios.storage_probe.results import RESULTS

FARM = """
name: prod
environment: test
tiers:
  sql:
    hosts:
      SQL1:
        disks: {log: {path: 'L:/probes', limits: {iops: 1000, bytes_per_s: 60MB/s}}}
endpoints: {}
"""


def _probe(tmp_path: Path, kind: str, *texts: str, places: HostPlaces | None = None) -> Probe:
    given = []
    for number, text in enumerate(texts):
        path = tmp_path / f"{kind}-{number}"
        path.write_text(text)
        given.append((path, text, "0" * 64))
    return imported(given, RESULTS[kind], places or HostPlaces(), None)


def test_a_command_makes_a_probe(tmp_path: Path) -> None:
    """The last line is a folder with probe.json and report.html, as after `pinchpoint probe`."""
    path = tmp_path / "night.xml"
    path.write_text(files.diskspd(), encoding="utf-16")  # as PowerShell's > writes it
    ended = run_cli("import", path, "--out", tmp_path / "out")
    assert ended.returncode == 0, ended.stderr
    directory = Path(ended.stdout.splitlines()[-1])
    assert "8K random 70% read" in ended.stdout
    assert "night.xml" in (directory / "report.html").read_text()
    probe = load(directory)
    assert (probe.suite, probe.where.host, probe.where.folder) == ("diskspd", "SQL1", "L:\\probe.dat")
    assert probe.imports[0]["file"] == "night.xml"
    [one] = figures(probe).values()
    assert one.p50_s == pytest.approx(0.002, rel=0.01)
    assert one.p99_s == pytest.approx(0.0125, rel=0.01)
    assert json.loads((directory / "probe.json").read_text())["verdict"]["workloads"]
    resumed = CliRunner().invoke(probe_command, ["--resume", str(directory)])
    assert isinstance(resumed.exception, InputError)
    assert "was imported" in str(resumed.exception)


def test_several_files_are_repetitions_of_one_disk(tmp_path: Path) -> None:
    probe = _probe(tmp_path, "diskspd", files.diskspd(), files.diskspd(), files.DISKSPD_PLAIN)
    [trials] = probe.cells.values()
    assert [one.number for one in trials] == [1, 2, 3]
    assert probe.options.repeat == 3
    with pytest.raises(InputError, match="of several disks"):
        _probe(tmp_path, "diskspd", files.diskspd(), files.diskspd().replace("L:\\", "M:\\"))
    with pytest.raises(InputError, match="of several machines"):
        _probe(tmp_path, "diskspd", files.diskspd(), files.diskspd().replace("SQL1", "SQL2"))


def test_the_farm_declares_its_disk(tmp_path: Path) -> None:
    """The verdict uses the farm's declared limits; an unknown disk is refused."""
    (tmp_path / "farm.yaml").write_text(FARM)
    places = read_places(None, ["SQL1:L:=sql.log"], [], [], tmp_path / "farm.yaml")
    probe = _probe(tmp_path, "diskspd", files.diskspd(), places=places)
    assert (probe.where.label, probe.declared.words) == ("sql.log of prod", "1,000 IOPS, 60 MB/s")
    assert "disk_cap" in judge(probe).kinds
    with pytest.raises(InputError, match="which no --disk names"):
        _probe(
            tmp_path, "diskspd", files.diskspd(), places=read_places(None, ["SQL1:X:=sql.log"], [], [], None)
        )


def test_what_is_not_in_a_file_is_not_measured(tmp_path: Path) -> None:
    probe = _probe(tmp_path, "bonnie", files.BONNIE_98)
    found = {cell.name: one for cell, one in figures(probe).items()}
    assert found["bonnie create files in order"].trials == 0
    assert found["bonnie seeks"].p99_s is None
    assert any("times are those of the files" in one for one in probe.warnings)
    assert any("read as UTC" in one for one in _probe(tmp_path, "crystaldiskmark", files.CDM_8).warnings)


def test_beside_a_probe_of_ours(tmp_path: Path) -> None:
    """Cells are compared by suite, and across suites by the same I/O."""
    ours = probe_of(Disk(0.0005, 500, 60e6))
    found = compare(ours, _probe(tmp_path, "crystaldiskmark", files.CDM_8))
    assert {one.cell for one in found.changes} == {
        "SEQ1M read, 8 outstanding",
        "RND4K read, 32 outstanding",
        "RND4K mix, 1 outstanding",
    }
    assert "CrystalDiskMark: not reported and 8.0.4" in found.confounders
    fio = files.FIO_3.replace('"bs" : "8k"', '"bs" : "4k"').replace('"iodepth" : "4"', '"iodepth" : "32"')
    found = compare(ours, _probe(tmp_path, "fio", fio))
    assert [one.cell for one in found.changes] == ["RND4K read, 32 outstanding"]
    assert "suite: crystaldiskmark and fio" in found.confounders


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--into", "x"), "--into: have no effect"),
        (("--kind", "iometer"), "no row `ALL,All"),
        (("--kind", "nonsense"), "no kind 'nonsense'"),
    ],
)
def test_what_cannot_be_done(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    path = tmp_path / "a.xml"
    path.write_text(files.diskspd())
    ended = run_cli("import", path, *options, "--out", tmp_path / "out")
    assert ended.returncode == 2
    assert words in ended.stderr
    assert not (tmp_path / "out").exists()


def test_an_unknown_file_names_all_kinds(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("anything\n")
    ended = run_cli("import", path)
    assert (ended.returncode, "crystaldiskmark: CrystalDiskMark's text" in ended.stderr) == (2, True)
