"""Synthetic runs shared by several test files, and helpers that read their verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness.analysis.build import Build

from pinchpoint.analysis import Verdict, analyse
from pinchpoint.analysis.verdict import Advice

SEEDS = (1, 2, 3, 4)
FACTORS = {"declared": 1.0, "withheld": None, "x2": 2.0, "/2": 0.5}


def judged(build: Build) -> Verdict:
    verdict = analyse(build.run())
    json.dumps(verdict.to_json(), allow_nan=False)
    return verdict


def named(verdict: Verdict) -> tuple[str | None, ...]:
    found = verdict.bottleneck
    assert found is not None, verdict.summary
    return found.kind, found.tier, found.host, found.confidence


def first(verdict: Verdict) -> Advice:
    assert verdict.advice, verdict.summary
    return verdict.advice[0]


def two_machines(search_busy: float, seed: int = 1, pressure: float | None = 0.9) -> Build:
    build = Build(seed=seed)
    build.host("app3", "search", machine="b", cores=(0, 1))
    build.host("sql1", "sql", machine="a", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("app3", search_busy, cores=(0, 1), pressure=pressure)
    build.cpu("sql1", 0.35, cores=(0, 1)).disk("sql1", "sdb", 120, 0.002)
    build.closed("crawl", "full-crawl", 16).operations("crawl", "document:site", 40, 0.4)
    return build.generator()


def log_disk(
    caps: dict[str, float] | None,
    noise: float = 0.004,
    seed: int = 1,
    writes: float = 500.0,
    latency_s: float = 0.008,
    busy: float = 1.0,
    pressure: float = 0.85,
    commit_s: float = 0.016,
    role: str = "log",
) -> Build:
    """Build a closed load of eight users who commit on one host with its own disk."""
    build = Build(seed=seed)
    limits = {role: caps} if caps else None
    build.host("sql1", "sql", cores=(0, 1), disks={role: "loop1", "os": "vda"}, limits=limits)
    build.cpu("sql1", 0.3, 0.25, cores=(0, 1)).disk("sql1", "vda", 5, 0.001, busy=0.02, pressure=pressure)
    build.disk("sql1", "loop1", writes, latency_s, noise, busy=busy, pressure=pressure)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", 8 / commit_s, commit_s)
    return build.generator()


def healthy(seed: int = 1) -> Build:
    build = Build(seed=seed).host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("sql1", 0.22, 0.2, cores=(0, 1)).disk("sql1", "sdb", 150, 0.001)
    build.open("orders", "sql-mix", 100).operations("orders", "log_append", 100, 0.003)
    return build.generator(orders=(100.0, 100.0))


def store(seed: int = 1, **own: float) -> Build:
    """Build users of a store on two cores; ``own``: the store's metrics, with ``__`` for the dot."""
    build = Build(seed=seed).host("nosql1", "nosql", cores=(0, 1), disks={"data": "sdb"})
    for name, level in own.items():
        build.metric("nosql1", f"db.{name.replace('__', '.')}", level, noise=0.004)
    build.closed("burst", "nosql-burst", 16)
    return build.metric("generator1", "generator.users", 16.0, "burst", 0.0).generator()


def answer(verdict: Verdict) -> tuple[str | None, ...]:
    """Return (kind, tier, role) of the bottleneck, or (outcome,) where none is named."""
    found = verdict.bottleneck
    return (verdict.outcome,) if found is None else (found.kind, found.tier, found.role)


def answers(build: Build, role: str, **limits: float) -> Iterator[tuple[str | None, ...]]:
    """Yield the answers with limits declared, withheld, doubled and halved."""
    for factor in FACTORS.values():
        for tier in build.manifest["farm"]["tiers"].values():
            for host in tier["hosts"].values():
                said = {name: value * factor for name, value in limits.items()} if factor and limits else None
                if role in host["disks"]:
                    host["disks"][role].update(limits=said, resolved_limits=said)
        yield answer(analyse(build.run()))
        if not limits:
            return


def length(measure_s: int) -> int:
    """Return the simulated seconds for that many measured ones, warm-up included."""
    return Build(measure_s=measure_s).seconds
