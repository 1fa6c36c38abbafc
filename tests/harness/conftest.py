"""A browser for tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness.browser import start
from selenium import webdriver


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """Yield a headless Chromium."""
    started = start(tmp_path_factory.mktemp("chromium"))
    yield started
    started.quit()
