"""Defines the operations of sql-mix, independent of the SQL server.

Each kind of server has its own statements for them (``dialects/``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ..skew import Pick, picker
from ..units import spelt_bytes
from .operation_sizes import OperationSizes

LOG = "log"
DATA = "data"
BULK = "bulk"
HOT = "hot"

PAGE_ROWS = 4
"""Number of rows of the data table per page. Rows 1 to 4 are on the first page."""
DATA_PAYLOAD_BYTES = 896
"""Payload of a row in bytes: 14 SHA-512 digests. Four rows fill half of an 8 KiB page; the rest is for
updates."""
HOT_PAYLOAD_BYTES = 16
"""Payload of a hot row in bytes: a counter and a time, like a balance, a stock or a next free number."""
SORTED_ROW_BYTES = 1024
"""Length of a sorted row in bytes. It is wide, so that sorting moves more bytes than it compares."""
_POOL_BYTES = 2**20

Drawn = tuple[Any, ...]
"""Random values of one operation. They are the same in each retry."""


@dataclass(slots=True)
class SessionState:
    """The state of one session's operations.

    Attributes:
        random: generator of the session, seeded from the seed of the plan and the number of the session.
        session: number of the session.
        shape: sizes and choices.
        appended: number of log rows that this session has tried to append.
        loads: number of bulk loads that this session has tried.
        pages: number of pages of the data table; 1 until known.
        pick: draws one of the pages.
        pool: random bytes for bulk rows, because new ones for each row would cost more than the load.
    """

    random: Random
    session: int
    shape: OperationSizes
    appended: int = 0
    loads: int = 0
    pages: int = 1
    pick: Pick = field(init=False)
    pool: bytes = b""

    def __post_init__(self) -> None:
        self.pick = picker(self.shape.skew)


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of operation: a transaction that finds or writes a number of rows.

    Attributes:
        name: name in a plan.
        table: table of the operation; None: none.
        draw: draws the values. It is not part of the service time.
        rows: number of rows that it must find; fewer rows are the failure ``missing_row``.
        size_bytes: payload of the operation in bytes.
        says: description of the operation.
        writes: whether the rows are written.
    """

    name: str
    table: str | None
    draw: Callable[[SessionState], Drawn]
    rows: Callable[[OperationSizes], int]
    size_bytes: Callable[[OperationSizes], int]
    says: Callable[[OperationSizes], str]
    writes: bool = True


def _append(state: SessionState) -> Drawn:
    state.appended += 1
    return state.session, state.appended, state.random.randbytes(state.shape.row_bytes)


def _batch(state: SessionState) -> Drawn:
    shape, first = state.shape, state.appended + 1
    state.appended += shape.batch_rows
    content = state.random.randbytes(shape.batch_rows * shape.row_bytes)
    return state.session, first, shape.batch_rows, shape.row_bytes, content


def _any_row(state: SessionState) -> Drawn:
    random = state.random
    return (state.pick(random, state.pages) * PAGE_ROWS + int(random.random() * PAGE_ROWS) + 1,)


def _any_range(state: SessionState) -> Drawn:
    rows = state.shape.scan_rows
    starts = max(1, state.pages - -(-rows // PAGE_ROWS) + 1)
    first = state.pick(state.random, starts) * PAGE_ROWS + 1
    return first, first + rows - 1


def _bulk(state: SessionState) -> Drawn:
    shape, random = state.shape, state.random
    if not state.pool:
        state.pool = random.randbytes(_POOL_BYTES + shape.row_bytes)
    state.loads += 1
    at, pool, width = random.randrange(_POOL_BYTES), state.pool, shape.row_bytes
    starts = range(at, at + shape.copy_rows * width, width)
    payloads = [pool[start : start + width] for start in (each % _POOL_BYTES for each in starts)]
    return shape.bulk_bytes, state.session, state.loads, payloads


def _sort(state: SessionState) -> Drawn:
    return state.random.randrange(2**31), state.shape.spill_bytes // SORTED_ROW_BYTES


def _hot_rows(state: SessionState) -> Drawn:
    shape = state.shape
    return (*state.random.sample(range(1, shape.hot_rows + 1), shape.lock_rows), shape.hold_s)


def _one(_: OperationSizes) -> int:
    return 1


OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation(
            "log_append",
            LOG,
            _append,
            _one,
            lambda shape: shape.row_bytes,
            lambda _: "INSERT of one row into log",
        ),
        Operation(
            "log_batch",
            LOG,
            _batch,
            lambda shape: shape.batch_rows,
            lambda shape: shape.batch_rows * shape.row_bytes,
            lambda shape: f"INSERT of {shape.batch_rows:,} rows into log by one statement",
        ),
        Operation(
            "data_update",
            DATA,
            _any_row,
            _one,
            lambda _: DATA_PAYLOAD_BYTES,
            lambda _: "UPDATE of one row of data by its key",
        ),
        Operation(
            "bulk_load",
            BULK,
            _bulk,
            lambda shape: shape.copy_rows,
            lambda shape: shape.copy_rows * shape.row_bytes,
            lambda shape: (
                f"bulk load of {shape.copy_rows:,} rows into bulk, which is emptied once it is larger than "
                f"{spelt_bytes(shape.bulk_bytes)}"
            ),
        ),
        Operation(
            "point_read",
            DATA,
            _any_row,
            _one,
            lambda _: DATA_PAYLOAD_BYTES,
            lambda _: "SELECT of one row of data by its key",
            writes=False,
        ),
        Operation(
            "range_scan",
            DATA,
            _any_range,
            lambda shape: shape.scan_rows,
            lambda shape: shape.scan_rows * DATA_PAYLOAD_BYTES,
            lambda shape: f"SELECT of {shape.scan_rows:,} rows of data by a range of keys",
            writes=False,
        ),
        Operation(
            "spill",
            None,
            _sort,
            lambda shape: shape.spill_bytes // SORTED_ROW_BYTES,
            lambda shape: shape.spill_bytes,
            lambda shape: f"SELECT that sorts {spelt_bytes(shape.spill_bytes)} in temporary files",
            writes=False,
        ),
        Operation(
            "lock_contend",
            HOT,
            _hot_rows,
            lambda shape: shape.lock_rows,
            lambda shape: shape.lock_rows * HOT_PAYLOAD_BYTES,
            lambda shape: (
                f"UPDATE of {shape.lock_rows:,} rows of hot, a pause of {shape.hold_s:g} s after each"
            ),
        ),
    )
}
