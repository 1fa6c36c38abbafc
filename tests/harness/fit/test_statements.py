"""What kind of work a statement is, whatever server it ran on."""

from __future__ import annotations

import pytest

from pinchpoint.fit.statements import Kind, Statement, by_kind


def statement(text: str, **given: float) -> Statement:
    """Ten calls of it."""
    values = {
        "calls": 10.0,
        "rows": 10.0,
        "log_bytes": 0.0,
        "pages": 30.0,
        "pages_read": 0.0,
        "temp_bytes": 0.0,
    }
    return Statement(text, **{**values, **given})


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (statement("INSERT INTO t VALUES ($1)", log_bytes=900), Kind.APPEND),
        (statement("insert into t select $1", rows=500, log_bytes=900), Kind.BATCH),
        (statement("WITH x AS (INSERT INTO t VALUES (1) RETURNING *) SELECT 1", log_bytes=9), Kind.APPEND),
        (statement("UPDATE t SET x = $1"), Kind.CHANGE),
        (statement("/* app */ DELETE FROM t"), Kind.CHANGE),
        (statement("MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE"), Kind.CHANGE),
        (statement("COPY t FROM STDIN", log_bytes=5000), Kind.LOAD),
        (statement("COPY t TO STDOUT"), Kind.CONTROL),
        (statement("SELECT * FROM t WHERE id = $1"), Kind.LOOK),
        (statement("(@p1 int, @p2 decimal(9,2))SELECT * FROM t WHERE id = @p1"), Kind.LOOK),
        (statement("(SELECT 1) UNION (SELECT 2)"), Kind.LOOK),
        (statement("SELECT sum(x) FROM t", pages=6400), Kind.SCAN),
        (statement("SELECT * FROM t ORDER BY x", pages=6400, temp_bytes=10 * 2**21), Kind.SORT),
        (statement("-- a comment\nCOMMIT"), Kind.CONTROL),
        (statement("SET x = $1"), Kind.CONTROL),
        (statement(""), Kind.CONTROL),
    ],
)
def test_a_statement_is_known_by_its_word_and_its_cost(given: Statement, kind: Kind) -> None:
    """An insert by its rows, a query by the pages it goes through and what it sorts."""
    assert given.kind is kind


def test_kinds_are_added_up() -> None:
    """Calls, rows, bytes and pages."""
    total = by_kind([statement("SELECT 1"), statement("SELECT 2", rows=5, pages_read=2)])[Kind.LOOK]
    assert (total.calls, total.rows, total.pages, total.pages_read) == (20, 15, 60, 2)
