"""For all tests of the farm: the child processes that read documents end with the session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pinchpoint_infra.content import processes


@pytest.fixture(scope="session", autouse=True)
def _no_readers_left() -> Iterator[None]:
    yield
    processes.close()
