"""A small saved run of a shared machine that has everything a report shows, and its verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from harness.analysis.build import START_S, Build, crawl_bound_by_search, utc
from hdrh.histogram import HdrHistogram

from pinchpoint.base.wording import Summary
from pinchpoint.report.terminal import details_text, verdict_text
from pinchpoint.store.read import StoredRun
from pinchpoint.store.schema import OPERATIONS_SCHEMA, SAMPLES_SCHEMA

MANIFEST: dict[str, Any] = {
    "name": "nightly",
    "state": "finished",
    "farm": {"name": "staging"},
    "started": "2026-11-20T08:59:50Z",
    "phases": [{"name": "measure", "from": "2026-11-20T09:00:00Z", "to": "2026-11-20T09:01:10Z"}],
    "plan": {
        "scenarios": {
            "crawl": {"load": {"model": "closed", "users": 8}},
            "orders": {"load": {"model": "open", "rate_per_s": 200.0}},
            "burst": {"load": {"model": "burst", "base_per_s": 50.0, "peak_per_s": 500.0}},
        }
    },
}
"""The manifest entries that a run's first screen uses."""


def screen(verdict: Mapping[str, Any]) -> str:
    """Return a verdict as ``pinchpoint analyse runs/nightly`` prints it, and what --explain adds."""
    return f"{verdict_text(verdict, MANIFEST, 'runs/nightly')}\n\n{details_text(verdict)}"


HOSTILE = "<script>window.hacked = true</script>"


def saved_run(measure_s: int = 60) -> StoredRun:
    """Build a run with crawl, SQL mix and bursts on four tiers of one machine; one host has no samples."""
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


def steady_run() -> StoredRun:
    """Build a run of 20 s with constant values, so that every figure is known."""
    run = saved_run(measure_s=10)
    samples = [
        ((START_S + second + 1) * 1_000_000_000, 1.0, host, metric, instance, value, weight)
        for second in range(20)
        for host, metric, instance, value, weight in (
            ("search1", "cpu.busy_ratio", "", 0.95, None),
            ("search1", "cpu.busy_ratio", "0", 0.97, None),
            ("search1", "cpu.busy_ratio", "tier:search", 0.65, None),
            ("search1", "mem.available_ratio", "", 0.41, None),
            ("sql1", "disk.writes_per_s", "vda", 90.0, None),
            ("sql1", "disk.reads_per_s", "vda", 10.0, None),
            (
                "sql1",
                "disk.write_latency_s",
                "vda",
                0.001 if second % 2 else 0.003,
                float(second % 2 * 2 + 1),
            ),
            ("generator1", "generator.cpu_ratio", "", 0.3, None),
            ("generator1", "generator.loop_lag_s", "", 0.001, None),
        )
    ]
    histogram = HdrHistogram(1, 3_600_000_000, 3)
    for value, count in ((1_000, 90), (10_000, 9), (100_000, 1)):
        histogram.record_value(value, count)
    text = histogram.encode().decode()
    operations = [
        {
            "time_s": START_S + second,
            "interval_s": 1.0,
            "worker": "generator1",
            "scenario": "orders",
            "operation": "log_append",
            "outcome": outcome,
            "count": count,
            "bytes": 0,
            "service": text if outcome == "ok" else None,
            "response": text if outcome == "ok" else None,
            "dropped": 0,
        }
        for second in range(20)
        for outcome, count in (("ok", 100), ("deadlock", 1))
    ]
    columns = [pa.array(c, f.type) for c, f in zip(zip(*samples, strict=True), SAMPLES_SCHEMA, strict=True)]
    run.manifest["ended"] = utc(START_S + 20)
    return replace(
        run,
        samples=pa.table(columns, schema=SAMPLES_SCHEMA),
        operations=pa.Table.from_pylist(operations, schema=OPERATIONS_SCHEMA),
    )


def suspect(**changes: Any) -> dict[str, Any]:
    """Return the search tier's CPU as a verdict names it."""
    window = [utc(START_S + 10), utc(START_S + 70)]
    rule = {"source": "design", "rule": "saturation begins at 90 % of capacity"}
    cpu = {"metric": "cpu.busy_ratio", "host": "search1", "threshold": 0.9, **rule}
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
                "rule": "work waits for the resource at least 50 % of the time",
            },
            {
                "fact": "search used 68 % of it",
                "metric": "cpu.busy_ratio",
                "value": 0.68,
                "host": "search1",
                "instance": "tier:search",
                "evidence": "context",
                "threshold": None,
                "source": None,
            },
        ],
        "shared_with": ["web", "sql", "nosql"],
        "uses": [{"tier": "search", "share_ratio": 0.68}],
        "why_not_more": ["One load level, and at least 6 are needed to find the knee."],
        **changes,
    }


def verdict(**changes: Any) -> dict[str, Any]:
    """Return the verdict on ``saved_run``, optionally with another summary or outcome."""
    answer = {
        "text": "CPU of the machine that runs all tiers.",
        "lead": "It was 97 % busy; search used 68 % of it.",
        "label": "Bottleneck",
    }
    disk = {
        "write_latency_mean_s": 0.0011,
        "write_latency_max_s": 0.0087,
        "iops_mean": 90.0,
        "iops_max": 132.0,
    }
    place = {
        "tier": "sql",
        "host": "sql1",
        "device": "vda",
        "iops_source": "data",
        "read_latency_mean_s": None,
        "flush_latency_mean_s": None,
        "why_not_measured": None,
    }
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
            "at_most": True,
        },
        "headroom_ratio": 0.0,
        "candidates": [],
        "experiment": None,
        "capacity_at_least_per_s": {},
        "objectives": [
            {
                "scenario": "orders",
                "metric": "p95_s",
                "target": 0.005,
                "value": 0.0063,
                "met": False,
                "result": "missed",
            },
            {
                "scenario": "crawl",
                "metric": "errors_ratio",
                "target": 0.01,
                "value": 0.0081,
                "met": True,
                "result": "met",
            },
        ],
        "scenarios": {
            "crawl": {
                "now_per_s": 120.4,
                "throughput_per_s": 120.4,
                "service_p50_s": 0.081,
                "service_p95_s": 0.142,
                "service_p99_s": 0.191,
                "response_p95_s": None,
                "error_ratio": 0.0081,
                "dropped": None,
            },
            "orders": {
                "now_per_s": 199.8,
                "throughput_per_s": 199.8,
                "response_p50_s": 0.0031,
                "response_p95_s": 0.0063,
                "response_p99_s": 0.0091,
                "service_p95_s": 0.006,
                "error_ratio": 0.0,
                "dropped": 0,
            },
            "burst": {
                "now_per_s": 134.1,
                "throughput_per_s": 134.1,
                "response_p50_s": 0.0019,
                "response_p95_s": 0.0031,
                "response_p99_s": 0.004,
                "service_p95_s": 0.003,
                "error_ratio": 0.0,
                "dropped": 45,
                "bursts": [
                    {
                        "start_s": 10,
                        "duration_s": 5,
                        "offered": 2000.0,
                        "done": 1985,
                        "dropped": 15,
                        "p50_s": 0.0021,
                        "p99_s": 0.0042,
                        "backlog": 12.0,
                        "calm_s": 0.0018,
                        "recovery_s": None,
                        "watched_s": 15,
                    }
                ],
                "writes": {
                    "acknowledged": 8046,
                    "records": 5000,
                    "confirmed": 4997,
                    "missing": 2,
                    "different": 1,
                    "expired": 0,
                    "sample": "sample",
                    "examples": [17, 4711],
                    "not_read": [],
                },
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
        "disks": [
            {**place, "role": "log", **disk, "latency_limit_s": 0.005, "latency_limit_source": "SP"},
            {**place, "role": "data", **disk, "latency_limit_s": 0.02, "latency_limit_source": "SP"},
        ],
        "cpus": [
            {
                "tier": "search",
                "host": "search1",
                "of": "tier",
                "busy_mean_ratio": 0.66,
                "busy_max_ratio": 0.71,
                "machine_busy_mean_ratio": 0.97,
                "machine_busy_max_ratio": 1.0,
            }
        ],
        "stages": [],
        "knee": {},
        "summary": str(Summary(**answer)),
        "warnings": ["Only one load level was run."],
        **({} if changes.keys() & {"summary", "outcome"} else {"answer": answer}),
        **changes,
    }
