"""Evidence: each fact's query, pasted into a shell in the run directory, shows the raw rows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from harness.analysis.build import START_S, Build, utc
from harness.report.example import saved_run, suspect, verdict

from pinchpoint.analysis import analyse
from pinchpoint.report.evidence import findings, operations_query, samples_query
from pinchpoint.store.read import StoredRun

WINDOW = (utc(START_S + 10), utc(START_S + 20))


def _answer(
    command: str, run: StoredRun, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> list[dict[str, Any]]:
    """Return duckdb's answer to a query as a shell passes it, in the run directory."""
    pq.write_table(run.samples, folder / "samples.parquet")
    pq.write_table(run.operations, folder / "operations.parquet")
    program = folder / "duckdb"
    program.write_text('#!/bin/sh\n[ "$1" = -c ] && [ $# = 2 ] && printf %s "$2"\n')
    program.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    said = subprocess.run(
        ["sh", "-c", command], env={"PATH": path}, capture_output=True, check=True, text=True
    )
    monkeypatch.chdir(folder)
    found = duckdb.connect().sql(said.stdout)
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def test_a_query_shows_the_samples_of_its_fact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query shows all rows of its metric, host, instance and window, and no others."""
    rows = _answer(
        samples_query("cpu.busy_ratio", "search1", "0", WINDOW), saved_run(), tmp_path, monkeypatch
    )
    assert {row["instance"] for row in rows} == {"0"}
    assert all(row["value"] > 0.9 for row in rows)
    assert [row["utc"].second for row in rows] == list(range(11, 21)), "each covers the second before"


def test_its_rows_are_those_the_figure_was_made_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query's rows have the fact's sample count and mean; for several cores, those of each core."""
    build = Build(60).host("sql1", "sql", cores=(0, 1)).cpu("sql1", 0.97, 0.9, cores=(0, 1), pressure=0.9)
    build.closed("orders", "sql-mix", 8).operations("orders", "point_read", 80, 0.1)
    run = build.metric("generator1", "generator.users", 8.0, "orders", 0.0).generator().run()
    content = analyse(run).to_json()
    facts = {fact["fact"]: fact for fact in content["bottleneck"]["evidence"]}
    (found,) = findings(content)
    assert len(facts) > 1
    for shown in found.evidence:
        rows = _answer(shown.query, run, tmp_path, monkeypatch)
        fact = facts[shown.fact]
        if fact["evidence"] == "context":  # a share of the used CPU, computed from several series
            continue
        assert len(rows) == fact["samples"]
        assert sum(row["value"] for row in rows) / len(rows) == pytest.approx(fact["value"], rel=1e-9)


def test_a_query_counts_operations_by_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query counts operations by second and outcome, without stages."""
    rows = _answer(operations_query("crawl", WINDOW), saved_run(), tmp_path, monkeypatch)
    assert {row["outcome"] for row in rows} == {"ok", "http_503"}
    assert {row["operation"] for row in rows} == {"document:sharepoint", "document:files"}


def test_the_command_is_there_and_runs_as_it_is_printed(tmp_path: Path) -> None:
    """`make setup` installs `duckdb`, and the printed command shows the rows in the run's folder."""
    pq.write_table(saved_run().samples, tmp_path / "samples.parquet")
    there = f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}"
    command = samples_query("cpu.busy_ratio", "search1", "0", WINDOW)
    said = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env={"PATH": there}, capture_output=True, check=True, text=True
    )
    assert "search1" in said.stdout
    assert "0.9" in said.stdout


@pytest.mark.parametrize("host", ["o'neill", 'say "hi"', "$HOME `id`", "back\\slash"])
def test_a_query_survives_any_name(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quotes, dollars and backslashes in names survive the shell and SQL."""
    run = saved_run()
    position = run.samples.schema.get_field_index("host")
    renamed = [host if name == "search1" else name for name in run.samples["host"].to_pylist()]
    run = StoredRun(
        run.directory,
        run.manifest,
        run.operations,
        run.samples.set_column(position, run.samples.schema.field(position), [renamed]),
        run.events,
    )
    rows = _answer(samples_query("cpu.busy_ratio", host, "0", None), run, tmp_path, monkeypatch)
    assert len(rows) == 70


def test_every_fact_of_the_example_has_rows_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No query of the example's report has an empty result."""
    run = saved_run()
    for finding in findings(verdict()):
        for fact in finding.evidence:
            assert _answer(fact.query, run, tmp_path, monkeypatch), fact.query


def test_a_finding_cites_its_rule_and_its_neighbours() -> None:
    """A finding names its threshold's source and the tiers that share the resource."""
    finding = findings(verdict())[0]
    assert finding.title == "Bottleneck"
    assert finding.evidence[0].threshold == "Pinchpoint's rule: saturation begins at 90 % of capacity"
    assert finding.meaning.endswith("It is shared with web, sql and nosql.")


def test_a_fact_about_the_operations_points_at_the_operations() -> None:
    """A fact about operations queries operations.parquet."""
    fact = {"fact": "waiting", "metric": "operations.service", "value": 0.6, "host": "", "instance": ""}
    finding = findings(verdict(bottleneck=suspect(evidence=[fact])))[0]
    assert "FROM 'operations.parquet'" in finding.evidence[0].query


@pytest.mark.parametrize(
    ("threshold", "source", "rule", "words"),
    [
        (0.9, "PAL", "CPU: critical from 80 % on", "PAL: CPU: critical from 80 % on"),
        (0.9, "design", "full from 90 % on", "Pinchpoint's rule: full from 90 % on"),
        (0.002, "declared", "at its cap: within 3 % of it", "2 ms (declared)"),
        (0.002, "design", None, "2 ms (Pinchpoint's rule)"),
        (0.005, "SP", None, "5 ms (Microsoft SharePoint guidance)"),
        (0.005, None, None, "5 ms"),
        (None, None, None, ""),
    ],
)
def test_a_threshold_is_said_with_its_source(
    threshold: float | None, source: str | None, rule: str | None, words: str
) -> None:
    """A threshold is worded as the source's own rule, or as a value with the metric's unit."""
    fact = {"fact": "late", "metric": "generator.send_lag_s", "threshold": threshold, "source": source}
    fact |= {"rule": rule}
    finding = findings(verdict(bottleneck=suspect(evidence=[fact])))[0]
    assert finding.evidence[0].threshold == words
