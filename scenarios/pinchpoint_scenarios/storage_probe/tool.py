"""Contract between a probe and the tool that does the I/O."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import Protocol

from ..errors import ScenarioError
from .cell import Cell, CellFigures, Job, ProbePlace

_SYSTEM = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
"""Folders of system programs, which are often missing in the PATH of an ordinary user."""


class ToolMissing(ScenarioError):  # noqa: N818 -- a state of the machine, named as such
    """A tool is not installed; the message names its package."""


class ToolFailed(ScenarioError):  # noqa: N818 -- likewise
    """A tool ended with an error, or its output cannot be read; the message contains the tool's own text."""


class Tool(Protocol):
    """A program that does I/O and reports rate and latency."""

    name: str
    """Name of the tool in ``Job.tool``."""
    program: str
    package: str
    """Name of the Debian package of the tool."""

    def version(self) -> Sequence[str]:
        """Return the command that prints the version.

        Every command begins with ``program``, which ``resolved`` replaces by its path.
        """
        ...

    def prepare(self, place: ProbePlace) -> Sequence[str]:
        """Return the command that writes the whole file; empty if the tool creates its files or uses none."""
        ...

    def commands(self, job: Job, place: ProbePlace) -> Sequence[Sequence[str]]:
        """Return the commands of a job in order: the last one measures, the others prepare.

        All commands run in ``place.folder`` and use relative file names, because a path may contain
        characters that a tool reads as syntax.
        """
        ...

    def read(self, job: Job, place: ProbePlace, stdout: str, stderr: str) -> Mapping[Cell, CellFigures]:
        """Return the results in the output of the last command.

        Raises ``ToolFailed`` if the output is not as usual.
        """
        ...

    def why(self, stdout: str, stderr: str) -> str:
        """Return one sentence on why the tool failed, from the tool's own message if there is one."""
        ...


def installed(tool: Tool) -> str:
    """Return the path of a tool's program. Raises ``ToolMissing``."""
    result = find(tool.program)
    if result is None:
        raise ToolMissing(
            f"{tool.program} is not installed here, and this suite's I/O is done by it; install the package "
            f"{tool.package} (Debian and Ubuntu: apt-get install {tool.package})"
        )
    return result


def resolved(tool: Tool, command: Sequence[str]) -> list[str]:
    """Return the command with the path of the program on this machine. Raises ``ToolMissing``."""
    return [installed(tool), *command[1:]]


def find(program: str) -> str | None:
    """Return the path of a program; None if it is not installed."""
    return shutil.which(program) or shutil.which(program, path=_SYSTEM)


def too_fast(tool: str, option: str) -> str:
    """Return why a successful call gave no value for a cell. ``option`` is the tool's option for the size."""
    return f"{tool} does not report it: too fast for its own clock; a larger {option} takes longer"


def answer(tool: Tool, job: Job, place: ProbePlace, stdout: str, stderr: str) -> Mapping[Cell, CellFigures]:
    """Return the results in the output of the last command.

    Raises ``ToolFailed`` if the output cannot be read for any reason.
    """
    try:
        return tool.read(job, place, stdout, stderr)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ToolFailed(
            f"{tool.program} printed what cannot be read ({type(error).__name__}): "
            f"{last_words(stderr, stdout)[:200]}"
        ) from error


def last_words(*texts: str) -> str:
    """Return the last line that is not empty, of the first text that has such a line."""
    for text in texts:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if lines:
            return lines[-1]
    return "it ended without a word"
