"""The crawl database as a whole: made, followed by another crawl, resumed after it was killed, dropped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, LiteralString, Protocol

import psycopg

from ..contract import Endpoint
from ..databases.contract import SqlConnection
from ..databases.odbc.address import is_odbc
from ..databases.odbc.drivers import no_manager
from ..databases.postgresql import Connection
from ..databases.schema import OwnedSchema
from ..errors import ScenarioError
from ..fastpath.postgresql import FastConnection
from .dialects import DIALECTS, TABLES, CrawlSql, known

Run = Callable[[LiteralString], list[tuple[Any, ...]]]
"""Runs a statement without parameters; the rows it gave."""


class Schema(Protocol):
    """What every kind of schema of ours has."""

    @property
    def name(self) -> str:
        """Its name on the server."""

    @property
    def place(self) -> str:
        """Where it lies, for a sentence."""

    def drop(self) -> None:
        """Drop the tables and the schema; nothing where it is not there."""

    def hold(self) -> Any:
        """The connection inside it, of its own kind, that keeps other runs out until ``release``."""

    def drop_tables(self, connection: Any) -> None:
        """Drop the tables by that connection, as far as they are there."""

    def release(self) -> None:
        """Let other runs in. Safe to call twice."""


class CrawlDatabase(ABC):
    """The schema of one crawl in the SQL tier, whatever kind of server that is.

    Args:
        endpoint: the endpoint ``sql``.
        schema: it.

    Attributes:
        name: the schema's.
    """

    def __init__(self, endpoint: Endpoint, schema: Schema) -> None:
        self._endpoint = endpoint
        self._schema = schema
        self.name = schema.name

    @property
    @abstractmethod
    def sql(self) -> CrawlSql:
        """What its server is asked."""

    @property
    def place(self) -> str:
        """Where it lies, for a sentence."""
        return self._schema.place

    @abstractmethod
    def check(self) -> Mapping[str, Any]:
        """Version and settings of the server; raises where the schema could not be made. Changes nothing."""

    @abstractmethod
    def session(self, timeout_s: float, opened: Callable[[], None]) -> SqlConnection:
        """A session's connection, inside the schema; not opened yet.

        Args:
            timeout_s: after so long a statement is given up.
            opened: called with each new connection: what the one before held is lost.
        """

    def drop(self) -> None:
        """Drop the tables and the schema; nothing where it is not there."""
        self._schema.drop()

    def release(self) -> None:
        """Let other runs in. Safe to call twice."""
        self._schema.release()

    @abstractmethod
    def _inside(self) -> AbstractContextManager[Run]:
        """A transaction in the schema, which this run holds from then on. Raises ``ScenarioError``."""

    def make(self) -> None:
        """Make it, empty, in place of the one of an earlier crawl."""
        with self._inside() as run:
            self._schema.drop_tables(self._schema.hold())
            for statement in self.sql.create:
                run(statement)

    def follow(self) -> None:
        """Let an incremental crawl follow the last one.

        Raises ``ScenarioError`` where there was none, or it did not come to its end.
        """
        with self._inside() as run:
            if not self._made(run) or _first(run(self.sql.latest)) is None:
                raise ScenarioError(
                    f"{self._where}: there is no crawl whose changes could be looked for; first run a full "
                    "crawl (params: {mode: full}) with --keep-data"
                )
            if run(self.sql.unfinished):
                raise ScenarioError(
                    f"{self._where}: the last crawl did not come to its end; go on with it (--resume), or "
                    "crawl anew (params: {mode: full}) with --keep-data"
                )
            run(self.sql.follow)

    def resume(self, sources: Collection[str]) -> str:
        """Free what the killed crawl held; a sentence of where it goes on.

        Args:
            sources: the names of the plan's sources.

        Raises ``ScenarioError`` where there is nothing to go on with, or it is another crawl.
        """
        with self._inside() as run:
            if not self._made(run):
                raise ScenarioError(
                    f"{self._where}: no crawl was left to go on with: its database went with the farm, or "
                    "was removed when the run ended; run without --resume"
                )
            if not run(self.sql.unfinished):
                raise ScenarioError(
                    f"{self._where}: the last crawl came to its end, or never began; run without --resume"
                )
            known = {row[0] for row in run(self.sql.named)}
            if known != set(sources):
                raise ScenarioError(
                    f"{self._where}: the crawl that was left has the sources {_listed(known)}, the plan has "
                    f"{_listed(sources)}; use the plan it was started with, or run without --resume"
                )
            for statement in (self.sql.pause, *self.sql.release):
                run(statement)
            done, left = run(self.sql.counts)[0]
        return f"going on with the crawl that was left: {done} items are done, {left} are queued"

    def _made(self, run: Run) -> bool:
        """Whether all the tables are there, as this version makes them."""
        return bool(_first(run(self.sql.there)) == len(TABLES))

    @property
    def _where(self) -> str:
        return f"{self.place}: schema {self.name!r}"


class PostgresCrawl(CrawlDatabase):
    """By PostgreSQL's own library.

    Args:
        endpoint: the endpoint ``sql``.
        scenario: the scenario's name in the plan.
    """

    _schema: OwnedSchema

    def __init__(self, endpoint: Endpoint, scenario: str) -> None:
        super().__init__(endpoint, OwnedSchema(endpoint, scenario, TABLES))

    @property
    def sql(self) -> CrawlSql:
        """See ``CrawlDatabase``."""
        return DIALECTS["postgresql"]

    def check(self) -> Mapping[str, Any]:
        """See ``CrawlDatabase``."""
        return self._schema.check()

    def session(self, timeout_s: float, opened: Callable[[], None]) -> SqlConnection:
        """See ``CrawlDatabase``."""

        def greet(connection: Connection) -> None:
            self._schema.enter(connection)
            connection.execute(self.sql.greet.encode())
            opened()

        return FastConnection(
            self._endpoint, application=self.name, statement_timeout_s=timeout_s, greet=greet
        )

    @contextmanager
    def _inside(self) -> Iterator[Run]:
        connection = self._schema.hold()

        def run(statement: LiteralString) -> list[tuple[Any, ...]]:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

        try:
            with connection.transaction():
                yield run
        except psycopg.Error as error:
            raise self._schema.failed(error) from error


def crawl_database(endpoint: Endpoint, scenario: str) -> CrawlDatabase:
    """The crawl database of a scenario on an endpoint; raises ``ScenarioError`` where none can be."""
    known(endpoint)
    if not is_odbc(endpoint.url):
        return PostgresCrawl(endpoint, scenario)
    try:
        from .database_odbc import OdbcCrawl  # noqa: PLC0415 - pyodbc needs the system's libodbc
    except ImportError as error:
        raise no_manager(endpoint, error) from error
    return OdbcCrawl(endpoint, scenario)


def _first(rows: list[tuple[Any, ...]]) -> Any:
    return rows[0][0] if rows else None


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)) or "none"
