"""The phases of a run: what they are asked to last is what can be judged of them."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pinchpoint.base.clock import seconds_of
from pinchpoint.data.series import Window
from pinchpoint.plan import load_plan
from pinchpoint.run.phases import PhaseRunner
from pinchpoint.run.recent_seconds import RecentSeconds

PLAN = """\
name: p
scenarios: {burst: {use: nosql-burst, load: {model: closed, users: 1}}}
phases: {warm_up: 0s, measure: 2s}
"""


def nothing(*_: Any, **__: Any) -> None:
    """Load, records and words are of no matter here."""


@pytest.mark.parametrize("offset_s", [0.02, 0.5, 0.98])
def test_as_many_whole_seconds_are_measured_as_were_asked_for(offset_s: float, tmp_path: Path) -> None:
    """From wherever in a second measuring begins: two of them can be judged, not one."""
    (tmp_path / "plan.yaml").write_text(PLAN)
    store: Any = SimpleNamespace(
        manifest={"phases": []}, event=nothing, save_manifest=nothing, compact=nothing, warn=nothing
    )
    pool: Any = SimpleNamespace(begin=nothing, begun_ns=lambda _: 0, stop=nothing)
    progress: Any = SimpleNamespace(say=nothing, tick=nothing)
    plan = load_plan(tmp_path / "plan.yaml")
    phases = PhaseRunner(plan, pool, store, RecentSeconds(), progress, must_end=lambda: False)
    time.sleep((offset_s - time.time()) % 1)
    phases.run()
    measured = store.manifest["phases"][1]
    begun_s, ended_s = seconds_of(measured["from"]), seconds_of(measured["to"])
    assert Window.between(begun_s, ended_s).seconds == 2
    assert ended_s - begun_s < 3.5
