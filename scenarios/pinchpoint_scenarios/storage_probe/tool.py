"""The contract between a probe and the program that does its I/O."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import Protocol

from ..errors import ScenarioError
from .cell import Cell, CellFigures, Job, ProbePlace

_SYSTEM = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
"""An ordinary user's PATH often lacks the folders of system programs."""


class ToolMissing(ScenarioError):  # noqa: N818 -- a state of the machine, named as such
    """A program is not installed; the message names its package."""


class ToolFailed(ScenarioError):  # noqa: N818 -- likewise
    """A program ended with an error, or said what cannot be read; the message has its own words."""


class Tool(Protocol):
    """A program that does I/O and reports how fast it was."""

    name: str
    """In ``Job.tool``."""
    program: str
    package: str
    """Debian's name of what it is installed with."""

    def version(self) -> Sequence[str]:
        """The command that prints its version. Each command begins with ``program``, for ``resolved``."""
        ...

    def prepare(self, place: ProbePlace) -> Sequence[str]:
        """The command that writes the whole file; empty if the tool makes files of its own, or none."""
        ...

    def commands(self, job: Job, place: ProbePlace) -> Sequence[Sequence[str]]:
        """What is run, one after the other; the last one measures, what stands before makes ready.

        All commands run in ``place.folder`` and name files relative to it: a path may hold characters that
        a tool reads as its own syntax.
        """
        ...

    def read(self, job: Job, place: ProbePlace, stdout: str, stderr: str) -> Mapping[Cell, CellFigures]:
        """What the last command said. Raises ``ToolFailed`` where that is not what it says as a rule."""
        ...

    def why(self, stdout: str, stderr: str) -> str:
        """One sentence on why it failed, in its own words as far as it has any."""
        ...


def installed(tool: Tool) -> str:
    """The program's path. Raises ``ToolMissing``."""
    result = find(tool.program)
    if result is None:
        raise ToolMissing(
            f"{tool.program} is not installed here, and this suite's I/O is done by it; install the package "
            f"{tool.package} (Debian and Ubuntu: apt-get install {tool.package})"
        )
    return result


def resolved(tool: Tool, command: Sequence[str]) -> list[str]:
    """The command with the program's path on this machine. Raises ``ToolMissing``."""
    return [installed(tool), *command[1:]]


def find(program: str) -> str | None:
    """A program's path; None if it is not installed."""
    return shutil.which(program) or shutil.which(program, path=_SYSTEM)


def too_fast(tool: str, option: str) -> str:
    """Why a cell of a call that succeeded has no figure; ``option``: what the file's size is called."""
    return f"{tool} does not report it: too fast for its own clock; a larger {option} takes longer"


def answer(tool: Tool, job: Job, place: ProbePlace, stdout: str, stderr: str) -> Mapping[Cell, CellFigures]:
    """What the last command said. Raises ``ToolFailed`` where it cannot be read, whatever it is."""
    try:
        return tool.read(job, place, stdout, stderr)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ToolFailed(
            f"{tool.program} printed what cannot be read ({type(error).__name__}): "
            f"{last_words(stderr, stdout)[:200]}"
        ) from error


def last_words(*texts: str) -> str:
    """The last line that says something, of the first text that has any."""
    for text in texts:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if lines:
            return lines[-1]
    return "it ended without a word"
