"""Computes the operations of sql-mix that reproduce the work of production's statements.

The log bytes of each operation are those of PostgreSQL 18; ``tests/harness/fit`` measures them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pinchpoint.fit.production import COMMIT_LOG_BYTES, Production
from pinchpoint.fit.statements import READING, WRITING, StatementKind, Sum
from pinchpoint.plan.production import LOG_BYTES_PER_WRITE, PAGE_READS_PER_OPERATION
from pinchpoint_scenarios.sql_mix.operation_sizes import (
    LARGEST_ROW_BYTES,
    LARGEST_STATEMENT_BYTES,
    MOST_BATCH_ROWS,
    MOST_COPY_ROWS,
    MOST_SCAN_ROWS,
)

APPEND_LOG_BYTES = 196.0
"""Log bytes of a ``log_append`` without payload: row, index entries and commit."""
BATCH_LOG_BYTES = COMMIT_LOG_BYTES
"""Log bytes of a ``log_batch`` besides its rows: the commit."""
BATCH_ROW_LOG_BYTES = 158.0
"""Log bytes of a row of ``log_batch`` without payload."""
UPDATE_LOG_BYTES = 205.0
"""Log bytes of a ``data_update`` without page images, 190 to 226 depending on page cleanup."""
LOAD_ROW_LOG_BYTES = 22.0
"""Log bytes of a row of ``bulk_load`` without payload."""

PAGE_ROWS = 4
"""Rows in a page of sql-mix's data table (docs/scenario-parameters.md)."""
_MOST_SCALE = 50.0
_FITS, _HOT = 0.5, 0.01
"""Size of the data table ÷ cache: a table of ``_FITS`` stays in the cache; of ``_HOT``, updates soon reach
each page."""
_FEW_IMAGES = 0.1
"""Page images per update below which production writes the same pages again and again."""
_FOUND = 0.02
"""Share of missed pages up to which the data fit into the cache."""
_BATCH_ROWS = 1.5
_MIB = 2**20


@dataclass(slots=True)
class Mix:
    """The operations of sql-mix and their weights.

    Attributes:
        rates: operation -> operations per second.
        params: the other parameters of sql-mix.
        why: operation or parameter -> the reason for its value, in words.
        lacking: work of production that sql-mix cannot reproduce, as sentences.
    """

    rates: dict[str, float] = field(default_factory=dict)
    params: dict[str, object] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)


def fitted(production: Production) -> Mix:
    """The mix of operations that reproduces production's work."""
    mix = Mix()
    _writes(production, mix)
    _reads(production, mix)
    _row_bytes(production, mix)
    _scale(production, mix)
    return mix


def _writes(production: Production, mix: Mix) -> None:
    """Set the rates of the writing operations and the rows that each of them writes."""
    sums, length_s = production.sums, production.length_s
    calls = sum(_sum(sums, kind).calls for kind in WRITING)
    share = (
        production.writes / calls if calls else 0.0
    )  # transactions per statement, below 1 if transactions have several statements
    batches = Sum()
    for kind in (StatementKind.APPEND, StatementKind.BATCH):
        each = _sum(sums, kind)
        transactions = each.calls * share
        if transactions and each.rows < _BATCH_ROWS * transactions:
            mix.rates["log_append"] = transactions / length_s
            mix.why["log_append"] = "statements that insert a row"
        elif transactions:
            batches.calls += transactions
            batches.rows += each.rows
    if batches.calls:
        mix.rates["log_batch"] = batches.calls / length_s
        mix.why["log_batch"] = "transactions that insert several rows"
        _rows(mix, "batch_rows", max(2, round(batches.rows / batches.calls)), MOST_BATCH_ROWS)
        mix.why["batch_rows"] = f"{batches.rows / batches.calls:.1f} rows each, the mean"
    changes = _sum(sums, StatementKind.CHANGE)
    if changes.calls:
        mix.rates["data_update"] = changes.calls * share / length_s
        mix.why["data_update"] = "transactions that update or delete"
        rows = changes.rows / (changes.calls * share)
        if rows >= _BATCH_ROWS:
            mix.lacking.append(f"a transaction changes {rows:.1f} rows in production, one here")
    loads = _sum(sums, StatementKind.LOAD)
    if loads.calls:
        mix.rates["bulk_load"] = loads.calls * share / length_s
        mix.why["bulk_load"] = "COPY and BULK INSERT"
        _rows(mix, "copy_rows", max(1, round(loads.rows / (loads.calls * share))), MOST_COPY_ROWS)
        mix.why["copy_rows"] = "rows of one, the mean"


def _reads(production: Production, mix: Mix) -> None:
    sums, length_s = production.sums, production.length_s
    looks, scans, sorts = (_sum(sums, kind) for kind in READING)
    if looks.calls:
        mix.rates["point_read"] = looks.calls / length_s
        mix.why["point_read"] = "queries that touch few pages"
    if scans.calls:
        mix.rates["range_scan"] = scans.calls / length_s
        mix.why["range_scan"] = "queries that touch many pages"
        _rows(mix, "scan_rows", round(scans.pages / scans.calls * PAGE_ROWS), MOST_SCAN_ROWS)
        mix.why["scan_rows"] = f"{scans.pages / scans.calls:.0f} pages each, the mean, of {PAGE_ROWS} rows"
    if sorts.calls:
        mix.rates["spill"] = sorts.calls / length_s
        mix.why["spill"] = "queries with temporary files"
        mix.params["spill_bytes"] = f"{max(1, round(sorts.temp_bytes / sorts.calls / _MIB))}MiB"
        mix.why["spill_bytes"] = "of temporary files each, the mean"


def _rows(mix: Mix, name: str, wanted: int, most: int) -> None:
    """Set a number of rows, limited to the most that sql-mix allows."""
    mix.params[name] = min(wanted, most)
    if wanted > most:
        mix.lacking.append(f"{name} would be {wanted:,}, and sql-mix has {most:,} at most")


def _row_bytes(production: Production, mix: Mix) -> None:
    """Set the payload so that a writing transaction needs the same space in the log as in production."""
    wanted = production.figures.get(LOG_BYTES_PER_WRITE)
    rates = {
        name: mix.rates.get(name, 0.0) for name in ("log_append", "log_batch", "data_update", "bulk_load")
    }
    batch, copy = (float(str(mix.params.get(name, 0))) for name in ("batch_rows", "copy_rows"))
    rows_per_s = rates["log_append"] + rates["log_batch"] * batch + rates["bulk_load"] * copy
    if wanted is None or not any(rates.values()):
        return
    if not rows_per_s:
        mix.lacking.append(
            f"nothing is inserted, so the log's {wanted.value:.0f} bytes for a write cannot be reproduced: "
            f"an update writes about {UPDATE_LOG_BYTES:.0f}, and page images"
        )
        return
    fixed = (
        rates["log_append"] * APPEND_LOG_BYTES
        + rates["log_batch"] * (BATCH_LOG_BYTES + batch * BATCH_ROW_LOG_BYTES)
        + rates["data_update"] * UPDATE_LOG_BYTES
        + rates["bulk_load"] * (BATCH_LOG_BYTES + copy * LOAD_ROW_LOG_BYTES)
    )
    payload = (wanted.value * sum(rates.values()) - fixed) / rows_per_s
    most = min(LARGEST_ROW_BYTES, LARGEST_STATEMENT_BYTES // int(max(1, batch, copy)))
    mix.params["row_bytes"] = f"{min(most, max(1, round(payload)))}B"
    mix.why["row_bytes"] = f"makes a write {wanted.value:.0f} bytes of the log; {wanted.origin}"
    if not 1 <= payload <= most:
        mix.lacking.append(
            f"a write takes {wanted.value:.0f} bytes of the log in production; rows of {payload:.0f} bytes "
            "would be needed for that"
        )


def _scale(production: Production, mix: Mix) -> None:
    """Set the size of the data table so that the same share of pages misses the server's buffers."""
    wanted = production.figures.get(PAGE_READS_PER_OPERATION)
    touching = sum(mix.rates.get(name, 0.0) for name in ("data_update", "point_read"))
    touching += mix.rates.get("range_scan", 0.0) * float(str(mix.params.get("scan_rows", 0))) / PAGE_ROWS
    if not touching or wanted is None:
        return
    missed = wanted.value * sum(mix.rates.values()) / touching
    # If the table is larger than the buffers, the share of hits is buffers ÷ table.
    larger = min(_MOST_SCALE, 1 / max(1 - missed, 1 / _MOST_SCALE))
    changes = _sum(production.sums, StatementKind.CHANGE)
    # A range scan does not find enough rows in a table of this small size.
    hot = changes.page_images < _FEW_IMAGES * changes.calls and "range_scan" not in mix.rates
    scale = larger if missed > _FOUND else _HOT if hot else _FITS
    mix.params["scale"] = round(scale, 2)
    images = f", {changes.page_images / changes.calls:.2g} page images for an update" if changes.calls else ""
    mix.why["scale"] = f"{wanted.value:.3g} pages read from the data files for an operation{images}"


def _sum(sums: Mapping[StatementKind, Sum], kind: StatementKind) -> Sum:
    return sums.get(kind, Sum())
