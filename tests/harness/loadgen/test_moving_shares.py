"""Parts of a load that move between workers: nobody is there twice, nobody is lost, moves come in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support import run_script

from pinchpoint.loadgen import pool as pool_module
from pinchpoint.loadgen.assignment import Assignment
from pinchpoint.loadgen.pool import GeneratorPool

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


@pytest.mark.alone
def test_users_whose_part_comes_back_are_there_once(tmp_path: Path) -> None:
    """Sessions of closed and open load, and a locustfile's users, at work or waiting for their turn."""
    (tmp_path / "file.py").write_text(FILE)
    found = run_script(SCRIPT, str(tmp_path / "file.py"))
    assert [share["failures"] for share in found.values()] == [[], [], [], []]
    assert [share["finished"] for share in found.values()] == [0, 0, 0, 0]
    closed, paced, locusts, waiting = (found[name] for name in ("closed", "open", "locusts", "waiting"))
    assert closed["at_once"] == [0, 1, 2, 3], "who had not noticed that its part was elsewhere goes on"
    assert (closed["left"], closed["again"]) == (2, [1, 3])
    assert (closed["users"], closed["open"]) == (4, 4)
    assert len(paced["opened"]) == len(set(paced["opened"])) == paced["open"] == 10
    assert (locusts["users"], locusts["open"]) == (4, 4)
    assert locusts["starts"] == 6, "two were told to leave, and two began in their place"
    assert (waiting["users"], waiting["open"], waiting["starts"]) == (2, 2, 2)


@dataclass
class Told:
    """A ``Channel`` that keeps what a generator was told."""

    messages: list[Mapping[str, Any]] = field(default_factory=list)
    gone: Callable[[str], None] = print

    def listen(self, hear: Callable[[dict[str, Any]], None], gone: Callable[[str], None]) -> None:
        """Ready at once."""
        self.gone = gone
        hear({"type": "ready"})

    def send(self, message: Mapping[str, Any]) -> None:
        """Keep it."""
        self.messages.append(message)

    def close(self) -> None:
        """Nothing is open."""

    def moves(self) -> list[int]:
        """From when on it was to own what."""
        return [message["own"]["s"]["from_ns"] for message in self.messages if "own" in message]


class Bridge:
    """Brings workers of other machines when it is told to."""

    broken = None

    def __init__(self, *arguments: Any) -> None:
        self.joined: Callable[[str, dict[str, Any]], None] = arguments[4]

    def reaches(self, worker: str) -> bool:
        """Always."""
        return bool(worker)

    def channel(self, worker: str) -> Told:
        """To a worker."""
        assert worker
        return Told()

    def close(self) -> None:
        """Nothing is open."""


def test_a_loss_right_after_a_join_takes_effect_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares move in the order they are told: else what was due in between would be nobody's."""
    bridges: list[Bridge] = []

    def bridge(*arguments: Any) -> Bridge:
        bridges.append(Bridge(*arguments))
        return bridges[0]

    monkeypatch.setattr(pool_module, "Child", lambda _: Told())
    monkeypatch.setattr(pool_module, "Bridge", bridge)
    one = Assignment(
        name="g0", worker=0, workers=2, cores=[], beat_s=0.3, journal="", seed=1, endpoints={},
        scenarios={"s": {}}, slots={},
    )  # fmt: skip
    here = [one, Assignment(**one.to_json() | {"name": "g1", "worker": 1})]
    pool = GeneratorPool(
        here, os.environ, lambda *_, **__: None, lambda *_: None, ("127.0.0.1", 1), elsewhere=one
    )
    pool.start()
    pool.begin(["s"])
    bridges[0].joined("peer", {"host": "h", "clock_offset_ns": 0, "round_trip_ns": 0})
    pool.tend()
    first, second, _ = (generator.channel for generator in pool.generators)
    assert isinstance(first, Told)
    assert isinstance(second, Told)
    first.gone("was ended")
    pool.tend()
    join, loss = second.moves()
    assert loss >= join
    assert len(first.moves()) == 1
