"""Histories of a plan: stored runs with verdicts, made without any load."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pinchpoint.store.schema import (
    EVENTS,
    MANIFEST,
    OPERATIONS,
    OPERATIONS_SCHEMA,
    SAMPLES,
    SAMPLES_SCHEMA,
    VERDICT,
)

FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def nights(*levels: tuple[float, int], spread: float = 0.02, seed: int = 1) -> list[float]:
    """Return run values from (level, number of nights) with a spread each."""
    random = np.random.default_rng(seed)
    return [float(level * random.lognormal(0, spread)) for level, count in levels for _ in range(count)]


def nightly(
    folder: Path, throughputs: Sequence[float], plan: str = "nightly", farm: str = "dev", **manifest: Any
) -> Path:
    """Store one run per night, whose p95 falls as throughput rises; return the folder."""
    for night, per_s in enumerate(throughputs):
        one_run(folder / f"{farm}-{night:02}", night, per_s, plan, farm, **manifest)
    return folder


def one_run(
    directory: Path,
    night: int,
    per_s: float,
    plan: str = "nightly",
    farm: str = "dev",
    outcome: str = "bottleneck",
    state: str = "finished",
    users: int = 8,
) -> Path:
    """Store a night's run, and return its manifest's path."""
    directory.mkdir(parents=True)
    started = (FIRST + timedelta(days=night)).isoformat().replace("+00:00", "Z")
    load = {"model": "closed", "users": users}
    manifest = {
        "schema": "pinchpoint.run/1",
        "state": state,
        "started": started,
        "ended": started,
        "plan": {"name": plan, "scenarios": {"orders": {"use": "sql-mix", "load": load}}},
        "farm": {"name": farm},
    }
    scenario = {"throughput_per_s": per_s, "service_p95_s": 8 / per_s, "response_p95_s": None}
    verdict = {"outcome": outcome, "scenarios": {"orders": scenario}, "crawl": []}
    (directory / MANIFEST).write_text(json.dumps(manifest))
    (directory / VERDICT).write_text(json.dumps(verdict))
    (directory / EVENTS).write_text("")
    pq.write_table(pa.Table.from_pylist([], schema=OPERATIONS_SCHEMA), directory / OPERATIONS)
    pq.write_table(pa.Table.from_pylist([], schema=SAMPLES_SCHEMA), directory / SAMPLES)
    return directory / MANIFEST
