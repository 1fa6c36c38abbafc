"""A stand-in Windows machine behind a real sshd: its ``powershell`` is the stand-in."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from sshd_hosts import SshdHost, sshd_host

from pinchpoint_collectors.common.powershell import POWERSHELL

TESTS = Path(__file__).parents[2]
STANDIN = "collectors.windows.standin"


class SshHost:
    """The machine.

    Args:
        host: the sshd.
    """

    def __init__(self, host: SshdHost) -> None:
        self._host = host

    def options(self, **options: Any) -> dict[str, Any]:
        """What farm.yaml says of it."""
        return self._host.options(transport="ssh", **options)

    def cut(self) -> None:
        """Every connection is gone, as after a restart of sshd's sessions; sshd itself goes on."""
        for session in psutil.Process(self._host.pid).children():
            session.kill()

    def running(self) -> list[int]:
        """The stand-ins that run."""
        return [one.pid for one in self._host.ours() if _is_standin(one)]


def _is_standin(process: psutil.Process) -> bool:
    try:
        return STANDIN in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def powershell(every_s: float) -> str:
    """A shell script that is the stand-in, where ``powershell`` is asked for as it should be."""
    return f"PYTHONPATH={shlex.quote(str(TESTS))} exec {shlex.quote(sys.executable)} -m {STANDIN} {every_s:g}"


@contextmanager
def ssh_host(folder: Path, every_s: float = 0.1) -> Iterator[SshHost]:
    """A machine behind sshd."""
    shell = folder / "shell"
    shell.write_text(
        "#!/bin/sh\n"
        f'[ "$SSH_ORIGINAL_COMMAND" = {shlex.quote(POWERSHELL)} ] || exit 127\n'
        f"{powershell(every_s)}\n"
    )
    shell.chmod(0o755)
    with sshd_host(str(shell)) as host:
        yield SshHost(host)
