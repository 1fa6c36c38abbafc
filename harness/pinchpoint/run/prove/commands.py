"""Runs a command that a user wrote into farm.yaml."""

from __future__ import annotations

import os
import signal
import subprocess

from pinchpoint.base.errors import FarmUnavailable
from pinchpoint.base.redact import masked

_TAIL = 300


def run(field: str, command: str, timeout_s: float) -> None:
    """Run a command of the user's in a shell.

    Args:
        field: where it stands, for messages: the command itself may hold a secret.
        command: for ``/bin/sh -c``.
        timeout_s: after so long it, and what it has started, is killed.

    Raises:
        FarmUnavailable: it failed, or took too long.
    """
    # A session of its own: a Ctrl-C in the terminal must not end the command that puts things back.
    with subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise FarmUnavailable(
                f"{field}: took longer than {timeout_s:g} s (its timeout); what it leaves going on in the "
                "background must not hold its output open"
            ) from error
        finally:
            _end(process)
    if process.returncode:
        words = masked(said.decode(errors="replace").strip())[-_TAIL:] or "without a word"
        raise FarmUnavailable(f"{field}: ended with status {process.returncode}: {words}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a command: itself and whatever it left in its session's group."""
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
