"""The table of stripes: means over repetitions, gains against one stripe, new disks apart from used ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pinchpoint.base.errors import ExitStatus
from pinchpoint.cli import stripes
from pinchpoint.report import striped
from pinchpoint.report.striped import Measured
from pinchpoint.store.schema import MANIFEST, RUN_SCHEMA


def measured(number: int, repetition: int, used: float, new: float) -> Measured:
    return Measured(number, repetition, new, used, f"the disk of {number} <b>", f"run{number}")


FOUND = [
    *(measured(1, 1, 60, 25), measured(2, 1, 118, 50), measured(8, 1, 400, 400)),
    *(measured(8, 2, 440, 200), measured(2, 2, 122, 54), measured(1, 2, 64, 27)),
]


def test_gains_are_told_from_used_disks() -> None:
    """Eight new stripes against one new stripe would say 11.5; used ones say 6.8."""
    one, two, eight = striped.summary(FOUND)
    assert (one.stripes, two.stripes, eight.stripes) == (1, 2, 8)
    assert (one.gain_ratio, one.new_gain_ratio) == (1, 1)
    assert eight.gain_ratio == pytest.approx(420 / 62)
    assert eight.new_gain_ratio == pytest.approx(300 / 26)
    assert (eight.lowest_per_s, eight.highest_per_s) == (400, 440)


def test_table_and_page_show_every_run() -> None:
    """With its verdict; nothing in it acts as HTML; the chart is drawn."""
    rows = striped.summary(FOUND)
    text, page = striped.text(rows), striped.page(FOUND, rows)
    assert "6.77 x" in text
    assert text.count("the disk of 8") == 2
    assert "<svg" in page
    assert "the disk of 8 &lt;b&gt;" in page


def test_only_whole_seconds_of_a_burst_count() -> None:
    """A second that lies partly outside is left out, so are failures and stages."""
    rows = [(10, "update", "ok", 9), (11, "update", "ok", 60), (12, "update", "ok", 62)]
    rows += [(12, "update", "timeout", 5), (12, "update/part", "ok", 7), (13, "update", "ok", 3)]
    table = pa.table(
        {
            "time_s": [row[0] for row in rows],
            "scenario": ["burst"] * len(rows),
            "operation": [row[1] for row in rows],
            "outcome": [row[2] for row in rows],
            "count": [row[3] for row in rows],
        }
    )
    assert striped.rate_per_s(table, "burst", 10.3, 13.3) == 61
    assert striped.rate_per_s(table, "other", 10.3, 13.3) == 0


@pytest.mark.parametrize("number", stripes.STRIPES)
def test_the_farms_differ_in_their_stripes_only(number: int) -> None:
    """And each declares what its disk really allows."""
    described = stripes.farm(number)
    disk = described["embedded"]["disks"]["nosql.data"]
    assert disk["stripes"] == number
    declared = described["tiers"]["nosql"]["hosts"]["nosql1"]["disks"]["data"]["limits"]["bytes_per_s"]
    assert declared == f"{2 * number}MB/s"
    other = stripes.farm(1)["embedded"]["disks"]["nosql.data"]
    assert disk | {"stripes": 1} == other


def test_a_run_that_was_cut_short_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its bursts are not all there: no figure is made of it, its status and its directory are given."""
    manifest = {"schema": RUN_SCHEMA, "state": "interrupted", "started": "2026-01-01T00:00:00Z"}
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    monkeypatch.setattr(stripes, "check_means", lambda _: None)
    monkeypatch.setattr(stripes, "run_and_report", lambda *_: (tmp_path, ExitStatus.NOT_EVIDENCE))
    farm_and_plan: Any = (None, None)
    assert stripes.run_all(lambda _: farm_and_plan, tmp_path / "out") == ExitStatus.NOT_EVIDENCE
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == str(tmp_path)
    assert "did not come to its end" in said.err
