"""Queries of a report over a run's recorded files."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import numpy as np
import pytest
from harness.analysis.build import Build

from pinchpoint.data import queries
from pinchpoint.store.read import StoredRun

Ask = Callable[[StoredRun], duckdb.DuckDBPyConnection]

_SUM = "SELECT sum(value) FROM many"


@pytest.mark.parametrize("ask", [queries.over_samples, queries.over_operations])
def test_a_report_says_the_same_to_the_last_digit(ask: Ask) -> None:
    """A query gives the same digits each time, although threads would add in a different order."""
    run = Build().host("sql1", "sql").cpu("sql1", 0.5).closed("orders", "sql-mix", 8).run()
    connection = ask(run)
    values = np.random.default_rng(1).lognormal(0, 3, 1_500_000)
    connection.execute("CREATE TEMP TABLE many AS SELECT unnest($1::DOUBLE[]) AS value", [values.tolist()])
    assert len({connection.execute(_SUM).fetchall()[0][0] for _ in range(8)}) == 1


def test_long_runs_are_read_by_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries of long runs use all cores, so their last digits may differ."""
    run = Build().host("sql1", "sql").cpu("sql1", 0.5).closed("orders", "sql-mix", 8).run()
    setting = "SELECT current_setting('threads')"
    assert queries.over_samples(run).execute(setting).fetchall() == [(1,)]
    monkeypatch.setattr(queries, "FEW", 10)
    assert queries.over_samples(run).execute(setting).fetchall() != [(1,)]
