"""When a reading of a database was taken: when its answers came, however long the server kept us waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from collectors.test_sqlserver import FILES, TOTALS, Recorded, file, watching

from pinchpoint_collectors.databases import mariadb, mariadb_sql, sqlserver, sqlserver_sql
from pinchpoint_collectors.databases.base import Asked, Reading

_WAIT_S = 0.2


class Slow:
    """Answers each statement after a while, as a saturated server does."""

    def __init__(self, answers: Mapping[str, list[Any]]) -> None:
        self._answers = answers

    def ask(self, statement: str) -> list[Any]:
        time.sleep(_WAIT_S)
        return self._answers.get(statement, [])

    def ask_if_connected(self, statement: str) -> list[Any]:
        return self.ask(statement)

    def close(self) -> None:
        return


def test_the_first_answer_s_time_is_the_reading_s() -> None:
    """Rates of what is asked for later are over the time between its own answers."""
    questions = {"totals": Asked("totals"), "files": Asked("files", len)}
    before = Reading({"totals": [{}], "files": []}.__getitem__, questions)
    utc_ns = time.time_ns()
    reading = Reading(Slow({"files": [1, 2]}).ask, questions)
    assert reading["files"] == 2, "parsed"
    assert reading.time_ns - utc_ns >= _WAIT_S * 1e9
    assert _WAIT_S <= reading.seconds_since(before) < 2 * _WAIT_S
    assert reading.seconds_since(before, "files") >= 2 * _WAIT_S


def of_mariadb() -> Any:
    return mariadb._Reading(Slow({mariadb_sql.FILES: []}), "status", files=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("read", [of_mariadb])
def test_a_reading_is_stamped_when_the_server_answered(read: Callable[[], Any]) -> None:
    """The first answer's stamp is the reading's; the files, asked for after it, have their own."""
    begun_ns, utc_ns = time.monotonic_ns(), time.time_ns()
    reading = read()
    assert reading.monotonic_ns - begun_ns >= _WAIT_S * 1e9
    assert reading.time_ns - utc_ns >= _WAIT_S * 1e9
    assert reading.files_ns - reading.monotonic_ns >= _WAIT_S * 1e9


class Stalling(Recorded):
    """Recorded answers, of which one comes late."""

    stalls: str | None = None

    def ask(self, statement: str) -> list[Mapping[str, Any]]:
        if statement == self.stalls:
            time.sleep(_WAIT_S)
        return super().ask(statement)


@pytest.mark.parametrize("statement", [sqlserver_sql.TOTALS, sqlserver_sql.files(3)])
def test_what_grew_while_we_waited_is_told_over_that_time(statement: str) -> None:
    """100 writes met after 0.2 s of waiting are no more than 500 a second, whichever answer was late."""
    writes = file("loadtest", 2, 1, FILES[1]["writes"] + 100, 4500)
    server = Stalling(later={sqlserver_sql.files(3): [FILES[0], writes, *FILES[2:]]})
    with watching(server) as collector:
        collector.read()
        server.go_on()
        server.stalls = statement
        samples = collector.read()
    (rate,) = (each for each in samples if (each.metric, each.instance) == ("db.writes_per_s", "log"))
    assert rate.value is not None
    assert 0 < rate.value <= 100 / _WAIT_S
    if statement == sqlserver_sql.TOTALS:
        assert rate.interval_s >= _WAIT_S


def test_every_answer_of_sql_server_has_its_own_time() -> None:
    """Counters, waits and files, each since the same answer of the reading before."""
    files, waits = sqlserver_sql.files(3), sqlserver_sql.waits(3)
    before = sqlserver._Reading(Recorded(), files, waits)
    late = Slow({sqlserver_sql.TOTALS: [TOTALS]})
    spans = sqlserver._Reading(late, files, waits).seconds_since(before)
    assert [span >= count * _WAIT_S for span, count in zip(spans, (3, 4, 5), strict=True)] == [True] * 3
