"""Defines the sizes and choices of sql-mix operations that a user can set."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from ..contract import Params
from ..skew import EVEN, Skew
from ..units import Bytes, Seconds, spelt_bytes

LARGEST_STATEMENT_BYTES = 64 * 2**20
LARGEST_ROW_BYTES = 2**20
MOST_BATCH_ROWS, MOST_COPY_ROWS, MOST_SCAN_ROWS = 100_000, 1_000_000, 10_000_000


class OperationSizes(Params):
    """Sizes and choices; each names its operations.

    Attributes:
        row_bytes: payload of a row of ``log_append``, ``log_batch`` and ``bulk_load``. 200: a small business
            row such as an audit or order line, well below a page.
        batch_rows: rows of one ``log_batch``.
        copy_rows: rows of one ``bulk_load``.
        bulk_bytes: ``bulk_load`` empties its table before loading if the table is larger than this.
        scan_rows: rows of one ``range_scan``.
        spill_bytes: bytes that one ``spill`` sorts.
        skew: which pages ``data_update``, ``point_read`` and ``range_scan`` go to, see ``skew.picker``.
        hot_rows: number of rows from which ``lock_contend`` chooses.
        lock_rows: number of rows that one ``lock_contend`` changes, one after the other, in any order.
        hold_s: pause after each of them, with the row locked (``hold`` in a plan).
    """

    row_bytes: Annotated[Bytes, Field(le=LARGEST_ROW_BYTES)] = 200
    batch_rows: Annotated[int, Field(ge=1, le=MOST_BATCH_ROWS)] = 100
    copy_rows: Annotated[int, Field(ge=1, le=MOST_COPY_ROWS)] = 2000
    bulk_bytes: Bytes = 128 * 2**20
    scan_rows: Annotated[int, Field(ge=1, le=MOST_SCAN_ROWS)] = 1000
    spill_bytes: Annotated[Bytes, Field(ge=2**20, le=2**40)] = 32 * 2**20
    skew: Skew = EVEN
    hot_rows: Annotated[int, Field(ge=1, le=10_000)] = 1
    lock_rows: Annotated[int, Field(ge=1, le=100)] = 1
    hold_s: Annotated[Seconds, Field(alias="hold")] = 0.01

    @model_validator(mode="after")
    def _one_statement_fits_into_memory(self) -> OperationSizes:
        for name in ("batch_rows", "copy_rows"):
            rows: int = getattr(self, name)
            if rows * self.row_bytes > LARGEST_STATEMENT_BYTES:
                raise ValueError(
                    f"{name} is {rows} and row_bytes {self.row_bytes}, "
                    f"{spelt_bytes(rows * self.row_bytes)} in one statement; allowed: at most "
                    f"{spelt_bytes(LARGEST_STATEMENT_BYTES)}"
                )
        return self

    @model_validator(mode="after")
    def _rows_enough_to_lock(self) -> OperationSizes:
        if self.lock_rows > self.hot_rows:
            raise ValueError(
                f"lock_rows is {self.lock_rows} and hot_rows {self.hot_rows}; allowed: lock_rows "
                "of hot_rows or less"
            )
        return self
