"""Tests of the child processes that read documents: they end when their parent process ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from support import until

ASK = """
import test_apart, time
from pinchpoint_infra.content.processes import apart
apart(test_apart.{work}, {begun!r})
time.sleep(60)
"""


def library(begun: str) -> object:
    """Run a library call that takes hours and blocks all other threads of the interpreter."""
    Path(begun).touch()
    return re.match("(a+)+b", "a" * 60)


def waiting(begun: str) -> None:
    """Wait for a long time."""
    Path(begun).touch()
    time.sleep(60)


def nothing(begun: str) -> None:
    """Return at once, so that the child waits for more work."""
    Path(begun).touch()


@pytest.mark.parametrize("work", ["library", "waiting", "nothing"])
def test_a_reader_ends_with_the_process_that_asks(work: str, tmp_path: Path) -> None:
    """After a kill of its parent, a child ends within 2 s, also during a library call."""
    begun = tmp_path / "begun"
    code = ASK.format(work=work, begun=str(begun))
    here = Path(__file__)
    found_here = os.environ | {"PYTHONPATH": f"{here.parent}:{here.parents[2]}"}
    with subprocess.Popen([sys.executable, "-c", code], env=found_here) as process:
        try:
            until(begun.exists, process=process)
            readers = psutil.Process(process.pid).children()
            assert [reader.name() for reader in readers] == ["pp-reader"]
        finally:
            process.kill()
    left = psutil.wait_procs(readers, timeout=2)[1]
    # init has not yet reaped the process
    assert not [each for each in left if each.status() != psutil.STATUS_ZOMBIE]
