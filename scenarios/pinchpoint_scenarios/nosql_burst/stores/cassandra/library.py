"""The driver's library: its cluster, and a session's part of the connections all sessions share."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import DCAwareRoundRobinPolicy, FallthroughRetryPolicy, TokenAwarePolicy
from cassandra.query import BatchStatement, BatchType, SimpleStatement

from pinchpoint_collectors.common.backoff import Backoff

from ....contract import OK, Endpoint
from ....fastpath.cql import Login
from ...params import NosqlBurstParams
from ...records import Fields, Row
from .cooperative import connection_class
from .failures import FAILURES, outcome_of, outcome_of_connecting
from .statements import Statements, record

CONNECT_TIMEOUT_S = 5.0
PORT = 9042


class Access:
    """Where a cluster is, who we are there, and the library's way to it.

    Args:
        endpoint: the farm's.
        params: the scenario's.
        statements: for the levels of consistency.

    Attributes:
        tls: whether it is spoken to over TLS.
    """

    def __init__(self, endpoint: Endpoint, params: NosqlBurstParams, statements: Statements) -> None:
        url = urlsplit(endpoint.url)
        login, _, hosts = url.netloc.rpartition("@")
        user, _, password = login.partition(":")
        self._user = endpoint.options.get("user") or unquote(user)
        self._password = endpoint.options.get("password") or unquote(password)
        self._nodes = [_node(host) for host in hosts.split(",") if host]
        self._params = params
        self._level = statements.read_level
        self.tls = parse_qs(url.query).get("tls") == ["true"]

    def login(self, session: int) -> Login:
        """A session's node: they take turns."""
        host, port = self._nodes[session % len(self._nodes)]
        return Login(host, port, self._user, self._password)

    def cluster(self) -> Any:
        """A cluster of the library's, not connected yet."""
        params = self._params.cassandra
        profile = ExecutionProfile(
            load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy(params.local_datacenter or "")),
            # A failure is an outcome: nothing tries again behind our back.
            retry_policy=FallthroughRetryPolicy(),
            consistency_level=self._level,
            request_timeout=self._params.timeout_s,
            row_factory=lambda _, rows: rows,
        )
        return Cluster(
            contact_points=self._nodes,
            auth_provider=PlainTextAuthProvider(self._user, self._password) if self._user else None,
            ssl_context=ssl.create_default_context() if self.tls else None,
            protocol_version=4,
            connect_timeout=CONNECT_TIMEOUT_S,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            connection_class=connection_class(),
            monitor_reporting_enabled=False,
        )


class Shared:
    """The library's session that all connections of this process share, while there are any."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._lock = threading.Lock()
        self._cluster: Any = None
        self._session: Any = None
        self._users = 0

    def acquire(self) -> Any:
        """The session, made when first wanted."""
        with self._lock:
            if self._session is None:
                cluster = self._access.cluster()
                try:
                    self._session = cluster.connect()
                except BaseException:
                    cluster.shutdown()
                    raise
                self._cluster = cluster
            self._users += 1
            return self._session

    def release(self) -> None:
        """One of those who share it needs it no more."""
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._cluster is not None:
                self._cluster.shutdown()
                self._cluster = self._session = None


class LibraryConnection:
    """One session's part of the library's connections.

    Args:
        shared: the library's session.
        statements: what is said.
        prepared: whether the server prepares statements; else the library puts the values in as text.
    """

    def __init__(self, shared: Shared, statements: Statements, *, prepared: bool) -> None:
        self._shared = shared
        self._said = statements
        self._prepared = prepared
        self._session: Any = None
        self._known: dict[str, Any] = {}
        self._backoff = Backoff()
        self._connect()

    def wait_until_due(self) -> None:
        """See ``contract.Connection``."""
        self._backoff.wait()

    def write(self, rows: Sequence[Row]) -> str:
        """See ``contract.Connection``."""
        if failure := self._connect():
            return failure
        said = self._said
        try:
            write = self._statement(said.write, said.write_level)
            if len(rows) == 1:
                self._session.execute(write, said.values(rows[0]))
            else:
                kind = BatchType.LOGGED if said.logged else BatchType.UNLOGGED
                batch = BatchStatement(batch_type=kind, consistency_level=said.write_level)
                for row in rows:
                    batch.add(write, said.values(row))
                self._session.execute(batch)
        except FAILURES as error:
            return outcome_of(error)
        return OK

    def read(self, items: Sequence[int]) -> tuple[str, list[Fields | None]]:
        """See ``contract.Connection``."""
        if failure := self._connect():
            return failure, []
        said = self._said
        try:
            read = self._statement(said.read, said.read_level)
            found = [list(self._session.execute(read, said.key(item))) for item in items]
        except FAILURES as error:
            return outcome_of(error), []
        return OK, [record(rows) for rows in found]

    def close(self) -> None:
        """See ``contract.Connection``."""
        if self._session is not None:
            self._session = None
            self._known.clear()
            self._shared.release()

    def _statement(self, text: str, level: int) -> Any:
        """The statement as the library wants it, made once."""
        if text not in self._known:
            made = self._session.prepare(text) if self._prepared else SimpleStatement(text.replace("?", "%s"))
            made.consistency_level = level
            self._known[text] = made
        return self._known[text]

    def _connect(self) -> str:
        if self._session is not None:
            return ""
        try:
            self._session = self._shared.acquire()
        except FAILURES as error:
            self._backoff.failed()
            return outcome_of_connecting(error)
        self._backoff.succeeded()
        return ""


def _node(host: str) -> tuple[str, int]:
    """Host and port of ``c1``, ``c1:9042``, ``[::1]:9042``."""
    parts = urlsplit(f"//{host}")
    return parts.hostname or "", parts.port or PORT
