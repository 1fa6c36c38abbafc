"""Files of earlier versions stay readable: one of each schema version, as written then."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support import run_cli

from pinchpoint.analysis import verdict
from pinchpoint.comparison import comparison
from pinchpoint.probe import record
from pinchpoint.run import run_set
from pinchpoint.store import archive, schema

KEPT = Path(__file__).parents[2] / "kept_versions"
NAMES = sorted(path.name for path in KEPT.iterdir())
WRITTEN = {
    "run": schema.RUN_SCHEMA,
    "verdict": verdict.SCHEMA,
    "archive": archive.SCHEMA,
    "set": run_set.SCHEMA,
    "comparison": comparison.SCHEMA,
    "probe": record.SCHEMA,
}


@pytest.mark.parametrize("name", NAMES)
def test_it_is_read_by_this_version(name: str, tmp_path: Path) -> None:
    """Each is read by its user commands: a report of the saved file, and a new verdict."""
    place = tmp_path / name
    if name.endswith(".zip"):
        done = run_cli("unpack", KEPT / name, "--out", tmp_path)
        assert done.returncode == 0, done.stderr
        place = Path(done.stdout.splitlines()[-1])
    else:
        shutil.copytree(KEPT / name, place)
    if name.startswith("set-"):
        for side in ("dev", "prod"):
            shutil.copytree(KEPT / name.replace("set", "run"), place / side / "first")
    done = run_cli("report", place, "--format", "json,md", "--out", tmp_path / "out")
    assert done.returncode in (0, 1), done.stderr
    assert len(list((tmp_path / "out").iterdir())) == 2
    if (place / "samples.parquet").exists():
        done = run_cli("analyse", place)
        assert done.returncode in (0, 1), done.stderr


def test_of_each_version_that_is_written_one_is_kept() -> None:
    """Each schema version has a stored example, so a new version needs one, too."""
    for kind, written in WRITTEN.items():
        version = written.rpartition("/")[2]
        holder = "run" if kind == "verdict" else kind  # a verdict is stored in its run's folder
        assert any(name.startswith(f"{holder}-{version}") for name in NAMES), written
