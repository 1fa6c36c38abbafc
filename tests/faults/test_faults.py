"""Some cells of ``make faults`` pass; each change is tested with them."""

from __future__ import annotations

import pytest
from faults.run import tried

pytestmark = pytest.mark.timeout(400)


@pytest.mark.parametrize(
    ("fault", "phase"),
    [
        pytest.param("controller SIGSTOP 5 s", "measure", marks=pytest.mark.alone),
        ("link to SQL answers garbage", "start"),
    ],
)
def test_what_goes_wrong_is_put_right(fault: str, phase: str) -> None:
    """The run with the fault ends correctly, and so does the next run."""
    row = tried(fault, phase)
    assert row.right, row
