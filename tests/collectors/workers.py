"""Processes that burn CPU when told to: see worker.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


class Worker:
    """A stand-in server of a tier; its arguments are worker.py's."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py")), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid

    def answer(self) -> str:
        """The next line it says."""
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    def do(self, command: str) -> None:
        """Have it done before going on."""
        self.begin(command)
        assert self.answer() == "done"

    def close(self) -> None:
        """End it and its pipes."""
        self._process.kill()
        self._process.communicate()

    def begin(self, command: str) -> None:
        """Have it done while we go on; ``answer`` says when it is."""
        assert self._process.stdin
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
