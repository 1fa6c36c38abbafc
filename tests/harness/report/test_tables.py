"""Table columns as short specifications: key, unit, title, and the text for an unmeasured value."""

from __future__ import annotations

from pinchpoint.report.tables import Column, columns


def _cells(specification: str, value: object) -> tuple[str, str, str, bool]:
    [column] = columns(specification)
    return column.title, column.cell({column.key: value}), column.cell({}), column.numeric


def test_a_column_has_the_unit_of_its_key() -> None:
    """A column's unit follows from the ending of its key; without a unit it is text."""
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
    """A column with a title of its own keeps it."""
    own = Column("base", "dev: | prod")
    assert columns(own) == (own,)
