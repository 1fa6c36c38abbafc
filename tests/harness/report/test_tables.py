"""Columns as short specifications: key, unit, title, and what stands for a value that was not measured."""

from __future__ import annotations

from pinchpoint.report.tables import Column, columns


def _cells(specification: str, value: object) -> tuple[str, str, str, bool]:
    [column] = columns(specification)
    return column.title, column.cell({column.key: value}), column.cell({}), column.numeric


def test_a_column_has_the_unit_of_its_key() -> None:
    """By the ending of the key; any other word than a unit makes it text."""
    assert _cells("host", "sql1") == ("host", "sql1", "not measured", False)
    assert _cells("p95_s: p95", 0.0028) == ("p95", "2.8 ms", "not measured", True)
    assert _cells("rate_per_s: rate", 497) == ("rate", "497/s", "not measured", True)
    assert _cells("bytes_per_s: bytes per second", 2e8) == (
        "bytes per second",
        "200 MB/s",
        "not measured",
        True,
    )
    assert _cells("size_bytes: size | -", 8192) == ("size", "8.19 kB", "-", True)
    assert _cells("ratio times: A: B | none", 2) == ("A: B", "2 \N{MULTIPLICATION SIGN}", "none", True)
    assert _cells("why_no_interval text: why |", "one run") == ("why", "one run", "", False)


def test_a_column_of_its_own_stays_as_it_is() -> None:
    """A title of a user's may hold anything."""
    own = Column("base", "dev: | prod")
    assert columns(own) == (own,)
