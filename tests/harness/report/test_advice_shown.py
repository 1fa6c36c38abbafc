"""Advice in every format: with its gain, the next bottleneck, the assumptions and the source."""

from __future__ import annotations

import json

import pytest
from harness.analysis.test_capacity import MB, two_disks
from harness.report.example import screen

from pinchpoint.analysis import analyse
from pinchpoint.base import wording
from pinchpoint.report import html, jsonfile, markdown
from pinchpoint.report.report import Report, gather


@pytest.fixture(scope="module")
def report() -> Report:
    run = two_disks(128 * MB).run()
    return gather(run, analyse(run).to_json())


def test_advice_is_a_table_with_its_source(report: Report) -> None:
    """Advice is a table with one row each, followed by the headroom and the bottleneck after next."""
    table = report.tables["advice"]
    [[what, gain, then, assumes, what_if, source]] = table.cells()
    assert "azure/ds14" in what
    [row] = report.verdict["advice"]
    low, high = row["interval_ratio"]
    assert low < row["gain_ratio"] < high
    assert gain == f"{wording.gains(row['gain_ratio'], low, high)} in the throughput of orders"
    assert gain.startswith("+42 % (")
    assert then == "time that no measured resource explains"
    assert "the same mix of operations" in assumes
    assert what_if == "--set sql.machine=azure/ds14"
    assert "azure/ds12, azure/ds14: Azure, previous generations of virtual machine sizes" in source
    assert "(taken 2026-11-21)" in source
    assert table.note.startswith("Headroom: 0.")
    assert "Then: the CPU of sql (host sql1), about" in table.note


def test_demand_is_a_table(report: Report) -> None:
    """Demand is a table, smallest ceiling first; at one load level the use at rest is unknown."""
    cells = report.tables["demand"].cells()
    assert cells[0][0] == "all disks of sql together (host sql1, machine azure/ds12)"
    assert cells[0][2] == "not measured"
    assert "of orders" in cells[0][4]


def test_every_format_says_what_to_do(report: Report) -> None:
    """Advice is a section in the page and in Markdown, a list in the terminal, and rows in JSON."""
    assert '<details id="advice">' in html.write(report)
    assert "## What to do" in markdown.write(report)
    text = screen(report.verdict)
    flat = " ".join(text.split())
    assert "What to do:\n  - Make sql1 an azure/ds14" in text
    assert (
        "is the bottleneck (what-if --set sql.machine=azure/ds14). "
        "These figures assume: - the same mix of operations" in flat
    )
    assert max(len(line) for line in text.splitlines()) <= 88
    rows = json.loads(jsonfile.write(report))["tables"]["advice"]
    assert rows[0]["gain_ratio"] == pytest.approx(0.43, abs=0.02)


def test_a_verdict_of_an_earlier_version_has_no_such_section(report: Report) -> None:
    """A saved verdict of a version without advice still has a report."""
    older = {
        key: value
        for key, value in report.verdict.items()
        if key not in {"advice", "demand", "headroom", "then"}
    }
    text = markdown.write(gather(report.run, older))
    assert "## What to do" not in text
    assert "ROOM   0." in screen(older)
