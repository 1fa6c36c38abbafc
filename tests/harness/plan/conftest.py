"""Fixtures for tests of plans."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.plan.samples import write

NOBODY = 65534


@pytest.fixture
def closed_folder(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder with both files and without access; root becomes an ordinary user for the test."""
    folder = tmp_path / "closed"
    folder.mkdir()
    write(folder)
    folder.chmod(0)
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        os.seteuid(before)
        folder.chmod(0o700)
