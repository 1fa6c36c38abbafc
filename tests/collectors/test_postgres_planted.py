"""The collector `postgres` uses nothing that others planted in front of PostgreSQL's own."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import pytest
from collectors.asking import asking
from collectors.pooler import pooled
from planted import planted


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with planted() as found:
        yield found


def test_straight_to_the_server(url: str) -> None:
    """Every statement of it is answered, by the server's own views and functions."""
    with asking("postgres", "sql1", "sql", url) as collector:
        samples = collector.read()
    assert any(each.metric.startswith("db.") and each.value is not None for each in samples)
    assert not [each for each in samples if each.metric == "collector.ok" and each.value == 0]


def test_behind_a_pooler_that_takes_no_settings(url: str) -> None:
    """The path lasts for one transaction, and nothing is left for who gets the server's session next."""
    parts = urlsplit(url)
    login, _, place = parts.netloc.rpartition("@")
    with pooled(place) as there:
        behind = urlunsplit(parts._replace(netloc=f"{login}@{there}"))
        with asking("postgres", "sql1", "sql", behind) as collector:
            samples = collector.read()
    assert any(each.metric.startswith("db.") and each.value is not None for each in samples)
