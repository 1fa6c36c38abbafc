"""Checks that a run's directory can be written."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pinchpoint.run.preflight import check_space


def test_runs_that_begin_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Concurrent checks do not disturb each other and leave nothing."""
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: check_space(tmp_path / "runs"), range(200)))
    assert [check.found for check in found if not check.ok] == []
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    """A file in place of the directory is named with the remedy."""
    (tmp_path / "runs").write_text("")
    found = check_space(tmp_path / "runs" / "deeper")
    assert (found.ok, found.found) == (False, f"{tmp_path / 'runs'} is a file; give a folder with --out")
