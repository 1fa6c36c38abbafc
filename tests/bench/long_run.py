"""Write a run directory of hours with a known bottleneck: 20 hosts, 200 series each, one sample a second.

The log disk of sql1 is at its declared limit of 500 I/Os per second, and commits wait for that disk; no other
resource is saturated. Names, timestamps and precision are those of real runs: each reading has its own
timestamp and interval, CPU shares are whole hundredths, rates are counts over the interval. The samples are
written in parts of one minute, which the store's own merge turns into a finished run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pinchpoint.store import histogram, write
from pinchpoint.store.schema import COARSE_S, JOURNAL, OPERATIONS_SCHEMA, RUN_SCHEMA, SAMPLES_SCHEMA

Floats = npt.NDArray[np.float64]

START_S = 1_767_225_600  # 2026-01-01T00:00:00Z
PART_S = 60
CORES = 16
IOPS = 500.0
TIERS = {"web": 6, "search": 4, "sql": 4, "nosql": 4, "files": 2}
ROLES = {
    "sql": {"log": "sdb", "data": "sdc", "tempdb": "sdd", "os": "sda"},
    "nosql": {"log": "sdb", "data": "sdc"},
    "search": {"index": "sdb"},
    "files": {"content": "sdb"},
    "web": {},
}
WORKERS = ("generator1", "generator2")
_PHI = 0.8  # successive seconds of real counters are correlated
_SIGMA = 0.3  # standard deviation of the logarithm of latencies


@dataclass(slots=True)
class Columns:
    """All series of the farm, one entry each, in the order in which one second's readings write them.

    Attributes:
        reading: number of the reading that contains the series; all series of a reading share a timestamp.
        level: the mean, in the metric's unit; ``noise`` is its relative standard deviation.
        grain: values are multiples of this number (0: any value).
        weight: number of operations behind the mean (nan: the value is not a mean).
    """

    host: list[str] = field(default_factory=list)
    metric: list[str] = field(default_factory=list)
    instance: list[str] = field(default_factory=list)
    reading: list[int] = field(default_factory=list)
    level: list[float] = field(default_factory=list)
    noise: list[float] = field(default_factory=list)
    grain: list[float] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    readings: int = 0

    def add(
        self,
        host: str,
        metric: str,
        level: float,
        instance: str = "",
        noise: float = 0.1,
        weight: float = float("nan"),
    ) -> None:
        """Add one series to the current reading."""
        grain = 0.01 if metric.startswith("cpu.") and metric.endswith("_ratio") else 0.0
        if metric.endswith("_per_s") and not metric.startswith("db.sessions"):
            grain = 1.0
        row = (host, metric, instance, self.readings, level, noise, grain, weight)
        for name, value in zip(self.__slots__[:8], row, strict=True):
            getattr(self, name).append(value)

    def next_reading(self) -> None:
        """Start the next reading, which has its own timestamp."""
        self.readings += 1


def write_run(directory: Path, measured_s: int, seed: int = 1) -> int:
    """Write a finished run of ``measured_s`` seconds and return its number of samples.

    Args:
        directory: path of the run directory, which must not exist.
        measured_s: seconds of the measure phase, over an hour so that operations are kept in steps of ten
            seconds.
        seed: seed of the random noise.
    """
    random = np.random.default_rng(seed)
    columns = Columns()
    for tier, count in TIERS.items():
        for number in range(1, count + 1):
            _host(columns, tier, f"{tier}{number}")
    for worker in WORKERS:
        _generator(columns, worker)
    journal = directory / JOURNAL
    journal.mkdir(parents=True)
    rows = 0
    for number, (samples, operations) in enumerate(
        zip(_samples(columns, measured_s, random), _operations(measured_s, random), strict=True)
    ):
        stem = journal / f"controller-{number:06}"
        pq.write_table(operations, f"{stem}.operations.parquet", compression="zstd")
        pq.write_table(samples, f"{stem}.samples.parquet", compression="zstd")
        rows += samples.num_rows
    write.finish(directory, _manifest(measured_s, seed), "finished", _utc(START_S + measured_s))
    return rows


def _host(columns: Columns, tier: str, host: str) -> None:
    """Add the two hundred series of one host."""
    add = columns.add
    for core in [*map(str, range(CORES)), ""]:
        add(host, "cpu.busy_ratio", 0.35, core, 0.2)
        add(host, "cpu.wait_ratio", 0.02, core, 0.5)
        add(host, "cpu.steal_ratio", 0.0, core, 0.0)
    add(host, "cpu.run_queue", 5.0, noise=0.3)
    columns.next_reading()
    add(host, "cpu.busy_ratio", 0.3, f"tier:{tier}", 0.2)
    add(host, "cpu.cores", float(CORES), f"tier:{tier}", 0.0)
    columns.next_reading()
    for number in range(8 if tier in {"sql", "nosql"} else 12):
        _disk(columns, host, f"sd{chr(ord('a') + number)}")
        columns.next_reading()
    held = host == "sql1"
    for metric, level in (("cpu", 0.05), ("io", 0.85 if held else 0.1), ("memory", 0.0)):
        add(host, f"pressure.{metric}_ratio", level)
    add(host, "mem.available_bytes", 4e10, noise=0.01)
    add(host, "mem.available_ratio", 0.6, noise=0.01)
    add(host, "mem.paged_in_bytes_per_s", 0.0)
    add(host, "mem.paged_out_bytes_per_s", 0.0)
    columns.next_reading()
    for interface in ("eth0", "lo"):
        add(host, "net.received_bytes_per_s", 3e6, interface)
        add(host, "net.sent_bytes_per_s", 3e6, interface)
        add(host, "net.errors_per_s", 0.0, interface)
        add(host, "net.speed_bytes_per_s", 1.25e9, interface, 0.0)
    columns.next_reading()
    for metric, level in (("cpu_s", 0.003), ("duration_s", 0.006), ("ok", 1.0)):
        add(host, f"collector.{metric}", level, "local", 0.0 if metric == "ok" else 0.1)
    columns.next_reading()
    {"sql": _database, "nosql": _database}.get(tier, _threads)(columns, host)
    columns.next_reading()


def _disk(columns: Columns, host: str, device: str) -> None:
    """Add the ten series of one disk.

    On the disk at its limit the rate is constant and the queue length varies.
    """
    held = host == "sql1" and device == "sdb"
    writes, reads, write_s = (IOPS, 0.0, 0.016) if held else (40.0, 10.0, 0.002)
    add = columns.add
    add(host, "disk.writes_per_s", writes, device, 0.004 if held else 0.2)
    add(host, "disk.reads_per_s", reads, device, 0.2)
    add(host, "disk.write_bytes_per_s", writes * 8192, device, 0.004 if held else 0.2)
    add(host, "disk.read_bytes_per_s", reads * 8192, device, 0.2)
    add(host, "disk.write_latency_s", write_s, device, 0.3, writes)
    add(host, "disk.read_latency_s", 0.003, device, 0.3, reads or float("nan"))
    add(host, "disk.outstanding", writes * write_s + reads * 0.003, device, 0.3)
    add(host, "disk.busy_ratio", 1.0 if held else 0.1, device, 0.003)
    add(host, "disk.flushes_per_s", writes / 2, device, 0.2)
    add(host, "disk.flush_latency_s", 0.001, device, 0.2, writes / 2)


_WAITS = ("IO:WalSync", "LWLock:WALWrite", "IO:DataFileRead", "Client:ClientRead", "Lock:transactionid")


def _database(columns: Columns, host: str) -> None:
    """Add the 48 series of one database; on sql1 sessions wait for the log disk."""
    add, held = columns.add, host == "sql1"
    levels = (24.0, 4.0, 0.5, 0.5, 0.1) if held else (0.2, 0.1, 0.2, 0.5, 0.0)
    add(host, "db.sessions_active", 30.0 if held else 2.0, noise=0.05)
    add(host, "db.sessions_idle_in_transaction", 0.5)
    for event, level in zip(_WAITS, levels, strict=True):
        add(host, "db.sessions_waiting", level, event)
    add(host, "db.lock_waiters", levels[-1])
    add(host, "db.connections", 60.0, noise=0.05)
    add(host, "db.connections_ratio", 0.3, noise=0.05)
    for part in ("data", "wal", "temporary"):
        for kind in ("read", "write", "extend", "fsync"):
            add(host, f"db.{kind}s_per_s", 50.0, part)
            add(host, f"db.{kind}_s_per_s", 0.1, part)
            add(host, f"db.{kind}_latency_s", 0.002, part, 0.3, 50.0)
    for metric in ("commits_per_s", "rollbacks_per_s"):
        add(host, f"db.{metric}", 300.0)


def _threads(columns: Columns, host: str) -> None:
    for number in range(8):
        columns.add(host, "cpu.busy_ratio", 0.1, f"thread:worker-{number}", 0.2)


def _generator(columns: Columns, worker: str) -> None:
    columns.add(worker, "generator.cpu_ratio", 0.3)
    columns.add(worker, "generator.loop_lag_s", 0.001)
    columns.add(worker, "generator.recorder_ok", 1.0, noise=0.0)
    for scenario, users in (("orders", 16.0), ("crawl", 4.0)):
        columns.add(worker, "generator.users", users, scenario, 0.0)
    columns.add(worker, "generator.scheduled_per_s", 100.0, "burst", 0.0)
    columns.add(worker, "generator.started_per_s", 100.0, "burst", 0.0)
    columns.next_reading()


def _samples(columns: Columns, measured_s: int, random: np.random.Generator) -> Iterator[pa.Table]:
    """Yield one table a minute: the seconds in order, and within each second the readings in order."""
    count = len(columns.host)
    level, noise, grain, weight = (
        np.array(getattr(columns, name)) for name in ("level", "noise", "grain", "weight")
    )
    reading = np.array(columns.reading)
    # Readings of one host are some milliseconds apart; readings of several hosts happen at the same time.
    offset_ns = 1_000_000 * (reading - reading[0]) % 100_000_000
    ratio = np.array([name.endswith(("_ratio", ".ok")) for name in columns.metric])
    names = [_repeated(getattr(columns, name)) for name in ("host", "metric", "instance")]
    wave = random.standard_normal(count)
    before = random.integers(0, 500_000, columns.readings)
    for first in range(START_S, START_S + measured_s, PART_S):
        shape = PART_S, count
        waves, shocks = np.empty(shape), random.standard_normal(shape) * np.sqrt(1 - _PHI**2)
        for second in range(PART_S):
            wave = _PHI * wave + shocks[second]
            waves[second] = wave
        jitter = random.integers(0, 500_000, (PART_S, columns.readings))
        past = np.vstack([before, jitter[:-1]])
        before = jitter[-1]
        interval = (1 + (jitter - past) / 1e9)[:, reading]
        seconds = (np.arange(first + 1, first + PART_S + 1) * 10**9)[:, None]
        values = _grained(np.maximum(0.0, level * (1 + noise * waves)), grain, interval)
        values = np.where(ratio, np.minimum(1.0, values), values)
        weights = np.rint(np.broadcast_to(weight, shape) * (1 + 0.1 * waves))
        yield pa.table(
            [
                (seconds + offset_ns + jitter[:, reading]).ravel(),
                interval.ravel(),
                *names,
                values.ravel(),
                pa.array(weights.ravel(), from_pandas=True),
            ],
            schema=SAMPLES_SCHEMA,
        )


def _repeated(names: list[str]) -> pa.Array:
    """Return a column that repeats the names for each second of a part."""
    return pa.array(names, pa.string()).take(pa.array(np.tile(np.arange(len(names)), PART_S)))


def _grained(values: Floats, grain: Floats, interval: Floats) -> Floats:
    """Round values as counters do.

    A rate is a whole count over the interval, a CPU share a multiple of its grain.
    """
    whole = np.rint(values / np.where(grain > 0, grain, 1.0)) * grain
    return np.where(grain > 0, np.where(grain == 1.0, whole / interval, whole), values)


OPERATIONS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "orders": {  # (operations per second and worker, mean seconds); 16 users per worker
        "log_append": (250.0, 0.050),
        "point_read": (100.0, 0.010),
        "data_update": (40.0, 0.052),
        "range_scan": (20.0, 0.020),
    },
    "crawl": {  # 4 users per worker
        "document:site": (20.0, 0.2),
        "document:site/fetch": (20.0, 0.1),
        "document:site/crawl_db": (20.0, 0.06),
        "document:site/index": (20.0, 0.04),
    },
    "burst": dict.fromkeys(("set", "get", "append", "scan"), (25.0, 0.002)),
}


def _operations(measured_s: int, random: np.random.Generator) -> Iterator[pa.Table]:
    """One table a minute, in steps of ten seconds."""
    for first in range(START_S, START_S + measured_s, PART_S):
        rows = [
            _row(step, worker, scenario, operation, per_s, latency_s, random)
            for step in range(first, first + PART_S, COARSE_S)
            for worker in WORKERS
            for scenario, operations in OPERATIONS.items()
            for operation, (per_s, latency_s) in operations.items()
        ]
        yield pa.table(list(map(list, zip(*rows, strict=True))), schema=OPERATIONS_SCHEMA)


def _row(
    step: int,
    worker: str,
    scenario: str,
    operation: str,
    per_s: float,
    latency_s: float,
    random: np.random.Generator,
) -> tuple[Any, ...]:
    count = round(per_s * COARSE_S * (1 + 0.02 * random.standard_normal()))
    draws = random.lognormal(np.log(latency_s) - _SIGMA**2 / 2, _SIGMA, count)
    text = histogram.encoded(histogram.counted((draws * 1e9).astype(np.int64)))
    response = text if scenario == "burst" else None
    return step, float(COARSE_S), worker, scenario, operation, "ok", count, 0, text, response, 0


def _manifest(measured_s: int, seed: int) -> dict[str, Any]:
    hosts = [(tier, f"{tier}{number}") for tier, count in TIERS.items() for number in range(1, count + 1)]
    tiers: dict[str, Any] = {tier: {"hosts": {}} for tier in TIERS}
    for tier, host in hosts:
        tiers[tier]["hosts"][host] = {"machine": None, "disks": _declared(tier)}
    loads = {
        "orders": ("sql-mix", {"model": "closed", "users": 32, "think_s": 0.0}),
        "crawl": ("full-crawl", {"model": "closed", "users": 8, "think_s": 0.0}),
        "burst": ("nosql-burst", {"model": "open", "rate_per_s": 200.0, "arrivals": "poisson"}),
    }
    return {
        "schema": RUN_SCHEMA,
        "state": "running",
        "name": "long",
        "seed": seed,
        "started": _utc(START_S),
        "plan": {
            "name": "long",
            "seed": seed,
            "scenarios": {
                name: {"use": use, "load": load, "params": {}} for name, (use, load) in loads.items()
            },
            "objectives": [],
        },
        "farm": {"name": "long", "environment": "test", "endpoints": {}, "tiers": tiers},
        "phases": [{"name": "measure", "from": _utc(START_S), "to": _utc(START_S + measured_s)}],
        "versions": {},
        "hosts": {host: _inventory(tier, host) for tier, host in hosts},
        "generators": [
            {"worker": worker, "cores": [number], "machine_id": "machine-of-generators"}
            for number, worker in enumerate(WORKERS)
        ],
        "collectors": [],
        "content": {},
        "warnings": [],
    }


def _declared(tier: str) -> dict[str, Any]:
    caps = {"iops": IOPS}
    limits = {role: caps if (tier, role) == ("sql", "log") else None for role in ROLES[tier]}
    return {
        role: {"device": device, "limits": limits[role], "resolved_limits": limits[role]}
        for role, device in ROLES[tier].items()
    }


def _inventory(tier: str, host: str) -> dict[str, Any]:
    return {
        "tier": tier,
        "machine_id": f"machine-of-{host}",
        "hostname": host,
        "cores": CORES,
        "usable_cores": list(range(CORES)),
        "tier_cores": list(range(CORES)),
        "roles": {
            role: {"given": device, "device": device, "data_io": "kernel", "why": None}
            for role, device in ROLES[tier].items()
        },
        "not_measured": [],
    }


def _utc(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat().replace("+00:00", "Z")
