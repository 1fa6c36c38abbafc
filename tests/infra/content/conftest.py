"""A PostgreSQL database for the tests of content."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from servers import postgres


@pytest.fixture(scope="session")
def content_server() -> Iterator[str]:
    """Yield the URL of a PostgreSQL server."""
    with postgres() as url:
        yield url


@pytest.fixture
def database(content_server: str) -> Iterator[str]:
    """Yield the URL of an empty database."""
    yield content_server
    with psycopg.connect(content_server, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS lists, folders, documents")
