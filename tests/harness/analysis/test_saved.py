"""What is kept beside a run of what was found in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.analysis.build import Build

from pinchpoint.analysis import saved
from pinchpoint.store.schema import VERDICT


@pytest.mark.parametrize(("state", "kept"), [("running", False), ("interrupted", True), ("finished", True)])
def test_a_verdict_on_a_run_that_goes_on_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, kept: bool
) -> None:
    """A report made later would show it as the one on the whole run."""
    stored = Build(state=state).host("sql1", "sql").cpu("sql1", 0.3, 0.2).run()
    monkeypatch.setattr(saved, "open_run", lambda _: stored)
    _, verdict = saved.verdict_of(tmp_path)
    assert verdict.outcome
    assert (tmp_path / VERDICT).exists() is kept
