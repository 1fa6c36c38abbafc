"""Saved verdicts: when a run's verdict is stored, reused or computed again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from harness.analysis.build import Build

from pinchpoint.analysis import Verdict, analyse, saved
from pinchpoint.store.read import StoredRun
from pinchpoint.store.schema import EVENTS, MANIFEST, VERDICT


def stored_in(folder: Path, state: str = "finished") -> StoredRun:
    """Return a run stored in that folder."""
    return replace(Build(state=state).host("sql1", "sql").cpu("sql1", 0.3, 0.2).run(), directory=folder)


@pytest.mark.parametrize(("state", "kept"), [("running", False), ("interrupted", True), ("finished", True)])
def test_a_verdict_on_a_run_that_goes_on_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, kept: bool
) -> None:
    """The verdict of a running run is not stored, because a later report would reuse it."""
    stored = stored_in(tmp_path, state)
    monkeypatch.setattr(saved, "open_run", lambda _: stored)
    _, verdict = saved.verdict_of(tmp_path)
    assert verdict.outcome
    assert (tmp_path / VERDICT).exists() is kept


def nothing(_: Path) -> None:
    """Change nothing."""


def other_code(folder: Path) -> None:
    """Change the program's code."""
    (folder / "code.py").write_text("changed = True")


def damaged(folder: Path) -> None:
    """Replace the verdict with content that this code did not write."""
    (folder / VERDICT).write_text('{"outcome": "not_reached"}')


def no_verdict(folder: Path) -> None:
    """Remove the verdict."""
    (folder / VERDICT).unlink()


def relabelled(folder: Path) -> None:
    """Change the manifest's time stamp, not its length."""
    os.utime(folder / MANIFEST, ns=(0, 0))


def more_events(folder: Path) -> None:
    """Add a file that did not exist."""
    (folder / EVENTS).write_text("")


@pytest.mark.parametrize(
    ("change", "anew"),
    [
        (nothing, False),
        (other_code, True),
        (damaged, True),
        (no_verdict, True),
        (relabelled, True),
        (more_events, True),
    ],
)
def test_a_verdict_is_read_where_nothing_has_changed_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], anew: bool
) -> None:
    """A stored verdict is reused while nothing has changed; after any change it is computed again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / MANIFEST).write_text("{}")
    (folder / "code.py").write_text("")
    stored = stored_in(folder)
    monkeypatch.setattr(saved, "open_run", lambda _: stored)
    monkeypatch.setattr(saved, "_code", lambda: [folder / "code.py"])
    judged: list[StoredRun] = []

    def counted(run: StoredRun) -> Verdict:
        judged.append(run)
        return analyse(run)

    monkeypatch.setattr(saved, "analyse", counted)
    _, first = saved.current_verdict(folder)
    change(folder)
    _, content = saved.current_verdict(folder)
    assert len(judged) == 1 + anew
    assert json.dumps(content) == json.dumps(first)
    assert (folder / VERDICT).exists()


def test_where_no_cache_can_be_written_a_run_is_judged_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a file in place of the cache folder, the verdict is computed each time."""
    (tmp_path / "cache").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    stored = stored_in(tmp_path)
    monkeypatch.setattr(saved, "open_run", lambda _: stored)
    assert saved.current_verdict(tmp_path) == saved.current_verdict(tmp_path)
