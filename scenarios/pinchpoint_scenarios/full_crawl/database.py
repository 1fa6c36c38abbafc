"""The crawl database as a whole: made, followed by another crawl, resumed after it was killed, dropped."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import psycopg

from ..contract import Endpoint
from ..databases.postgresql import Connection
from ..databases.schema import OwnedSchema
from ..errors import ScenarioError
from .dialects import TABLES, crawl_sql

_THERE = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = ANY (%s)"
_OPEN = "SELECT number FROM cycle WHERE ended IS NULL ORDER BY number DESC LIMIT 1"
_LAST = "SELECT max(number) FROM cycle WHERE started IS NOT NULL"


class CrawlDatabase:
    """The schema of one crawl in the SQL tier.

    Args:
        endpoint: the endpoint ``sql``.
        scenario: the scenario's name in the plan.
    """

    def __init__(self, endpoint: Endpoint, scenario: str) -> None:
        self.sql = crawl_sql(endpoint)
        self.schema = OwnedSchema(endpoint, scenario, TABLES)
        self._scenario = scenario

    def check(self) -> Mapping[str, Any]:
        """Version and settings of the server; raises where the schema could not be made. Changes nothing."""
        return self.schema.check()

    def make(self) -> None:
        """Make it, empty, in place of the one of an earlier crawl."""
        connection = self.schema.hold()
        try:
            with connection.transaction():
                self.schema.drop_tables(connection)
                for statement in self.sql.create:
                    connection.execute(statement)
        except psycopg.Error as error:
            raise self.schema.failed(error) from error

    def follow(self) -> None:
        """Let an incremental crawl follow the last one.

        Raises ``ScenarioError`` where there was none, or it did not come to its end.
        """
        connection = self.schema.hold()
        try:
            if not _made(connection) or _number(connection, _LAST) is None:
                raise ScenarioError(
                    f"{self._where}: there is no crawl whose changes could be looked for; first run a full "
                    "crawl (params: {mode: full}) with --keep-data"
                )
            if _number(connection, _OPEN) is not None:
                raise ScenarioError(
                    f"{self._where}: the last crawl did not come to its end; go on with it (--resume), or "
                    "crawl anew (params: {mode: full}) with --keep-data"
                )
            self._run(connection, self.sql.follow)
        except psycopg.Error as error:
            raise self.schema.failed(error) from error

    def resume(self, sources: Collection[str]) -> str:
        """Free what the killed crawl held; a sentence of where it goes on.

        Args:
            sources: the names of the plan's sources.

        Raises ``ScenarioError`` where there is nothing to go on with, or it is another crawl.
        """
        connection = self.schema.hold()
        try:
            if not _made(connection):
                raise ScenarioError(
                    f"{self._where}: no crawl was left to go on with: its database went with the farm, or "
                    "was removed when the run ended; run without --resume"
                )
            if _number(connection, _OPEN) is None:
                raise ScenarioError(
                    f"{self._where}: the last crawl came to its end, or never began; run without --resume"
                )
            known = {row[0] for row in connection.execute("SELECT source FROM sources").fetchall()}
            if known != set(sources):
                raise ScenarioError(
                    f"{self._where}: the crawl that was left has the sources {_listed(known)}, the plan has "
                    f"{_listed(sources)}; use the plan it was started with, or run without --resume"
                )
            self._run(connection, self.sql.pause, *self.sql.release)
            done = _number(connection, "SELECT count(*) FROM history")
            left = _number(connection, "SELECT count(*) FROM queue")
        except psycopg.Error as error:
            raise self.schema.failed(error) from error
        return f"going on with the crawl that was left: {done} items are done, {left} are queued"

    @property
    def _where(self) -> str:
        return f"{self.schema.place}: schema {self.schema.name!r}"

    def _run(self, connection: Connection, *statements: str) -> None:
        with connection.transaction():
            for statement in statements:
                connection.execute(statement.encode())


def _made(connection: Connection) -> bool:
    """Whether all the tables are there, as this version makes them."""
    return bool(_number(connection, _THERE, [list(TABLES)]) == len(TABLES))


def _number(connection: Connection, statement: str, parameters: list[Any] | None = None) -> Any:
    row = connection.execute(statement.encode(), parameters).fetchone()
    return row[0] if row else None


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)) or "none"
