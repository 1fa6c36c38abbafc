"""Under gevent, as in a load generator, fast connections wait side by side, in time, and can be given up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import run_script

from pinchpoint_scenarios.contract import Endpoint

SCRIPT = Path(__file__).with_name("greenlets.py")


@pytest.fixture(scope="module")
def found(sql_server: Endpoint, nosql: Endpoint) -> dict[str, Any]:
    """What greenlets.py saw."""
    return run_script(SCRIPT, sql_server.url, nosql.url)


def test_statements_wait_side_by_side(found: dict[str, Any]) -> None:
    """Twenty sleeps of 0.2 s take about as long as one."""
    assert 0.2 <= found["sql"]["slept_s"] < 1.5, "one after the other: 4 s"


def test_large_statements_cross_each_other(found: dict[str, Any]) -> None:
    """Twenty connections send and receive a megabyte at once; each gets its own back."""
    assert found["sql"]["large"] == [True] * 20


def test_a_killed_greenlet_leaves_a_connection_that_can_be_closed(found: dict[str, Any]) -> None:
    """A session ended while it waits is closed; its connection comes back as a new one."""
    assert found["sql"]["again"] == [[1]]


def test_a_lost_connection_wakes_who_waits_for_it(found: dict[str, Any]) -> None:
    """The end of the stream is something to read."""
    assert found["sql"]["lost"] == "connection_lost"


def test_writes_wait_side_by_side(found: dict[str, Any]) -> None:
    """Twenty writes to a server that answers nobody for 0.3 s take about as long as one."""
    assert found["nosql"]["first"] == ["ok"] * 20
    assert 0.1 < found["nosql"]["paused_s"] < 1.5


def test_a_late_reply_is_a_timeout_in_time(found: dict[str, Any]) -> None:
    """Not before the time is up, not much later; the next write has a connection of its own."""
    assert found["nosql"]["late"] == "timeout"
    assert 0.5 <= found["nosql"]["late_s"] < 1.0
    assert found["nosql"]["after"] == "ok"


def test_one_timer_serves_many_waits(found: dict[str, Any]) -> None:
    """Waits shorter than their time never end as if it were up, however many follow one another."""
    silent, silent_s = found["waits"]["silent"]
    again, again_s = found["waits"]["again"]
    assert not silent
    assert 0.2 <= silent_s < 0.5
    assert found["waits"]["answered"] == [True] * 8
    assert not again
    assert 0.3 <= again_s < 0.6
    assert found["waits"]["writable"]


def test_a_short_wait_after_a_long_one_is_short(found: dict[str, Any]) -> None:
    """A timer that runs for a longer wait does not keep a shorter one going."""
    shorter, shorter_s = found["waits"]["shorter"]
    assert not shorter
    assert 0.2 <= shorter_s < 2


def test_a_crowd_of_descriptors_is_heard_and_one_that_nobody_waits_for_costs_nothing(
    found: dict[str, Any],
) -> None:
    """All 199 that wait are woken, also when many are ready at once; an end that nobody waits for stays one.

    A greenlet that was killed is not woken by what comes later, and that is there for who waits next.
    """
    crowd = found["crowd"]
    assert crowd["woken"]
    assert crowd["ended"]
    assert crowd["idle_s"] < 0.1
    assert crowd["late"] == [True, True]
    assert crowd["left"] == ["", "y"]


def test_a_number_that_is_used_again_belongs_to_the_new_connection(found: dict[str, Any]) -> None:
    """A library may close a lost connection's descriptor before we have forgotten it."""
    assert found["crowd"]["reused"]
