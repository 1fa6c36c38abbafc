"""Start processes that use CPU on command (worker.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


class Worker:
    """A simulated server of a tier; its arguments are those of worker.py."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py")), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid

    def answer(self) -> str:
        """Return the next line of its output."""
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    def do(self, command: str) -> None:
        """Send a command and wait for the answer."""
        self.begin(command)
        assert self.answer() == "done"

    def close(self) -> None:
        """Kill the process and close its pipes."""
        self._process.kill()
        self._process.communicate()

    def begin(self, command: str) -> None:
        """Send a command without waiting; ``answer`` waits for its end."""
        assert self._process.stdin
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
