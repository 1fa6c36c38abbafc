"""Progress output during a run; phases and their times."""

from __future__ import annotations

import io
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from pinchpoint.base.clock import seconds_of
from pinchpoint.data.series import Window
from pinchpoint.plan import load_plan
from pinchpoint.run import progress as shown
from pinchpoint.run.phases import PhaseRunner
from pinchpoint.run.progress import Board, ProgressDisplay, machines_of
from pinchpoint.run.recent_seconds import RecentSeconds
from pinchpoint_collectors.record import Sample

ROLE = {"device": "vda"}
HOSTS: dict[str, dict[str, Any]] = {
    "sql1": {"tier": "sql", "machine_id": "m", "hostname": "vm", "tier_cores": [0], "roles": {"log": ROLE}},
    "files1": {"tier": "files", "machine_id": "m", "hostname": "vm", "roles": {"content": ROLE}},
    "far1": {"tier": "web", "machine_id": "n", "hostname": "far", "roles": {}},
}


def board(**crawl: Any) -> Board:
    """Return the board after a second of a crawl and one reading of each host."""
    found = Board()
    found.second("w1", {"crawl": {"ok": 1240, "failed": 0, "dropped": 0, "p95_s": 0.1, **crawl}})
    figures = [
        ("sql1", "cpu.busy_ratio", "", 0.61),
        ("sql1", "cpu.busy_ratio", "tier:sql", 0.22),
        ("files1", "cpu.busy_ratio", "", 0.61),
        ("sql1", "disk.write_latency_s", "vda", 0.004),
        ("sql1", "disk.writes_per_s", "vda", 630.0),
    ]
    found.samples(
        Sample(time_ns=0, host=h, metric=m, instance=i, value=v, weight=1.0, interval_s=1.0)
        for h, m, i, v in figures
    )
    return found


def said(columns: int | None = None, **crawl: Any) -> str:
    """Return the text that one tick writes to a pipe, or to a terminal of that width."""
    display = ProgressDisplay(board(**crawl))
    file = io.StringIO()
    display._console = Console(file=file, force_terminal=columns is not None, width=columns or 400)
    display.watch(machines_of(HOSTS), {"crawl": 4000})
    display.tick("measuring until the work is done, at most", 3600)
    display.end_live()
    return file.getvalue()


def test_a_pipe_gets_one_short_line() -> None:
    """A pipe gets one line: time, load, the machine's CPU and each tier's, without zeros."""
    [line] = said().splitlines()
    assert line.startswith("measuring: 1,240 of 4,000 documents, about ")
    assert "crawl 1240/s p95 100 ms | vm CPU 61 % | sql1 CPU 22 %" in line
    assert "failed" not in line
    assert "files1" not in line
    assert len(line) <= shown._LINE


def test_failures_are_shown_where_there_are_some() -> None:
    """Failed and dropped operations appear where there are any."""
    assert "3 failed" in said(failed=3)


@pytest.mark.parametrize("columns", [60, 80])
def test_a_terminal_shows_each_disk_once(columns: int) -> None:
    """A terminal shows each disk once with its roles, in a table that fits."""
    text = said(columns)
    last = text[text.rindex("farm ") :]
    assert last.count("disk vda") == 1
    assert max(len(line) for line in text.splitlines() if "\x1b" not in line) <= columns


def test_work_that_is_done_counts_down_the_phase() -> None:
    """A corpus that is crawled again shows the time left instead of a share of the work."""
    assert said(ok=5000).startswith("measuring until the work is done, at most: 60 min left")


PLAN = """\
name: p
scenarios: {burst: {use: nosql-burst, load: {model: closed, users: 1}}}
phases: {warm_up: 0s, measure: 2s}
"""


def nothing(*_: Any, **__: Any) -> None:
    """Stand in for load, records and wording, which are irrelevant here."""


@pytest.mark.parametrize("offset_s", [0.02, 0.5, 0.98])
def test_as_many_whole_seconds_are_measured_as_were_asked_for(offset_s: float, tmp_path: Path) -> None:
    """The number of whole measured seconds is that requested, from any begin within a second."""
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
