"""Statistics of a live server are read by its own names, whatever others planted in front of them."""

from __future__ import annotations

from planted import planted

from pinchpoint.fit.fit import watched


def test_nothing_planted_is_used() -> None:
    """Two snapshots of each table, of the extension's own view, which lies in a schema off the path."""
    with planted() as url:
        found = watched(url, 0.1, lambda _: None)
    assert [each.kind.name for each in found].count("pg_stat_statements") == 2
    assert all(each.rows for each in found)
