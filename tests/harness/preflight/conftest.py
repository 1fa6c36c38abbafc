"""What the tests of ``check`` share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pinchpoint_collectors.linux.disks import Disks
from pinchpoint_collectors.proc import mountinfo


@pytest.fixture
def real_disk() -> Callable[[Path], str]:
    """The whole disk a folder lies on; skips where none does (a test folder in memory or on an overlay)."""

    def find(path: Path) -> str:
        place = Disks(mountinfo.parse(Path("/proc/self/mountinfo").read_text())).place(str(path))
        if place.device is None:
            pytest.skip(f"needs a test folder on a block device (pytest --basetemp=DIR): {place.why}")
        return place.device

    return find
