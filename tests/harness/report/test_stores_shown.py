"""A store's own figures in the report, marked as the store's and with units."""

from __future__ import annotations

from harness.analysis.build import Build

from pinchpoint.analysis import analyse
from pinchpoint.report import markdown
from pinchpoint.report.report import Report, gather


def reported(kind: str, **figures: float | None) -> Report:
    """Return a run with this store's collector; ``figures``: by metric and instance, ``__`` for the dot."""
    build = Build().host("c1", "nosql").cpu("c1", 0.2, 0.2)
    build.manifest["collectors"] = [{"kind": kind, "hosts": ["c1"], "interval_s": 1.0}]
    build.metric("c1", "collector.ok", 1.0, kind, 0.0)
    for name, level in figures.items():
        metric, _, instance = name.partition("_of_")
        build.metric("c1", f"db.{metric.replace('__', '.')}", level, instance, 0.0)
    build.closed("burst", "nosql-burst", 4).operations("burst", "update", 400, 0.01)
    run = build.generator().run()
    return gather(run, analyse(run).to_json())


def test_queues_and_compactions_of_cassandra() -> None:
    """Cassandra's queues and compactions are shown by pool, and missing figures are left out."""
    report = reported(
        "cassandra", pool__pending_of_CompactionExecutor=3.0, compaction_left_bytes=2e9, connections=12.0
    )
    cells = report.tables["stores"].cells()
    assert cells[0] == [
        *("c1", "compactions that wait to start", "3", "3"),
        *("db.pool.pending", "CompactionExecutor"),
    ]
    assert [row[1] for row in cells[1:]] == ["data left to compact", "connections"]
    assert "GB" in cells[1][2]
    assert "### Databases and stores, as they report" in markdown.write(report)


def test_a_journal_that_could_not_be_read_is_not_measured() -> None:
    """Unmeasured values are not shown as zeros; times and shares have units."""
    cells = reported("mongodb", journal__sync_s_per_s=None, journal__sync_latency_s=0.025).tables["stores"]
    assert [row[2] for row in cells.cells()] == ["not measured", "25 ms"]


def test_a_farm_whose_store_nobody_asks_has_no_such_table() -> None:
    """A farm without store figures has no such table; a database's figures do not count."""
    report = reported("postgres", connections=12.0)
    assert not report.tables["stores"].rows
    assert "What the stores say" not in markdown.write(report)
