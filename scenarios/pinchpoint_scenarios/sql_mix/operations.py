"""The operations of sql-mix: what one is, in terms that hold for any SQL server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

LOG = "log"
DATA = "data"
HOT = "hot"

LOG_PAYLOAD_BYTES = 200
"""A small business row: what an audit or order line is, well below a page."""
DATA_PAYLOAD_BYTES = 896
"""Fourteen SHA-512 digests: four rows fill half of an 8 KiB page, the rest is for their next versions."""
HOT_PAYLOAD_BYTES = 16
"""A counter and a time: what a balance, a stock or a next free number is."""


@dataclass(slots=True)
class State:
    """What one session's operations draw on.

    Attributes:
        random: the session's own generator, seeded from the plan's seed and the session's number.
        session: the session's number.
        appended: rows this session has tried to append.
        rows: rows of the data table; 0 until it is known.
        hot_rows: rows of the hot table.
        hold_s: how long a hot row's lock is held.
    """

    random: Random
    session: int
    appended: int = 0
    rows: int = 0
    hot_rows: int = 1
    hold_s: float = 0.01


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of operation: one statement, one transaction, exactly one row.

    Attributes:
        name: as in a plan.
        table: the table it needs.
        parameters: draws the statement's parameters.
        size_bytes: payload it moves.
    """

    name: str
    table: str
    parameters: Callable[[State], tuple[Any, ...]]
    size_bytes: int


def _next_row(state: State) -> tuple[int, int, bytes]:
    state.appended += 1
    return state.session, state.appended, state.random.randbytes(LOG_PAYLOAD_BYTES)


def _any_row(state: State) -> tuple[int]:
    return (state.random.randint(1, max(1, state.rows)),)


def _hot_row(state: State) -> tuple[int, float]:
    return state.random.randint(1, state.hot_rows), state.hold_s


OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation("log_append", LOG, _next_row, LOG_PAYLOAD_BYTES),
        Operation("data_update", DATA, _any_row, DATA_PAYLOAD_BYTES),
        Operation("point_read", DATA, _any_row, DATA_PAYLOAD_BYTES),
        Operation("hot_row_update", HOT, _hot_row, HOT_PAYLOAD_BYTES),
    )
}
