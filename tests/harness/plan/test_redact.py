"""Redaction: no secret reaches a manifest or a message."""

from __future__ import annotations

import pytest

from pinchpoint.base.redact import redacted_text
from pinchpoint.plan import redacted


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://loader:pw@sql1/db", "postgresql://loader:***@sql1/db"),
        ("postgresql://loader:p@w@sql1/db", "postgresql://loader:***@sql1/db"),
        ("valkey://:pw@c1:6379/0", "valkey://:***@c1:6379/0"),
        ("postgresql://u:p/w#x@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u:p@pw/pw?x@db1/app", "postgresql://u:***@db1/app"),
        ("postgresql://u:%pw/x@db1/app", "postgresql://u:***@db1/app"),
        ("a://u:pw@h1/x, b://v:p@pw@h2/y", "a://u:***@h1/x, b://v:***@h2/y"),
        ("http://host:8080 is closed, says a@b", "http://host:8080 is closed, says a@b"),
        ("postgresql://u:${PW}@h/db", "postgresql://u:${PW}@h/db"),
        ("postgresql://u:x${PW}@h/db", "postgresql://u:***@h/db"),
        ("postgresql://h/db?user=u&password=pw&x=1", "postgresql://h/db?user=u&password=***&x=***"),
        ("mssql+odbc://h/db?UID=u&PWD=pw", "mssql+odbc://h/db?UID=u&PWD=***"),
        ("http://host:8080/a@b", "http://host:8080/a@b"),
        ("postgresql://u:12/pw@db1/app", "postgresql://u:***@db1/app"),
        ("postgresql://u:a://pw@db1/app", "postgresql://u:***@db1/app"),
        ("postgresql://u:pw/db", "postgresql://u:***"),
        ("postgresql://u@db1/app", "postgresql://u@db1/app"),
        ("https://pw@host/x", "https://***@host/x"),
        ("valkey://pw/pw@host/0", "valkey://***@host/0"),
        ("http://host/path?sig=pw&pw#pw", "http://host/path?sig=***&***#***"),
        ("postgresql://h/db?sslmode=require", "postgresql://h/db?sslmode=require"),
        ("mongodb://a:1,b:2/db?replicaSet=r", "mongodb://a:1,b:2/db?replicaSet=r"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
        ("http://host/path", "http://host/path"),
        ("no url: at all @ x", "no url: at all @ x"),
    ],
)
def test_passwords_in_urls_are_hidden(url: str, shown: str) -> None:
    """Passwords in URLs are hidden, also in malformed ones; variable names stay."""
    assert redacted_text(url) == shown
    assert "pw" not in redacted_text(f"error at {url}") or "pw" not in url


def test_secret_keys_are_hidden_at_any_depth() -> None:
    """Secret keys are hidden at any depth, without changing the original."""
    data = {
        "password": "pw",
        "cookies": "FedAuth=pw",
        "token": "${TOKEN}",
        "a": [{"api_key": 5, "url": "http://u:pw@h/"}, "http://u:pw@h/"],
        "name": "n",
        "count": 3,
    }
    assert redacted(data) == {
        "password": "***",
        "cookies": "***",
        "token": "${TOKEN}",
        "a": [{"api_key": "***", "url": "http://u:***@h/"}, "http://u:***@h/"],
        "name": "n",
        "count": 3,
    }
    assert data["password"] == "pw"
