"""Tests of Cassandra sessions under gevent: they do not block the process, and keep time limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from serverprocess import ServerProcess
from support import run_script

from pinchpoint_scenarios.contract import Endpoint

SCRIPT = Path(__file__).with_name("greenlets.py")
# Cassandra starts in twenty seconds; tests/scenarios/test_greenlets.py tests other kinds of sessions.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found(cassandra_endpoint: Endpoint, cassandra_server: ServerProcess) -> dict[str, Any]:
    """Return the results of greenlets.py."""
    return run_script(SCRIPT, cassandra_endpoint.url, str(cassandra_server.pid), timeout_s=90)


def test_sessions_write_side_by_side(found: dict[str, Any]) -> None:
    """Every concurrent write is acknowledged and stored."""
    assert found["outcomes"] == ["ok"]
    assert found["read"]


def test_a_frozen_node_is_a_timeout_in_time(found: dict[str, Any]) -> None:
    """A write to a suspended node times out in time; other work continues, and later writes succeed."""
    assert found["late"] == "timeout"
    assert 0.5 <= found["late_s"] < 3
    assert found["ticked"] >= 5, "a loop in C would stop the clock"
    assert found["after"] == "ok"
