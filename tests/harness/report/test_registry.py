"""Report formats by name: the choices, refusals, and files that are written completely or not at all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from harness.report.documents import words
from harness.report.example import saved_run, verdict

from pinchpoint.base.errors import InputError
from pinchpoint.report import files, html, jsonfile, markdown, registry, xlsx
from pinchpoint.report.cover import PLAIN
from pinchpoint.report.report import gather
from pinchpoint.report.tables import Column, Table

RUNS = Path(__file__).parents[2] / "golden_runs"


def test_the_formats_of_the_command_line_are_there() -> None:
    """``--format`` offers these formats in the order of the help and of messages."""
    assert list(registry.FORMATS) == ["html", "pdf", "pptx", "xlsx", "md", "json", "junit"]


def test_an_unknown_format_lists_all_of_them_and_the_nearest() -> None:
    """An unknown format's message lists all formats and the nearest."""
    with pytest.raises(
        InputError, match=r"'htm' is not a report format; allowed: html, .*md, json, junit; nearest: html"
    ):
        registry.check_formats(["md", "htm"])


README = Path(registry.__file__).with_name("README.md")


@pytest.mark.parametrize(
    ("recorded", "words"),
    [
        ("real/log-cap-240", ("\nBottleneck,", "\nWhat to do,", "\nScenarios\r\n", "\nDisks")),
        ("probes/database", ("\ntempdb 64K half read,8,", "± 0 %")),
    ],
)
def test_a_format_is_added_as_the_readme_says(
    recorded: str, words: Sequence[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A format of one file and one registry line writes reports of runs and of probes."""
    [code] = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    made: dict[str, Any] = {}
    exec(code, made)  # noqa: S102 -- our own page
    monkeypatch.setattr(registry, "FORMATS", {**registry.FORMATS, "csv": made["write"]})
    [path] = files.write_saved(copytree(RUNS / recorded, tmp_path / "run"), ["csv"], tmp_path, PLAIN)
    assert path == tmp_path / "report.csv"
    text = path.read_bytes().decode()
    assert [each for each in words if each not in text] == [], text


OTHERS: dict[str, dict[str, Any]] = {
    "objectives": {"measured": None, "objective": ""},
    "writes": {"missing": 0, "different": 0, "records": 0},
}
"""Tables whose rows page one uses."""


def test_every_table_is_in_every_format() -> None:
    """Every table is in every format."""
    report = gather(saved_run(), verdict(explanation={"would_change": []}))
    marks = {name: f"cell of {name.replace('_', ' ')}." for name in report.tables}
    rows = {
        name: [{"a": mark, "met": None, "scenario": "", **OTHERS.get(name, {})}]
        for name, mark in marks.items()
    }
    tables = {name: Table(name, name, (Column("a", "a"),), rows[name]) for name in marks}
    tabled = replace(report, tables=tables)
    for name, text in (
        ("html", html.write(tabled)),
        ("md", markdown.write(tabled)),
        ("json", jsonfile.write(tabled)),
        ("xlsx", words(xlsx.write(tabled))),
    ):
        assert [mark for mark in marks.values() if mark not in text] == [], name


@pytest.mark.parametrize("broken", [{}, [], {"schema": "pinchpoint.verdict/1", "outcome": "?"}])
def test_what_is_no_verdict_is_said_so(broken: object) -> None:
    """A damaged verdict.json gives one sentence with the remedy."""
    with pytest.raises(InputError, match="pinchpoint analyse RUN"):
        gather(saved_run(), broken)  # type: ignore[arg-type]


def test_a_report_is_written_under_its_format_and_replaces_an_older_one(tmp_path: Path) -> None:
    """A report replaces an older one, and no partial file is left."""
    (tmp_path / "report.md").write_text("older")
    report = gather(saved_run(), verdict())
    assert registry.write_reports(report, ["md"], tmp_path) == [tmp_path / "report.md"]
    assert (tmp_path / "report.md").read_text() == registry.FORMATS["md"](report)
    assert list(tmp_path.iterdir()) == [tmp_path / "report.md"]


def test_a_report_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    """If a file is in the way, the message has the remedy, and no partial file is left."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be written: .*; give another folder with --out"):
        registry.write_reports(gather(saved_run(), verdict()), ["md"], tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_name_that_is_no_text_does_not_stop_a_report(tmp_path: Path) -> None:
    """A file name that is not UTF-8 is written escaped."""
    run = saved_run()
    run.manifest["warnings"].append("skipped caf\udce9.txt")
    for path in registry.write_reports(gather(run, verdict()), ["html", "md", "json"], tmp_path):
        assert "udce9.txt" in path.read_text(encoding="utf-8")
    registry.write_reports(gather(run, verdict()), registry.FORMATS, tmp_path)


@pytest.mark.parametrize("spoilt", [None, b"", b"\xff", b"of\nanother"])
def test_the_script_of_a_page_is_put_together_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoilt: bytes | None
) -> None:
    """A page's script is composed once and cached; a damaged or missing cache is replaced."""
    made: list[str] = []

    def bundle(code: str) -> str:
        made.append(code)
        return "vega\nlite"

    monkeypatch.setattr("vl_convert.javascript_bundle", bundle)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    put_together = html._bundle.__wrapped__  # past the memory of this process
    assert [put_together(), put_together(), len(made)] == ["vega\nlite", "vega\nlite", 1]
    [kept] = (tmp_path / "pinchpoint").iterdir()
    if spoilt is not None:
        kept.write_bytes(spoilt)
        assert [put_together(), put_together(), len(made)] == ["vega\nlite", "vega\nlite", 2]
    monkeypatch.setenv("XDG_CACHE_HOME", str(kept))
    assert [put_together(), len(made)] == ["vega\nlite", 2 + (spoilt is not None)]
