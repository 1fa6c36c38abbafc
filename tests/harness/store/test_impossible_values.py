"""Impossible stored values are read as not measured, from files and journals, with a warning."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from collectors.imports.logs import perfmon, row
from harness.imports.made import imported

from pinchpoint.analysis.saved import verdict_of
from pinchpoint.store import samples as stored
from pinchpoint.store.compact import SampleGroups, compact_closed
from pinchpoint.store.compact import tables as journal_tables
from pinchpoint.store.impossible_values import without_impossible_samples
from pinchpoint.store.read import open_run
from pinchpoint.store.schema import JOURNAL, OPERATIONS_SCHEMA, SAMPLES_SCHEMA
from pinchpoint.store.write import RunWriter
from pinchpoint_collectors.bounds import Tally
from pinchpoint_collectors.record import Sample

AT = 1_763_629_200 * 10**9
SECOND = 10**9


def rows(count: int = 20) -> list[Sample]:
    """Return seconds of a host with possible values."""
    return [
        sample
        for second in range(count)
        for sample in (
            Sample(AT + second * SECOND, 1.0, "sql1", "cpu.busy_ratio", "", 0.5),
            Sample(AT + second * SECOND, 1.0, "sql1", "disk.write_latency_s", "sda", 0.01, 100.0),
            Sample(AT + second * SECOND, 1.0, "sql1", "disk.writes_per_s", "sda", 100.0),
        )
    ]


def odd_rows() -> list[Sample]:
    """Return seconds of a host with some impossible values."""
    found = rows()
    found[0] = found[0]._replace(value=2000.0)
    found[4] = found[4]._replace(value=39_600.0)
    found[7] = found[7]._replace(weight=-3.0)
    found[8] = found[8]._replace(value=1e308)
    found[11] = found[11]._replace(value=math.nan)
    found[14] = found[14]._replace(value=-1.87)
    found[17] = found[17]._replace(interval_s=1e9)
    found[20] = found[20]._replace(value=None)
    return found


def table_of(samples: list[Sample]) -> pa.Table:
    columns = zip(*samples, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SAMPLES_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SAMPLES_SCHEMA)


def test_sane_samples_stay_as_they_are() -> None:
    """Possible samples are the same table, and nothing is counted."""
    table, found = table_of(rows()), Tally()
    assert without_impossible_samples(table, found) is table
    assert not found.found


def test_samples_that_cannot_be() -> None:
    """Impossible samples become null with their weights; an interval of thirty years is dropped."""
    found = Tally()
    table = without_impossible_samples(table_of(odd_rows()), found)
    assert table.schema == SAMPLES_SCHEMA
    kept = table.to_pylist()
    assert len(kept) == len(rows()) - 1
    assert [at for at, row in enumerate(kept) if row["value"] is None] == [0, 4, 7, 8, 11, 14, 19]
    assert (kept[7]["weight"], kept[1]["weight"]) == (None, 100.0)
    counts = {one.metric: one.count for one in found.found.values()}
    assert counts == {"cpu.busy_ratio": 1, "disk.write_latency_s": 2, "disk.writes_per_s": 4}


def in_a_file(folder: Path, samples: list[Sample]) -> Path:
    with SampleGroups(folder / "samples.parquet") as file:
        file.add(table_of(samples))
    return folder / "samples.parquet"


def test_every_way_to_read_a_file(tmp_path: Path) -> None:
    """The verdict, the reports' table and queries, and the run's length treat values in the same way."""
    dataset = stored.in_file(in_a_file(tmp_path, odd_rows()))
    unread = stored.UnreadSamples(dataset)
    groups = pa.concat_tables(unread.each(lambda table: table.select(["value"])))
    assert groups["value"].null_count == 7
    assert len(unread.nonsense.found) == 3
    assert stored.table(dataset)["value"].null_count == 7
    connection = duckdb.connect()
    stored.show(dataset, connection)
    asked = "SELECT count(*), count(value), max(value), min(value), max(interval_s) FROM samples"
    assert connection.execute(asked).fetchall() == [(59, 52, 100.0, 0.01, 1.0)]
    described = connection.execute("DESCRIBE samples").fetchall()
    assert [row[0] for row in described] == SAMPLES_SCHEMA.names
    extent = stored.extent(dataset)
    assert extent is not None
    assert extent[1] - extent[0] == pytest.approx(20.0)


def test_impossible_values_alone_measure_nothing(tmp_path: Path) -> None:
    """A run with impossible values only has measured nothing, from a file or from memory."""
    nonsense = [sample._replace(value=1e308) for sample in rows()]
    for samples, measured in ((nonsense, False), ([*nonsense, *rows(1)], True)):
        assert stored.holds_values(stored.in_file(in_a_file(tmp_path, samples))) is measured
        assert stored.holds_values(table_of(samples)) is measured


def operation(second: int, **odd: Any) -> list[Any]:
    row = {"time_s": AT // SECOND + second, "interval_s": 1.0, "worker": "generator1", "scenario": "orders"}
    row |= {"operation": "write", "outcome": "ok", "count": 3, "bytes": 10, "service": None}
    row |= {"response": None, "dropped": 0, **odd}
    return [row[name] for name in OPERATIONS_SCHEMA.names]


def killed_run(folder: Path) -> Path:
    """Return a killed run whose journal has impossible values."""
    run = folder / "run"
    manifest = {"started": "2025-11-20T09:00:00.000Z", "phases": [], "plan": {}, "farm": {}}
    writer = RunWriter(run, manifest)
    writer.samples(odd_rows())
    operations = [
        operation(0),
        operation(1, count=-2),
        operation(2, interval_s=1e9),
        operation(3, dropped=-1),
    ]
    writer._samples.write_operations([*operations, operation(4)], AT)
    writer.close()
    return run


def test_a_journal_that_is_recovered(tmp_path: Path) -> None:
    """After recovery samples are null and impossible operations dropped, with warnings."""
    run = open_run(killed_run(tmp_path))
    assert stored.table(run.samples)["value"].null_count == 7
    assert run.operations["count"].to_pylist() == [3, 3]
    warnings = "\n".join(run.manifest["warnings"])
    assert "operations orders write of generator1: 3 impossible values" in warnings
    assert "disk.writes_per_s sda of sql1: 4 impossible values" in warnings
    assert "cpu.busy_ratio of sql1: 1 impossible value, not measured; the first is 2,000" in warnings


def test_a_journal_that_is_read_while_it_grows(tmp_path: Path) -> None:
    """A growing journal and its parts are read in the same way."""
    run = killed_run(tmp_path)
    operations, samples = journal_tables(run / JOURNAL)
    assert (samples["value"].null_count, operations.num_rows) == (7, 2)
    assert not compact_closed(run / JOURNAL).found  # the only segment is still open


def test_a_whole_number_beyond_what_floats_count(tmp_path: Path) -> None:
    """Integers such as 2^63 - 1 ("no limit") and 2^64 - 1 end no run."""
    writer = RunWriter(tmp_path / "run", {"started": "2025-11-20T09:00:00.000Z"})
    most = [
        Sample(AT, 1.0, "sql1", metric, "", value)
        for metric, value in (("db.memory_limit_bytes", 2**63 - 1), ("mem.total_bytes", 2**64 - 1))
    ]
    writer.samples(most)
    writer.finish("finished")
    rows = stored.table(open_run(tmp_path / "run").samples).sort_by("metric").to_pylist()
    assert [row["value"] for row in rows] == [2.0**63, None]


def test_halves_of_characters_are_written_whole(tmp_path: Path) -> None:
    r"""Lone surrogates in a name (``\udcff`` of a path) end neither journal nor manifest nor reader."""
    writer = RunWriter(tmp_path / "run", {"started": "2025-11-20T09:00:00.000Z", "name": "caf\udce9"})
    writer.samples([rows()[0]._replace(instance="thread:\ud800")])
    writer.event("note", text="caf\udce9")
    writer.finish("finished")
    run = open_run(tmp_path / "run")
    assert stored.table(run.samples)["instance"].to_pylist() == ["thread:\ufffd"]
    assert run.manifest["name"] == "caf\ufffd"
    assert [event["text"] for event in run.events] == ["caf\ufffd"]


def test_a_verdict_on_what_was_stored(tmp_path: Path) -> None:
    """A stored CPU of 200,000 % is judged as a second that was not measured."""
    text = perfmon([row(cpu=30.0) for _ in range(60)])
    sane, odd = (imported(tmp_path, text, name=name) for name in ("sane.csv", "odd.csv"))
    kept = pq.read_table(odd / "samples.parquet", schema=SAMPLES_SCHEMA).to_pylist()
    busy = [
        at for at, each in enumerate(kept) if (each["metric"], each["instance"]) == ("cpu.busy_ratio", "")
    ]
    kept[busy[10]]["value"] = 2000.0
    with SampleGroups(odd / "samples.parquet") as file:
        file.add(pa.Table.from_pylist(kept, schema=SAMPLES_SCHEMA))
    verdicts = [verdict_of(run)[1].to_json() for run in (sane, odd)]
    assert verdicts[0]["cpus"] == verdicts[1]["cpus"]
    said = [each for each in verdicts[1]["warnings"] if "impossible value" in each]
    assert [each.partition(":")[0] for each in said] == ["cpu.busy_ratio of SQL1"]
    assert not [each for each in verdicts[0]["warnings"] if "impossible value" in each]
