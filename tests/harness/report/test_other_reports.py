"""Reports of run sets and of published figures."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from support import run_cli

from pinchpoint.report import registry

ROOT = Path(__file__).resolve().parents[3]
REAL = ROOT / "tests" / "golden_runs" / "real"
FORMATS = ",".join(registry.FORMATS)


def _places(*names: str) -> list[Mapping[str, object]]:
    return [{"folder": name, "farm": name, "identity": f"/{name}.yaml", "again": False} for name in names]


@pytest.fixture(scope="module")
def set_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a set of two farms with one run each."""
    folder = tmp_path_factory.mktemp("set")
    shutil.copytree(REAL / "log-cap-310", folder / "dev" / "one")
    shutil.copytree(REAL / "healthy-records-steps", folder / "prod" / "two")
    runs = [
        {"folder": "dev", "round": 1, "run": "one", "status": 0},
        {"folder": "prod", "round": 1, "run": "two", "status": 0},
    ]
    began = "2026-11-20T10:00:00.000Z"
    content = {"schema": "pinchpoint.set/1", "plan": "nightly", "repeat": 2, "places": _places("dev", "prod")}
    content |= {"factors": [], "metrics": [], "started": began, "ended": began, "state": "ended early"}
    (folder / "set.json").write_text(json.dumps({**content, "runs": runs}))
    return folder


def test_a_set_has_a_report_in_every_format(set_folder: Path, tmp_path: Path) -> None:
    """A set's report has each run, the spread, and the two planned runs that are missing."""
    ended = run_cli("report", str(set_folder), "--format", FORMATS, "--out", str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "nightly on dev and prod, 2 of 4 planned runs" in text
    assert "dev: the log disk of sql is the bottleneck (1 of 1 run)." in text
    assert "| dev | 1 | one | the log disk of sql | high |" in text
    suite = Xml.parse(tmp_path / "report.xml").getroot()  # noqa: S314 -- our own
    assert suite.get("errors") == "1"
    assert "Throughput of orders in each round" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_published_figures_have_a_report_in_every_format(tmp_path: Path) -> None:
    """Published figures of two farms are shown side by side, with missing ones named and no verdict."""
    given = ROOT / "infra" / "examples" / "crawl-dev-vs-prod.yaml"
    ended = run_cli("report", str(given), "--format", FORMATS, "--out", str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "- Go or no-go: **Not decided** Published figures have no objectives." in text
    assert "| file share over a VPN | prod | 73,769 | no | 6 h 49 min |" in text
    assert "| prod | search | app3 | not published |" in text
    assert "Crawl rate by source" in (tmp_path / "report.html").read_text(encoding="utf-8")
