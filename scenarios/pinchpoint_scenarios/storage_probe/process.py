"""Runs a tool as a child process. The tool ends with this process, and at once if the user interrupts."""

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
    """The user stopped the probe; the process of the tool has ended."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The output of a process and its exit status."""

    stdout: str
    stderr: str
    status: int


_INHERITED = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH")


def run(command: Sequence[str], folder: Path, stop: Callable[[], bool]) -> ToolOutput:
    """Run a command in a folder. Raises ProbeStopped as soon as ``stop`` returns True.

    The command runs in a session of its own, so that Ctrl-C reaches only this process. If ``setpriv``
    (util-linux) is installed, the kernel kills the command when this process is killed. Otherwise the command
    continues to the end of its work, which is short.
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
        # The output must not depend on the user's language, and the command must not get secrets of this
        # process.
        env={name: os.environ[name] for name in _INHERITED if name in os.environ} | {"LC_ALL": "C"},
    )
    try:
        while not stop():
            with contextlib.suppress(subprocess.TimeoutExpired):  # the timeout lets the loop check ``stop``
                stdout, stderr = process.communicate(timeout=_LOOK_S)
                return ToolOutput(stdout, stderr, process.returncode)
        raise ProbeStopped
    finally:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """Kill the process and all processes that it started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):  # the process has ended meanwhile
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=_END_S)
