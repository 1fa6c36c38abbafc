"""full-crawl: the index is reset, then every source is enumerated, fetched and indexed, all at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

import psycopg

from ..addresses import unreachable, without_secrets
from ..contract import Context, Endpoint, Params
from ..databases.postgresql import ReconnectingConnection
from ..databases.schema import OwnedSchema
from ..errors import EndpointUnreachable, ScenarioError
from ..names import unknown
from .cycle import Cycles
from .failures import Failure
from .frontier import CREATE, TABLES, Frontier
from .index import Index
from .params import FullCrawlParams, SourceParams
from .session import CrawlSession
from .sources import KINDS, Source, repository

_CAUSES = {
    "unreachable": (
        "connection refused, or no such host",
        "start the server, or correct the url in farm.yaml",
    ),
    "timeout": ("no answer in time", "check the address and the server's load"),
    "authentication": ("the server refused the credentials", "correct token, user or password in farm.yaml"),
    "permission": ("access denied", "give the user the right to read it"),
    "not_found": ("not found there", "correct the address in farm.yaml or the plan"),
    "tls": ("the TLS connection failed", "check the certificate, or use http://"),
}


class FullCrawl:
    """Crawls content sources into the search tier, with its frontier in the SQL tier."""

    use: ClassVar[str] = "full-crawl"
    needs: ClassVar[frozenset[str]] = frozenset({"sql", "search"})
    writes: ClassVar[bool] = True
    ends: ClassVar[bool] = True
    params_model: ClassVar[type[Params]] = FullCrawlParams

    def __init__(self, context: Context) -> None:
        self._context = context
        self._params = cast("FullCrawlParams", context.params)
        self._sql = context.endpoints["sql"]
        self._search = context.endpoints["search"]
        self._schema = OwnedSchema(self._sql, context.name, TABLES)
        self._given = _sources(context, self._params)
        self._repositories = {
            name: repository(source, endpoint, self._params)
            for name, (source, endpoint) in self._given.items()
        }
        Index(self._search, self._params.timeout_s).close()

    def check(self) -> Mapping[str, Any]:
        """Reach the crawl database, the search tier and every source; changes nothing."""
        facts: dict[str, Any] = {"sql": self._schema.check()}
        index = Index(self._search, self._params.timeout_s)
        try:
            facts["search"] = index.stats()
        except Failure as failure:
            raise _explained(self._search, failure) from failure
        finally:
            index.close()
        facts["sources"] = {}
        for name, source in self._make_sources().items():
            try:
                facts["sources"][name] = source.check()
            except Failure as failure:
                raise _explained(self._given[name][1], failure) from failure
            finally:
                source.close()
        return facts

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Make the crawl database, empty. The first session to come resets the index and starts the crawl."""
        connection = self._schema.hold()
        progress("making the crawl database")
        try:
            with connection.transaction():
                self._schema.drop_tables(connection)
                for statement in CREATE:
                    connection.execute(statement)
        except psycopg.Error as error:
            raise self._schema.failed(error) from error

    def session(self, number: int) -> CrawlSession:
        """Open one session; its number changes nothing, for what it crawls the queue decides."""
        del number
        params = self._params
        connection = ReconnectingConnection(
            self._sql,
            application=self._schema.name,
            statement_timeout_s=params.timeout_s,
            greet=self._schema.enter,
        )
        connection.try_open()
        frontier = Frontier(connection, params.lease_s, patience_s=params.timeout_s)
        sources = self._make_sources()
        roots = {name: source.root() for name, source in sources.items()}
        return CrawlSession(
            connection,
            frontier,
            Cycles(frontier, roots, repeat_s=self._context.repeat_s, event=self._context.event),
            sources,
            Index(self._search, params.timeout_s),
            retries=params.retries,
            longest_wait_s=params.timeout_s,
            batch=params.batch,
        )

    def finish(self, *, keep_data: bool) -> None:
        """Drop the crawl database unless it is to be kept. The index stays: the next crawl resets it."""
        try:
            if not keep_data:
                self._schema.drop()
        finally:
            self._schema.release()

    def _make_sources(self) -> dict[str, Source]:
        return {name: known.connect() for name, known in self._repositories.items()}


def _sources(context: Context, params: FullCrawlParams) -> dict[str, tuple[SourceParams, Endpoint]]:
    """Name -> source and where it is: those of the plan, else one for each endpoint that can be crawled."""
    chosen = params.sources or tuple(
        SourceParams(kind=cast("Any", kind)) for kind in KINDS if kind in context.endpoints
    )
    if not chosen:
        raise ScenarioError(
            f"scenario {context.name!r}: the farm has nothing to crawl; add one of the endpoints "
            f"{', '.join(sorted(KINDS))} to farm.yaml, or sources to the scenario's params"
        )
    return {source.label: (source, _place(context, source)) for source in chosen}


def _place(context: Context, source: SourceParams) -> Endpoint:
    given = source.url or source.path
    if given:
        return Endpoint(source.label, given)
    name = source.endpoint_name
    if name not in context.endpoints:
        raise ScenarioError(
            f"scenario {context.name!r}: source {source.label!r}: "
            f"{unknown('endpoint', name, context.endpoints)}"
        )
    return context.endpoints[name]


def _explained(endpoint: Endpoint, failure: Failure) -> EndpointUnreachable:
    cause, remedy = _CAUSES.get(failure.kind) or (without_secrets(str(failure), endpoint), "see its log")
    return unreachable(endpoint, cause, remedy)
