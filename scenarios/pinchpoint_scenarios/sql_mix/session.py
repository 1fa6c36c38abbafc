"""One session of sql-mix."""

from __future__ import annotations

import time
from bisect import bisect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from ..contract import OK, Record
from ..databases.contract import DatabaseFailure, FailureReport, SqlConnection
from .dialects.contract import SqlOperation
from .operations import OPERATIONS, Drawn, SessionState

MISSING_ROW = "missing_row"
"""Outcome of an operation that found too few rows, because the data were changed during the run."""
TRIED_AGAIN = frozenset({"deadlock", "serialization"})
"""Failures of transactions that applications retry. sql-mix retries them, too."""
RETRIED = "retried"
"""``lock_contend/retried`` is the stage of an attempt that was retried. Its outcome is the reason."""


@dataclass(frozen=True, slots=True)
class _Step:
    """An operation of this session: ``Operation`` with the sizes of the plan."""

    name: str
    draw: Callable[[SessionState], Drawn]
    run: Callable[[Any, Drawn], int]
    rows: int
    size_bytes: int


class SqlMixSession:
    """Draws operations by weight and runs each as one transaction.

    Args:
        connection: connection of the session.
        sayings: operation name -> its statements on this connection.
        weights: operation name -> weight.
        state: state of the session's operations.
        retries: number of retries after a failure of ``TRIED_AGAIN``.
        report: reports every failure.
    """

    def __init__(
        self,
        connection: SqlConnection,
        sayings: Mapping[str, SqlOperation[Any]],
        weights: Mapping[str, float],
        state: SessionState,
        retries: int,
        report: FailureReport,
    ) -> None:
        self._connection = connection
        self._steps = [_step(name, sayings[name], state) for name in weights]
        *self._bounds, self._whole = accumulate(weights.values())
        self._state = state
        self._retries = retries
        self._report = report

    def perform(self, record: Record) -> bool:
        """Run one operation and record it. Returns True, because there is always another operation."""
        step = self._steps[bisect(self._bounds, self._state.random.random() * self._whole)]
        self._connection.wait_until_due()
        drawn = step.draw(self._state)
        start_ns = time.perf_counter_ns()
        outcome = self._attempt(step, drawn)
        if outcome in TRIED_AGAIN:
            outcome = self._again(step, drawn, outcome, start_ns, record)
        record(step.name, outcome, start_ns, time.perf_counter_ns(), step.size_bytes if outcome == OK else 0)
        return True

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        self._connection.close()

    def _attempt(self, step: _Step, drawn: Drawn) -> str:
        try:
            return OK if step.run(self._connection, drawn) == step.rows else MISSING_ROW
        except DatabaseFailure as failure:
            self._report(failure, operation=step.name)
            return failure.outcome

    def _again(self, step: _Step, drawn: Drawn, outcome: str, start_ns: int, record: Record) -> str:
        """Retry the operation until it succeeds or no retry is left. Return its last outcome."""
        for _ in range(self._retries):
            now_ns = time.perf_counter_ns()
            record(f"{step.name}/{RETRIED}", outcome, start_ns, now_ns)
            start_ns = now_ns
            outcome = self._attempt(step, drawn)
            if outcome not in TRIED_AGAIN:
                break
        return outcome


def _step(name: str, saying: SqlOperation[Any], state: SessionState) -> _Step:
    operation, shape = OPERATIONS[name], state.shape
    draw, encode = operation.draw, saying.encode
    encoded = (lambda state: encode(draw(state))) if encode else draw
    return _Step(name, encoded, saying.run, operation.rows(shape), operation.size_bytes(shape))
