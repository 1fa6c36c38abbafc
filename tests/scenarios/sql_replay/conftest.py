"""A server that logs every statement with its duration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from scenarios.sql_mix.helpers import ask
from servers import running

from pinchpoint_infra.embedded.tiers.sql import Sql
from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.sql_script.marked_copy import MARKER

LOGGING = {
    "logging_collector": "on",
    "log_destination": "csvlog,jsonlog",
    "log_filename": "all.log",
    "log_rotation_age": "0",
    "log_min_duration_statement": "0",
    # so that a writing statement is logged with its text at the start and with its duration separately
    "log_statement": "mod",
}


class LoggingSql(Sql):
    """The embedded farm's server with both kinds of log."""

    def prepare(self) -> None:
        self.settings = LOGGING
        super().prepare()


@dataclass(frozen=True)
class Logged:
    """The server and the path of its logs."""

    endpoint: Endpoint
    csv: Path
    json: Path


@pytest.fixture(scope="module")
def logging_server() -> Iterator[Logged]:
    """Yield one server for all tests of a module."""
    with running(LoggingSql) as tier:
        assert isinstance(tier, LoggingSql)
        logs = tier.cluster / "log"
        yield Logged(Endpoint("sql", tier.endpoint()["url"]), logs / "all.csv", logs / "all.json")


@pytest.fixture
def logged(logging_server: Logged) -> Iterator[Logged]:
    """Yield the server with an empty table, marked as a copy."""
    ask(logging_server.endpoint, "CREATE TABLE seen (id int, at int, note text, PRIMARY KEY (id, at))")
    ask(logging_server.endpoint, f"COMMENT ON DATABASE loadtest IS '{MARKER}'")
    yield logging_server
    ask(logging_server.endpoint, "DROP TABLE seen")
    ask(logging_server.endpoint, "COMMENT ON DATABASE loadtest IS NULL")
