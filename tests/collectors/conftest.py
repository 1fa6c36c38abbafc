"""What tests of several collectors need."""

from __future__ import annotations

import pytest


@pytest.fixture
def straight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past any proxy of this machine."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")
