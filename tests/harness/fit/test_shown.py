"""A run's report beside the production it was fitted to, and beside a replayed capture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from harness.analysis.build import START_S, Build
from harness.fit.exports import comments, fitted
from harness.fit.test_records import file, info
from harness.report.example import steady_run

from pinchpoint.base.errors import InputError
from pinchpoint.data.timeaxis import clock_of
from pinchpoint.report.run_tables import replayed
from pinchpoint.report.similarity import similarity
from pinchpoint.report.terminal import table_text
from pinchpoint.store.read import StoredRun
from pinchpoint.store.samples import table as in_memory
from pinchpoint.store.schema import MANIFEST, OPERATIONS, SAMPLES, SAMPLES_SCHEMA
from pinchpoint.store.write import write_json

SERVER = {
    ("db.wal_bytes_per_s", ""): 25_000.0,
    ("db.writes_per_s", "wal"): 50.0,
    ("db.write_bytes_per_s", "wal"): 409_600.0,
    ("db.reads_per_s", "data"): 10.0,
    ("disk.write_bytes_per_s", "vda"): 368_640.0,
}
"""The example server's figures per second, beside 100 appended rows per second."""


def fitted_run(**production: float) -> StoredRun:
    """Return the example run of a plan that was fitted to such a server."""
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
    """Each figure stands beside production's, missing ones as not measured, without failed operations."""
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


def store_run(**production: float) -> StoredRun:
    """Return two minutes of bursts on an observed store, with lasting and with expiring records."""
    build = Build(measure_s=120, warm_up_s=10).host("nosql1", "nosql")
    high = (np.arange(130) - 10) % 30 >= 20
    for name, share in (("records", 0.8), ("expiring", 0.2)):
        build.burst(name, 50 * share, 500 * share, 30, 10)
        rate = np.where(high, 500.0, 50.0) * share
        if name == "records":
            build.operations(name, "read", rate * 0.5, 0.001, noise=0).operations(
                name, "update", rate * 0.5, 0.001, noise=0
            )
        else:
            build.operations(name, "insert", rate, 0.001, noise=0)
    build.operations("records", "update", 9, 0.5, outcome="timeout", noise=0)
    for metric, value in (
        ("db.aof.bytes_per_s", 36_000.0),
        ("db.received_bytes_per_s", 40_000.0),
        ("db.main_thread.commands_ratio", 0.002),
        ("db.commands_per_s", 200.0),
    ):
        build.metric("nosql1", metric, value, noise=0)
    run = build.run()
    scenarios = run.manifest["plan"]["scenarios"]
    scenarios["expiring"]["params"] = {"ttl": "20s"}
    run.manifest["plan"]["production"] = production
    said = {"settings": {"appendonly": "yes", "appendfsync": "always"}, "warnings": []}
    run.manifest["endpoints"] = {"records": {"nosql": said}, "expiring": {"nosql": dict(said)}}
    return run


STORE = {
    "record_writes_per_s": 120.0,
    "record_reads_per_s": 80.0,
    "record_base_per_s": 50.0,
    "record_peak_per_s": 500.0,
    "record_burst_every_s": 30.0,
    "record_reads_per_write": 2 / 3,
    "record_insert_ratio": 1 / 3,
    "record_expiring_ratio": 1 / 3,
    "record_log_bytes_per_write": 300.0,
    "record_received_bytes": 200.0,
    "record_server_s": 0.00001,
    "record_durable_ratio": 1.0,
}


def test_a_run_on_a_store_is_shown_beside_its_production() -> None:
    """All scenarios count together, and the run's bursts are found in the way production's were."""
    run = store_run(**STORE)
    table = similarity(run, clock_of(run))
    assert {row["name"] for row in table.rows} == set(STORE)
    for row in table.rows:
        assert row["ratio"] == pytest.approx(1, rel=0.01), row
    text = table_text(table)
    for shown in ("records written", "120/s", "500/s", "30 s", "33 %", "300 B", "10 µs"):
        assert shown in text, (shown, text)


def test_what_a_write_was_worth_is_shown() -> None:
    """Non-durable writes give a warning, and an unknown durability is "not measured"."""
    run = store_run(record_durable_ratio=1.0)
    said = run.manifest["endpoints"]["expiring"]["nosql"]
    said["warnings"] = ["appendfsync is everysec, so a write does not wait for the disk"]
    (row,) = similarity(run, clock_of(run)).rows
    assert (row["replayed"], row["ratio"]) == (0, 0)
    said["settings"] = {"appendfsync": "not known"}
    (row,) = similarity(run, clock_of(run)).rows
    assert row["replayed"] is None


def saved(folder: Path, run: StoredRun) -> str:
    """Return the run as a directory."""
    directory = folder / "watched"
    directory.mkdir()
    pq.write_table(run.operations, directory / OPERATIONS)
    pq.write_table(in_memory(run.samples), directory / SAMPLES)
    write_json(directory / MANIFEST, run.manifest)
    return str(directory)


def test_a_run_whose_store_was_watched_is_fitted(tmp_path: Path) -> None:
    """A run's samples give commands, bytes and times, but not which commands read."""
    directory = saved(tmp_path, store_run())
    plan, text = fitted(tmp_path, directory)
    assert plan["scenarios"]["records"]["params"]["operations"] == {"update": 200}
    assert plan["production"]["record_log_bytes_per_write"] == 180
    assert "which commands read and which write, the samples of watched do not show" in " ".join(
        line.strip("# ") for line in text.splitlines()
    )
    other = steady_run()
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    with pytest.raises(InputError, match=r"has samples of none; needed: those of one store"):
        fitted(tmp_path, saved(other_folder, other))


def test_samples_and_answers_of_one_store_go_together(tmp_path: Path) -> None:
    """Weights come from the answers and bursts from the samples; two rates are both shown."""
    run = store_run()
    high = (np.arange(130) - 10) % 30 >= 20
    build = Build(measure_s=120, warm_up_s=10).host("nosql1", "nosql")
    build.metric("nosql1", "db.commands_per_s", np.where(high, 800.0, 80.0), noise=0)
    samples = build.run().samples
    directory = saved(tmp_path, replace(run, samples=samples))
    answers = [info(0), info(100, sets=1000, gets=1000, aof_current_size=340_000)]
    sources = [directory, *(file(tmp_path / f"{n}.txt", each) for n, each in enumerate(answers))]
    plan, text = fitted(tmp_path, *sources)
    scenario = plan["scenarios"]["records"]
    assert scenario["params"]["operations"] == {"update": 10, "read": 10}
    load = scenario["load"]
    assert (load["model"], load["every_s"], load["for_s"]) == ("burst", 30, 10)
    assert load["peak_per_s"] == pytest.approx(10 * load["base_per_s"])
    mean = load["base_per_s"] * 2 / 3 + load["peak_per_s"] / 3
    assert mean == pytest.approx(20, rel=0.001)
    assert "Two sources differ: operations a second: 20 (0.txt, 1.txt), 320 (watched)" in comments(text)


def test_a_run_of_any_other_plan_shows_nothing() -> None:
    """A run of another plan shows nothing, and no empty table."""
    run = steady_run()
    table = similarity(run, clock_of(run))
    assert (list(table.rows), table.empty, table_text(table)) == ([], "", "")
    assert (list(replayed(run).rows), replayed(run).empty) == ([], "")


def test_what_was_replayed_is_added_up_over_all_workers() -> None:
    """The replay table adds up all workers: captured, executed, and every cause of a difference."""
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
