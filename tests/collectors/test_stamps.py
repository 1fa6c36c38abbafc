"""Tests of a database reading's time: the arrival of its answers, however long they took."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest
from collectors.test_sqlserver import FILES, Recorded, file, watching

from pinchpoint_collectors.databases import sqlserver
from pinchpoint_collectors.databases.base import ReadingQuestion, ServerReading

_WAIT_S = 0.2


class Slow:
    """A server that answers each statement after a delay, as if saturated."""

    def __init__(self, answers: Mapping[str, list[Any]]) -> None:
        self._answers = answers

    def ask(self, statement: str) -> list[Any]:
        time.sleep(_WAIT_S)
        return self._answers.get(statement, [])


def test_the_first_answer_s_time_is_the_reading_s() -> None:
    """The reading's time is its first answer's; rates of later answers use their own times."""
    questions = {"totals": ReadingQuestion("totals"), "files": ReadingQuestion("files", len)}
    before = ServerReading({"totals": [{}], "files": []}.__getitem__, questions)
    utc_ns = time.time_ns()
    reading = ServerReading(Slow({"files": [1, 2]}).ask, questions)
    assert reading["files"] == 2, "parsed"
    assert reading.time_ns - utc_ns >= _WAIT_S * 1e9
    first_s, files_s = reading.seconds_since(before), reading.seconds_since(before, "files")
    assert first_s >= _WAIT_S
    assert files_s >= first_s + _WAIT_S


class Stalling(Recorded):
    """Recorded answers, one of which is late."""

    stalls: str | None = None

    def ask(self, statement: str) -> list[Mapping[str, Any]]:
        if statement == self.stalls:
            time.sleep(_WAIT_S)
        return super().ask(statement)


@pytest.mark.parametrize("statement", [sqlserver.TOTALS, sqlserver.files_statement(3)])
def test_what_grew_while_we_waited_is_told_over_that_time(statement: str) -> None:
    """100 writes seen after 0.2 s of delay are at most 500 a second, whichever answer was late."""
    writes = file("loadtest", 2, 1, FILES[1]["writes"] + 100, 4500)
    server = Stalling(later={sqlserver.files_statement(3): [FILES[0], writes, *FILES[2:]]})
    with watching(server) as collector:
        collector.read()
        server.go_on()
        server.stalls = statement
        samples = collector.read()
    (rate,) = (each for each in samples if (each.metric, each.instance) == ("db.writes_per_s", "log"))
    assert rate.value is not None
    assert 0 < rate.value <= 100 / _WAIT_S
    if statement == sqlserver.TOTALS:
        assert rate.interval_s >= _WAIT_S
