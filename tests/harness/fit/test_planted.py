"""Statistics of a live server are read by schema-qualified names, despite planted objects."""

from __future__ import annotations

from planted import planted

from pinchpoint.fit.fit import watched


def test_nothing_planted_is_used() -> None:
    """Both snapshots come from the extension's view in a schema off the path, not from planted tables."""
    with planted() as url:
        found = watched(url, 0.1, lambda _: None)
    assert [each.kind.name for each in found].count("pg_stat_statements") == 2
    assert all(each.rows for each in found)
