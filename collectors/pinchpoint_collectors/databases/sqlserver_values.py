"""SQL Server's answers as values: looks at its sessions, the growth of its counters. Pure.

Counters' types are Windows' (winperf.h): a count that only grows becomes a rate, a fraction is divided by its
base. Their names and units are those of imported performance logs (``imports/perfmon_counters.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pinchpoint_collectors.databases.session_sampler import LOCK, SessionSample
from pinchpoint_collectors.imports.perfmon_counters import COUNTERS, NAMED_INSTANCE
from pinchpoint_collectors.proc.value import Value, growth, rate
from pinchpoint_collectors.record import NotMeasured

Row = Mapping[str, Any]

_KIB = 1024

# ---- sessions and waits -------------------------------------------------------------------------------

WAITS = (
    ("LCK_M_", LOCK),
    ("WRITELOG", "Log:"),
    ("LOGBUFFER", "Log:"),
    ("LOGMGR_RESERVE_APPEND", "Log:"),
    ("LOG_RATE_GOVERNOR", "Log:"),
    ("POOL_LOG_RATE_GOVERNOR", "Log:"),
    ("INSTANCE_LOG_RATE_GOVERNOR", "Log:"),
    ("HADR_THROTTLE_LOG_RATE_", "Log:"),
    ("HADR_SYNC_COMMIT", "Replica:"),
    ("PAGEIOLATCH_", "Data:"),
    ("ASYNC_IO_COMPLETION", "Data:"),
    ("PREEMPTIVE_OS_WRITEFILEGATHER", "Data:"),
    ("IO_COMPLETION", "Temp:"),
    ("PAGELATCH_", "Latch:"),
    ("LATCH_", "Latch:"),
    ("SOS_SCHEDULER_YIELD", "CPU:"),
    ("THREADPOOL", "CPU:"),
    ("CXPACKET", "Parallel:"),
    ("CXCONSUMER", "Parallel:"),
    ("CXSYNC_", "Parallel:"),
    ("RESOURCE_SEMAPHORE", "Memory:"),
    ("CMEMTHREAD", "Memory:"),
    ("MEMORY_ALLOCATION_EXT", "Memory:"),
    ("ASYNC_NETWORK_IO", "Client:"),
    ("OLEDB", "External:"),
    ("DTC", "External:"),
)
"""How a wait's name begins -> what is waited for (Microsoft, "sys.dm_os_wait_stats"). Of all others most are
the server's own threads with nothing to do: they are left out of the counters."""


def named(wait_type: str) -> str | None:
    """``WRITELOG`` as ``Log:WRITELOG``; None where it is none of ``WAITS``."""
    return next((kind + wait_type for begins, kind in WAITS if wait_type.startswith(begins)), None)


def look(rows: Iterable[Row]) -> SessionSample:
    """One look, from the rows of ``sqlserver_sql.SESSIONS``; those that want a CPU count as running."""
    waiting: Counter[str] = Counter()
    running = idle = 0
    for row in rows:
        status, count = str(row["status"]).lower(), int(row["sessions"])
        if status == "idle in transaction":
            idle += count
        elif status == "suspended" and row["wait_type"]:
            waiting[named(row["wait_type"]) or f"Other:{row['wait_type']}"] += count
        else:
            running += count
    return SessionSample(waiting, running, idle)


def blockers(rows: Iterable[Row]) -> dict[str, float]:
    """``LOGIN:DOES`` -> how many sessions wait for one of its; DOES: ``idle``, ``waiting``, ``active``."""
    found: Counter[str] = Counter()
    for row in rows:
        idle = str(row["status"]).lower() == "sleeping"
        does = "idle" if idle else "waiting" if row["blocked"] else "active"
        found[f"{row['login']}:{does}"] += int(row["sessions"])
    return dict(found)


def waits(before: Iterable[Row], after: Iterable[Row], interval_s: float) -> Iterator[Value]:
    """How often and how long was waited, by what for, of waits that ended in the interval.

    Sent is what was waited for since the start of the server. The share of signal waits (those who had what
    they waited for, and wanted a CPU) is over all of them.
    """
    earlier = {row["wait_type"]: row for row in before}
    spent_ms = signal_ms = 0.0
    whole = True
    for row in after:
        name, old = named(row["wait_type"]), earlier.get(row["wait_type"])
        if name is None:
            continue
        begun = {"waits": 0, "wait_ms": 0, "signal_ms": 0} if old is None else old
        count, each_ms, signal = (growth(begun[of], row[of]) for of in ("waits", "wait_ms", "signal_ms"))
        if count is None or each_ms is None or signal is None:  # somebody cleared them
            whole = False
            count, each_ms, signal = None, None, None
        yield Value("db.waits_per_s", name, None if count is None else count / interval_s)
        yield Value("db.wait_s_per_s", name, None if each_ms is None else each_ms / 1000 / interval_s)
        latency = each_ms / 1000 / count if count and each_ms is not None else None
        yield Value("db.wait_latency_s", name, latency, count)
        spent_ms, signal_ms = spent_ms + (each_ms or 0), signal_ms + (signal or 0)
    yield Value("db.signal_wait_ratio", "", signal_ms / spent_ms if whole and spent_ms else None)


# ---- CPU, memory, schedulers --------------------------------------------------------------------------


def levels(totals: Row, clerks: Iterable[Row]) -> Iterator[Value]:
    """What holds at this moment, from ``sqlserver_sql.TOTALS`` and ``CLERKS``."""
    yield Value("db.tasks_runnable", "", totals["runnable"])
    yield Value("db.tasks_queued", "", totals["queued"])
    workers, limit = totals["workers"], totals["workers_limit"]
    yield Value("db.workers_ratio", "", workers / limit if workers is not None and limit else None)
    yield Value("db.memory_used_bytes", "", totals["used_kb"] * _KIB)
    target = totals["target_kb"]
    yield Value("db.memory_ratio", "", totals["committed_kb"] / target if target else None)
    for row in clerks:
        yield Value("db.memory_clerk_bytes", str(row["type"]), float(row["pages_kb"]) * _KIB)


def cpu(before: Row, after: Row, interval_s: float) -> Value:
    """How much of the machine's CPU the server's process used."""
    spent = rate(before["cpu_ms"], after["cpu_ms"], interval_s, 1e-3)
    return Value("db.cpu_ratio", "", None if spent is None else spent / after["cores"])


# ---- performance counters -----------------------------------------------------------------------------

_GROWS = (272696320, 272696576)
"""PERF_COUNTER_COUNTER, PERF_COUNTER_BULK_COUNT: counts that only grow."""
_HOLDS = (65536, 65792)
"""PERF_COUNTER_RAWCOUNT, PERF_COUNTER_LARGE_RAWCOUNT: as it is now."""
_FRACTION, _BASE = 537003264, 1073939712
"""PERF_RAW_FRACTION of a large base, and its base, which is named as it is with `` base`` at its end."""
PERCENT = 100.0
"""Performance logs have fractions as percentages, and so do the scales of their names' table."""

SEEN_OTHERWISE = ("db.connections", "db.sessions_blocked")
"""Metrics of that table which are told by looks or with a limit of their own."""

OBJECTS = tuple(name.partition(":")[2] for name in COUNTERS if name.startswith("SQLServer:"))
"""The objects whose counters are known."""

Counters = Mapping[tuple[str, str], tuple[float, int]]
"""(object as in the table, counter) -> value, type."""


def by_name(rows: Iterable[Row]) -> Counters:
    """The rows of ``sqlserver_sql.counters``; a named instance's objects as those of the default one."""
    return {
        (NAMED_INSTANCE.sub("SQLServer:", row["object"].strip()), row["counter"].strip()): (
            float(row["value"]),
            int(row["type"]),
        )
        for row in rows
    }


def counters(before: Counters | None, after: Counters, interval_s: float) -> Iterator[Value]:
    """Those that are known, as an imported log would have them; rates only with a reading before."""
    for (of, name), (value, kind) in after.items():
        means = COUNTERS.get(of, {}).get(name)
        if means is None or means.metric in SEEN_OTHERWISE:
            continue
        if kind in _HOLDS:
            yield Value(means.metric, "", value * means.scale + means.offset)
        elif kind == _FRACTION:
            base = after.get((of, f"{name} base"), (0.0, _BASE))[0]
            ratio = PERCENT * value / base * means.scale + means.offset if base else None
            yield Value(means.metric, "", ratio)
        elif kind in _GROWS and before is not None and (of, name) in before:
            grown = rate(before[of, name][0], value, interval_s, means.scale)
            yield Value(means.metric, "", grown)


def connections(found: Counters) -> float | None:
    """How many connections users have; None where that is not counted."""
    return found.get(("SQLServer:General Statistics", "User Connections"), (None, 0))[0]


# ---- files --------------------------------------------------------------------------------------------

_TEMPDB = 2
_LOG_FILE = 2
"""The number of a database's first log file, where its type may not be seen."""
_ROWS, _LOG = 0, 1
MOST_FILES = 50
"""So many files are told one by one, the busiest since the start; all are in the sums."""

_SUMS = ("reads", "read_bytes", "read_ms", "writes", "write_bytes", "write_ms", "governed_ms")


def kind_of(row: Row) -> str:
    """``log``, ``data`` or ``temp``: everything of tempdb, its log included, is temporary."""
    if row["database_id"] == _TEMPDB:
        return "temp"
    log = row["file_id"] == _LOG_FILE if row["type"] is None else row["type"] == _LOG
    return "log" if log else "data"


def by_file(rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    """The rows of ``sqlserver_sql.files``: sums of each kind, and files by ``DATABASE:NAME``."""
    found: dict[str, dict[str, float]] = {}
    files: dict[str, dict[str, float]] = {}
    for row in rows:
        own = {name: float(row[name] or 0) for name in _SUMS}
        kind = found.setdefault(kind_of(row), dict.fromkeys(_SUMS, 0.0))
        for name in _SUMS:
            kind[name] += own[name]
        files[f"{row['database_name']}:{row['name'] or row['file_id']}"] = own
    busiest = sorted(files, key=lambda name: -(files[name]["reads"] + files[name]["writes"]))
    return found | {name: files[name] for name in busiest[:MOST_FILES]}


def files(
    before: Mapping[str, Mapping[str, float]], after: Mapping[str, Mapping[str, float]], interval_s: float
) -> Iterator[Value]:
    """I/O by kind of file and by file, as the server waited for it (METHOD section 2: Δstall ÷ Δcount)."""
    for instance, new in after.items():
        old = before.get(instance)
        if old is None:
            continue
        for name in ("read", "write"):
            done, spent_ms = (
                growth(old[f"{name}s"], new[f"{name}s"]),
                growth(old[f"{name}_ms"], new[f"{name}_ms"]),
            )
            if done is None or spent_ms is None:
                done, spent_ms = None, None
            yield Value(f"db.{name}s_per_s", instance, None if done is None else done / interval_s)
            yield Value(
                f"db.{name}_bytes_per_s",
                instance,
                rate(old[f"{name}_bytes"], new[f"{name}_bytes"], interval_s),
            )
            yield Value(
                f"db.{name}_s_per_s", instance, None if spent_ms is None else spent_ms / 1000 / interval_s
            )
            latency = spent_ms / 1000 / done if done and spent_ms is not None else None
            yield Value(f"db.{name}_latency_s", instance, latency, done)
        governed = rate(old["governed_ms"], new["governed_ms"], interval_s, 1e-3)
        yield Value("db.governed_s_per_s", instance, governed)


def not_measured(about: Row, found: Counters) -> Iterator[NotMeasured]:
    """What this login, or this server, does not give."""
    if not about["sees_files"]:
        why = f"the login {about['role']} may not see files' types: a file numbered 2 is taken for a log"
        yield NotMeasured(
            "db.*", "DATABASE:NAME", why, f"run: GRANT VIEW ANY DEFINITION TO [{about['role']}]"
        )
    for of, names in COUNTERS.items():
        if of.startswith("SQLServer:"):
            for name, means in names.items():
                if (of, name) not in found and means.metric not in SEEN_OTHERWISE:
                    yield NotMeasured(means.metric, "", f"the server has no counter {of}\\{name}", None)
