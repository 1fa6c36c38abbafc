"""Command output with closed pipes, unprintable names, and unsuitable arguments."""

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
    """Run a command whose reader has closed the pipe; return its exit status and its other output."""
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
    """With ``| head -1``, also after ``2>&1``, there is no traceback, and the exit status is kept."""
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "one" / "manifest.json").write_text("{")
    assert unread("--help", errors_too=True) == (0, "")
    assert unread("runs", tmp_path / "runs", errors_too=False) == (0, "")
    assert unread("analyse", tmp_path / "nothing", errors_too=True) == (2, "")


def test_an_unknown_command_is_told_the_nearest() -> None:
    """For an unknown command the message names the nearest command and all others."""
    done = CliRunner().invoke(pinchpoint, ["anlyse"])
    assert done.exit_code == 2
    assert "allowed: demo, init, check" in done.output
    assert "nearest: analyse" in done.output


def said(*arguments: str | bytes | Path, **environment: str) -> tuple[int, bytes, bytes]:
    """Return a command's exit status, standard output and standard error."""
    done = subprocess.run(
        [PINCHPOINT, *arguments], env=os.environ | environment, capture_output=True, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_names_that_are_no_text_come_out_as_they_are(tmp_path: Path) -> None:
    """A path that is not UTF-8 is written with the file system's bytes, so that it can be pasted."""
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    status, out, _ = said("init", folder)
    assert (status, out.splitlines()) == (0, [folder + b"/farm.yaml", folder + b"/plan.yaml"])


def test_letters_that_the_terminal_lacks_end_nothing(tmp_path: Path) -> None:
    """Letters that the terminal cannot show are written as their numbers."""
    folder = tmp_path / "μ"
    status, out, _ = said("init", folder, PYTHONIOENCODING="latin-1")
    assert (status, out.splitlines()[0]) == (0, str(tmp_path).encode() + b"/\\u03bc/farm.yaml")


def test_what_the_system_refuses_names_the_place(tmp_path: Path) -> None:
    """A name that is too long for the system gives a sentence with the path."""
    for command in ("analyse", "runs", "report"):
        status, _, err = said(command, tmp_path / ("a" * 300))
        assert (status, err.count(b"\n")) == (5, 1)
        assert err.endswith(b": File name too long; give a shorter one\n")


def test_limits_of_the_user_are_the_environment_s(capsys: pytest.CaptureFixture[str]) -> None:
    """A process limit of the user gives exit status 5 and the remedy, not an internal error."""
    assert cli._failed(OSError(errno.EMFILE, "Too many open files", "/runs/journal")) == 5
    said = capsys.readouterr().err
    assert said == "Too many open files; allow this user more open files (ulimit -n 4096)\n"


def test_options_of_another_way_are_refused(tmp_path: Path) -> None:
    """Options that would be ignored are refused, and nothing is written."""
    status, _, err = said("init", tmp_path / "new", "--over", "5m", "--zone", "UTC")
    assert (status, err) == (2, b"--over, --zone: belong to --from SOURCE; add it, or leave them out\n")
    assert not (tmp_path / "new").exists()


def test_a_farm_whose_name_is_mistyped_is_not_down(tmp_path: Path) -> None:
    """`farm down` of a missing file gives exit status 2 and says that there is no such file."""
    for command in ("down", "status"):
        status, out, err = said("farm", command, tmp_path / "fram.yaml")
        assert (status, out) == (2, b"")
        assert b"fram.yaml: there is no such file, and nothing of a farm made of it" in err


def test_a_run_of_any_name_and_any_verdict_is_listed(tmp_path: Path) -> None:
    """Names that look like markup are shown as text; a malformed verdict is marked as unreadable."""
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
