"""Measure the load generator's share of the CPU that the farm and the generator use during a crawl."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
from bench.load import BenchError
from bench.rows import Row
from support import run_cli

from pinchpoint.store.read import StoredRun, open_run
from pinchpoint.store.samples import show

_NAME = "load generator's share of a crawl's CPU"
_GOAL = 0.1
_FARM = {
    "name": "bench",
    "environment": "test",
    "embedded": {"tiers": ["web", "sql", "search", "files"]},
}
_PLAN = {
    "name": "bench",
    "scenarios": {"crawl": {"use": "full-crawl", "load": {"model": "closed", "users": 8}}},
    "phases": {"warm_up": "5s", "measure": "30s"},
}
_LIMIT_S = 180
_USED = """
    SELECT sum(value * interval_s) FROM samples WHERE metric = ? AND instance = ? AND (? = '' OR host = ?)
        AND time_ns BETWEEN (SELECT min(time_ns) FROM samples WHERE metric = 'generator.cpu_ratio')
            AND (SELECT max(time_ns) FROM samples WHERE metric = 'generator.cpu_ratio')"""


def rows() -> Iterator[Row]:
    """Yield the one row: the demo's crawl alone on its farm."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/var/tmp") as name:
        folder = Path(name)
        for file, content in (("farm.yaml", _FARM), ("plan.yaml", _PLAN)):
            (folder / file).write_text(json.dumps(content), encoding="utf-8")
        done = run_cli(
            "run", folder / "plan.yaml", "--farm", folder / "farm.yaml", "--out", folder / "runs",
            timeout_s=_LIMIT_S,
        )  # fmt: skip
        if done.returncode not in (0, 1):
            raise BenchError(f"the run failed: {done.stderr.strip()[-300:]}")
        generator_s, tiers = used_s(open_run(Path(done.stdout.splitlines()[-1])))
    share = generator_s / (generator_s + sum(tiers.values()))
    told = ", ".join(f"{tier} {cpu_s:.1f} s" for tier, cpu_s in tiers.items())
    note = f"load generator {generator_s:.1f} s, {told}"
    yield Row(_NAME, share, "x", goal=_GOAL, met=share <= _GOAL, note=note)


def used_s(run: StoredRun) -> tuple[float, dict[str, float]]:
    """Return the CPU seconds of the load generators and of each tier, for the time when generators ran."""
    connection = duckdb.connect()
    show(run.samples, connection)

    def total(metric: str, instance: str = "", host: str = "") -> float:
        (found,) = connection.execute(_USED, [metric, instance, host, host]).fetchall()[0]
        if found is None:
            raise BenchError(f"the run has no {metric} {instance}")
        return float(found)

    hosts: dict[str, dict[str, Any]] = run.manifest["hosts"]
    tiers = {
        facts["tier"]: total("cpu.busy_ratio", f"tier:{facts['tier']}", host)
        * (facts["tier_cap_cores"] or len(facts["tier_cores"]))
        for host, facts in hosts.items()
        if facts.get("tier_cores")
    }
    return total("generator.cpu_ratio"), tiers
