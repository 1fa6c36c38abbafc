"""SQL Server, MariaDB, MySQL, PostgreSQL by their ODBC drivers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cached_property
from typing import Any

import pyodbc

from ..contract import Endpoint
from ..databases.contract import LoadingConnection
from ..databases.odbc.address import MSSQL, MYSQL, POSTGRESQL
from ..databases.odbc.connection import OdbcConnection
from ..databases.odbc.failures import said
from ..databases.odbc.link import OdbcLink
from ..databases.odbc.schema import OdbcSchema
from ..errors import ScenarioError
from ..sizes import spelt
from .dialects import mariadb, tsql
from .dialects.contract import OdbcMixSql, Saying
from .dialects.postgresql import odbc as postgresql
from .filling import ROW_BYTES, Fill, Filling, rows_for
from .operations import DATA, HOT, PAGE_ROWS, State
from .params import SqlMixParams
from .server import ALL_TABLES, enough_to_scan, finish, tables_needed

DIALECTS: Mapping[str, Callable[[str], OdbcMixSql]] = {
    MSSQL: tsql.mix_sql,
    MYSQL: mariadb.mix_sql,
    POSTGRESQL: postgresql.mix_sql,
}
"""Kind of server -> its statements, for a schema."""


class OdbcServer:
    """A ``MixServer``; see there.

    Args:
        endpoint: the server.
        name: the scenario's name in the plan.
        params: its parameters.
    """

    def __init__(self, endpoint: Endpoint, name: str, params: SqlMixParams) -> None:
        self._name = name
        self._params = params
        self._schema = OdbcSchema(endpoint, name, ALL_TABLES)
        self._tables = tables_needed(params)

    @property
    def sayings(self) -> Mapping[str, Saying[LoadingConnection]]:
        """See ``MixServer``."""
        return self._sql.sayings

    def check(self) -> Mapping[str, Any]:
        """See ``MixServer``."""
        facts = self._schema.check(self._params.isolation)
        if DATA in self._tables:
            with closing(self._schema.reach()) as link:
                self._cache_bytes(link)
            facts["rights"].append("may know the size of the buffer cache")
        return facts

    @property
    def place(self) -> str:
        """See ``MixServer``."""
        return self._schema.place

    def data_rows(self) -> int:
        """See ``MixServer``."""
        with closing(self._schema.reach()) as link:
            return rows_for(self._params.scale * self._cache_bytes(link))

    def prepare(self, progress: Callable[[str], None]) -> None:
        """See ``MixServer``."""
        link = self._schema.hold()
        try:
            for table in self._tables - {DATA}:
                for statement in self._sql.make[table]:
                    link.execute(statement)
            if HOT in self._tables:
                link.execute(self._sql.fill_hot, (self._params.hot_rows,))
            if DATA in self._tables:
                rows = rows_for(self._params.scale * self._cache_bytes(link))
                enough_to_scan(self._name, self._params, rows)
                self._have_data(link, rows, progress)
        except pyodbc.Error as error:
            raise self._schema.failed(error) from error

    def connection(self, state: State) -> OdbcConnection:
        """See ``MixServer``."""
        params = self._params

        def ready(link: OdbcLink) -> None:
            if "spill" in params.weights:
                for statement in self._sql.spill:
                    link.execute(statement.format(bytes=params.spill_bytes))
            if DATA in self._tables and state.pages == 1:
                found = link.execute(self._sql.data_count).fetchone()
                state.pages = max(1, int(found[2] or 0) // PAGE_ROWS) if found else 1

        return self._schema.session(params.timeout_s, params.isolation, ready)

    def finish(self, *, keep_data: bool) -> None:
        """See ``MixServer``."""
        finish(self._schema, keep_data=keep_data)

    @cached_property
    def _sql(self) -> OdbcMixSql:
        return DIALECTS[self._schema.kind](self._schema.quoted)

    # ---- the data table --------------------------------------------------------------------------

    def _cache_bytes(self, link: OdbcLink) -> int:
        """The server's buffer cache; raises ``ScenarioError`` where this user may not know it."""
        try:
            found = link.execute(self._sql.cache_bytes).fetchone()
        except pyodbc.ProgrammingError as error:
            raise ScenarioError(
                f"{self._schema.place}: how large the server's buffer cache is, and with it the data table, "
                f"this user may not know: {said(error).text}; {self._sql.may_know_cache}"
            ) from error
        return int(found[0]) if found else 0

    def _have_data(self, link: OdbcLink, rows: int, progress: Callable[[str], None]) -> None:
        """Have the data table there, whole: as an earlier run left it, or loaded now."""
        label = f"pinchpoint.data/1 rows={rows}"
        if self._is_whole(link, label, rows, progress):
            return
        self._room(link, rows * ROW_BYTES, progress)
        for statement in self._sql.make[DATA]:
            link.execute(statement)
        Filling(rows, self._params.loaders, progress, self._filler).run()
        progress("making the data table whole")
        for statement in self._sql.data_complete:
            link.execute(statement.format(label=label))

    def _is_whole(self, link: OdbcLink, label: str, rows: int, progress: Callable[[str], None]) -> bool:
        there = link.execute(self._sql.data_there).fetchone()
        if there is None or there[0] != label or not there[2]:
            return False
        if int(there[1]) >= 2 * rows * ROW_BYTES + 2**22:
            progress("the data table has grown to twice its size: it is loaded anew")
            return False
        progress("counting the rows of the data table from an earlier run")
        if link.execute(self._sql.data_count).fetchone() != (rows, 1, rows):
            progress("the data table has lost rows since it was loaded: it is loaded anew")
            return False
        progress(f"the data table is there from an earlier run, {spelt(int(there[1]))}: it is used again")
        return True

    def _room(self, link: OdbcLink, needed: int, progress: Callable[[str], None]) -> None:
        free = self._schema.free_bytes(link)
        if free is None:
            progress(
                f"the data table will take {spelt(needed)}; the server does not tell how much room it has"
            )
        elif free < needed:
            raise ScenarioError(
                f"{self._schema.place}: the data table would take {spelt(needed)}, and the server's data "
                f"disk has {spelt(free)} free; choose a smaller scale in the plan, or make room"
            )
        else:
            progress(f"the data table will take {spelt(needed)} of {spelt(free)} free")

    @contextmanager
    def _filler(self) -> Iterator[Fill]:
        with closing(self._schema.connect()) as link:
            for statement in self._sql.fill_fast:
                link.execute(statement)
            yield lambda first, last: link.execute(self._sql.data_fill, (first, last))
