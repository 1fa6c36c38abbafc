"""Creates, resumes and drops the crawl database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, LiteralString

from ..contract import Endpoint
from ..databases.contract import DatabaseFailure, Link, ReadableResult, SqlConnection
from ..databases.schema import OwnedSchema
from ..errors import ScenarioError
from .call_thread import CallThread
from .dialects import DIALECTS, NEXT, TABLES, CrawlSql, by_odbc, known, too_old, within

# The class below is a session's connection to a crawl database over ODBC.

_DEADLOCKS = 5
"""Number of times a script is repeated after the server chose it as a deadlock victim."""


class CrawlConnection:
    """A ``SqlConnection`` that runs scripts (see ``CrawlSql``) and returns times in UTC.

    Args:
        inner: wrapped connection.
    """

    def __init__(self, inner: SqlConnection) -> None:
        self._inner = inner
        self._call_thread = CallThread()
        self._inside = False

    def wait_until_due(self) -> None:
        self._inner.wait_until_due()

    def try_open(self) -> None:
        self._call_thread.call(self._inner.try_open)

    def execute(self, statement: LiteralString, parameters: Sequence[Any] = ()) -> ReadableResult:
        """Run a statement or a script.

        The first part of a script gets the parameters, and the last part returns the result.
        """
        return self._call_thread.call(lambda: self._run(statement, parameters))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        inner = self._inner.transaction()
        self._call_thread.call(inner.__enter__)
        self._inside = True
        try:
            yield
        except BaseException as error:
            failed = type(error), error, error.__traceback__
            self._call_thread.call(lambda: inner.__exit__(*failed))
            raise
        finally:
            self._inside = False
        self._call_thread.call(lambda: inner.__exit__(None, None, None))

    def close(self) -> None:
        """Close the connection, unless the driver still waits. In that case it ends with the process."""
        if not self._call_thread.busy:
            self._call_thread.call(self._inner.close)
            self._call_thread.close()

    def _run(self, statement: LiteralString, parameters: Sequence[Any]) -> ReadableResult:
        for _ in range(0 if self._inside else _DEADLOCKS):
            try:
                return self._once(statement, parameters)
            except DatabaseFailure as failure:
                if failure.outcome != "deadlock":
                    raise
        return self._once(statement, parameters)

    def _once(self, statement: LiteralString, parameters: Sequence[Any]) -> ReadableResult:
        first, *further = statement.split(NEXT)
        answer = self._inner.execute(first, [_plain(value) for value in parameters])
        for part in further:
            answer = self._inner.execute(part)
        return ReadableResult(answer.rowcount, [tuple(map(_value, row)) for row in answer.fetchall()])


def _plain(value: Any) -> Any:
    """Return a parameter in a form that every driver accepts. Not all accept truth values."""
    return int(value) if isinstance(value, bool) else value


def _value(value: Any) -> Any:
    """Return a value in the form of the other drivers: times in UTC, decimals as floats."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return float(value) if isinstance(value, Decimal) else value


Run = Callable[[LiteralString], list[tuple[Any, ...]]]
"""Runs a statement without parameters and returns the rows."""


_ISOLATION = "read_committed"


class CrawlDatabase:
    """The schema of one crawl in the SQL tier, on a supported kind of server.

    Args:
        endpoint: the endpoint ``sql``.
        scenario: name of the scenario in the plan.

    Raises:
        ScenarioError: this server cannot have a crawl database.

    Attributes:
        name: name of the schema.
    """

    def __init__(self, endpoint: Endpoint, scenario: str) -> None:
        known(endpoint)
        self._endpoint = endpoint
        self._schema = OwnedSchema(endpoint, scenario, TABLES)
        self._access = self._schema.access
        self.name = self._schema.name
        if not self._access.installed:
            self._access.reach()  # it reports the reason

    @property
    def sql(self) -> CrawlSql:
        """Return the statements for its kind of server, which is queried if the URL does not name it."""
        if self._access.native:
            return DIALECTS[self._access.kind]
        result = by_odbc(self._endpoint, self._access.kind)
        chooses = bool(self._access.server.enter)
        return result if chooses else within(result, self._schema.quoted)

    @property
    def place(self) -> str:
        """Return the place of the schema for a message."""
        return self._schema.place

    def check(self) -> Mapping[str, Any]:
        """Return version and settings of the server, without changes.

        Raises if the schema could not be created.
        """
        if self._access.native:
            return self._schema.check(_ISOLATION)
        by_odbc(self._endpoint, self._access.kind)
        facts = self._schema.check(_ISOLATION)
        if why := too_old(self._access.kind, facts):
            raise ScenarioError(f"{self.place}: {why}")
        return facts

    def session(self, timeout_s: float, opened: Callable[[], None]) -> SqlConnection:
        """Return a session's connection inside the schema. It is opened later.

        Args:
            timeout_s: time limit of a statement in seconds.
            opened: called with each new connection, because the locks of the last one are lost.
        """
        greeting = self.sql.greet.split(NEXT)

        def ready(link: Link) -> None:
            link.lists_as_texts()
            for statement in greeting:
                link.execute(statement)
            opened()

        session = self._schema.session(timeout_s, _ISOLATION, ready)
        return session if self._access.native else CrawlConnection(session)

    def drop(self) -> None:
        """Drop the tables and the schema, if they exist."""
        self._schema.drop()

    def release(self) -> None:
        """Release the lock for other runs. A second call does nothing."""
        self._schema.release()

    @contextmanager
    def _inside(self) -> Iterator[Run]:
        """Run a transaction in the schema, which this run locks. Raises ``ScenarioError``."""
        link = self._schema.hold()
        try:
            with link.transaction():
                yield lambda statement: link.execute(statement).fetchall()
        except self._access.error as error:
            raise self._schema.failed(error) from error

    def make(self) -> None:
        """Create the empty schema in place of that of an earlier crawl."""
        with self._inside() as run:
            self._schema.drop_tables(self._schema.hold())
            for statement in self.sql.create:
                run(statement)

    def follow(self) -> None:
        """Prepare an incremental crawl after the last crawl.

        Raises ``ScenarioError`` if there was no crawl, or if it did not end.
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
        """Release the leases of the interrupted crawl. Return a sentence on where it continues.

        Args:
            sources: names of the sources in the plan.

        Raises ``ScenarioError`` if there is nothing to continue, or if it is another crawl.
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
        """Return whether all tables exist in the form of this version."""
        return bool(_first(run(self.sql.there)) == len(TABLES))

    @property
    def _where(self) -> str:
        return f"{self.place}: schema {self.name!r}"


def _first(rows: list[tuple[Any, ...]]) -> Any:
    return rows[0][0] if rows else None


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)) or "none"
