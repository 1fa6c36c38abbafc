"""Runs a tool that ends with this process, and at once when the user interrupts."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .tool import find

_LOOK_S = 0.2
_END_S = 10.0


class ProbeStopped(Exception):  # noqa: N818 -- no error: the user wants it
    """The user wants to stop; the process has ended."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a process printed, and its exit status."""

    stdout: str
    stderr: str
    status: int


_INHERITED = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH")


def run(command: Sequence[str], folder: Path, stop: Callable[[], bool]) -> ToolOutput:
    """Run it in a folder. Raises Stopped as soon as ``stop`` says so.

    It has a session of its own, so that Ctrl-C is ours to act upon. Where ``setpriv`` (util-linux) is there,
    the kernel ends it when we are killed; elsewhere it goes on to the end of its own, short, work.
    """
    leash = find("setpriv")
    begun = [leash, "--pdeathsig", "KILL", *command] if leash else list(command)
    process = subprocess.Popen(
        begun,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        # What is read must not depend on the user's language, and no secret of ours is theirs.
        env={name: os.environ[name] for name in _INHERITED if name in os.environ} | {"LC_ALL": "C"},
    )
    try:
        while not stop():
            with contextlib.suppress(subprocess.TimeoutExpired):  # that is how the time to look comes
                stdout, stderr = process.communicate(timeout=_LOOK_S)
                return ToolOutput(stdout, stderr, process.returncode)
        raise ProbeStopped
    finally:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """End it and whatever it started; it has removed nothing that we do not remove ourselves."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=_END_S)
