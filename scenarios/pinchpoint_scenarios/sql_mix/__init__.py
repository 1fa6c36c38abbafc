"""sql-mix: log-bound and data-bound writes in a chosen proportion, with reads, bulk loads, spills, locks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, ClassVar, cast

import psycopg

from ..contract import Context, Params
from ..databases.postgresql import Connection, ReconnectingConnection
from ..databases.schema import OwnedSchema
from ..errors import ScenarioError
from ..fastpath.postgresql import FastConnection
from .dialects.postgresql import loading, tables
from .operations import DATA, OPERATIONS, State
from .params import SqlMixParams
from .session import SqlMixSession

__all__ = ["SqlMix", "SqlMixParams"]

_DRIVERS = {"fast": FastConnection, "psycopg": ReconnectingConnection}
_ALL_TABLES = tuple(sorted({operation.table for operation in OPERATIONS.values() if operation.table}))


class SqlMix:
    """Drives the SQL tier with a mix of transactions."""

    use: ClassVar[str] = "sql-mix"
    needs: ClassVar[frozenset[str]] = frozenset({"sql"})
    writes: ClassVar[bool] = True
    ends: ClassVar[bool] = False
    params_model: ClassVar[type[Params]] = SqlMixParams

    def __init__(self, context: Context) -> None:
        self._context = context
        self._params = cast("SqlMixParams", context.params)
        self._endpoint = context.endpoints["sql"]
        self._schema = OwnedSchema(self._endpoint, context.name, _ALL_TABLES)
        needed = {OPERATIONS[name].table for name in self._params.weights}
        self._tables = frozenset(table for table in needed if table)

    def check(self) -> Mapping[str, Any]:
        """Reach the server; the facts are its version and settings."""
        return {"sql": self._schema.check()}

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Make the schema and the tables that the chosen operations need."""
        params = self._params
        connection = self._schema.hold()
        try:
            tables.make_small(connection, self._tables, params.hot_rows)
            if DATA in self._tables:
                rows = loading.rows_for(params.scale * loading.cache_bytes(connection))
                self._enough_to_scan(rows)
                loading.DataTable(self._schema, rows, params.loaders, progress).ensure(connection)
        except psycopg.Error as error:
            raise self._schema.failed(error) from error

    def session(self, number: int) -> SqlMixSession:
        """Open session ``number``; where the server does not answer now, its first operation says so."""
        params = self._params
        random = Random(f"{self._context.seed}:{number}")  # noqa: S311 - workload, no secret
        state = State(random, number, params)

        def greet(connection: Connection) -> None:
            self._schema.enter(connection)
            tables.set_isolation(connection, params.isolation)
            if "spill" in params.weights:
                tables.spill_beyond_memory(connection, params.spill_bytes)
            if DATA in self._tables and state.pages == 1:
                state.pages = loading.count_pages(connection)

        connection = _DRIVERS[params.driver](
            self._endpoint,
            application=self._schema.name,
            statement_timeout_s=params.timeout_s,
            greet=greet,
        )
        connection.try_open()
        return SqlMixSession(connection, params.weights, state, params.retries)

    def finish(self, *, keep_data: bool) -> None:
        """Drop the schema unless it is to be kept; another run may use it from now on."""
        try:
            if not keep_data:
                self._schema.drop()
        finally:
            self._schema.release()

    def _enough_to_scan(self, rows: int) -> None:
        if "range_scan" in self._params.weights and self._params.scan_rows > rows:
            raise ScenarioError(
                f"scenario {self._context.name!r}: scan_rows is {self._params.scan_rows}, and the data table "
                f"at scale {self._params.scale:g} has {rows} rows; choose fewer scan_rows or a larger scale"
            )
