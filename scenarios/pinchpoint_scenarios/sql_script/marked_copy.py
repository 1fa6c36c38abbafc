"""Whose database is it: a user's own statements run in a marked copy only, or where nothing can be lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from decimal import Decimal
from typing import Any

from ..addresses import unreachable
from ..contract import Endpoint
from ..databases.access import Access, yes
from ..databases.contract import Link, TextConnection, plain
from ..databases.odbc.address import SCHEMES
from ..databases.reach import MissingAccess, access_to
from ..databases.schema import MARKER as OWNED
from ..databases.servers.contract import POSTGRESQL
from ..errors import ScenarioError
from .copy_sql import DIALECTS, CopySql
from .lexer import ScriptError
from .scope import Text, Value, parameter, spelt
from .values import ValuesParams

SYNTAX = ("42601", "42000")
"""The SQLSTATEs of PostgreSQL, and of MariaDB and MySQL, for a text that they cannot read."""
MARKER = "pinchpoint.copy/1: a copy for load tests, which may change and lose what it holds"
"""The mark on a database that says it may be written to. What follows the version is for people."""
_VERSION = MARKER.partition(":")[0]
_SHOWN = 3
_NATIVE = ("postgresql", "postgres")


class MarkedCopy:
    """The user's database: marked as a copy, or empty where that will do.

    Where this machine cannot reach such a server, whoever uses it is told.

    Args:
        endpoint: it.
        name: what the server shows for our connections, and what a run holds.
        empty_will_do: a database without any table but Pinchpoint's own needs no mark.

    Raises:
        ScenarioError: the URL says something that is not allowed.
    """

    def __init__(self, endpoint: Endpoint, name: str, *, empty_will_do: bool) -> None:
        self._access = _access(endpoint, name)
        self._empty_will_do = empty_will_do

    @property
    def blocks(self) -> bool:
        """Whether its connections wait inside C code (``contract.Blocking``)."""
        return self._access.installed and not self._access.native

    def check(self) -> dict[str, Any]:
        """Version and settings of the server; raises where its database is not to be written to."""
        with self._access.looking() as link:
            try:
                self._may_be_changed(link)
                return self._access.facts(link)
            except self._access.error as error:
                raise self._access.refused(error) from error

    def refusals(self, statements: Iterable[tuple[str, Sequence[str]]]) -> Iterator[tuple[str, bool]]:
        """What the server says of statements that it cannot prepare; nothing is executed.

        Args:
            statements: the place of each, for the message, and the texts it may be sent as: what is wrong
                with all of them is wrong with it.

        Yields:
            the sentence, and whether the text itself is wrong: a table may be there later.
        """
        with closing(self._access.open(pinned=False)) as link:
            for place, texts in statements:
                said = [self._refusal(link, text) for text in texts]
                if (
                    found := min(filter(None, said), key=lambda one: one[1], default=None)
                    if all(said)
                    else None
                ):
                    yield f"{place}: {found[0]}", found[1]

    def _refusal(self, link: Link, text: str) -> tuple[str, bool] | None:
        try:
            if not self._access.parse(link, text) and (asked := self._sql.prepare(text)):
                link.send(asked)
        except self._access.error as error:
            return self._access.message(error), self._access.state(error) in SYNTAX
        return None

    def hold(self) -> Link:
        """Keep other runs of this name out until ``release``; checks the mark again."""
        access = self._access
        if held := access.held():
            return held
        busy = ScenarioError(
            f"{access.place}: another run of {access.name!r} is going on in this database; wait until it has "
            "ended, or give the scenario another name in the plan"
        )
        link = access.reach()
        try:
            for statement in access.server.patient:
                link.execute(statement)
            self._may_be_changed(link)
            access.take(link, self._sql.lock, busy)
        except access.error as error:
            link.close()
            raise self._failed("cannot be prepared", error) from error
        except ScenarioError:
            link.close()
            raise
        return link

    def run_file(self, file: str, text: str, *, mark: bool) -> None:
        """Run a file of SQL while the database is held: as one text, of SQL Server batch by batch.

        Args:
            file: its name, for messages.
            text: what is in it.
            mark: whether a database that could be written to because it was empty is marked first, so that
                the next run finds what this one makes.

        Raises:
            ScenarioError: a statement failed.
        """
        link = self.hold()
        try:
            if mark:
                self._access.pin(link)
                database, marked = self._found(link)
                if not marked:
                    link.send(self._mark(database))
            self._access.unpin(link)
            for batch in self._sql.batches(text):
                link.send(batch)
        except self._access.error as error:
            raise self._failed(f"{file} could not be run to its end", error) from error

    def column(self, name: str, values: ValuesParams) -> list[Value]:
        """The values of a column: so many at most, evenly taken from all of them in their order.

        Raises ``ScriptError``.
        """
        access, sql = self._access, self._sql
        *table, column = map(access.server.quoted, str(values.column).split("."))
        names = {"column": column, "table": ".".join(table)}
        with nullcontext(access.holder) if access.holder else closing(access.patient()) as link:
            try:
                access.unpin(link)  # the table's name is the user's
                row = link.execute(sql.numeric.format(**names)).fetchone() if sql.numeric else None
                rows = link.execute(sql.sample.format(**names), (values.sample,)).fetchall()
            except access.error as error:
                raise ScriptError(
                    f"values.{name}: column {values.column!r} cannot be read: {access.message(error)}"
                ) from error
        if not rows:
            raise ScriptError(
                f"values.{name}: column {values.column!r} holds no value; fill the table, or give a range"
            )
        if sql.numeric:
            return [text if row and yes(row[0]) else Text(text) for (text,) in rows]
        return [_value(name, values, value) for (value,) in rows]

    def connection(self, timeout_s: float) -> TextConnection:
        """A session's connection, not opened yet: as the server gives it, but for its name and time limit."""
        return self._access.own_session(timeout_s)

    def encoded(self, value: Value) -> Any:
        """A value as it travels beside a statement: PostgreSQL alone finds a text's type itself."""
        if self._access.native:
            return parameter(value)
        if value is None or self._access.kind != POSTGRESQL:
            return int(value) if isinstance(value, bool) else value
        return spelt(value)

    def literal(self, value: Value) -> str:
        """A value as it is put into a statement's text."""
        return self._sql.literal(value)

    def translated(self, statement: str) -> str:
        """What begins a transaction, as a driver of SQL Server's did it, in this server's words."""
        return self._sql.begins.get(statement, statement)

    def release(self) -> None:
        """Let other runs in. Safe to call twice."""
        self._access.release()

    @property
    def _sql(self) -> CopySql:
        return DIALECTS[self._access.kind]

    def _found(self, link: Link) -> tuple[str, bool]:
        """The database's name, and whether it is marked as a copy."""
        mark, database = link.execute(self._sql.find).fetchone() or (None, None)
        if database is None:
            raise ScenarioError(
                f"{self._access.place}: the url names no database; write the copy's after the host, as in "
                "HOST/DATABASE"
            )
        return str(database), str(mark or "").startswith(_VERSION)

    def _may_be_changed(self, link: Link) -> None:
        place = self._access.place
        database, marked = self._found(link)
        if database.lower() in self._sql.of_the_server:
            raise ScenarioError(
                f"{place}: {database!r} is one of the server's own databases; write a copy's name after the "
                "host"
            )
        if marked:
            return
        tables = [str(row[0]) for row in link.execute(self._sql.tables.format(owned=OWNED)).fetchall()]
        if self._empty_will_do and not tables:
            return
        shown = ", ".join(tables[:_SHOWN]) + (", ..." if len(tables) > _SHOWN else "")
        holds = f"holds {shown}" if tables else "is empty"
        raise ScenarioError(
            f"{place}: database {database!r} {holds} and is not marked as a copy that a load test may "
            f"change; nothing was started. If it is one, say so: {self._mark(database)}"
        )

    def _mark(self, database: str) -> str:
        return self._sql.mark.format(database=self._access.server.quoted(database), marker=MARKER)

    def _failed(self, what: str, error: Exception) -> ScenarioError:
        return ScenarioError(f"{self._access.place}: {what}: {self._access.message(error)}")


def _access(endpoint: Endpoint, name: str) -> Access:
    scheme = endpoint.url.partition("://")[0]
    if scheme in (*_NATIVE, *SCHEMES):
        return access_to(endpoint, name, own_sql=True)
    why = unreachable(
        endpoint,
        f"scripts and captures run on no server of {scheme}://",
        f"give a url of postgresql://, {', '.join(f'{each}://' for each in SCHEMES)} in farm.yaml",
    )
    return MissingAccess(endpoint, name, why)


def _value(name: str, values: ValuesParams, found: Any) -> Value:
    """A column's value: a number, or a text that becomes a literal."""
    if isinstance(found, bytes):
        raise ScriptError(
            f"values.{name}: column {values.column!r} holds bytes; allowed: numbers, text, dates and times"
        )
    value = plain(found)
    return Text(value) if isinstance(value, str) and not isinstance(found, Decimal) else value
