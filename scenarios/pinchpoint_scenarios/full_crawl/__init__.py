"""Scenario full-crawl: resets the index, then enumerates, fetches and indexes all sources in parallel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, ClassVar, cast
from urllib.parse import urlsplit

from pinchpoint_collectors.common.names import unknown

from ..addresses import place, unreachable, within, without_secrets
from ..contract import Endpoint, Filled, Intent, Params, ScenarioContext, Sent, Target
from ..databases.contract import FailureReport
from ..errors import EndpointUnreachable, ScenarioError
from .cycle import Cycles, Root
from .database import CrawlDatabase
from .destinations import service
from .destinations.contract import Service
from .dialects import TABLES
from .failures import Failure, LoginFailed
from .frontier import Frontier, Queued
from .item_worker import ItemWorker
from .native.drive import NativeCrawl
from .native.session import NativeSession
from .next_source import SourceShare, SourceTurns
from .params import ENDPOINT_OF, FullCrawlParams, NativeParams, SourceParams
from .session import CrawlSession
from .sources import KINDS, Repository, repository

_CAUSES = {
    "unreachable": (
        "connection refused, no such host, or within 5 s no answer that fits",
        "start the server, or correct the url in farm.yaml; if it is right, look for a proxy on the way",
    ),
    "timeout": ("no answer in time", "check the address and the server's load"),
    "authentication": ("the server refused the credentials", "correct token, user or password in farm.yaml"),
    "permission": ("access denied", "give the user the right to read it"),
    "not_found": ("not found there", "correct the address in farm.yaml or the plan"),
    "not_ours": (
        "the index is there already and was not made by Pinchpoint",
        "name another one in the url, or delete it yourself",
    ),
    "tls": ("the TLS connection failed", "check the certificate, or use http://"),
}


class FullCrawl:
    """Crawls content sources into the search tier: by Pinchpoint, or by the crawler of a SharePoint farm."""

    use: ClassVar[str] = "full-crawl"
    needs: ClassVar[frozenset[str]] = frozenset({"sql", "search"})
    writes: ClassVar[bool] = True
    ends: ClassVar[bool] = True
    params_model: ClassVar[type[Params]] = FullCrawlParams

    def __init__(self, context: ScenarioContext) -> None:
        params = cast("FullCrawlParams", context.params)
        native = params.drive == "native"
        self._drive: DrivenCrawl | NativeCrawl = (
            NativeCrawl(context, params.native or NativeParams()) if native else DrivenCrawl(context)
        )
        self.resumable = not native

    def check(self) -> Mapping[str, Any]:
        return self._drive.check()

    def intent(self) -> Intent:
        return self._drive.intent()

    def prepare(self, progress: Callable[[str], None]) -> None:
        self._drive.prepare(progress)

    def session(self, number: int) -> CrawlSession | NativeSession:
        return self._drive.session(number)

    def finish(self, *, keep_data: bool) -> None:
        self._drive.finish(keep_data=keep_data)


class DrivenCrawl:
    """Crawls content sources into the search tier. The queue of the crawl is in the SQL tier."""

    def __init__(self, context: ScenarioContext) -> None:
        self._context = context
        self._params = cast("FullCrawlParams", context.params)
        self._sql = context.endpoints["sql"]
        self._search = context.endpoints["search"]
        self._database = CrawlDatabase(self._sql, context.name)
        self._given = _sources(context, self._params)
        self._repositories: dict[str, Repository] = {
            name: repository(source, endpoint, self._params)
            for name, (source, endpoint) in self._given.items()
        }
        self._report = FailureReport(context.event)
        self._queued = Queued()
        self._made = False
        self._service = service(self._search, context.name, self._params.timeout_s)

    def check(self) -> Mapping[str, Any]:
        """Connect to the crawl database, the search tier and every source at the same time.

        Changes nothing.
        """
        shared = {name: (self._given[name][1], result) for name, result in self._repositories.items()}
        with ThreadPoolExecutor(2 + len(shared)) as pool:
            sql = pool.submit(self._database.check)
            search = pool.submit(_checked, self._search, self._service)
            sources = {name: pool.submit(_checked, *each) for name, each in shared.items()}
        errors = [error for each in (sql, search, *sources.values()) if (error := each.exception())]
        for error in errors:
            if not isinstance(error, EndpointUnreachable):
                raise error
        if errors:
            text = "; ".join(dict.fromkeys(map(str, errors)))
            raise EndpointUnreachable(text) from errors[0]
        result = {name: each.result() for name, each in sources.items()}
        return {"sql": sql.result(), "search": search.result(), "sources": result}

    def intent(self) -> Intent:
        """Return what the crawl would do. The number of documents is known only after the crawl."""
        full = self._params.mode == "full" and not self._context.resume
        schema, indexed = f"schema {self._database.name}", self._service.connect()
        try:
            goes_there = indexed.takes_documents
        finally:
            indexed.close()
        sources = [
            Target(place(endpoint), f"source {name} ({source.kind})", "read")
            for name, (source, endpoint) in self._given.items()
        ]
        targets = [Target(self._database.place, within(self._sql, schema)), *sources]
        where, notes = "", ["how many documents there are is not known before the crawl"]
        if goes_there:
            targets.insert(1, Target(place(self._search), f"index {self._service.index}".strip()))
            where = "; one document to the index"
            if full:
                notes.append("what is in the index before is deleted when the crawl starts")
        asked = "requests (GET) that list and fetch the source; rows in the crawl database"
        tables = f"tables {', '.join(TABLES)}"
        dropped = full or self._context.resume
        return Intent(
            tuple(targets),
            (Filled(tables, 1, 0, "made anew; one row in cycle"),) if full else (),
            tuple(Sent(f"document:{name}", asked + where, None, None, None) for name in self._given),
            f"the {schema} with all its tables; what is in the index stays" if dropped else "nothing",
            notes=tuple(notes),
        )

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Create the empty crawl database. The first session resets the index and starts the crawl.

        An incremental crawl needs the database of the last crawl, and a resumed crawl needs its own.
        """
        if self._context.resume:
            progress(self._database.resume(self._given))
            self._made = True
        elif self._params.mode == "incremental":
            progress("looking for the last crawl")
            self._database.follow()
        else:
            progress("making the crawl database")
            self._made = True
            self._database.make()

    def session(self, number: int) -> CrawlSession:
        """Open a session. Its number decides which source it tries first."""
        params, database = self._params, self._database
        places_lost: list[Callable[[], None]] = []

        def opened() -> None:
            for forget in places_lost:
                forget()

        connection = database.session(params.timeout_s, opened)
        connection.try_open()
        limit = self._service.limit
        frontier = Frontier(
            connection,
            database.sql,
            lease_s=params.lease_s,
            patience_s=params.timeout_s,
            queued=self._queued,
        )
        sources = {name: shared.connect() for name, shared in self._repositories.items()}
        workers = {name: source.workers for name, (source, _) in self._given.items()}
        shares = {
            name: SourceShare(workers[name], shared.pause_s) for name, shared in self._repositories.items()
        }
        turns = SourceTurns(frontier, database.name, shares, number)
        places_lost.append(turns.forget)
        return CrawlSession(
            connection,
            frontier,
            Cycles(
                frontier,
                {name: Root(source.root(), workers[name]) for name, source in sources.items()},
                mode=params.mode,
                destination_limit=None if limit is None else limit * self._context.workers,
                repeat_s=self._context.repeat_s,
                event=self._context.event,
            ),
            turns,
            ItemWorker(
                frontier,
                sources,
                self._service.connect(),
                retries=params.retries,
                longest_wait_s=params.timeout_s,
                lease_s=params.lease_s,
            ),
            batch=params.batch,
            report=self._report,
        )

    def finish(self, *, keep_data: bool) -> None:
        """Drop the crawl database unless it should be kept, or existed before this crawl.

        The index is kept; the next full crawl resets it.
        """
        try:
            if not keep_data and self._made:
                self._database.drop()
        finally:
            self._database.release()


def _sources(context: ScenarioContext, params: FullCrawlParams) -> dict[str, tuple[SourceParams, Endpoint]]:
    """Return name -> source and endpoint: sources of the plan, or else one per crawlable endpoint."""
    chosen = params.sources or tuple(
        SourceParams(kind=kind)
        for kind, endpoint in ENDPOINT_OF.items()
        if kind == endpoint and kind in KINDS and endpoint in context.endpoints
    )
    if not chosen:
        raise ScenarioError(
            f"scenario {context.name!r}: the farm has nothing to crawl; add one of the endpoints "
            f"{', '.join(sorted(set(ENDPOINT_OF.values())))} to farm.yaml, or sources to the scenario's "
            "params"
        )
    return {source.label: (source, _place(context, source)) for source in chosen}


def _place(context: ScenarioContext, source: SourceParams) -> Endpoint:
    given = source.url or source.path
    if given and source.login is None:
        return Endpoint(source.label, given)
    name = source.login or source.endpoint_name
    if name not in context.endpoints:
        raise ScenarioError(
            f"scenario {context.name!r}: source {source.label!r}: "
            f"{unknown('endpoint', name, context.endpoints)}"
        )
    result = context.endpoints[name]
    return Endpoint(source.label, given, result.options) if given else result


def _checked(endpoint: Endpoint, shared: Service | Repository) -> Mapping[str, Any]:
    """Return facts about a destination or source, read over a separate connection."""
    connection = shared.connect()
    try:
        return connection.check()
    except Failure as failure:
        raise _explained(endpoint, failure) from failure
    finally:
        connection.close()


def _explained(endpoint: Endpoint, failure: Failure) -> EndpointUnreachable:
    if failure.place:
        endpoint = replace(endpoint, url=urlsplit(endpoint.url)._replace(netloc=failure.place).geturl())
    if isinstance(failure, LoginFailed):
        return unreachable(endpoint, without_secrets(failure.cause, endpoint), failure.remedy)
    cause, remedy = _CAUSES.get(failure.kind) or (without_secrets(str(failure), endpoint), "see its log")
    return unreachable(endpoint, cause, remedy)
