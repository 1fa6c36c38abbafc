"""Shares of a load that other workers take over: no user is duplicated or lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from support import run_script

from pinchpoint.loadgen import pool as pool_module
from pinchpoint.loadgen.assignment import Assignment
from pinchpoint.loadgen.pool import GeneratorPool
from pinchpoint.loadgen.slots import SLOTS

SCRIPT = Path(__file__).with_name("shares_script.py")

FILE = """
import time
from locust import User, constant, task

class U(User):
    wait_time = constant(0)

    def on_start(self):
        self.environment.events.request.fire(
            request_type="X", name="start", response_time=0, response_length=0, exception=None
        )

    @task
    def t(self):
        time.sleep(0.3)
"""


def test_users_of_a_share_that_grows_are_there_once(tmp_path: Path) -> None:
    """Users of a grown share exist once: closed, open and locustfile users, working or waiting."""
    (tmp_path / "file.py").write_text(FILE)
    found = run_script(SCRIPT, str(tmp_path / "file.py"))
    assert [share["failures"] for share in found.values()] == [[], [], [], []]
    assert [share["finished"] for share in found.values()] == [0, 0, 0, 0]
    closed, paced, locusts, waiting = (found[name] for name in ("closed", "open", "locusts", "waiting"))
    assert closed["opened"] == [0, 2, 1, 3]
    assert (closed["users"], closed["open"]) == (4, 4)
    assert len(paced["opened"]) == len(set(paced["opened"])) == paced["open"] == 10
    assert (locusts["users"], locusts["open"], locusts["starts"]) == (4, 4, 4)
    assert (waiting["users"], waiting["open"], waiting["starts"]) == (4, 4, 4)


@dataclass
class RecordingGenerator:
    """A ``Channel`` that records the messages to a generator."""

    messages: list[Mapping[str, Any]] = field(default_factory=list)
    gone: Callable[[str], None] = print

    def listen(self, hear: Callable[[dict[str, Any]], None], gone: Callable[[str], None]) -> None:
        """Report ready at once."""
        self.gone = gone
        hear({"type": "ready"})

    def send(self, message: Mapping[str, Any]) -> None:
        """Record the message."""
        self.messages.append(message)

    def close(self) -> None:
        """Do nothing."""

    def owned(self) -> list[Mapping[str, Any]]:
        """Return the slots that the generator was to own, and since when."""
        return [message["own"]["s"] for message in self.messages if "own" in message]


def test_whoever_is_left_takes_over_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three workers are lost at different times, and each one's unserved time is known."""
    monkeypatch.setattr(pool_module, "LocalGenerator", lambda _: RecordingGenerator())
    one = Assignment(
        name="g0", worker=0, cores=[], beat_s=0.3, journal="", seed=1, endpoints={},
        scenarios={"s": {}}, slots={}, ranks={},
    )  # fmt: skip
    here = [replace(one, name=f"g{number}", worker=number) for number in range(3)]
    pool = GeneratorPool(here, os.environ, lambda *_, **__: None, lambda *_: None)
    pool.start()
    pool.begin(["s"])
    first, second, last = (generator.channel for generator in pool.generators)
    assert isinstance(first, RecordingGenerator)
    assert isinstance(second, RecordingGenerator)
    assert isinstance(last, RecordingGenerator)
    for lost in (first, second):
        lost.gone("was ended")
        pool.check_workers()
    once, twice = last.owned()
    assert (len(second.owned()), len(first.owned())) == (1, 0)
    assert once["since_ns"] <= once["from_ns"] <= twice["from_ns"]
    assert set(once["slots"]) < set(twice["slots"]) == set(range(SLOTS))
