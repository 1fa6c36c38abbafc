"""Maps Windows performance counters to metrics, with localised names and instances.

``counters.csv`` has a line for each object, followed by one for each of its counters, with the names of an
English Windows. ``index`` is that of Windows' registry (Perflib), which is the same in every language. Names
in other languages are from Windows' own lists (registry, Perflib; ``Get-Counter -ListSet``), and for SQL
Server from its documentation. A Japanese Windows has the English names. Of Spanish, Italian and Portuguese
only names known from real systems are listed. Counters with ``logs`` are read from logs, and not requested
from live hosts.

Latency is ``Avg. Disk sec/...``, busy is 100 - ``% Idle Time`` (never ``% Disk Time``, which also counts
queued I/O and exceeds 100), outstanding is ``Avg. Disk Queue Length``. ``Processor`` covers only one group of
64 processors, and on a Hyper-V host only the root partition. Pages have 4096 bytes on x86 and x64.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files

TOTAL = "_total"
HYPERVISOR = "Hyper-V Hypervisor Logical Processor"
NAMED_INSTANCE = re.compile(r"MSSQL\$([^:]+):", re.IGNORECASE)
"""Pattern of the prefix that a named instance of SQL Server has in place of ``SQLServer:``."""
_VERSION = re.compile(r" v\d+(\.\d+)+$")
"""Pattern of the version after the name of an ASP.NET object."""


@dataclass(frozen=True, slots=True)
class Counter:
    """A known counter and its metric.

    Attributes:
        metric: name of the metric.
        scale: factor; the metric is the counter x scale + offset.
        offset: value added after scaling.
        weight: for a mean over operations, the counter of the same object that counts them.
        rank: rank among several counters for one series; the lowest is used.
        instant: whether the value is that of the time of the reading; others cover the time since the last
            one.
    """

    metric: str
    scale: float = 1.0
    offset: float = 0.0
    weight: str | None = None
    rank: int = 0
    instant: bool = False


_ROWS = tuple(
    csv.DictReader(
        (files(__package__) / "counters.csv").read_text("utf-8").splitlines(),
        delimiter="|",
        quoting=csv.QUOTE_NONE,
    )
)
_OBJECTS = {row["object"]: row for row in _ROWS if not row["counter"]}


def _counters() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield object and row of every counter. A counter of several objects is in the file once."""
    for row in _ROWS:
        if row["counter"]:
            yield from ((name, row) for name in row["object"].split(";"))


def _counter(row: Mapping[str, str]) -> Counter:
    return Counter(
        row["metric"],
        float(row["scale"] or 1),
        float(row["offset"] or 0),
        row["weight"] or None,
        int(row["rank"] or 0),
        row["instant"] == "yes",
    )


_OF_LOGS = {(its, row["counter"]) for its, row in _counters() if row["logs"]}
LOGGED: Mapping[str, Mapping[str, Counter]] = {
    name: {row["counter"]: _counter(row) for its, row in _counters() if its == name} for name in _OBJECTS
}
"""Object -> counter -> metric, for counters in logs."""
COUNTERS: Mapping[str, Mapping[str, Counter]] = {
    name: kept
    for name, logged in LOGGED.items()
    if (kept := {counter: each for counter, each in logged.items() if (name, counter) not in _OF_LOGS})
}
"""Object -> counter -> metric, for counters that are requested from a live host."""
INDICES: Mapping[str, int] = {
    row["counter"] or row["object"]: int(row["index"]) for row in _ROWS if row["index"]
}
"""Name of an object or counter -> its indexes in the registry."""


_DISKS = ("LogicalDisk", "PhysicalDisk")
_BALANCER, _ALL_APPLICATIONS = "Hyper-V Dynamic Memory Balancer", "__Total__"
PARTS = {"Thread": "thread:", "Process": "process:", "Hyper-V Hypervisor Virtual Processor": "vcpu:"}
"""Objects with a busy time other than cores -> prefix of the instance's name."""
_WITHOUT_SUM = frozenset(
    {
        *PARTS,
        *_DISKS,
        "SMB Client Shares",
        "Cluster CSVFS",
        "Hyper-V Virtual Storage Device",
        ".NET CLR LocksAndThreads",
        "MSExchange Database ==> Instances",
    }
)
_NO_THREAD = re.compile(r"(idle|_total)(/.*)?", re.IGNORECASE)
_CPUS = ("Processor", "Processor Information")
_LOGICAL = re.compile("hv lp ", re.IGNORECASE)
_GROUPED = re.compile(r"(\d+),(\d+)")


def instance_of(name: str, instance: str) -> str | None:
    """Return an instance of an object in Pinchpoint's form.

    A whole machine is ``""``, cores are numbers, and drives keep their names.

    Returns None for the sum of all disks, which hides each of them, and for the sum of one NUMA node.
    """
    text = instance.strip()
    total = text.casefold().rpartition("/")[2] in {TOTAL, "_global_"}
    if name in _WITHOUT_SUM:
        return None if total else text
    if name == HYPERVISOR:
        return "" if total else _LOGICAL.sub("", text)
    if name not in _CPUS:
        return "" if total else text
    if text.casefold().endswith(f",{TOTAL}"):
        return None
    grouped = _GROUPED.fullmatch(text)
    if grouped:
        return grouped[2] if grouped[1] == "0" else text
    return "" if total else text


WAIT_STATISTICS = "SQLServer:Wait Statistics"
_LOCAL_INSTANCES = {
    "aktuell ausgeführte wartevorgänge": "waits in progress",
    "attentes en cours": "waits in progress",
    "espera en curso": "waits in progress",
    "kumulierte wartezeit (ms) pro sekunde": "cumulative wait time (ms) per second",
    "temps d'attente cumulé (ms) par seconde": "cumulative wait time (ms) per second",
    "tiempo de espera acumulado (ms) por segundo": "cumulative wait time (ms) per second",
    "durchschnittliche wartezeit (ms)": "average wait time (ms)",
    "temps d'attente moyen (ms)": "average wait time (ms)",
    "tiempo promedio de espera (ms)": "average wait time (ms)",
    "gestartete wartevorgänge pro sekunde": "waits started per second",
    "attentes démarrées par seconde": "waits started per second",
    "esperas iniciadas por segundo": "waits started per second",
}
"""Instances of wait statistics in German, French and Spanish."""
_SAYS = {"waits in progress": (1.0, True, 0), "cumulative wait time (ms) per second": (0.001, False, 1)}
"""Instances that count waiting sessions -> scale, whether the value is that of the moment, rank.

Milliseconds waited per second are waiting sessions, by Little's law.
"""
_AS_PARTS = {
    (counter, its): Counter(f"db.{ours}_{name}", scale, rank=1)
    for counter, ours in (("Lock waits", "lock"), ("Page latch waits", "latch"))
    for its, name, scale in (
        ("average wait time (ms)", "wait_s", 0.001),
        ("waits started per second", "waits_per_s", 1.0),
    )
}
"""Instances whose product is the number of waiting sessions."""
_WAITED_FOR = {
    "Page IO latch waits": "Data",
    "Log write waits": "Log",
    "Log buffer waits": "Log",
    "Log Flush Wait Time": "Log",
    "Page latch waits": "Latch",
    "Non-Page latch waits": "Latch",
    "Network IO waits": "Client",
    "Transaction Delay": "Replica",
}
"""Counters of waiting sessions -> their wait, as the collector of SQL Server names it."""


def placed(name: str, counter: str, logged: str) -> tuple[Counter, str] | None:
    """Return the metric of a counter of an object, and the instance in Pinchpoint's form; None: not used."""
    means, text = LOGGED[name][counter], logged.strip()
    own = "" if name == _BALANCER or text == _ALL_APPLICATIONS else instance_of(name, text)
    if name in PARTS:
        own = None if name == "Thread" and _NO_THREAD.fullmatch(text) else f"{PARTS[name]}{text}"
    if own is None and name in _WITHOUT_SUM - {*_DISKS}:
        return None
    instance = text if own is None else own  # sums are left out elsewhere, and counted
    if name == WAIT_STATISTICS:
        says = _LOCAL_INSTANCES.get(text.casefold(), text.casefold())
        answer = _SAYS.get(says)
        if of := _AS_PARTS.get((counter, says)):
            return of, ""
        if answer is None:
            return None
        scale, instant, rank = answer
        means, instance = replace(means, scale=scale, instant=instant, rank=means.rank + rank), ""
    if counter in _WAITED_FOR:
        instance = f"{_WAITED_FOR[counter]}:{instance or counter}"
    return means, instance


# ---- names in other languages -----------------------------------------------------------------------------

_COLUMNS = ("german", "french", "spanish", "italian", "portuguese")
LANGUAGES = ("English (also of a Japanese Windows)", *(each.capitalize() for each in _COLUMNS))
_SQL = "SQLServer:"
_PER_SECOND = re.compile(r"/(sec|seg|sek|secondo|seconde|segundo|sekunde)\.?$")


def folded(name: str) -> str:
    """Return a name for comparison: lower-case ASCII, single spaces, no apostrophe, a second as ``s``.

    Only ASCII letters are converted, because a log is in the code page of its system, which decides on
    accented letters.
    """
    kept = "".join(letter for letter in name.casefold() if letter.isascii() and letter != "'")
    return _PER_SECOND.sub("/s", " ".join(kept.split()))


def _local(row: Mapping[str, str], name: str) -> Iterator[str]:
    """Return a name in all languages, the English one last."""
    for language in _COLUMNS:
        yield from filter(None, row[language].split(";"))
    yield name


_KNOWN = {
    (folded(its), folded(counter)): (name, row["counter"])
    for name, row in _counters()
    for its, counter in itertools.product(_local(_OBJECTS[name], name), _local(row, row["counter"]))
}
"""(object, counter) for comparison -> the same in English. Systems also have names of other languages than
their own."""
_OF_SQL = {
    folded(counter): (name, row["counter"])
    for name, row in _counters()
    if name.startswith(_SQL)
    for counter in _local(row, "")
    if counter
}
"""Counters of SQL Server in other languages, for which the names of objects are not all known."""


def english(name: str, counter: str, names: Mapping[str, frozenset[int]]) -> tuple[str, str] | None:
    """Return the English names of an object and its counter; None if they are not used.

    Args:
        name: name of the object as in the file.
        counter: name of the counter as in the file.
        names: name (``folded``) -> indexes in the registry of the system; empty if unknown.
    """
    plain = _VERSION.sub("", NAMED_INSTANCE.sub("SQLServer:", name))
    known = _KNOWN.get((folded(plain), folded(counter)))
    if known is None and plain.startswith(_SQL):
        known = _OF_SQL.get(folded(counter))
    if known is not None or not names:
        return known
    objects, counters = (names.get(folded(each), frozenset()) for each in (name, counter))
    for ours, its in COUNTERS.items():
        if INDICES.get(ours) in objects:
            return next(((ours, each) for each in its if INDICES.get(each) in counters), None)
    return None
