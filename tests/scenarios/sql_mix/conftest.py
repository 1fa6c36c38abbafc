"""A server that the tests of faults may stop."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from scenarios.sql_mix.helpers import ask
from scenarios.sql_mix.server import Server, made_in


@pytest.fixture(scope="session")
def own_server() -> Iterator[Server]:
    """One server for all tests that stop or administer one."""
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
    """The server of these tests, running, without any schema of ours before and after."""
    yield own_server
    ask(own_server.admin, "DROP SCHEMA IF EXISTS pinchpoint_test CASCADE")
