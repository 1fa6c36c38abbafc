"""What becomes of a command whose output nobody reads to its end."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from click.testing import CliRunner
from support import PINCHPOINT

from pinchpoint.cli import pinchpoint


def unread(*arguments: str | Path, errors_too: bool) -> tuple[int, str]:
    """Run a command whose reader has left before its first word: exit status, what it said elsewhere."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [PINCHPOINT, *arguments],
            stdout=writer,
            stderr=writer if errors_too else subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writer)
    return done.returncode, done.stderr or ""


def test_a_reader_that_leaves_changes_nothing(tmp_path: Path) -> None:
    """``| head -1``, also with ``2>&1``: no traceback, and the exit status is the command's own."""
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "one" / "manifest.json").write_text("{")
    assert unread("--help", errors_too=True) == (0, "")
    assert unread("runs", tmp_path / "runs", errors_too=False) == (0, "")
    assert unread("analyse", tmp_path / "nothing", errors_too=True) == (2, "")


def test_an_unknown_command_is_told_the_nearest() -> None:
    """And all there are."""
    done = CliRunner().invoke(pinchpoint, ["anlyse"])
    assert done.exit_code == 2
    assert "allowed: demo, init, check" in done.output
    assert "nearest: analyse" in done.output
