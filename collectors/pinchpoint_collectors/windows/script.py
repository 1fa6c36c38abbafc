r"""The script that is sent to a Windows machine, what it is asked for, and the lines it answers with.

It reads CIM classes. The counters and what each becomes are those of ``counters.csv``. A counter's name as a
property is recognised by a rule: ``\LogicalDisk(L:)\Avg. Disk sec/Write`` is ``AvgDisksecPerWrite`` of
``Win32_PerfRawData_PerfDisk_LogicalDisk``, whatever the language of the system.
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
"""Object -> the service that provides it: the middle of the class's name."""
SQL_SERVER = "SQLServer:"
BOTH_DIRECTIONS = ("disk.transfers_per_s", "disk.transfer_latency_s")
"""Metrics that are left out where reads and writes are measured apart."""
ERRORS: Mapping[str, tuple[str, ...]] = {
    "Network Interface": ("Packets Received Errors", "Packets Outbound Errors")
}
"""Totals that become a rate here: the Performance Monitor shows them as they are."""
_SPELT = {"%": "Percent", "/": "Per", "#": "Number"}


def property_name(counter: str) -> str:
    """A counter or object as WMI spells it: signs that are words are written out, all others left away."""
    spelt = "".join(_SPELT.get(letter, letter) for letter in counter)
    return re.sub(r"[^A-Za-z0-9_]", "", spelt)


@dataclass(frozen=True, slots=True)
class CounterObject:
    """One object whose counters are asked for.

    Attributes:
        object: as the Performance Monitor calls it, in English.
        pattern: of the class's name without ``PREFIX``; ``*`` stands for anything.
        counters: property -> what it becomes.
        errors: properties that are totals of errors.
        needed: whether every Windows has it.
    """

    object: str
    pattern: str
    counters: Mapping[str, Counter]
    errors: tuple[str, ...] = ()
    needed: bool = True


def wanted(*, sql_server: bool = True) -> tuple[CounterObject, ...]:
    """Every object that is understood, ``Processor`` aside: it sees one group of 64 processors only.

    Args:
        sql_server: whether SQL Server's are among them.
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
    """A pattern of class names: SQL Server's contain the instance, the gatherer's the product version."""
    if name in _SERVICES:
        return f"{_SERVICES[name]}_{property_name(name)}"
    if name.startswith(SQL_SERVER):
        return f"MSSQL*_*{property_name(name.removeprefix(SQL_SERVER))}"
    return f"*_{property_name(name)}"


def sql_instance(wanted_: CounterObject, value: str) -> str | None:
    """Which instance of SQL Server a class is of: ``""`` is the default one; None: it is none's.

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
    """For each metric, the counter of lowest rank among those that the class has.

    Args:
        wanted_: what was requested.
        present: the properties the class has -> their types.
    """
    best: dict[str, tuple[str, Counter]] = {}
    for name, means in wanted_.counters.items():
        if name in present and (means.metric not in best or means.rank < best[means.metric][1].rank):
            best[means.metric] = name, means
    return dict(best.values())


PATTERN = "PerfProc_Process"
"""The class of processes, without its prefix."""
PROPERTIES = ("IDProcess", "CreatingProcessID", "ElapsedTime", "PercentProcessorTime", "ThreadCount")
"""The properties of a process that are read."""

What = Literal["process", "service", "command_line"]


@dataclass(frozen=True, slots=True)
class ProcessSelector:
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
    """The text of the script."""
    return (files(__package__) / SCRIPT).read_text("utf-8")


def request(
    wanted: Collection[CounterObject], interval_s: float, sought: Collection[ProcessSelector] = ()
) -> str:
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
