"""A simulated Windows machine behind a real sshd, with a simulated ``powershell``."""

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
    """A simulated Windows machine behind sshd.

    Args:
        host: the sshd.
    """

    def __init__(self, host: SshdHost) -> None:
        self._host = host

    def options(self, **options: Any) -> dict[str, Any]:
        """Return the ``collect`` entry of farm.yaml."""
        return self._host.options(transport="ssh", **options)

    def cut(self) -> None:
        """End every ssh session; sshd itself continues."""
        for session in psutil.Process(self._host.pid).children():
            session.kill()

    def running(self) -> list[int]:
        """Return the ids of the running simulated ``powershell`` processes."""
        return [one.pid for one in self._host.ours() if _is_standin(one)]


def _is_standin(process: psutil.Process) -> bool:
    try:
        return STANDIN in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def powershell(every_s: float) -> str:
    """Return a shell script that simulates ``powershell`` if it is called correctly."""
    return f"PYTHONPATH={shlex.quote(str(TESTS))} exec {shlex.quote(sys.executable)} -m {STANDIN} {every_s:g}"


@contextmanager
def ssh_host(folder: Path, every_s: float = 0.1) -> Iterator[SshHost]:
    """Yield a machine behind sshd."""
    shell = folder / "shell"
    shell.write_text(
        "#!/bin/sh\n"
        f'[ "$SSH_ORIGINAL_COMMAND" = {shlex.quote(POWERSHELL)} ] || exit 127\n'
        f"{powershell(every_s)}\n"
    )
    shell.chmod(0o755)
    with sshd_host(str(shell)) as host:
        yield SshHost(host)
