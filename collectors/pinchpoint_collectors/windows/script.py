r"""Builds the script for a Windows machine and the request to it, and defines the lines of its output.

The script reads CIM classes. Counters and their metrics are those of ``counters.csv``. A rule derives the
property of a counter from its name: ``\LogicalDisk(L:)\Avg. Disk sec/Write`` is ``AvgDisksecPerWrite`` of
``Win32_PerfRawData_PerfDisk_LogicalDisk``, in every language of the system.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from pinchpoint_collectors.windows.counters import COUNTERS, Counter

PREFIX = "Win32_PerfRawData_"

_SERVICES: Mapping[str, str] = {
    "LogicalDisk": "PerfDisk",
    "PhysicalDisk": "PerfDisk",
    "Processor": "PerfOS",
    "Processor Information": "Counters",
    "Memory": "PerfOS",
    "System": "PerfOS",
    "Network Interface": "Tcpip",
}
"""Object -> service that provides it, which is the middle of the class's name."""
SQL_SERVER = "SQLServer:"
BOTH_DIRECTIONS = ("disk.transfers_per_s", "disk.transfer_latency_s")
"""Metrics that are left out if reads and writes are measured separately."""
ERRORS: Mapping[str, tuple[str, ...]] = {
    "Network Interface": ("Packets Received Errors", "Packets Outbound Errors")
}
"""Totals that are converted to a rate here. The Performance Monitor shows them unchanged."""
_SPELT = {"%": "Percent", "/": "Per", "#": "Number"}


def property_name(counter: str) -> str:
    """Return a counter or object in WMI's spelling.

    Signs that are words are written out, and all others are removed.
    """
    spelt = "".join(_SPELT.get(letter, letter) for letter in counter)
    return re.sub(r"[^A-Za-z0-9_]", "", spelt)


@dataclass(frozen=True, slots=True)
class CounterObject:
    """One object whose counters are requested.

    Attributes:
        object: English name in the Performance Monitor.
        pattern: pattern of the class's name without ``PREFIX``; ``*`` matches anything.
        counters: property -> metric.
        errors: properties that are totals of errors.
        needed: whether every Windows has it.
    """

    object: str
    pattern: str
    counters: Mapping[str, Counter]
    errors: tuple[str, ...] = ()
    needed: bool = True


def wanted(*, sql_server: bool = True) -> tuple[CounterObject, ...]:
    """Return every known object except ``Processor``, which covers only one group of 64 processors.

    Args:
        sql_server: whether the objects of SQL Server are included.
    """
    return tuple(one for one in _wanted() if sql_server or not one.object.startswith(SQL_SERVER))


def _wanted() -> Iterator[CounterObject]:
    for name, counters in COUNTERS.items():
        if name == "Processor":
            continue
        properties = {
            property_name(counter): means
            for counter, means in counters.items()
            if means.metric not in BOTH_DIRECTIONS
        }
        errors = tuple(map(property_name, ERRORS.get(name, ())))
        yield CounterObject(name, _pattern(name), properties, errors, needed=name in _SERVICES)


def _pattern(name: str) -> str:
    """Return a pattern of class names. SQL Server's contain the instance, and the gatherer's the version."""
    if name in _SERVICES:
        return f"{_SERVICES[name]}_{property_name(name)}"
    if name.startswith(SQL_SERVER):
        return f"MSSQL*_*{property_name(name.removeprefix(SQL_SERVER))}"
    return f"*_{property_name(name)}"


def sql_instance(wanted_: CounterObject, value: str) -> str | None:
    """Return the instance of SQL Server of a class: ``""`` is the default one; None: not of SQL Server.

    ``MSSQLSERVER_SQLServerLocks`` is of the default instance, ``MSSQLPROD_MSSQLPRODLocks`` of ``PROD``.
    """
    if not wanted_.object.startswith(SQL_SERVER):
        return None
    ending = property_name(wanted_.object.removeprefix(SQL_SERVER))
    if value == f"MSSQLSERVER_SQLServer{ending}":
        return ""
    named = re.fullmatch(rf"MSSQL(\w+)_MSSQL\1{ending}", value)
    return named[1] if named else None


def chosen(wanted_: CounterObject, present: Mapping[str, int]) -> dict[str, Counter]:
    """Return for each metric the counter with the lowest rank among those that the class has.

    Args:
        wanted_: what was requested.
        present: property of the class -> type.
    """
    best: dict[str, tuple[str, Counter]] = {}
    for name, means in wanted_.counters.items():
        if name in present and (means.metric not in best or means.rank < best[means.metric][1].rank):
            best[means.metric] = name, means
    return dict(best.values())


PATTERN = "PerfProc_Process"
"""Pattern of the class of processes, without its prefix."""
PROPERTIES = ("IDProcess", "CreatingProcessID", "ElapsedTime", "PercentProcessorTime", "ThreadCount")
"""Properties of a process that are read."""

What = Literal["process", "service", "command_line"]


@dataclass(frozen=True, slots=True)
class ProcessSelector:
    """Selects the root processes of a tier.

    Attributes:
        what: kind of the texts: name of a program, name of a service, or part of the command line. Windows
            ignores letter case in all of them.
        texts: one or more of them.
    """

    what: What
    texts: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.what.replace('_', ' ')} {', '.join(self.texts)}"


SCRIPT = "counters.ps1"
LEASE_S = 60
"""Seconds without a request after which the script considers the link lost, and ends."""

_EPOCH_100NS = 116_444_736_000_000_000
"""Time 1970 in FILETIME, 100 ns since 1601 (learn.microsoft.com/windows/win32/sysinfo/file-times)."""


@cache
def script() -> str:
    """Return the text of the script."""
    return (files(__package__) / SCRIPT).read_text("utf-8")


def request(
    wanted: Collection[CounterObject], interval_s: float, sought: Collection[ProcessSelector] = ()
) -> str:
    """Return the request to the script as one line of ASCII.

    Args:
        wanted: classes to read.
        interval_s: seconds between two readings; 0 requests only facts about the machine.
        sought: root processes of tiers. If there are any, all processes are read, too.
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
    """Return a time of the script in UTC nanoseconds since 1970."""
    return (utc - _EPOCH_100NS) * 100
