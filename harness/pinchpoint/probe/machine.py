"""Where a probe's tools run: on this machine, or on another one over ssh (``remote.py``)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

from pinchpoint.base.errors import FarmUnavailable
from pinchpoint.probe import place
from pinchpoint_scenarios.storage_probe import Tool
from pinchpoint_scenarios.storage_probe.process import Said, run
from pinchpoint_scenarios.storage_probe.tool import resolved


class Machine(Protocol):
    """One machine, with a folder of the probe's own on the disk."""

    @property
    def folder(self) -> Path:
        """The folder, as it is called there."""
        ...

    @property
    def memory_bytes(self) -> int:
        """Its memory."""
        ...

    @property
    def root(self) -> bool:
        """Whether tools run as root there."""
        ...

    def run(self, tool: Tool, command: Sequence[str], stop: Callable[[], bool]) -> Said:
        """Run one of a tool's commands in the folder.

        Raises ToolMissing, Stopped as soon as ``stop`` says so, FarmUnavailable where there is no way there.
        """
        ...

    def brought(self) -> Path:
        """A folder of this machine with what the last command left beside its output. FarmUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Here:
    """This machine."""

    folder: Path

    @property
    def memory_bytes(self) -> int:
        """Its memory."""
        return memory_bytes()

    @property
    def root(self) -> bool:
        """Whether we are root."""
        return os.geteuid() == 0

    def run(self, tool: Tool, command: Sequence[str], stop: Callable[[], bool]) -> Said:
        """See ``Machine``."""
        try:
            return run(resolved(tool, command), self.folder, stop)
        except OSError as error:
            raise FarmUnavailable(
                f"{self.folder}: {tool.program} cannot be started there: {error.strerror}; is the disk still "
                "mounted?"
            ) from error

    def brought(self) -> Path:
        """The folder itself."""
        return self.folder


def memory_bytes() -> int:
    """This machine's memory."""
    return int(psutil.virtual_memory().total)


@contextmanager
def here(parent: Path, needed_bytes: int) -> Iterator[Here]:
    """This machine, with a folder of ours that has room. Raises GuardError, FarmUnavailable."""
    with place.own_folder(parent) as folder:
        usage = shutil.disk_usage(folder)
        place.check_space(str(folder), needed_bytes, usage.free, usage.total)
        yield Here(folder)
