"""The crawl database by ODBC."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, LiteralString

import pyodbc

from ..contract import Endpoint
from ..databases.odbc.link import OdbcLink
from ..databases.odbc.schema import OdbcSchema
from ..errors import ScenarioError
from .database import CrawlDatabase, Run
from .dialects import NEXT, TABLES, CrawlSql, by_odbc, too_old, within
from .odbc import CrawlConnection

_ISOLATION = "read_committed"


class OdbcCrawl(CrawlDatabase):
    """On a server that is reached by ODBC, of one of the kinds that a crawl database is known for.

    Args:
        endpoint: the endpoint ``sql``.
        scenario: the scenario's name in the plan.
    """

    _schema: OdbcSchema

    def __init__(self, endpoint: Endpoint, scenario: str) -> None:
        super().__init__(endpoint, OdbcSchema(endpoint, scenario, TABLES))

    @property
    def sql(self) -> CrawlSql:
        """See ``CrawlDatabase``; asks the server for its kind where the URL does not say it."""
        found = by_odbc(self._endpoint, self._schema.kind)
        chooses = bool(self._schema.server.enter)
        return found if chooses else within(found, self._schema.quoted)

    def check(self) -> Mapping[str, Any]:
        """See ``CrawlDatabase``."""
        by_odbc(self._endpoint, self._schema.kind)
        facts = self._schema.check(_ISOLATION)
        if why := too_old(self._schema.kind, facts):
            raise ScenarioError(f"{self.place}: {why}")
        return facts

    def session(self, timeout_s: float, opened: Callable[[], None]) -> CrawlConnection:
        """See ``CrawlDatabase``."""
        greeting = self.sql.greet.split(NEXT)

        def ready(link: OdbcLink) -> None:
            link.lists_as_texts()
            for statement in greeting:
                link.execute(statement)
            opened()

        return CrawlConnection(self._schema.session(timeout_s, _ISOLATION, ready))

    @contextmanager
    def _inside(self) -> Iterator[Run]:
        link = self._schema.hold()

        def run(statement: LiteralString) -> list[tuple[Any, ...]]:
            return link.execute(statement).fetchall()

        try:
            with link.transaction():
                yield run
        except pyodbc.Error as error:
            raise self._schema.failed(error) from error
