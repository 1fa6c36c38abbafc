"""The kind of work of a statement, on any server."""

from __future__ import annotations

from typing import Any

import pytest

from pinchpoint.fit.statements import StatementActivity, StatementKind, by_kind


def statement(text: str, **given: float) -> StatementActivity:
    """Return ten calls of a statement."""
    values: dict[str, Any] = {
        "calls": 10.0,
        "rows": 10.0,
        "log_bytes": 0.0,
        "pages": 30.0,
        "pages_read": 0.0,
        "temp_bytes": 0.0,
    }
    return StatementActivity(text, **{**values, **given})


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (statement("INSERT INTO t VALUES ($1)", log_bytes=900), StatementKind.APPEND),
        (statement("insert into t select $1", rows=500, log_bytes=900), StatementKind.BATCH),
        (
            statement("WITH x AS (INSERT INTO t VALUES (1) RETURNING *) SELECT 1", log_bytes=9),
            StatementKind.APPEND,
        ),
        (statement("UPDATE t SET x = $1"), StatementKind.CHANGE),
        (statement("WITH x AS (SELECT 1) UPDATE ONLY s.t AS a SET b = 1", log_bytes=9), StatementKind.CHANGE),
        (
            statement("WITH gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone", log_bytes=9),
            StatementKind.CHANGE,
        ),
        (statement("WITH x AS (SELECT TOP (5) * FROM t) DELETE x", log_bytes=9), StatementKind.CHANGE),
        (
            statement("WITH x AS (SELECT 1) SELECT * FROM t FOR UPDATE OF t", log_bytes=600),
            StatementKind.LOOK,
        ),
        (
            statement("WITH x AS (SELECT 1) SELECT 1 FROM t INNER MERGE JOIN u ON 1 = 1", log_bytes=9),
            StatementKind.LOOK,
        ),
        (statement("/* app */ DELETE FROM t"), StatementKind.CHANGE),
        (statement("MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE"), StatementKind.CHANGE),
        (statement("COPY t FROM STDIN", log_bytes=5000), StatementKind.LOAD),
        (statement("COPY t TO STDOUT"), StatementKind.CONTROL),
        (
            statement("COPY (SELECT now() AS captured_at, * FROM t) TO STDOUT CSV HEADER", log_bytes=90),
            StatementKind.CONTROL,
        ),
        (statement("SELECT * FROM t WHERE id = $1"), StatementKind.LOOK),
        (statement("(@p1 int, @p2 decimal(9,2))SELECT * FROM t WHERE id = @p1"), StatementKind.LOOK),
        (statement("(SELECT 1) UNION (SELECT 2)"), StatementKind.LOOK),
        (statement("SELECT sum(x) FROM t", pages=6400), StatementKind.SCAN),
        (statement("SELECT * FROM t ORDER BY x", pages=6400, temp_bytes=10 * 2**21), StatementKind.SORT),
        (statement("-- a comment\nCOMMIT"), StatementKind.CONTROL),
        (statement("SET x = $1"), StatementKind.CONTROL),
        (statement(""), StatementKind.CONTROL),
    ],
)
def test_a_statement_is_known_by_its_word_and_its_cost(given: StatementActivity, kind: StatementKind) -> None:
    """A statement's kind follows from its verb and its cost: rows, pages, sorting."""
    assert given.kind is kind


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (statement("SELECT place_order($1)", log_bytes=3000), True),
        (statement("CALL place_order($1)", log_bytes=3000), True),
        (statement("SELECT * FROM t FOR UPDATE", rows=100, log_bytes=5400), False),
        (statement("SELECT * FROM t", log_bytes=81920, page_images=10), False),
        (statement("INSERT INTO t VALUES ($1)", log_bytes=3000), False),
        (statement("VACUUM t", log_bytes=30000), False),
        (statement("SELECT 1"), False),
    ],
)
def test_what_writes_by_a_function_is_told_by_its_log(given: StatementActivity, found: bool) -> None:
    """A function that writes is known by its log bytes; page images and locks do not count."""
    assert given.calls_what_writes is found


def test_kinds_are_added_up() -> None:
    """Calls, rows, bytes and pages are added up by kind."""
    total = by_kind([statement("SELECT 1"), statement("SELECT 2", rows=5, pages_read=2)])[StatementKind.LOOK]
    assert (total.calls, total.rows, total.pages, total.pages_read) == (20, 15, 60, 2)
