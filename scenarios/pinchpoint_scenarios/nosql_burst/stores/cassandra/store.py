"""What one scenario has in one cluster: a table of its own, in the keyspace the URL names."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from cassandra import AlreadyExists, InvalidRequest, Unauthorized
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from ....addresses import place, unreachable, without_secrets
from ....contract import Endpoint
from ....errors import EndpointUnreachable, ScenarioError
from ....fastpath.cql import CqlWire
from ...holds import Hold
from ...holds.cassandra import CassandraLease
from ...params import NosqlBurstParams
from ...records import Row
from ..contract import MARKER, Connection, Store
from .failures import FAILURES, outcome_of
from .fast import FastConnection
from .library import CONNECT_TIMEOUT_S, Access, LibraryConnection, Shared
from .statements import Statements

_LOAD_AT_ONCE = 64
_LOAD_STEP = 500
_DDL_TIMEOUT_S = 60.0
_NUMBERS = {"ONE": 1, "LOCAL_ONE": 1, "TWO": 2, "THREE": 3}
"""Levels that are a number of replicas: how many. The others want most of them, or all."""


def open_store(endpoint: Endpoint, name: str, params: NosqlBurstParams) -> Store:
    """See ``contract``."""
    return Cassandra(endpoint, name, params)


class Cassandra:
    """One cluster.

    A record is a row: ``partition`` is its number over ``partition_width``, ``item`` the number itself.
    """

    def __init__(self, endpoint: Endpoint, name: str, params: NosqlBurstParams) -> None:
        self._endpoint = endpoint
        self._params = params
        self._comment = f"{MARKER} ({name})"
        self._keyspace = unquote(urlsplit(endpoint.url).path.strip("/"))
        self._short = f"pinch_{name.replace('-', '_')}"
        self._table = f'"{self._keyspace}"."{self._short}"'
        self._statements = Statements(self._table, params)
        self._access = Access(endpoint, params, self._statements)
        self._shared = Shared(self._access)
        lease = CassandraLease(self._table, self._shared.acquire, self._shared.release)
        self.what = f"the table {self._short} of the keyspace {self._keyspace}"
        self._hold = Hold(lease, endpoint, self.what, FAILURES)

    def check(self) -> Mapping[str, Any]:
        """Version, how durable an acknowledged write is, and that there is a keyspace."""
        with self._client() as session:
            version = session.execute("SELECT release_version FROM system.local").one()[0]
            server, settings = _settings(session)
            keyspace = session.cluster.metadata.keyspaces.get(self._keyspace)
            if keyspace is None:
                raise ScenarioError(
                    f"{place(self._endpoint)}: there is no keyspace {self._keyspace!r}; name one at the "
                    "end of the URL, or make it: CREATE KEYSPACE name WITH replication = "
                    "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}"
                )
            replicas = _replicas(keyspace)
            durable = bool(keyspace.durable_writes)
        settings |= {
            "consistency": self._params.cassandra.consistency,
            "replicas": "not known" if replicas is None else str(replicas),
            "durable_writes": str(durable).lower(),
        }
        warnings = [f"{place(self._endpoint)}: {why}" for why in self._weaker(settings, replicas)]
        return {"server": server, "version": version, "settings": settings, "warnings": warnings}

    def claim(self, progress: Callable[[str], None]) -> None:
        """Make our table anew and hold it.

        Raises ``ScenarioError`` where another of its name lies there, or another run holds it.
        """

        def hold() -> bool:
            self._hold.take(progress)
            return True

        with self._client() as session:
            if self._drop(session, hold):
                progress("dropped the table of an earlier run")
            created = f"{self._statements.create} WITH comment = '{self._comment}'"
            try:
                session.execute(created, timeout=_DDL_TIMEOUT_S)
            except AlreadyExists as error:
                raise self._hold.refusal("it has just begun") from error
            self._hold.take(progress)  # it went with the table; who came in between keeps it

    def load(self, rows: Iterable[Row], progress: Callable[[int], None]) -> None:
        """Write many records, some dozens at once; raises ``ScenarioError`` where one is refused."""
        said = self._statements
        with self._client() as session:
            statement = session.prepare(said.write)
            statement.consistency_level = said.write_level
            remaining, loaded = iter(rows), 0
            while batch := list(itertools.islice(remaining, _LOAD_STEP)):
                values = [said.values(row) for row in batch]
                execute_concurrent_with_args(session, statement, values, concurrency=_LOAD_AT_ONCE)
                loaded += len(batch)
                progress(loaded)

    def connect(self, session: int) -> Connection:
        """A session's connection: to one of the URL's nodes; over TLS or with nothing prepared, to all."""
        prepared = self._params.cassandra.prepared
        if prepared and not self._access.tls:
            wire = CqlWire(self._access.login(session), CONNECT_TIMEOUT_S, self._params.timeout_s)
            return FastConnection(wire, self._statements)
        return LibraryConnection(self._shared, self._statements, prepared=prepared)

    def remove(self) -> None:
        """Drop our table, and the hold with it; nothing without the mark."""
        try:
            with self._client() as session:
                self._drop(session, self._hold.have, strict=False)
        finally:
            self._hold.release()

    def release(self) -> None:
        """See ``contract``."""
        self._hold.release()

    @contextmanager
    def _client(self) -> Iterator[Session]:
        """The library for work outside the load; its failures come out as sentences."""
        try:
            cluster = self._access.cluster()
            try:
                yield cluster.connect()
            finally:
                cluster.shutdown()
        except FAILURES as error:
            raise self._explained(error) from error

    def _explained(self, error: BaseException) -> EndpointUnreachable:
        outcome = outcome_of(error)
        text = without_secrets(str(error), self._endpoint)
        cause, remedy = {
            "authentication": ("the server refused the user or the password", "correct them in farm.yaml"),
            "permission": (f"the user lacks a right: {text}", "grant it, or name another user"),
            "connection_lost": ("no node answers", "start one, or correct hosts and port in farm.yaml"),
            "timeout": ("the server did not answer in time", "check the address and the server's load"),
        }.get(outcome, (f"the server said: {text}", "see the server's log"))
        return unreachable(self._endpoint, cause, remedy)

    def _drop(self, session: Any, hold: Callable[[], bool], *, strict: bool = True) -> bool:
        """Drop the table where it is ours and ``hold`` gets it; whether it was.

        ``strict``: see ``_there``.
        """
        if not self._there(session, strict=strict):
            return False
        try:
            held = hold()
        except InvalidRequest:
            # The run that had it may have ended and dropped it since we looked.
            session.cluster.refresh_schema_metadata()
            if self._there(session, strict=strict):
                raise
            return False
        if held:
            self._hold.pause()
            session.execute(f"DROP TABLE {self._table}", timeout=_DDL_TIMEOUT_S)
        return held

    def _there(self, session: Any, *, strict: bool) -> bool:
        """Whether the table is there and ours. ``strict``: another's of its name is an error."""
        keyspace = session.cluster.metadata.keyspaces.get(self._keyspace)
        table = keyspace.tables.get(self._short) if keyspace else None
        if table is None:
            return False
        if table.options.get("comment") != self._comment:
            if strict:
                raise ScenarioError(
                    f"{place(self._endpoint)}: Pinchpoint did not make the table {self._short} of the "
                    f"keyspace {self._keyspace}; rename it, or give the scenario another name in the plan"
                )
            return False
        return True

    def _weaker(self, settings: Mapping[str, str], replicas: int | None) -> Iterator[str]:
        """What makes an acknowledged write less than durable on the replicas that were asked for."""
        sync = settings["commitlog_sync"]
        if settings["durable_writes"] == "false":
            yield "durable_writes is off for the keyspace, so a write does not go to the commit log"
        elif sync == "not known":
            yield "whether a write waits for the disk (commitlog_sync) is not known"
        elif sync == "periodic":
            period = settings.get("commitlog_sync_period", "not known")
            yield f"commitlog_sync is periodic ({period}), so a write does not wait for the disk"
        level = self._params.cassandra.consistency
        if level == "ANY":
            yield "consistency is ANY, so a write is acknowledged before any replica has it"
        elif level in _NUMBERS and (replicas is None or _NUMBERS[level] <= replicas // 2):
            of = f"{_NUMBERS[level]} of {replicas or 'all'} replicas"
            yield f"consistency is {level}, so a write needs no more than {of}"


def _settings(session: Any) -> tuple[str, dict[str, str]]:
    """Which server it is, and what it says of its commit log; "not known" where we may not read it."""
    names = ("commitlog_sync", "commitlog_sync_period")
    for server, table in (("cassandra", "system_views.settings"), ("scylla", "system.config")):
        try:
            query = f"SELECT name, value FROM {table} WHERE name = %s"  # noqa: S608 - our own names
            rows = [session.execute(query, (name,)).one() for name in names]
        except (InvalidRequest, Unauthorized):
            continue
        found = {row[0]: row[1] for row in rows if row is not None}
        return server, {"commitlog_sync": "not known"} | found
    return "cassandra", {"commitlog_sync": "not known"}


def _replicas(keyspace: Any) -> int | None:
    """Replicas of a row over all data centers; None where the strategy does not say."""
    strategy = keyspace.replication_strategy
    factors = getattr(strategy, "dc_replication_factors", None)
    if factors:
        return sum(int(getattr(factor, "all_replicas", factor)) for factor in factors.values())
    factor = getattr(strategy, "replication_factor", None)
    return None if factor is None else int(factor)
