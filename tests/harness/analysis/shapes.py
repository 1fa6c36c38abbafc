"""Farms with a known bottleneck, in shapes that were not used to design the rules of the analysis.

Each shape lists its right answers. ``inconclusive`` is never wrong, nor is an answer of low confidence. A
wrong answer of medium or high confidence is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from harness.analysis.build import Build, Floats
from harness.analysis.disks import (
    Capped,
    Distant,
    Drifting,
    Seconds,
    Spindle,
    commits,
    read_then_commit,
    reads,
    reads_on_time,
)

WARM_UP_S = 10

Answer = tuple[str | None, ...]
"""(kind, tier, role) of the bottleneck, or (outcome,) where no bottleneck is named."""
HEALTHY: Answer = ("not_reached",)
LOG: Answer = ("disk_latency", "sql", "log")
LOG_CAP: Answer = ("disk_cap", "sql", "log")
LOCK: Answer = ("lock", "sql", None)
CPU: Answer = ("cpu", "sql", None)


@dataclass(frozen=True, slots=True)
class Shape:
    """A farm shape with a known bottleneck.

    Attributes:
        make: builds the run from (seed, seconds measured).
        right: the right answers of the analysis.
    """

    make: Callable[[int, int], Build]
    right: frozenset[Answer]


def _sql(seed: int, measure_s: int, cpu: float | Floats = 0.2, **limits: dict[str, float]) -> Build:
    """Return a SQL host of two cores with a log and a data disk; ``limits``: declared limits by role."""
    build = Build(measure_s, WARM_UP_S, seed)
    build.host("sql1", "sql", cores=(0, 1), disks={"log": "sdb", "data": "sdc"}, limits=limits)
    _collector(build, "local")
    return build.cpu("sql1", cpu, np.asarray(cpu) * 0.9, cores=(0, 1))


def _collector(build: Build, kind: str) -> Build:
    build.manifest["collectors"].append({"kind": kind, "hosts": ["sql1"]})
    return build.metric("sql1", "collector.ok", 1.0, kind, 0.0)


def _watched(build: Build, active: float, **waiting: float) -> Build:
    return _collector(build, "postgres").sessions("sql1", active, **waiting)


def _users(build: Build, users: int, found: Seconds, operation: str = "log_append") -> Build:
    build.metric("generator1", "generator.users", float(users), "orders", 0.0)
    return build.closed("orders", "sql-mix", users).served("orders", operation, found).generator()


def _length(measure_s: int) -> int:
    return WARM_UP_S + measure_s


def _quiet(build: Build, device: str, pressure: float = 0.5) -> Build:
    return build.disk("sql1", device, 5, 0.0008, busy=0.01, pressure=pressure)


# ---- disks ---------------------------------------------------------------------------------------


def _one_cap_for_two(reading: float) -> Callable[[int, int], Build]:
    """Log and data disk share 500 undeclared IOPS; ``reading``: share of commits that follow a read."""

    def make(seed: int, measure_s: int) -> Build:
        log, data = read_then_commit(Capped(500), _length(measure_s), 12, seed, reading)
        build = _sql(seed, measure_s).device("sql1", "sdb", log, 0.9).device("sql1", "sdc", data, 0.9)
        return _users(build, 12, log)

    return make


def _floor_of_one(seed: int, measure_s: int) -> Build:
    """One user commits, with one write of 6 ms outstanding at a time."""
    found = commits(Distant(0.006, 0.0006), _length(measure_s), users=1, seed=seed)
    return _users(_quiet(_sql(seed, measure_s).device("sql1", "sdb", found, 0.9), "sdc"), 1, found)


def _heavy_tail(seed: int, measure_s: int) -> Build:
    """Commits go to a log on a network whose latency has a tail as long as the mean."""
    found = commits(Distant(0.004, 0.008), _length(measure_s), users=16, seed=seed)
    return _users(_quiet(_sql(seed, measure_s).device("sql1", "sdb", found, 0.9), "sdc"), 16, found)


def _device_near(share: float) -> Callable[[int, int], Build]:
    """An uneven device ends slightly below its declared limit, and that limit is not the cause."""

    def make(seed: int, measure_s: int) -> Build:
        found = reads(Spindle(0.004, 0.4), _length(measure_s), 16, seed)
        rate = float((found.reads + found.writes)[WARM_UP_S:].mean())
        build = _sql(seed, measure_s, data={"iops": rate / share})
        return _users(_quiet(build.device("sql1", "sdc", found, 0.9), "sdb"), 16, found, "point_read")

    return make


def _backup(*, watched: bool) -> Callable[[int, int], Build]:
    """A backup reads the data disk at its limit, while users wait only for a log of 12 ms per write."""

    def make(seed: int, measure_s: int) -> Build:
        log = commits(Distant(0.012, 0.0012), _length(measure_s), users=8, seed=seed)
        data = reads(Capped(300), _length(measure_s), 4, seed)
        build = _sql(seed, measure_s, data={"iops": 300.0})
        build.device("sql1", "sdb", log, 0.95).device("sql1", "sdc", data, 0.95)
        if watched:
            _watched(build, 7.9, IO__WalSync=7.6)
        return _users(build, 8, log)

    return make


def _stalls(seed: int, measure_s: int) -> Build:
    """Commits take 0.5 ms, and 100 ms during three of every twenty seconds."""
    at = np.arange(_length(measure_s))
    latency = np.where(at % 20 < 3, 0.1, 0.0005)
    build = _sql(seed, measure_s)
    rate = 8 / (latency * 1.3 + 0.0005)
    build.disk("sql1", "sdb", 1 / (latency + 0.0003), latency, busy=0.7, pressure=0.5)
    _quiet(build, "sdc").closed("orders", "sql-mix", 8)
    build.metric("generator1", "generator.users", 8.0, "orders", 0.0)
    return build.operations("orders", "log_append", rate, 8 / rate, noise=0.01).generator()


def _warming_cache(seed: int, measure_s: int) -> Build:
    """Readers of a slow data disk need fewer and fewer reads, because the pages stay in memory."""
    build = _sql(seed, measure_s)
    latency, from_disk = build.noisy(0.03, 0.05), np.linspace(0.95, 0.35, _length(measure_s))
    each = from_disk * latency + 0.0006
    read = 16 / each * from_disk
    for metric, level in (
        ("reads_per_s", read),
        ("writes_per_s", 0.0),
        ("read_bytes_per_s", read * 8192),
        ("write_bytes_per_s", 0.0),
        ("outstanding", read * latency),
        ("busy_ratio", 1.0),
    ):
        build.metric("sql1", f"disk.{metric}", level, "sdc", 0.0)
    build.metric("sql1", "disk.read_latency_s", latency, "sdc", 0.0, read)
    _quiet(build, "sdb", 0.9).closed("orders", "sql-mix", 16)
    build.metric("generator1", "generator.users", 16.0, "orders", 0.0)
    return build.operations("orders", "point_read", 16 / each, each, noise=0.0).generator()


def _checkpoint_at_cap(seed: int, measure_s: int) -> Build:
    """All operations are served in time; a checkpoint writes the data disk at its limit meanwhile."""
    build = _sql(seed, measure_s, data={"iops": 300.0})
    build.disk("sql1", "sdb", 200, 0.0008, busy=0.15, pressure=0.7)
    build.disk("sql1", "sdc", 300, 0.05, 0.004, busy=1.0, pressure=0.7)
    build.open("orders", "sql-mix", 200).operations("orders", "data_update", 200, 0.003)
    return build.generator(orders=(200.0, 200.0))


# ---- healthy, near a knee --------------------------------------------------------------------------


def _busy_but_served(seed: int, measure_s: int) -> Build:
    """The CPU is 86 % busy, and all operations are served."""
    build = _quiet(_quiet(_sql(seed, measure_s, 0.86), "sdb"), "sdc")
    build.samples = [row for row in build.samples if row[3] != "pressure.cpu_ratio"]
    build.metric("sql1", "pressure.cpu_ratio", 0.55)
    build.open("orders", "sql-mix", 800).operations("orders", "log_append", 800, 0.008)
    return build.generator(orders=(800.0, 800.0))


def _log_below_its_cap(seed: int, measure_s: int) -> Build:
    """The log runs at 88 % of its declared limit, with random arrivals."""
    build = _sql(seed, measure_s, log={"iops": 500.0})
    build.disk("sql1", "sdb", 440, 0.002, 0.05, busy=0.6, pressure=0.5)
    _quiet(build, "sdc").open("orders", "sql-mix", 440).operations("orders", "log_append", 440, 0.003)
    return build.generator(orders=(440.0, 440.0))


def _evenly(build: Build, rate_per_s: float, found: Seconds, operation: str) -> Build:
    build.open("orders", "sql-mix", rate_per_s).served("orders", operation, found)
    build.manifest["plan"]["scenarios"]["orders"]["load"]["arrivals"] = "constant"
    return build.generator(orders=(rate_per_s, rate_per_s))


def _even_reads(seed: int, measure_s: int) -> Build:
    """400 reads/s arrive evenly at a disk without a limit: the rate is flat because of the schedule."""
    found = reads_on_time(Drifting(0.009), _length(measure_s), 400, seed)
    build = _quiet(_sql(seed, measure_s).device("sql1", "sdc", found, 0.9), "sdb", 0.9)
    return _evenly(build, 400, found, "point_read")


def _even_reads_too_slow(seed: int, measure_s: int) -> Build:
    """400 reads/s arrive evenly and miss the objective, because each read takes 35 ms."""
    found = reads_on_time(Drifting(0.035), _length(measure_s), 400, seed)
    build = _quiet(_sql(seed, measure_s).device("sql1", "sdc", found, 0.9), "sdb", 0.9)
    return _evenly(build, 400, found, "point_read").objective(scenario="orders", p95_s=0.02)


def _even_commits(seed: int, measure_s: int) -> Build:
    """A log flushes one write at a time, each for about three commits; all commits are served."""
    found = commits(Distant(0.0025, 0.0001), _length(measure_s), rate_per_s=1100, seed=seed)
    build = _quiet(_sql(seed, measure_s).device("sql1", "sdb", found, 0.9), "sdc", 0.9)
    return _evenly(build, 1100, found, "log_append")


# ---- what is neither CPU nor disk ------------------------------------------------------------------


def _far_share(seed: int, measure_s: int) -> Build:
    """A crawl of two sources: 21 of 24 sessions wait for a file share with a latency of 7 s."""
    build = Build(measure_s, WARM_UP_S, seed).host("search1", "search", cores=(0, 1))
    build.cpu("search1", 0.25, 0.22, cores=(0, 1))
    build.closed("crawl", "full-crawl", 24)
    build.manifest["plan"]["scenarios"]["crawl"]["params"] = {
        "sources": [{"kind": "files", "name": "share"}, {"kind": "sharepoint", "name": "site"}]
    }
    for source, rate, fetch_s in (("share", 3.0, 7.0), ("site", 10.0, 0.12)):
        build.operations("crawl", f"document:{source}", rate, fetch_s + 0.05)
        build.operations("crawl", f"document:{source}/fetch", rate, fetch_s)
    return build.generator()


def _hot_row(build: Build, operations: float) -> Build:
    build.closed("orders", "sql-mix", 16)
    build.metric("generator1", "generator.users", 16.0, "orders", 0.0)
    return build.operations("orders", "lock_contend", operations, 16 / operations, noise=0.01).generator()


def _lock(seed: int, measure_s: int) -> Build:
    """Sixteen sessions wait for the lock of one row."""
    build = _quiet(_quiet(_sql(seed, measure_s, 0.1), "sdb"), "sdc")
    return _hot_row(_watched(build, 15.8, Lock__transactionid=14.2), 90)


def _lock_beside_backup(seed: int, measure_s: int) -> Build:
    """Sessions wait for a row lock while a backup reads the data disk at its limit."""
    data = reads(Capped(300), _length(measure_s), 4, seed)
    build = _quiet(_sql(seed, measure_s, 0.1, data={"iops": 300.0}), "sdb", 0.9)
    build.device("sql1", "sdc", data, 0.9)
    return _hot_row(_watched(build, 15.8, Lock__transactionid=14.2), 90)


def _lock_beside_strangers(seed: int, measure_s: int) -> Build:
    """Sessions wait for a row lock on cores that other processes saturate; no session waits for a CPU."""
    build = Build(measure_s, WARM_UP_S, seed).host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("sql1", 0.99, 0.05, cores=(0, 1), pressure=0.9).disk("sql1", "sdb", 5, 0.0008, busy=0.01)
    _watched(build, 15.8, Lock__transactionid=14.2).metric("sql1", "db.sessions_running", 0.2, noise=0.1)
    return _hot_row(build, 90)


def _lock_of_a_slow_log(seed: int, measure_s: int) -> Build:
    """The session that holds the row lock waits for a log of 40 ms, so the log is the cause."""
    build = _quiet(_sql(seed, measure_s, 0.1), "sdc", 0.9)
    build.disk("sql1", "sdb", 24, 0.04, 0.03, busy=0.96, pressure=0.9, outstanding_noise=0.04)
    return _hot_row(_watched(build, 15.8, Lock__transactionid=14.4, IO__WalSync=0.96), 24)


def _memory(available: float, paged: float, pressure: float, cpu: float) -> Callable[[int, int], Build]:
    """Return a host with that much memory, which pages in from a disk without a role."""

    def make(seed: int, measure_s: int) -> Build:
        build = _quiet(_quiet(_sql(seed, measure_s, cpu), "sdb"), "sdc")
        if cpu > 0.9:
            build.samples = [row for row in build.samples if row[3] != "pressure.cpu_ratio"]
            build.metric("sql1", "pressure.cpu_ratio", 0.9)
        build.metric("sql1", "mem.available_ratio", available, noise=0.02)
        build.metric("sql1", "mem.paged_in_bytes_per_s", paged, noise=0.3)
        build.metric("sql1", "pressure.memory_ratio", pressure, noise=0.1)
        build.closed("orders", "sql-mix", 8)
        build.metric("generator1", "generator.users", 8.0, "orders", 0.0)
        return build.operations("orders", "point_read", 400, 0.02, noise=0.02).generator()

    return make


def _pool_of_a_slow_log(seed: int, measure_s: int) -> Build:
    """All connections are in use, because their sessions wait for a log of 20 ms per write."""
    build = _quiet(_sql(seed, measure_s, 0.1), "sdc", 0.9)
    build.disk("sql1", "sdb", 48, 0.02, 0.03, busy=0.97, pressure=0.9, outstanding_noise=0.04)
    _watched(build, 19.5, IO__WalSync=1.0, LWLock__WALWrite=17.5)
    build.metric("sql1", "db.connections_ratio", 0.995, noise=0.002)
    build.open("orders", "sql-mix", 700).operations("orders", "log_append", 500, 0.04)
    build.operations("orders", "log_append", 200, 0.001, outcome="too_many_connections", noise=0.01)
    return build.generator(orders=(700.0, 700.0))


def _store(seed: int, measure_s: int) -> Build:
    build = Build(measure_s, WARM_UP_S, seed).host("nosql1", "nosql", cores=(0, 1))
    build.cpu("nosql1", 0.1, 0.08, cores=(0, 1)).metric("nosql1", "pressure.io_ratio", 0.9, noise=0.03)
    build.closed("burst", "nosql-burst", 16).operations("burst", "record_write", 480, 16 / 480, noise=0.02)
    return build.metric("generator1", "generator.users", 16.0, "burst", 0.0).generator()


def _store_on_a_hidden_disk(seed: int, measure_s: int) -> Build:
    """A store's thread waits for a log on an unobserved disk; the store's own metrics report it."""
    build = _store(seed, measure_s).metric("nosql1", "db.main_thread.busy_ratio", 0.99, noise=0.004)
    return build.metric("nosql1", "db.aof.wait_ratio", 0.9, noise=0.01)


def _threads_on_a_hidden_disk(seed: int, measure_s: int) -> Build:
    """A store's threads stay occupied while they wait for a log on an unobserved disk."""
    build = _store(seed, measure_s).metric("nosql1", "db.pool.active", 15.0, "MutationStage", 0.02)
    build.metric("nosql1", "db.pool.active", 0.1, "ReadStage", 0.02)
    build.metric("nosql1", "db.pool.active", 15.5, "Native-Transport-Requests", 0.02)
    build.metric("nosql1", "db.pool.pending", 0.0, "Native-Transport-Requests", 0.0)
    return build.metric("nosql1", "db.pool.busy_ratio", 0.12, "Native-Transport-Requests", 0.02)


def _index_on_a_hidden_disk(seed: int, measure_s: int) -> Build:
    """A crawl waits for its index, which waits for an unobserved disk."""
    build = Build(measure_s, WARM_UP_S, seed).host("search1", "search", cores=(0, 1))
    build.cpu("search1", 0.12, 0.1, cores=(0, 1)).metric("search1", "pressure.io_ratio", 0.85, noise=0.03)
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:site", 20, 0.38)
    build.operations("crawl", "document:site/index", 20, 0.34)
    return build.metric("generator1", "generator.users", 8.0, "crawl", 0.0).generator()


def _idle_connections(seed: int, measure_s: int) -> Build:
    """All operations are served; a pool keeps every connection open, and two clients are refused."""
    build = _quiet(_quiet(_sql(seed, measure_s), "sdb", 0.1), "sdc", 0.1)
    _watched(build, 1.5).metric("sql1", "db.connections_ratio", 0.99, noise=0.002)
    build.open("orders", "sql-mix", 300).operations("orders", "log_append", 300, 0.004)
    build.operations("orders", "log_append", 1.0, 0.001, "too_many_connections", 0.0, seconds=range(20, 22))
    return build.generator(orders=(300.0, 300.0))


# ---- in bursts, in turns, several hosts ------------------------------------------------------------


def _quota_in_bursts(seed: int, measure_s: int) -> Build:
    """A store with half a core gets ten times the load during five of every twenty seconds."""
    build = Build(measure_s, WARM_UP_S, seed).host("nosql1", "nosql", cores=(0, 1))
    inside = np.arange(_length(measure_s)) % 20 < 5
    build.cpu("nosql1", np.where(inside, 0.27, 0.05), np.where(inside, 0.995, 0.12), (0, 1), noise=0.01)
    build.metric("nosql1", "cpu.cores", 0.5, "tier:nosql", 0.0)
    offered = np.where(inside, 2000.0, 200.0)
    build.burst("burst", 200, 2000, 20, 5)
    done = np.where(inside, 1400.0, 200.0)
    build.operations("burst", "record_write", done, np.where(inside, 0.4, 0.002), dropped=offered - done)
    return build.generator(burst=(offered, done))  # type: ignore[arg-type]  # one value a second


def _cron(seed: int, measure_s: int) -> Build:
    """A job in the database uses the whole CPU quota during five of every twenty seconds."""
    inside = np.arange(_length(measure_s)) % 20 < 5
    build = Build(measure_s, WARM_UP_S, seed).host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("sql1", np.where(inside, 0.5, 0.15), np.where(inside, 0.995, 0.3), (0, 1), noise=0.01)
    build.metric("sql1", "cpu.cores", 1.0, "tier:sql", 0.0)
    build.disk("sql1", "sdb", 100, 0.0006, busy=0.06)
    build.open("orders", "sql-mix", 300).objective(scenario="orders", p95_s=0.02)
    build.operations("orders", "log_append", 300, np.where(inside, 0.2, 0.003))
    return build.generator(orders=(300.0, 300.0))


def _in_turn(seed: int, measure_s: int) -> Build:
    """Saturated cores, then a slow log, then locks: each a third of the time."""
    length = _length(measure_s)
    part = np.minimum(2, np.maximum(0, np.arange(length) - WARM_UP_S) * 3 // max(1, measure_s))

    def by(first: float, second: float, third: float) -> Floats:
        return np.asarray(np.array([first, second, third])[part], dtype=np.float64)

    build = _sql(seed, measure_s, by(0.98, 0.25, 0.1))
    build.samples = [row for row in build.samples if row[3] != "pressure.cpu_ratio"]
    build.metric("sql1", "pressure.cpu_ratio", by(0.9, 0.05, 0.03))
    latency = by(0.0005, 0.025, 0.0006)
    build.disk("sql1", "sdb", by(400, 39, 90), latency, 0.02, busy=0.9, pressure=0.5, outstanding_noise=0.03)
    build.samples = [row for row in build.samples if (row[3], row[4]) != ("disk.busy_ratio", "sdb")]
    build.metric("sql1", "disk.busy_ratio", by(0.2, 0.98, 0.06), "sdb", 0.003)
    _quiet(build, "sdc")
    _collector(build, "postgres")
    build.metric("sql1", "db.sessions_active", 15.8, noise=0.01)
    build.metric("sql1", "db.sessions_waiting", by(0.2, 15.0, 0.1), "IO:WalSync", 0.02)
    build.metric("sql1", "db.sessions_waiting", by(0.05, 0.1, 14.5), "Lock:transactionid", 0.02)
    build.metric("sql1", "db.lock_waiters", by(0.05, 0.1, 14.5), noise=0.02)
    rate = by(1500, 310, 90)
    build.closed("orders", "sql-mix", 16).operations("orders", "log_append", rate, 16 / rate, noise=0.01)
    return build.metric("generator1", "generator.users", 16.0, "orders", 0.0).generator()


def _one_hot_host(seed: int, measure_s: int) -> Build:
    """One of three search hosts does nearly all the work."""
    build = Build(measure_s, WARM_UP_S, seed)
    for number, busy in enumerate((0.97, 0.3, 0.25), 1):
        build.host(f"app{number}", "search", machine=f"m{number}", cores=(0, 1))
        build.cpu(f"app{number}", busy, cores=(0, 1), pressure=0.9 if busy > 0.9 else 0.1)
    build.closed("crawl", "full-crawl", 16).operations("crawl", "document:site", 40, 0.4)
    return build.generator()


def _tier_behind_tier(seed: int, measure_s: int) -> Build:
    """A crawl waits for its database's log, which is at its limit; the web tier is not saturated."""
    build = Build(measure_s, WARM_UP_S, seed)
    build.host("web1", "web", machine="w", cores=(0, 1)).cpu("web1", 0.82, 0.8, (0, 1), pressure=0.5)
    build.host("search1", "search", machine="s", cores=(0, 1)).cpu("search1", 0.3, 0.28, (0, 1))
    caps = {"log": {"iops": 300.0}}
    build.host("sql1", "sql", machine="d", cores=(0, 1), disks={"log": "sdb"}, limits=caps)
    build.cpu("sql1", 0.2, 0.18, (0, 1))
    build.disk("sql1", "sdb", 300, 0.02, 0.004, busy=1.0, pressure=0.9)
    build.closed("crawl", "full-crawl", 16).operations("crawl", "document:sharepoint", 100, 0.16)
    build.operations("crawl", "document:sharepoint/fetch", 100, 0.03)
    build.operations("crawl", "document:sharepoint/crawl_db", 300, 0.04)
    return build.generator()


def _two_users(seed: int, measure_s: int) -> Build:
    """Two users are too few to saturate the farm: they wait for their own round trips."""
    build = _quiet(_quiet(_sql(seed, measure_s, 0.35), "sdb", 0.1), "sdc", 0.1)
    build.closed("orders", "sql-mix", 2)
    build.metric("generator1", "generator.users", 2.0, "orders", 0.0)
    return build.operations("orders", "point_read", 1900, 0.00098, noise=0.02).generator()


def _answers(*right: Answer) -> frozenset[Answer]:
    return frozenset(right)


SHAPES: Mapping[str, Shape] = {
    "two disks that share one cap": Shape(_one_cap_for_two(1.0), _answers()),
    "two disks that share one cap, unevenly": Shape(_one_cap_for_two(0.5), _answers()),
    "a floor with one I/O outstanding": Shape(_floor_of_one, _answers(LOG)),
    "a floor with a heavy tail": Shape(_heavy_tail, _answers(LOG)),
    "a device at 94 % of its cap": Shape(_device_near(0.94), _answers(("disk_device", "sql", "data"))),
    # METHOD calls a rate a cap within 3 % of a declared limit and within a spread of 3 %.
    "a device at 98 % of its cap": Shape(
        _device_near(0.98), _answers(("disk_device", "sql", "data"), ("disk_cap", "sql", "data"))
    ),
    "a backup beside a slow log": Shape(_backup(watched=False), _answers(LOG)),
    "a backup beside a slow log, watched": Shape(_backup(watched=True), _answers(LOG)),
    "a log that stalls": Shape(_stalls, _answers(LOG)),
    "a cache that warms": Shape(
        _warming_cache, _answers(("disk_latency", "sql", "data"), ("disk_concurrency", "sql", "data"))
    ),
    "a checkpoint at its disk's cap": Shape(_checkpoint_at_cap, _answers(HEALTHY)),
    "a busy CPU, all served": Shape(_busy_but_served, _answers(HEALTHY)),
    "a log below its cap": Shape(_log_below_its_cap, _answers(HEALTHY)),
    "even reads, all served": Shape(_even_reads, _answers(HEALTHY)),
    "even reads, too slow": Shape(
        _even_reads_too_slow, _answers(("disk_latency", "sql", "data"), ("disk", "sql", "data"))
    ),
    "even commits, all served": Shape(_even_commits, _answers(HEALTHY)),
    "a share far away": Shape(_far_share, _answers(("external", None, None))),
    "a hot row": Shape(_lock, _answers(LOCK)),
    "a hot row beside a backup": Shape(_lock_beside_backup, _answers(LOCK)),
    "a hot row beside strangers": Shape(_lock_beside_strangers, _answers(LOCK)),
    "a hot row held for a slow log": Shape(_lock_of_a_slow_log, _answers(LOG)),
    "a trickle of paging": Shape(_memory(0.08, 40e3, 0.01, 0.3), _answers()),
    "a trickle of paging, full cores": Shape(_memory(0.08, 40e3, 0.01, 0.97), _answers(CPU)),
    "paging": Shape(_memory(0.03, 60e6, 0.45, 0.4), _answers(("memory", "sql", None))),
    "a store on a hidden disk": Shape(_store_on_a_hidden_disk, _answers()),
    "threads on a hidden disk": Shape(_threads_on_a_hidden_disk, _answers()),
    "an index on a hidden disk": Shape(_index_on_a_hidden_disk, _answers()),
    "connections kept open": Shape(_idle_connections, _answers(HEALTHY)),
    "all connections held for a slow log": Shape(_pool_of_a_slow_log, _answers(LOG)),
    "a quota in bursts": Shape(_quota_in_bursts, _answers(("cpu", "nosql", None))),
    "a job that takes the quota in bursts": Shape(_cron, _answers(CPU)),
    "three in turn": Shape(_in_turn, _answers(CPU, LOG, LOCK)),
    "one hot host of three": Shape(_one_hot_host, _answers(("cpu", "search", None))),
    "a tier behind a tier": Shape(_tier_behind_tier, _answers(LOG_CAP)),
    "two users": Shape(_two_users, _answers()),
}
