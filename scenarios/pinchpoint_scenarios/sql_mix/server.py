"""Accesses the server of sql-mix, for every kind of server and every library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from ..contract import Endpoint
from ..databases.contract import Link, SqlConnection
from ..databases.schema import OwnedSchema
from ..errors import ScenarioError
from .data_table import DataTable, pages_of, rows_for
from .dialects import mix_sql
from .dialects.contract import MixSql, SqlOperation
from .operations import DATA, HOT, OPERATIONS, SessionState
from .params import SqlMixParams

ALL_TABLES = tuple(sorted({operation.table for operation in OPERATIONS.values() if operation.table}))
"""All tables that an operation may need."""


class MixServer:
    """The schema of one run on its server.

    Args:
        endpoint: endpoint ``sql``.
        name: name of the scenario in the plan.
        params: parameters of the scenario.

    Raises:
        ScenarioError: the URL or a parameter does not fit the server.
    """

    def __init__(self, endpoint: Endpoint, name: str, params: SqlMixParams) -> None:
        self._endpoint = endpoint
        self._name = name
        self._params = params
        self._schema = OwnedSchema(endpoint, name, ALL_TABLES)
        self._access = self._schema.access
        self._tables = tables_needed(params)

    @property
    def sayings(self) -> Mapping[str, SqlOperation[Any]]:
        """Return operation -> its statements on the connections of ``connection``."""
        return self._sql.sayings

    @property
    def place(self) -> str:
        """Return the place of the schema, without secrets."""
        return self._schema.place

    def check(self) -> Mapping[str, Any]:
        """Return version, settings, warnings and rights, without changes.

        Raises if the schema could not be created.
        """
        facts = self._schema.check(self._params.isolation)
        if DATA in self._tables:
            with self._access.inspection() as link:
                self._cache_bytes(link)
            facts["rights"].append("may know the size of the buffer cache")
        return facts

    def data_rows(self) -> int | None:
        """Return the rows of the data table that ``prepare`` would create.

        It queries the cache size and writes nothing.

        Returns None if the cache size is unknown before a farm is up.
        """
        known = self._endpoint.options.get("cache_bytes")  # the farm is down
        if known is not None:
            return rows_for(self._params.scale * int(known)) if known else None
        with self._access.inspection() as link:
            try:
                return rows_for(self._params.scale * self._cache_bytes(link))
            except self._access.error as error:
                raise self._access.refused(error) from error

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Create the schema and the tables of the chosen operations, in the form that every run expects."""
        params = self._params
        link = self._schema.hold()
        try:
            for table in sorted(self._tables - {DATA}):
                for statement in self._sql.make[table]:
                    link.execute(statement)
            if HOT in self._tables:
                link.execute(self._sql.fill_hot, (params.hot_rows,))
            if DATA in self._tables:
                rows = rows_for(params.scale * self._cache_bytes(link))
                self._enough_to_scan(rows)
                DataTable(self._schema, self._sql, rows, params.loaders, progress).ensure(link)
        except self._access.error as error:
            raise self._schema.failed(error) from error

    def connection(self, state: SessionState) -> SqlConnection:
        """Return a session's connection, opened later.

        Once open, ``state`` has the pages of the data table.
        """
        params = self._params

        def ready(link: Link) -> None:
            if "spill" in params.weights:
                for statement, parameters in self._sql.spill(params.spill_bytes):
                    link.execute(statement, parameters)
            if DATA in self._tables and state.pages == 1:
                state.pages = pages_of(self._sql, link)

        return self._schema.session(params.timeout_s, params.isolation, ready)

    def finish(self, *, keep_data: bool) -> None:
        """Drop the schema unless it is kept. Other runs may use it from now on."""
        try:
            if not keep_data:
                self._schema.drop()
        finally:
            self._schema.release()

    @cached_property
    def _sql(self) -> MixSql:
        return mix_sql(self._access.kind, self._schema.quoted, native=self._access.native)

    def _cache_bytes(self, link: Link) -> int:
        """Return the buffer cache of the server in bytes.

        Raises ``ScenarioError`` without the right to read it.
        """
        try:
            result = link.execute(self._sql.cache_bytes).fetchone()
        except self._access.error as error:
            if not self._sql.may_know_cache:
                raise
            raise ScenarioError(
                f"{self.place}: how large the server's buffer cache is, and with it the data table, this "
                f"user may not know: {self._access.message(error)}; {self._sql.may_know_cache}"
            ) from error
        return int(result[0]) if result else 0

    def _enough_to_scan(self, rows: int) -> None:
        """Raises ``ScenarioError`` if a ``range_scan`` could never find its rows."""
        params = self._params
        if "range_scan" in params.weights and params.scan_rows > rows:
            raise ScenarioError(
                f"scenario {self._name!r}: scan_rows is {params.scan_rows}, and the data table at scale "
                f"{params.scale:g} has {rows} rows; choose fewer scan_rows or a larger scale"
            )


def tables_needed(params: SqlMixParams) -> frozenset[str]:
    """Return the tables of the chosen operations."""
    return frozenset(table for name in params.weights if (table := OPERATIONS[name].table))
