"""Fixtures for the tests of several collectors."""

from __future__ import annotations

import pytest


@pytest.fixture
def straight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bypass any HTTP proxy of this machine."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")
