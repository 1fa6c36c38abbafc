"""A server process that a test can kill during work and start again on the same data."""

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
    """One server process.

    Attributes:
        url: the server's URL as in farm.yaml.
        command: the command line that starts the server.
        directory: path of the server's data; its output is in ``server.log`` there.
        is_ready: function that returns True when the server accepts requests.
        timeout_s: time limit of a start, in seconds.
    """

    url: str
    command: Sequence[str]
    directory: Path
    is_ready: Callable[[], bool]
    timeout_s: float = 30
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def pid(self) -> int:
        """The process id; the server must be running."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    @property
    def log(self) -> str:
        """Return the end of the server's output."""
        return (self.directory / "server.log").read_text(errors="replace")[-4000:]

    def start(self) -> None:
        """Start the server and wait until it accepts requests."""
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
        """Kill the server at once, as a power failure would; do nothing if it is not running."""
        if self._process is not None:
            with suppress(ProcessLookupError):  # the process has already ended
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


@contextmanager
def server_directory() -> Iterator[Path]:
    """Yield a folder for one server and remove it afterwards."""
    with tempfile.TemporaryDirectory(prefix="server-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def running_process(server: ServerProcess) -> Iterator[ServerProcess]:
    """Start the server, yield it, and kill it at the end in any case."""
    try:
        server.start()
        yield server
    finally:
        server.kill()
