"""Scenario sql-mix: log-bound and data-bound writes, reads, bulk loads, spills and locks in a chosen mix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, ClassVar, cast

from ..addresses import within
from ..contract import Filled, Intent, Params, ScenarioContext, Sent, Target
from ..databases.contract import FailureReport
from ..databases.odbc.address import is_odbc
from .data_table import ROW_BYTES
from .operations import DATA, HOT, HOT_PAYLOAD_BYTES, OPERATIONS, SessionState
from .params import SqlMixParams
from .server import MixServer, tables_needed
from .session import SqlMixSession

__all__ = ["SqlMix", "SqlMixParams"]


class SqlMix:
    """Sends a mix of transactions to the SQL tier."""

    use: ClassVar[str] = "sql-mix"
    needs: ClassVar[frozenset[str]] = frozenset({"sql"})
    writes: ClassVar[bool] = True
    ends: ClassVar[bool] = False
    params_model: ClassVar[type[Params]] = SqlMixParams

    def __init__(self, context: ScenarioContext) -> None:
        self._context = context
        self._params = cast("SqlMixParams", context.params)
        self._report = FailureReport(context.event)
        self._blocks = is_odbc(context.endpoints["sql"].url)
        self._server = MixServer(context.endpoints["sql"], context.name, self._params)

    @property
    def blocks(self) -> bool:
        """Return whether sessions wait inside C code, as with ODBC (``contract.Blocking``)."""
        return self._blocks

    def check(self) -> Mapping[str, Any]:
        """Connect to the server. Return its version and settings."""
        return {"sql": self._server.check()}

    def intent(self) -> Intent:
        """Return the writes of the scenario.

        The size of the data table follows from the cache of the server.
        """
        params, name = self._params, f"pinchpoint_{self._context.name}"
        tables, notes = [], []
        for table in sorted(tables_needed(params)):
            if table == DATA:
                rows = self._server.data_rows()
                note = "used again where an earlier run left it whole"
                tables.append(Filled(f"table {table}", rows, rows and rows * ROW_BYTES, note))
            elif table == HOT:
                tables.append(Filled(f"table {table}", params.hot_rows, params.hot_rows * HOT_PAYLOAD_BYTES))
            else:
                tables.append(Filled(f"table {table}", 0, 0, "made anew, empty"))
        if params.retries:
            notes.append(f"after a deadlock an operation is made again, {params.retries} times at most")
        total = sum(params.weights.values())
        sent = [
            Sent(
                operation.name,
                operation.says(params),
                weight / total,
                operation.rows(params) if operation.writes else 0,
                operation.size_bytes(params) if operation.writes or operation.table is None else 0,
            )
            for operation, weight in ((OPERATIONS[key], weight) for key, weight in params.weights.items())
        ]
        return Intent(
            (Target(self._server.place, within(self._context.endpoints["sql"], f"schema {name}")),),
            tuple(tables),
            tuple(sent),
            f"the schema {name} with all its tables",
            notes=tuple(notes),
        )

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Create the schema and the tables that the chosen operations need."""
        self._server.prepare(progress)

    def session(self, number: int) -> SqlMixSession:
        """Open a session. If the server does not answer, the first operation reports it."""
        params = self._params
        random = Random(f"{self._context.seed}:{number}")  # noqa: S311 - workload, no secret
        state = SessionState(random, number, params)
        connection = self._server.connection(state)
        connection.try_open()
        return SqlMixSession(
            connection, self._server.sayings, params.weights, state, params.retries, self._report
        )

    def finish(self, *, keep_data: bool) -> None:
        """Drop the schema unless it is kept. Other runs may use it from now on."""
        self._server.finish(keep_data=keep_data)
