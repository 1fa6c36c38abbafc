"""Tests of fast connections under gevent: they wait concurrently, keep time limits, and can be closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import run_script

from pinchpoint_scenarios.contract import Endpoint

SCRIPT = Path(__file__).with_name("greenlets.py")


@pytest.fixture(scope="module")
def found(sql_server: Endpoint, nosql: Endpoint) -> dict[str, Any]:
    """Return the results of greenlets.py."""
    return run_script(SCRIPT, sql_server.url, nosql.url)


def test_statements_wait_side_by_side(found: dict[str, Any]) -> None:
    """Twenty sleeps of 0.2 s take about as long as one."""
    assert 0.2 <= found["sql"]["slept_s"] < 1.5, "one after the other: 4 s"


def test_large_statements_cross_each_other(found: dict[str, Any]) -> None:
    """Twenty connections send and receive a megabyte at once, and each gets its own content back."""
    assert found["sql"]["large"] == [True] * 20


def test_a_killed_greenlet_leaves_a_connection_that_can_be_closed(found: dict[str, Any]) -> None:
    """After a greenlet is killed during a wait, its connection closes and opens again."""
    assert found["sql"]["again"] == [[1]]


def test_a_lost_connection_wakes_who_waits_for_it(found: dict[str, Any]) -> None:
    """A lost connection ends the wait of its greenlet."""
    assert found["sql"]["lost"] == "connection_lost"


def test_writes_wait_side_by_side(found: dict[str, Any]) -> None:
    """Twenty writes to a server that is blocked for 0.3 s take about as long as one."""
    assert found["nosql"]["first"] == ["ok"] * 20
    assert 0.1 < found["nosql"]["paused_s"] < 1.5


def test_a_late_reply_is_a_timeout_in_time(found: dict[str, Any]) -> None:
    """A late reply is a timeout at the time limit, and the next write uses a new connection."""
    assert found["nosql"]["late"] == "timeout"
    assert 0.5 <= found["nosql"]["late_s"] < 1.0
    assert found["nosql"]["after"] == "ok"


def test_one_timer_serves_many_waits(found: dict[str, Any]) -> None:
    """One timer serves successive waits: waits shorter than their time limit do not time out."""
    silent, silent_s = found["waits"]["silent"]
    again, again_s = found["waits"]["again"]
    assert not silent
    assert 0.2 <= silent_s < 0.5
    assert found["waits"]["answered"] == [True] * 8
    assert not again
    assert 0.3 <= again_s < 0.6
    assert found["waits"]["writable"]


def test_a_short_wait_after_a_long_one_is_short(found: dict[str, Any]) -> None:
    """A timer of a longer wait does not extend a shorter wait."""
    shorter, shorter_s = found["waits"]["shorter"]
    assert not shorter
    assert 0.2 <= shorter_s < 2


def test_a_crowd_of_descriptors_is_heard_and_one_that_nobody_waits_for_costs_nothing(
    found: dict[str, Any],
) -> None:
    """All 199 waiting greenlets wake up, also when many are ready at once; an unwaited end costs no CPU.

    A killed greenlet is not woken by later data, and the next greenlet gets the data.
    """
    crowd = found["crowd"]
    assert crowd["woken"]
    assert crowd["ended"]
    assert crowd["idle_s"] < 0.1
    assert crowd["late"] == [True, True]
    assert crowd["left"] == ["", "y"]


def test_a_number_that_is_used_again_belongs_to_the_new_connection(found: dict[str, Any]) -> None:
    """A descriptor number that is closed and used again belongs to the new connection."""
    assert found["crowd"]["reused"]
