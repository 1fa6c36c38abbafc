"""``pinchpoint report`` of a probe and of a comparison of two, from the saved files alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from harness.probe.build import Disk, probe_of

from pinchpoint.base.errors import InputError
from pinchpoint.cli.compare import compare as compare_command
from pinchpoint.cli.report import report
from pinchpoint.probe.compare import compare
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import save
from pinchpoint.probe.verdict import probe_content
from pinchpoint.report.files import write_comparison as saved


def probed(folder: Path, name: str, disk: Disk) -> Path:
    """Return a probe's directory; its file system's name needs escaping."""
    probe = probe_of(disk)
    probe.where = replace(probe.where, folder=f"/srv/{name}<b>")
    directory = folder / name
    directory.mkdir()
    save(directory, probe_content(probe, judge(probe)))
    return directory


def told(*arguments: str | Path) -> list[Path]:
    done = CliRunner().invoke(report, [str(word) for word in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return [Path(line) for line in done.output.splitlines()]


def test_every_format_of_a_probe(tmp_path: Path) -> None:
    directory = probed(tmp_path, "one", Disk(0.0005, 500, 60e6))
    page, text, content = told(directory, "--format", "html,md,json")
    assert page == directory / "report.html"
    assert "<svg" in page.read_text()
    assert "/srv/one<b>" not in page.read_text()
    assert "| RND4K write | 32 |" in text.read_text()
    assert json.loads(content.read_text())["verdict"]["caps"]["iops"]["value"] == pytest.approx(500)


def test_every_format_of_a_comparison(tmp_path: Path) -> None:
    """A comparison's page has the ratios as a chart, the moved limits and the other differences."""
    sides = [probed(tmp_path, "one", Disk(0.0005, 500, 60e6)), probed(tmp_path, "two", Disk(0.001))]
    done = CliRunner().invoke(
        compare_command,
        [str(sides[0]), "--with", str(sides[1]), "--out", str(tmp_path)],
        catch_exceptions=False,
    )
    directory = Path(done.stdout.splitlines()[-1])
    assert "<svg" in (directory / "report.html").read_text()
    page, text, content = told(directory, "--format", "html,md,json", "--out", tmp_path / "again")
    for words in ("Changed limits", "the intervals cover repetitions", "Each cell"):
        assert words in page.read_text()
        assert words in text.read_text()
    assert "/srv/one<b>" not in page.read_text()
    assert json.loads(content.read_text()) == json.loads((directory / "comparison.json").read_text())


def test_two_comparisons_of_one_second_have_two_directories(tmp_path: Path) -> None:
    found = compare(probe_of(Disk(0.001)), probe_of(Disk(0.002)))
    assert len({saved(found, tmp_path) for _ in range(3)}) == 3


def test_a_format_that_is_not_offered(tmp_path: Path) -> None:
    directory = probed(tmp_path, "one", Disk(0.001))
    with pytest.raises(InputError, match=r"allowed: html, .*md, json"):
        report.main([str(directory), "--format", "docx"], standalone_mode=False)


def test_a_damaged_comparison(tmp_path: Path) -> None:
    directory = saved(compare(probe_of(Disk(0.001)), probe_of(Disk(0.002))), tmp_path)
    content = json.loads((directory / "comparison.json").read_text())
    del content["changes"]
    (directory / "comparison.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="changes: missing"):
        report.main([str(directory)], standalone_mode=False)
