"""What becomes of output that nobody reads to its end, or that cannot say everything; odd arguments."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from support import PINCHPOINT

from pinchpoint import cli
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


def said(*arguments: str | bytes | Path, **environment: str) -> tuple[int, bytes, bytes]:
    """Exit status, standard output and standard error of a command."""
    done = subprocess.run(
        [PINCHPOINT, *arguments], env=os.environ | environment, capture_output=True, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_names_that_are_no_text_come_out_as_they_are(tmp_path: Path) -> None:
    """A path is to be pasted: its bytes are those of the file system."""
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    status, out, _ = said("init", folder)
    assert (status, out.splitlines()) == (0, [folder + b"/farm.yaml", folder + b"/plan.yaml"])


def test_letters_that_the_terminal_lacks_end_nothing(tmp_path: Path) -> None:
    """They are written by their numbers."""
    folder = tmp_path / "μ"
    status, out, _ = said("init", folder, PYTHONIOENCODING="latin-1")
    assert (status, out.splitlines()[0]) == (0, str(tmp_path).encode() + b"/\\u03bc/farm.yaml")


def test_what_the_system_refuses_names_the_place(tmp_path: Path) -> None:
    """A name that is too long is no fault of ours, and a sentence."""
    for command in ("analyse", "runs", "report"):
        status, _, err = said(command, tmp_path / ("a" * 300))
        assert (status, err.count(b"\n")) == (5, 1)
        assert err.endswith(b": File name too long; give a shorter one\n")


def test_limits_of_the_user_are_the_environment_s(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 5 with the remedy: no fault of Pinchpoint (``make faults``, descriptors limited)."""
    assert cli._failed(OSError(errno.EMFILE, "Too many open files", "/runs/journal")) == 5
    said = capsys.readouterr().err
    assert said == "Too many open files; allow this user more open files (ulimit -n 4096)\n"


def test_options_of_another_way_are_refused(tmp_path: Path) -> None:
    """What would be ignored is said, and nothing is written."""
    status, _, err = said("init", tmp_path / "new", "--over", "5m", "--zone", "UTC")
    assert (status, err) == (2, b"--over, --zone: belong to --from SOURCE; add it, or leave them out\n")
    assert not (tmp_path / "new").exists()


def test_a_farm_whose_name_is_mistyped_is_not_down(tmp_path: Path) -> None:
    """`farm down` of a file that is not there, and was not, has done nothing and says so."""
    for command in ("down", "status"):
        status, out, err = said("farm", command, tmp_path / "fram.yaml")
        assert (status, out) == (2, b"")
        assert b"fram.yaml: there is no such file, and nothing of a farm made of it" in err


def test_a_run_of_any_name_and_any_verdict_is_listed(tmp_path: Path) -> None:
    """What looks like markup is a name; a verdict of other things than ours is said to be none."""
    run = tmp_path / "[bold]one[unfinished"
    run.mkdir()
    manifest = {"schema": "pinchpoint.run/1", "state": "finished", "started": "2026-01-01T00:00:00.000Z"}
    (run / "manifest.json").write_text(json.dumps(manifest))
    for verdict in ("[]", '{"bottleneck": 7}', "{"):
        (run / "verdict.json").write_text(verdict)
        status, out, _ = said("runs", tmp_path)
        assert status == 0
        assert b"[bold]one[unfinished" in out
        assert b"verdict unreadable" in out
