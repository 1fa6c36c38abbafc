"""A server that tests of faults can stop."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from scenarios.sql_mix.helpers import ask
from scenarios.sql_mix.server import Server, made_in


@pytest.fixture(scope="session")
def own_server() -> Iterator[Server]:
    """Yield one server for all tests that stop or administer it."""
    with tempfile.TemporaryDirectory(prefix="server-", ignore_cleanup_errors=True) as folder:
        directory = Path(folder)
        directory.chmod(0o755)
        server = made_in(directory)
        try:
            yield server
        finally:
            server.remove()


@pytest.fixture
def server(own_server: Server) -> Iterator[Server]:
    """Yield the running server, without schemas of Pinchpoint before and after the test."""
    yield own_server
    ask(own_server.admin, "DROP SCHEMA IF EXISTS pinchpoint_test CASCADE")
