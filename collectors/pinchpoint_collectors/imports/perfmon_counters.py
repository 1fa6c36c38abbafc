"""Windows performance counters and the metrics they become; a counter's path taken apart.

The columns of METHOD's table of quantities: latency is ``Avg. Disk sec/...``, busy 100 - ``% Idle Time``
(never ``% Disk Time``, which counts queued I/O too and passes 100), outstanding ``Avg. Disk Queue Length``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

PAGE_BYTES = 4096
"""Of Windows on x86 and x64."""
BITS = 8
KIB, MIB = 1024.0, 1024.0**2

TOTAL = "_total"


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter that is understood.

    Attributes:
        metric: ours.
        scale: ours = theirs x scale + offset.
        offset: see ``scale``.
        weight: of a mean of operations, the counter of the same object that counts them.
        rank: of several counters for one series the lowest is taken.
        instant: whether it is of the moment of the reading; others are of the time since the one before.
    """

    metric: str
    scale: float = 1.0
    offset: float = 0.0
    weight: str | None = None
    rank: int = 0
    instant: bool = False


@dataclass(frozen=True, slots=True)
class CounterPath:
    r"""``\\SQL1\LogicalDisk(L:)\Avg. Disk sec/Write``, taken apart; names as in the file."""

    host: str
    object: str
    instance: str
    counter: str


_DISKS = ("LogicalDisk", "PhysicalDisk")
_CPUS = ("Processor", "Processor Information")
_GROUPED = re.compile(r"(\d+),(\d+)")


def instance_of(name: str, instance: str) -> str | None:
    """An instance of an object as ours: a whole machine is ``""``, cores are numbers, drives as they are.

    None for the sum of all disks, which hides each, and for that of one NUMA node.
    """
    text = instance.strip()
    total = text.casefold() == TOTAL
    if name in _DISKS:
        return None if total else text
    if name not in _CPUS:
        return "" if total else text
    if text.casefold().endswith(f",{TOTAL}"):
        return None
    grouped = _GROUPED.fullmatch(text)
    if grouped:
        return grouped[2] if grouped[1] == "0" else text
    return "" if total else text


_PATH = re.compile(
    r"(?:\\\\(?P<host>[^\\]+))?\\(?P<object>[^\\(]+)(?:\((?P<instance>.*)\))?\\(?P<counter>[^\\]+)", re.DOTALL
)


def taken_apart(path: str) -> CounterPath | None:
    """A counter's path; None where it is none. An instance may hold a path itself (a mount point)."""
    match = _PATH.fullmatch(path.strip())
    if match is None:
        return None
    parts = match.groupdict(default="")
    return CounterPath(parts["host"], parts["object"].strip(), parts["instance"], parts["counter"].strip())


_DISK = {
    "Disk Reads/sec": Counter("disk.reads_per_s"),
    "Disk Writes/sec": Counter("disk.writes_per_s"),
    "Disk Transfers/sec": Counter("disk.transfers_per_s"),
    "Disk Read Bytes/sec": Counter("disk.read_bytes_per_s"),
    "Disk Write Bytes/sec": Counter("disk.write_bytes_per_s"),
    "Avg. Disk sec/Read": Counter("disk.read_latency_s", weight="Disk Reads/sec"),
    "Avg. Disk sec/Write": Counter("disk.write_latency_s", weight="Disk Writes/sec"),
    "Avg. Disk sec/Transfer": Counter("disk.transfer_latency_s", weight="Disk Transfers/sec"),
    "Avg. Disk Queue Length": Counter("disk.outstanding"),
    "Current Disk Queue Length": Counter("disk.outstanding", rank=1, instant=True),
    "% Idle Time": Counter("disk.busy_ratio", scale=-0.01, offset=1.0),
}
_CPU = {"% Processor Time": Counter("cpu.busy_ratio", scale=0.01)}
_CPU_OF_GROUPS = {"% Processor Time": Counter("cpu.busy_ratio", scale=0.01, rank=-1)}
"""``Processor`` sees one group of 64 processors only."""
_NETWORK = {
    "Bytes Received/sec": Counter("net.received_bytes_per_s"),
    "Bytes Sent/sec": Counter("net.sent_bytes_per_s"),
    "Current Bandwidth": Counter("net.speed_bytes_per_s", scale=1 / BITS, instant=True),
}

COUNTERS: Mapping[str, Mapping[str, Counter]] = {
    "LogicalDisk": _DISK,
    "PhysicalDisk": _DISK,
    "Processor": _CPU,
    "Processor Information": _CPU_OF_GROUPS,
    "Memory": {
        "Available Bytes": Counter("mem.available_bytes", instant=True),
        "Available KBytes": Counter("mem.available_bytes", scale=KIB, rank=1, instant=True),
        "Available MBytes": Counter("mem.available_bytes", scale=MIB, rank=2, instant=True),
        "Pages Input/sec": Counter("mem.paged_in_bytes_per_s", scale=PAGE_BYTES),
        "Pages Output/sec": Counter("mem.paged_out_bytes_per_s", scale=PAGE_BYTES),
    },
    "System": {"Processor Queue Length": Counter("cpu.waiting_threads", instant=True)},
    "Network Interface": _NETWORK,
    "SQLServer:SQL Statistics": {"Batch Requests/sec": Counter("db.batches_per_s")},
    "SQLServer:General Statistics": {
        "User Connections": Counter("db.connections", instant=True),
        "Processes blocked": Counter("db.sessions_blocked", instant=True),
    },
    "SQLServer:Buffer Manager": {
        "Buffer cache hit ratio": Counter("db.buffer_hit_ratio", scale=0.01, instant=True),
        "Page life expectancy": Counter("db.page_life_s", instant=True),
        "Lazy writes/sec": Counter("db.lazy_writes_per_s"),
    },
    "SQLServer:Databases": {
        "Transactions/sec": Counter("db.transactions_per_s"),
        "Log Flushes/sec": Counter("db.log_flushes_per_s"),
        "Log Flush Waits/sec": Counter("db.log_flush_waits_per_s"),
        "Log Bytes Flushed/sec": Counter("db.log_bytes_per_s"),
    },
    "SQLServer:Locks": {
        "Lock Waits/sec": Counter("db.lock_waits_per_s"),
        "Number of Deadlocks/sec": Counter("db.deadlocks_per_s"),
    },
    "SQLServer:Memory Manager": {"Memory Grants Pending": Counter("db.memory_grants_pending", instant=True)},
    "Search Gatherer Projects - SharePointServerSearch": {
        "Transactions Waiting": Counter("search.waiting", instant=True),
        "Transactions In Progress": Counter("search.in_progress", instant=True),
    },
    "Search Gatherer - SharePointServerSearch": {
        "Threads Accessing Network": Counter("search.threads_on_network", instant=True),
        "Filtering Threads": Counter("search.threads_filtering", instant=True),
        "Threads Filtering": Counter("search.threads_filtering", instant=True),
        "Idle Threads": Counter("search.threads_idle", instant=True),
        "Threads Idle": Counter("search.threads_idle", instant=True),
    },
}
"""Object -> counter -> what it becomes; names as an English Windows has them."""

NAMED_INSTANCE = re.compile(r"MSSQL\$([^:]+):", re.IGNORECASE)
"""What a named instance of SQL Server puts in the place of ``SQLServer:``."""


def sql_instance(name: str) -> str | None:
    """Which SQL Server an object is of, as a log names it: ``""`` is the default one; None: it is none's."""
    named = NAMED_INSTANCE.match(name)
    if named:
        return named[1]
    return "" if name.casefold().startswith("sqlserver:") else None


REGISTRY: Mapping[str, int] = {
    "System": 2,
    "Memory": 4,
    "PhysicalDisk": 234,
    "LogicalDisk": 236,
    "Processor": 238,
    "Network Interface": 510,
    "% Processor Time": 6,
    "Processor Queue Length": 44,
    "Available Bytes": 24,
    "Available KBytes": 1380,
    "Available MBytes": 1382,
    "Pages Input/sec": 822,
    "Current Disk Queue Length": 198,
    "Avg. Disk Queue Length": 1400,
    "Avg. Disk sec/Transfer": 206,
    "Avg. Disk sec/Read": 208,
    "Avg. Disk sec/Write": 210,
    "Disk Transfers/sec": 212,
    "Disk Reads/sec": 214,
    "Disk Writes/sec": 216,
    "Disk Read Bytes/sec": 220,
    "Disk Write Bytes/sec": 222,
    "% Idle Time": 1482,
    "Bytes Received/sec": 264,
    "Bytes Sent/sec": 506,
    "Current Bandwidth": 520,
}
"""English name -> its index in Windows' registry (Perflib), alike in every language."""
