"""The script that is sent to a Windows machine, what it is asked, and the lines it answers with."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from pinchpoint_collectors.windows.classes import Wanted

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


SCRIPT = "counters.ps1"
LEASE_S = 60
"""A script that hears nothing for so long takes its link for lost, and ends."""

_EPOCH_100NS = 116_444_736_000_000_000
"""1970 in FILETIME, 100 ns since 1601 (learn.microsoft.com/windows/win32/sysinfo/file-times)."""


@cache
def script() -> str:
    """Its text."""
    return (files(__package__) / SCRIPT).read_text("utf-8")


def request(wanted: Collection[Wanted], interval_s: float, sought: Collection[Sought] = ()) -> str:
    """What the script is asked, as one line of ASCII.

    Args:
        wanted: the classes to read.
        interval_s: seconds between two readings; 0 asks what the machine is, alone.
        sought: the processes that tiers begin with; where there are any, all processes are read as well.
    """
    classes = [
        {"pattern": one.pattern, "properties": ",".join([*one.counters, *one.errors])} for one in wanted
    ]
    if sought:
        classes.append({"pattern": PATTERN, "properties": ",".join(PROPERTIES)})
    find = {(one.what, text): None for one in sought if one.what != "process" for text in one.texts}
    asked = {
        "interval_ms": round(interval_s * 1000),
        "lease_s": LEASE_S,
        "classes": classes,
        "find": [{"what": what, "text": text} for what, text in find],
    }
    return json.dumps(asked, ensure_ascii=True)


def unix_ns(utc: int) -> int:
    """UTC nanoseconds since 1970 of a time of the script."""
    return (utc - _EPOCH_100NS) * 100
