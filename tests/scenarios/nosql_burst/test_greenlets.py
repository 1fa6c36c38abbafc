"""Under gevent, as in a load generator, sessions of Cassandra keep the process going and their time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from serverprocess import ServerProcess
from support import run_script

from pinchpoint_scenarios.contract import Endpoint

SCRIPT = Path(__file__).with_name("greenlets.py")
# A Cassandra of its own, a third of a minute; tests/scenarios/test_greenlets.py has sessions of other kinds.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found(cassandra_endpoint: Endpoint, cassandra_server: ServerProcess) -> dict[str, Any]:
    """What greenlets.py saw."""
    return run_script(SCRIPT, cassandra_endpoint.url, str(cassandra_server.pid), timeout_s=90)


def test_sessions_write_side_by_side(found: dict[str, Any]) -> None:
    """Every write is acknowledged, and there."""
    assert found["outcomes"] == ["ok"]
    assert found["read"]


def test_a_frozen_node_is_a_timeout_in_time(found: dict[str, Any]) -> None:
    """All else in the process goes on, and writes when the node does."""
    assert found["late"] == "timeout"
    assert 0.5 <= found["late_s"] < 3
    assert found["ticked"] >= 5, "a loop in C would stop the clock"
    assert found["after"] == "ok"
