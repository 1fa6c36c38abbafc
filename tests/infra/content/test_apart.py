"""Processes that read documents: none is left when the process that asked them has ended."""

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
    """Hours in one call of a library, which lets no other thread of the interpreter run."""
    Path(begun).touch()
    return re.match("(a+)+b", "a" * 60)


def waiting(begun: str) -> None:
    """Waits for a long time."""
    Path(begun).touch()
    time.sleep(60)


def nothing(begun: str) -> None:
    """Is done at once: the reader waits for more."""
    Path(begun).touch()


@pytest.mark.parametrize("work", ["library", "waiting", "nothing"])
def test_a_reader_ends_with_the_process_that_asks(work: str, tmp_path: Path) -> None:
    """That process is killed: the reader ends within 2 s, in the middle of a library's call too."""
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
    assert not [each for each in left if each.status() != psutil.STATUS_ZOMBIE]  # init has yet to notice
