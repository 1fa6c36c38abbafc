"""PostgreSQL by the fast path: libpq itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import psycopg

from ..contract import Endpoint
from ..databases.contract import CopyingConnection
from ..databases.postgresql import Connection, looking, refused
from ..databases.schema import OwnedSchema
from ..fastpath.postgresql import FastConnection
from .dialects.contract import Saying
from .dialects.postgresql import loading, tables
from .dialects.postgresql.operations import SAYINGS
from .filling import rows_for
from .operations import DATA, State
from .params import SqlMixParams
from .server import ALL_TABLES, enough_to_scan, finish, tables_needed


class NativeServer:
    """A ``MixServer``; see there.

    Args:
        endpoint: the database.
        name: the scenario's name in the plan.
        params: its parameters.
    """

    sayings: Mapping[str, Saying[Any]] = SAYINGS

    def __init__(self, endpoint: Endpoint, name: str, params: SqlMixParams) -> None:
        self._endpoint = endpoint
        self._name = name
        self._params = params
        self._schema = OwnedSchema(endpoint, name, ALL_TABLES)
        self._tables = tables_needed(params)

    def check(self) -> Mapping[str, Any]:
        """See ``MixServer``."""
        return self._schema.check()

    @property
    def place(self) -> str:
        """See ``MixServer``."""
        return self._schema.place

    def data_rows(self) -> int | None:
        """See ``MixServer``."""
        known = self._endpoint.options.get("cache_bytes")  # of a farm that is down
        if known is not None:
            return rows_for(self._params.scale * int(known)) if known else None
        with looking(self._endpoint, self._schema.name) as connection:
            try:
                return rows_for(self._params.scale * loading.cache_bytes(connection))
            except psycopg.Error as error:
                raise refused(self._endpoint, error) from error

    def prepare(self, progress: Callable[[str], None]) -> None:
        """See ``MixServer``."""
        params = self._params
        connection = self._schema.hold()
        try:
            tables.make_small(connection, self._tables, params.hot_rows)
            if DATA in self._tables:
                rows = rows_for(params.scale * loading.cache_bytes(connection))
                enough_to_scan(self._name, params, rows)
                loading.DataTable(self._schema, rows, params.loaders, progress).ensure(connection)
        except psycopg.Error as error:
            raise self._schema.failed(error) from error

    def connection(self, state: State) -> CopyingConnection:
        """See ``MixServer``."""
        params = self._params

        def greet(connection: Connection) -> None:
            self._schema.enter(connection)
            tables.set_isolation(connection, params.isolation)
            if "spill" in params.weights:
                tables.spill_beyond_memory(connection, params.spill_bytes)
            if DATA in self._tables and state.pages == 1:
                state.pages = loading.count_pages(connection)

        return FastConnection(
            self._endpoint,
            application=self._schema.name,
            statement_timeout_s=params.timeout_s,
            greet=greet,
        )

    def finish(self, *, keep_data: bool) -> None:
        """See ``MixServer``."""
        finish(self._schema, keep_data=keep_data)
