"""Which processes of a Windows machine are a tier's, and what is read of all processes to follow them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PATTERN = "PerfProc_Process"
"""The class of processes, without its prefix."""
PROPERTIES = ("IDProcess", "CreatingProcessID", "ElapsedTime", "PercentProcessorTime", "ThreadCount")
"""Those of its properties that are read."""

What = Literal["process", "service", "command_line"]


@dataclass(frozen=True, slots=True)
class Sought:
    """Which processes a tier begins with.

    Attributes:
        what: what they are known by: the name of their program, a service's name, or a part of the command
            line. Windows compares none of these by case.
        texts: one or more of them.
    """

    what: What
    texts: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.what.replace('_', ' ')} {', '.join(self.texts)}"
