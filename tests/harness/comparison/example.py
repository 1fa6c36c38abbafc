"""Two sides as records: a farm before and after its SQL disks were replaced, shaped like a field report."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from harness.report.example import suspect, verdict

from pinchpoint.comparison import ComparedRun, Sides, sides_of
from pinchpoint.store.read import StoredRun
from pinchpoint.store.schema import EVENTS, MANIFEST, OPERATIONS, SAMPLES

TIMES = "\N{MULTIPLICATION SIGN}"
MACHINES = {"sql1": "sql", "app3": "search", "web1": "web"}
PROFILES: dict[str, dict[str, float]] = {
    "dev": {"iops": 2000.0},
    "prod": {"iops": 5000.0, "bytes_per_s": 200e6},
}
SOURCES: dict[str, list[tuple[str, int, int, float, float | None]]] = {
    "dev": [
        ("share", 0, 40, 47.0, None),
        ("collab", 14040, 0, 4153.0, 0.467),
        ("profiles", 11544, 0, 940.0, 0.27),
    ],
    "prod": [
        ("share", 73769, 0, 24536.0, 6.935),
        ("collab", 14050, 0, 1167.0, 0.237),
        ("profiles", 11540, 0, 1168.0, 0.149),
    ],
}
LOG = suspect(
    kind="disk_latency", tier="sql", host="sql1", resource="disk", instance="sdc", role="log", shared_with=[]
)
SEARCH = suspect(kind="cpu", tier="search", host="app3", shared_with=[])


def manifest(farm: str) -> dict[str, Any]:
    """Return the manifest of a farm with three machines and two SQL disks."""
    hosts: dict[str, dict[str, Any]] = {
        host: {
            "tier": tier,
            "machine_id": f"{farm}-{host}",
            "cpu_model": "Example CPU 2.2 GHz",
            "cores": 4,
            "tier_cores": [0, 1, 2, 3],
            "memory_bytes": 28_000_000_000,
            "kernel": "6.1.0",
            "roles": {},
            "disks": {},
        }
        for host, tier in MACHINES.items()
    }
    hosts["sql1"] |= {
        "roles": {role: {"device": f"{farm}{role}", "file_system": "ext4"} for role in ("log", "data")},
        "disks": {f"{farm}{role}": {"write_cache": "write through"} for role in ("log", "data")},
        "database": {"server": "postgresql", "version": "18.6", "settings": {"shared_buffers": "64MB"}},
    }
    disks = {role: {"resolved_limits": PROFILES[farm]} for role in ("log", "data")}
    load = {"model": "closed", "users": 8}
    return {
        "schema": "pinchpoint.run/1",
        "state": "finished",
        "name": "crawl",
        "seed": 1,
        "started": "2026-01-01T00:00:00Z",
        "ended": "2026-01-01T01:00:00Z",
        "plan": {"name": "crawl", "scenarios": {"crawl": {"use": "full-crawl", "load": load}}},
        "farm": {
            "name": farm,
            "identity": f"/farms/{farm}.yaml",
            "tiers": {
                tier: {"hosts": {host: {"disks": disks if tier == "sql" else {}}}}
                for host, tier in MACHINES.items()
            },
        },
        "hosts": hosts,
        "generators": [{"worker": "generator1", "cores": [1]}],
        "collectors": [{"kind": "local", "interval_s": 1.0}],
        "versions": {"pinchpoint": "0.1.0"},
        "content": None,
        "warnings": [],
    }


def outcome(farm: str) -> dict[str, Any]:
    """Return the farm's verdict: the log disk in dev, the search servers' CPU in prod."""
    dev = farm == "dev"
    disk = {
        "tier": "sql",
        "host": "sql1",
        "device": "sdc",
        "iops_source": "kernel",
        "read_latency_mean_s": None,
    }
    figures = ("write_latency_mean_s", "write_latency_max_s", "iops_mean", "iops_max")
    log = (0.0364, 0.0871, 133.0, 244.0) if dev else (0.0028, 0.0087, 187.0, 348.0)
    data = (0.03, 0.061, 72.0, 310.0) if dev else (0.02, 0.043, 104.0, 460.0)
    return verdict(
        bottleneck=LOG if dev else SEARCH,
        next=None,
        summary=f"The {'log disk of the sql' if dev else 'CPU of the search'} tier gives way first.",
        warnings=[],
        scenarios={
            "crawl": {
                "throughput_per_s": 3.4 if dev else 15.2,
                "count": 25584 if dev else 25590,
                "service_p50_s": 1.2 if dev else 0.4,
                "service_p95_s": 4.8 if dev else 1.1,
                "response_p50_s": None,
                "response_p95_s": None,
                "error_ratio": 0.0,
                "outcomes": {"ok": 25584},
                "dropped": 0,
            }
        },
        crawl=[
            {
                "source": name,
                "count": count,
                "failures": failures,
                "skipped": 0,
                "duration_s": duration,
                "rate_per_s": count / duration,
                "repository_latency_s": latency,
                "complete": True,
            }
            for name, count, failures, duration, latency in SOURCES[farm]
        ],
        disks=[
            {**disk, "role": role, **dict(zip(figures, values, strict=True))}
            for role, values in (("log", log), ("data", data))
        ],
        cpus=[
            {
                "tier": "search",
                "host": "app3",
                "of": "machine",
                "busy_mean_ratio": 0.41 if dev else 0.93,
                "busy_max_ratio": 0.8 if dev else 1.0,
            }
        ],
    )


def run(farm: str, **changes: Any) -> ComparedRun:
    """Return one run; ``changes`` replace entries of its verdict."""
    return ComparedRun(f"runs/{farm}", manifest(farm), {**outcome(farm), **changes})


def invalid() -> dict[str, Any]:
    """Return the verdict entries of a run whose load generator was late."""
    late = {"fact": "operations came late", "metric": "generator.send_lag_s", "value": 2.0}
    generator = {"kind": "generator", "tier": None, "host": "generator1", "resource": "generator"}
    blame = {**generator, "instance": "", "role": None, "confidence": None, "evidence": [late]}
    return {"outcome": "invalid", "bottleneck": blame, "summary": "Invalid run: operations came late."}


def two_sides(**changes: Any) -> Sides:
    """Return dev and prod with one run each; ``changes`` replace entries of prod's verdict."""
    return sides_of([run("dev")], [run("prod", **changes)])


def alike(**changes: Any) -> Sides:
    """Return two sides with the same work, without the source that failed on one side."""
    runs = [run("dev"), run("prod", **changes)]
    for one in runs:
        one.verdict["crawl"].pop(0)
    return sides_of(runs[:1], runs[1:])


def changed(sides: Sides, *path: str, value: Any) -> Sides:
    """Return the sides with another value at one place of the second side's manifest."""
    one = sides.other.runs[0]
    content = deepcopy(dict(one.manifest))
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return sides_of(sides.base.runs, [ComparedRun(one.directory, content, one.verdict)])


def saved(stored: StoredRun, directory: Path) -> Path:
    """Write a run in memory to a directory, and return it."""
    directory.mkdir(parents=True)
    (directory / MANIFEST).write_text(json.dumps(stored.manifest))
    (directory / EVENTS).write_text("".join(json.dumps(event) + "\n" for event in stored.events))
    pq.write_table(stored.operations, directory / OPERATIONS)
    pq.write_table(stored.samples, directory / SAMPLES)
    return directory
