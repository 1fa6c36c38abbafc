"""What a run shows beside the production it was fitted to, and of a capture that it replayed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from harness.analysis.build import START_S
from harness.report.example import steady_run

from pinchpoint.report.clock import clock_of
from pinchpoint.report.replay_tables import replayed
from pinchpoint.report.similarity_tables import similarity
from pinchpoint.report.terminal import table_text
from pinchpoint.store.read import StoredRun
from pinchpoint.store.samples import table as in_memory
from pinchpoint.store.schema import SAMPLES_SCHEMA

SERVER = {
    ("db.wal_bytes_per_s", ""): 25_000.0,
    ("db.writes_per_s", "wal"): 50.0,
    ("db.write_bytes_per_s", "wal"): 409_600.0,
    ("db.reads_per_s", "data"): 10.0,
    ("disk.write_bytes_per_s", "vda"): 368_640.0,
}
"""What the server of the example showed in every second, beside 100 rows appended."""


def fitted_run(**production: float) -> StoredRun:
    """The example run, of a plan that was fitted to such a server."""
    run = steady_run()
    rows = [
        ((START_S + second + 1) * 1_000_000_000, 1.0, "sql1", metric, instance, value, None)
        for second in range(20)
        for (metric, instance), value in SERVER.items()
    ]
    columns = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), SAMPLES_SCHEMA, strict=True)]
    more = pa.table(columns, schema=SAMPLES_SCHEMA)
    plan = {**run.manifest["plan"], "production": production}
    manifest: dict[str, Any] = {**run.manifest, "plan": plan}
    return replace(run, manifest=manifest, samples=pa.concat_tables([in_memory(run.samples), more]))


def test_a_run_is_shown_beside_its_production() -> None:
    """Figure by figure; what the run did not measure is said to be that; failures are no operations."""
    run = fitted_run(
        writes_per_s=200.0,
        reads_per_s=0.0,
        rows_per_write=1.0,
        log_bytes_per_write=500.0,
        page_reads_per_operation=0.1,
        temp_bytes_per_operation=5.0,
        log_write_bytes=8192.0,
        disk_write_bytes=8192.0,
    )
    table = similarity(run, clock_of(run))
    found = {row["name"]: (row["replayed"], row["ratio"]) for row in table.rows}
    assert found == {
        "writes_per_s": (100.0, 0.5),
        "reads_per_s": (0.0, None),
        "rows_per_write": (1.0, 1.0),
        "log_bytes_per_write": (250.0, 0.5),
        "page_reads_per_operation": (0.1, 1.0),
        "temp_bytes_per_operation": (None, None),
        "log_write_bytes": (8192.0, 1.0),
        "disk_write_bytes": (4096.0, 0.5),
    }
    text = table_text(table)
    assert text.startswith("Production and this run:\n")
    assert "not measured" in text
    assert "8.19 kB" in text


def test_a_run_of_any_other_plan_shows_nothing() -> None:
    """Nor an empty table."""
    run = steady_run()
    table = similarity(run, clock_of(run))
    assert (list(table.rows), table.empty, table_text(table)) == ([], "", "")
    assert (list(replayed(run).rows), replayed(run).empty) == ([], "")


def test_what_was_replayed_is_added_up_over_all_workers() -> None:
    """Captured, executed, and every cause of the difference."""
    run = steady_run()
    run.events.extend(
        {
            "event": "replayed",
            "scenario": "monday",
            "captured": 10,
            "executed": 8,
            "differences": {"no_text": 2},
            "failed": {"deadlock": worker} if worker else {},
        }
        for worker in range(2)
    )
    rows = [(row["what"], row["statements"]) for row in replayed(run).rows]
    assert rows == [
        ("captured", 20),
        ("executed", 16),
        ("not executed: no_text", 4),
        ("executed, failed: deadlock", 1),
    ]
