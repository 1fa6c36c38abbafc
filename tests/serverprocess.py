"""A server of a test's own that can be killed in the middle of its work and started again on its data."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from support import until


@dataclass
class ServerProcess:
    """One server.

    Attributes:
        url: as farm.yaml names it.
        command: what starts it, now and again.
        directory: where it keeps its data; its output is in ``server.log`` there.
        is_ready: whether it serves.
        timeout_s: how long a start may take.
    """

    url: str
    command: Sequence[str]
    directory: Path
    is_ready: Callable[[], bool]
    timeout_s: float = 30
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def pid(self) -> int:
        """Its process; it must be running."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    @property
    def log(self) -> str:
        """The end of what it said."""
        return (self.directory / "server.log").read_text(errors="replace")[-4000:]

    def start(self) -> None:
        """Start it and wait until it serves."""
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(self.is_ready, lambda: self.log, within_s=self.timeout_s, process=self._process)

    def kill(self) -> None:
        """End it at once, as a power cut does to a process; nothing happens where it does not run."""
        if self._process is not None:
            with suppress(ProcessLookupError):  # it has ended by itself
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


@contextmanager
def server_directory() -> Iterator[Path]:
    """A folder for one server; nothing of it is left."""
    with tempfile.TemporaryDirectory(prefix="server-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def running_process(server: ServerProcess) -> Iterator[ServerProcess]:
    """The server, started; it is gone afterwards, whatever happened."""
    try:
        server.start()
        yield server
    finally:
        server.kill()
