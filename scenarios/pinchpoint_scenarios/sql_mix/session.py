"""One connection's worth of sql-mix."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import accumulate

from ..contract import OK, Record
from ..databases.contract import DatabaseFailure, SqlConnection
from .dialects.postgresql import STATEMENTS
from .operations import OPERATIONS, State

MISSING_ROW = "missing_row"
"""The outcome of an operation that did not find its one row: somebody changed the data under the run."""


class SqlMixSession:
    """Draws operations by weight and runs them, one statement and one commit each.

    Args:
        connection: its own.
        weights: operation name -> weight.
        state: what its operations draw on.
    """

    def __init__(self, connection: SqlConnection, weights: Mapping[str, float], state: State) -> None:
        self._connection = connection
        self._operations = [OPERATIONS[name] for name in weights]
        self._cumulative = list(accumulate(weights.values()))
        self._state = state

    def perform(self, record: Record) -> bool:
        """Run one operation and record it. There is always one more."""
        (operation,) = self._state.random.choices(self._operations, cum_weights=self._cumulative)
        self._connection.wait_until_due()
        outcome, size_bytes = OK, operation.size_bytes
        start_ns = time.perf_counter_ns()
        try:
            cursor = self._connection.execute(STATEMENTS[operation.name], operation.parameters(self._state))
            if cursor.rowcount != 1:
                outcome, size_bytes = MISSING_ROW, 0
        except DatabaseFailure as failure:
            outcome, size_bytes = failure.outcome, 0
        record(operation.name, outcome, start_ns, time.perf_counter_ns(), size_bytes)
        return True

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._connection.close()
