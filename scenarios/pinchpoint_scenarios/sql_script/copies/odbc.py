"""A database of SQL Server, MariaDB, MySQL or PostgreSQL by its ODBC driver."""

from __future__ import annotations

from contextlib import closing, nullcontext
from decimal import Decimal
from typing import Any

import pyodbc

from ...contract import Endpoint
from ...databases.odbc.address import POSTGRESQL
from ...databases.odbc.answer import plain
from ...databases.odbc.endpoint import OdbcEndpoint
from ...databases.odbc.failures import refused, told
from ...databases.odbc.link import OdbcLink
from ...databases.odbc.texts import OdbcTextConnection
from ...databases.schema import MARKER as OWNED
from ...errors import ScenarioError
from ..lexer import ScriptError
from ..params import ValuesParams
from ..scope import Text, Value, spelt
from .contract import MARKER, VERSION
from .dialects import DIALECTS
from .dialects.contract import CopySql
from .refusals import another_run, no_values, not_a_copy


class OdbcCopy(OdbcEndpoint):
    """A ``Copy``; see there, and ``copy_of``."""

    blocks = True

    def __init__(self, endpoint: Endpoint, name: str, *, empty_will_do: bool) -> None:
        super().__init__(endpoint, name, own_sql=True)
        self._empty_will_do = empty_will_do

    def check(self) -> dict[str, Any]:
        """See ``Copy``."""
        with closing(self.reach()) as link:
            try:
                self._may_be_changed(link)
                return self.facts(link)
            except pyodbc.Error as error:
                raise refused(self._endpoint, error, self.kind) from error

    def hold(self) -> None:
        """See ``Copy``."""
        self._kept()

    def run_file(self, file: str, text: str, *, mark: bool) -> None:
        """See ``Copy``: a batch of SQL Server's after the other, all else as one text."""
        link = self._kept()
        try:
            self._pin(link)
            database, marked, _ = self._found(link)
            if mark and not marked:
                link.send(self._filled(self._sql.mark, database))
            self._unpin(link)
            for batch in self._sql.batches(text):
                link.send(batch)
        except pyodbc.Error as error:
            raise self._failed(f"{file} could not be run to its end", error) from error

    def column(self, name: str, values: ValuesParams) -> list[Value]:
        """See ``Copy``."""
        *table, column = map(self.server.quoted, str(values.column).split("."))
        statement = self._sql.sample.format(column=column, table=".".join(table))
        with nullcontext(self._holder) if self._holder else closing(self.patient()) as link:
            try:
                self._unpin(link)  # the table's name is the user's
                rows = link.execute(statement, (values.sample,)).fetchall()
            except pyodbc.Error as error:
                raise ScriptError(
                    f"values.{name}: column {values.column!r} cannot be read: {told(error)}"
                ) from error
        if not rows:
            raise no_values(name, values.column)
        return [_value(name, values, value) for (value,) in rows]

    def connection(self, timeout_s: float) -> OdbcTextConnection:
        """See ``Copy``."""

        def opened() -> OdbcLink:
            link = self._open(pinned=False)
            try:
                self.bound(link, timeout_s)
            except pyodbc.Error:
                link.close()
                raise
            return link

        return OdbcTextConnection(self.kind, self.server, opened)

    def encoded(self, value: Value) -> Any:
        """See ``Copy``: PostgreSQL finds a text's type itself, as no other server does."""
        if value is None or self.kind != POSTGRESQL:
            return int(value) if isinstance(value, bool) else value
        return spelt(value)

    def literal(self, value: Value) -> str:
        """See ``Copy``."""
        return self._sql.literal(value)

    def translated(self, statement: str) -> str:
        """See ``Copy``."""
        return self._sql.begins.get(statement, statement)

    @property
    def _sql(self) -> CopySql:
        return DIALECTS[self.kind]

    def _kept(self) -> OdbcLink:
        if held := self._held():
            return held
        link = self.reach()
        try:
            for statement in self.server.patient:
                link.execute(statement)
            self._may_be_changed(link)
            locked = link.execute(self._sql.lock, (self.name,)).fetchone()
            if not (locked and locked[0] == 1):
                raise another_run(self.place, self.name)
        except pyodbc.Error as error:
            link.close()
            raise self._failed("cannot be prepared", error) from error
        except ScenarioError:
            link.close()
            raise
        self._holder = link
        return link

    def _found(self, link: OdbcLink) -> tuple[str, bool, bool]:
        """The database's name, whether it is marked as a copy, and whether it is one of the server's own."""
        row = link.execute(self._sql.find).fetchone()
        if row is None or row[0] is None:
            raise ScenarioError(
                f"{self.place}: the url names no database; write the copy's after the host, as in "
                "HOST/DATABASE"
            )
        return str(row[0]), str(row[1] or "").startswith(VERSION), bool(row[2])

    def _may_be_changed(self, link: OdbcLink) -> None:
        database, marked, of_the_server = self._found(link)
        if of_the_server:
            raise ScenarioError(
                f"{self.place}: {database!r} is one of the server's own databases; write a copy's name after "
                "the host"
            )
        if marked:
            return
        tables = [str(row[0]) for row in link.execute(self._sql.tables.format(owned=OWNED)).fetchall()]
        if not (self._empty_will_do and not tables):
            raise not_a_copy(self.place, database, tables, self._filled(self._sql.mark, database))

    def _filled(self, statement: str, database: str) -> str:
        return statement.format(database=self.server.quoted(database), marker=MARKER)

    def _failed(self, what: str, error: pyodbc.Error) -> ScenarioError:
        return ScenarioError(f"{self.place}: {what}: {told(error)}")


def _value(name: str, values: ValuesParams, found: Any) -> Value:
    """A column's value: a number, or a text that becomes a literal."""
    if isinstance(found, bytes):
        raise ScriptError(
            f"values.{name}: column {values.column!r} holds bytes; allowed: numbers, text, dates and times"
        )
    value = plain(found)
    return Text(value) if isinstance(value, str) and not isinstance(found, Decimal) else value
