"""A small saved run of a shared machine, with everything a report shows in it, and its verdict."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.analysis.build import START_S, Build, crawl_bound_by_search, utc

from pinchpoint.store.read import StoredRun

HOSTILE = "<script>window.hacked = true</script>"


def saved_run(measure_s: int = 60) -> StoredRun:
    """Crawl, an open SQL mix and bursts on four tiers that share one machine; one host nobody watched."""
    build = crawl_bound_by_search(measure_s=measure_s)
    build.metric("search1", "mem.available_ratio", 0.41, noise=0.02)
    build.metric("search1", "pressure.memory_ratio", 0.0)
    _load(build)
    _facts(build.manifest, build.seconds)
    build.event("phase", 0, phase="warm_up")
    build.event("gap", 22, kind="local", hosts=["sql1"], why="a reading took 2.1 s; 1 was skipped")
    return build.run()


def _load(build: Build) -> None:
    build.operations("crawl", "document:sharepoint", 1, 0.2, outcome="http_503")
    build.operations("crawl", "document:files", 40, 0.05)
    build.open("orders", "sql-mix", 200)
    build.operations("orders", "log_append", 150, 0.004).operations("orders", "point_read", 50, 0.001)
    build.burst("burst", 50, 400, 20, 5)
    rate = np.where(np.arange(build.seconds) % 20 < 5, 400.0, 50.0)
    build.operations("burst", "write", rate, 0.002, dropped=np.where(rate > 50, 3.0, 0.0))
    for scenario, per_s in (("orders", 200.0), ("burst", 137.0)):
        build.metric("generator1", "generator.scheduled_per_s", per_s, scenario, 0.0)
        build.metric("generator1", "generator.started_per_s", per_s, scenario, 0.0)


def _facts(manifest: dict[str, Any], seconds: int) -> None:
    manifest["name"] = "pre-production"
    for facts in manifest["hosts"].values():
        facts |= {
            "hostname": "box",
            "cpu_model": "Example CPU 2.0 GHz",
            "memory_bytes": 8_000_000_000,
            "kernel": "6.1.0",
            "os": "Debian GNU/Linux 12",
            "not_measured": [
                {
                    "metric": "disk.flush_latency_s",
                    "instance": "vda",
                    "why": "the kernel does not count flushes",
                    "remedy": "use Linux 5.5 or later",
                }
            ],
        }
    manifest["farm"]["tiers"]["files"] = {"hosts": {"files1": {"machine": None, "disks": {"content": None}}}}
    manifest["collectors"] = [
        {
            "kind": "local",
            "hosts": ["web1", "search1", "sql1", "nosql1"],
            "interval_s": 1.0,
            "cpu_s": 0.21,
            "readings": seconds,
            "failed": 0,
        }
    ]
    manifest["versions"] = {"pinchpoint": "0.1.0", "sql": {"server": "PostgreSQL 18.0"}}
    manifest["content"] = {"documents": 2400, "skipped": {"PNG image": 12}}
    manifest["warnings"] = ["The corpus was limited to 2,400 documents."]


def suspect(**changes: Any) -> dict[str, Any]:
    """The search tier's CPU, as a verdict names it."""
    window = [utc(START_S + 10), utc(START_S + 70)]
    cpu = {"metric": "cpu.busy_ratio", "host": "search1", "threshold": 0.9, "source": "design"}
    return {
        "kind": "cpu",
        "tier": "search",
        "host": "search1",
        "resource": "cpu",
        "instance": "0",
        "role": None,
        "confidence": "medium",
        "window": window,
        "evidence": [
            {
                "fact": "the core was 97 % busy",
                "value": 0.97,
                "instance": "0",
                "evidence": "E1",
                **cpu,
            },
            {
                "fact": "something waited for the CPU 90 % of the time",
                "metric": "pressure.cpu_ratio",
                "value": 0.9,
                "host": "search1",
                "instance": "",
                "evidence": "E4",
                "threshold": 0.5,
                "source": "design",
            },
        ],
        "shared_with": ["web", "sql", "nosql"],
        "uses": [{"tier": "search", "share_ratio": 0.68}],
        "why_not_more": ["One load level: at most medium confidence."],
        **changes,
    }


def verdict(**changes: Any) -> dict[str, Any]:
    """What the analysis says of ``saved_run``."""
    disk = {
        "write_latency_mean_s": 0.0011,
        "write_latency_max_s": 0.0087,
        "iops_mean": 90.0,
        "iops_max": 132.0,
    }
    place = {"tier": "sql", "host": "sql1", "iops_source": "the kernel's count"}
    return {
        "schema": "pinchpoint.verdict/1",
        "outcome": "bottleneck",
        "bottleneck": suspect(),
        "runner_up": None,
        "next": {
            "kind": "disk_device",
            "tier": "sql",
            "host": "sql1",
            "resource": "disk",
            "instance": "vda",
            "role": "log",
            "utilisation_ratio": 0.15,
            "gain_ratio": 0.38,
            "assumes": "the same mix of work",
        },
        "headroom_ratio": 0.0,
        "candidates": [],
        "experiment": None,
        "capacity_at_least_per_s": {},
        "objectives": [],
        "scenarios": {
            "crawl": {
                "throughput_per_s": 120.4,
                "service_p50_s": 0.081,
                "service_p95_s": 0.142,
                "service_p99_s": 0.191,
                "response_p95_s": None,
                "error_ratio": 0.0081,
                "dropped": None,
            },
            "orders": {
                "throughput_per_s": 199.8,
                "response_p50_s": 0.0031,
                "response_p95_s": 0.0063,
                "response_p99_s": 0.0091,
                "service_p95_s": 0.006,
                "error_ratio": 0.0,
                "dropped": 0,
            },
        },
        "crawl": [
            {
                "source": "sharepoint",
                "count": 5600,
                "failures": 70,
                "skipped": 3,
                "duration_s": 70.0,
                "rate_per_s": 80.0,
                "rate_active_per_s": 80.4,
                "repository_latency_s": 0.0201,
                "complete": True,
            }
        ],
        "disks": [{**place, "role": "log", **disk}, {**place, "role": "data", **disk}],
        "cpus": [{"tier": "search", "host": "search1", "busy_mean_ratio": 0.66, "busy_max_ratio": 0.71}],
        "stages": [],
        "knee": {},
        "summary": "The CPU of the machine that all tiers share gives way first, and search uses most of it "
        "(68 %). It was 97 % busy on average; confidence is medium, because only one load level was run.",
        "warnings": ["Only one load level was run."],
        **changes,
    }
