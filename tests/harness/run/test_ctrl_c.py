"""Ctrl-C at every step of a run: data kept on the farm, data removed, messages and exit status.

Order of steps, signals and files are real; servers and load generators are fakes.
"""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pinchpoint.base.errors import ExitStatus, FarmUnavailable
from pinchpoint.base.interrupts import Interrupted
from pinchpoint.farm.ready import ReadyFarm
from pinchpoint.plan import Plan, load_farm
from pinchpoint.run import controller as run_module
from pinchpoint.run.controller import RunEnd, RunOptions, _places
from pinchpoint.run.progress import Board
from pinchpoint.store.schema import MANIFEST
from pinchpoint_scenarios.contract import Intent, Target
from pinchpoint_scenarios.errors import ScenarioError

CLOSED = {"model": "closed", "users": 1}
PLAN = Plan.from_json(
    {
        "name": "p",
        "scenarios": {
            "crawl": {"use": "full-crawl", "load": CLOSED, "params": {}},
            "orders": {"use": "sql-mix", "load": CLOSED, "params": {}},
        },
        "phases": {"warm_up": {"at_most_s": 0.1}, "measure": {"until": "done", "at_most_s": 20.0}},
    }
)


class Made:
    """A fake scenario that records what happens to its data."""

    def __init__(self, name: str, at: Callable[[str], None], *, resumable: bool) -> None:
        self.resumable = resumable
        self.kept: bool | None = None
        self._name, self._at = name, at

    def prepare(self, progress: Callable[[str], None]) -> None:
        self._at(f"prepare {self._name}")

    def finish(self, *, keep_data: bool) -> None:
        self._at(f"finish {self._name}")
        self.kept = keep_data


class Story:
    """One run of a crawl and of orders.

    Args:
        folder: directory of the farm's file and the run.
        strikes: number of Ctrl-C signals by point of the run.
        fails: the point at which the farm fails.
        done: whether the crawl ends at once.
    """

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        strikes: Mapping[str, int],
        fails: str = "",
        *,
        done: bool = False,
    ) -> None:
        self.said: list[str] = []
        self._strikes, self._fails = Counter(strikes), fails
        self.crawl = Made("crawl", self._at, resumable=True)
        self.orders = Made("orders", self._at, resumable=False)
        self._folder = folder
        pool = SimpleNamespace(
            local_pids=[],
            start=lambda: None,
            wait_ready=lambda _: self._at("wait_ready"),
            check_workers=lambda: None,
            begin=lambda _: None,
            begun_ns=lambda _: time.time_ns(),
            done=lambda _: done,
            loading=dict,
            failures=list,
            stop=lambda: self._at("stop"),
            kill=lambda: self._at("kill"),
        )
        monkeypatch.setattr(run_module, "GeneratorPool", lambda *_: pool)
        monkeypatch.setattr(run_module, "ready_farm", self._live)
        monkeypatch.setattr(run_module, "assign", lambda *_: SimpleNamespace(here=[], elsewhere=None))
        monkeypatch.setattr(run_module, "_preflight", lambda *_: ({}, []))
        made = {"crawl": self.crawl, "orders": self.orders}
        monkeypatch.setattr(run_module, "make_scenario", lambda name, *_, **__: made[name])

    def run(self, *, resume: bool = False) -> RunEnd:
        file = self._folder / "farm.yaml"
        endpoint = {"sql": {"url": "postgresql://someone@localhost/nothing"}}
        file.write_text(json.dumps({"name": "mine", "environment": "test", "endpoints": endpoint}))
        progress: Any = SimpleNamespace(
            say=self._say,
            tick=lambda phase, _: self._at(phase.split()[0]),
            watch=lambda *_: None,
            end_live=lambda: None,
        )
        options = RunOptions(resume=resume)
        return run_module.run(load_farm(file), PLAN, self._folder / "runs", progress, Board(), options)

    def _say(self, sentence: str) -> None:
        self.said.append(sentence)
        self._at(sentence)

    @contextmanager
    def _live(self, *_: object) -> Iterator[ReadyFarm]:
        try:
            yield ReadyFarm(endpoints={}, watches=[])
        finally:
            self._at("farm down")

    def _at(self, point: str) -> None:
        for _ in range(self._strikes.pop(point, 0)):
            signal.raise_signal(signal.SIGINT)
        if point == self._fails:
            raise ScenarioError("the farm refuses")


def state_of(ended: RunEnd) -> str:
    """Return the state of the run in its manifest."""
    found: str = json.loads((ended.directory / MANIFEST).read_text())["state"]
    return found


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("point", ["prepare orders", "wait_ready"])
def test_a_crawl_that_was_to_be_gone_on_with_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, resume: bool
) -> None:
    """A resumable crawl is kept after Ctrl-C; one that was prepared but never began is removed."""
    story = Story(tmp_path, monkeypatch, {point: 1})
    with pytest.raises(Interrupted):
        story.run(resume=resume)
    assert (story.crawl.kept, story.orders.kept) == (resume, False)
    assert any("run --resume goes on with it" in sentence for sentence in story.said) is resume


def test_a_neighbour_that_cannot_be_prepared_costs_no_crawl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed preparation of another scenario leaves the crawl resumable."""
    story = Story(tmp_path, monkeypatch, {}, fails="prepare orders")
    with pytest.raises(FarmUnavailable, match="orders: the farm refuses"):
        story.run(resume=True)
    assert (story.crawl.kept, story.orders.kept) == (True, False)


def test_a_crawl_that_cannot_be_gone_on_with_is_not_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a resumable crawl, no message promises --resume."""
    story = Story(tmp_path, monkeypatch, {}, fails="prepare crawl")
    with pytest.raises(FarmUnavailable, match="crawl: the farm refuses"):
        story.run(resume=True)
    assert not any("run --resume" in sentence for sentence in story.said)


def test_two_at_once_while_measuring_keep_the_crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two Ctrl-C in quick succession while measuring keep the crawl."""
    story = Story(tmp_path, monkeypatch, {"measuring": 2})
    with pytest.raises(Interrupted):
        story.run()
    assert (story.crawl.kept, story.orders.kept) == (True, False)


@pytest.mark.parametrize(
    "point",
    [
        "kill",
        "removing the data it made",
        "finish crawl",
        "finish orders",
        "writing the run's files",
        "farm down",
    ],
)
def test_clearing_away_is_not_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], point: str
) -> None:
    """Cleaning up is not interrupted by any number of Ctrl-C: no data stays, exit status 130."""
    story = Story(tmp_path, monkeypatch, {point: 2}, done=True)
    ended = story.run()
    assert (story.crawl.kept, story.orders.kept) == (False, False)
    assert (ended.statuses, ended.whole) == ([ExitStatus.INTERRUPTED], True)
    assert state_of(ended) == "finished"
    assert capfd.readouterr().err.count("Ctrl-C again ends within 5 s") == 2


def test_one_while_the_load_is_being_stopped_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the load stops leaves the run complete, and its status ends a set."""
    ended = Story(tmp_path, monkeypatch, {"stop": 1}, done=True).run()
    assert (ended.statuses, ended.whole) == ([ExitStatus.INTERRUPTED], True)
    assert state_of(ended) == "finished"


def test_one_while_measuring_and_one_while_clearing_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second Ctrl-C during cleaning up changes nothing: orders is removed, the crawl is kept."""
    story = Story(tmp_path, monkeypatch, {"measuring": 1, "finish crawl": 1})
    ended = story.run()
    assert (story.crawl.kept, story.orders.kept) == (True, False)
    assert ended.statuses == [ExitStatus.INTERRUPTED]
    assert state_of(ended) == "interrupted"


def test_what_was_only_read_is_not_said_to_be_left_on_the_farm() -> None:
    """A process that ends at once names the places it wrote to; a crawled site is not among them."""
    written = Target("endpoint sql (db1:5432)", "schema pinchpoint_crawl")
    read = Target("endpoint sharepoint (web1:443)", "source sharepoint", "read")
    crawl = SimpleNamespace(writes=True, intent=lambda: Intent((written, read), (), (), "the schema"))
    assert _places({"crawl": crawl}) == ["crawl: endpoint sql (db1:5432), schema pinchpoint_crawl"]  # type: ignore[dict-item]  # what it uses of a scenario
