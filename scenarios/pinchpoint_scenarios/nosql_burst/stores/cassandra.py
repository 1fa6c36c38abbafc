"""Cassandra and ScyllaDB: the driver's library, and past it where every operation goes."""

from __future__ import annotations

import itertools
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import cassandra
from cassandra import ConsistencyLevel, InvalidRequest, OperationTimedOut
from cassandra import protocol as messages
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import DCAwareRoundRobinPolicy, FallthroughRetryPolicy, TokenAwarePolicy
from cassandra.query import BatchStatement, BatchType, SimpleStatement

from ...addresses import place, unreachable, without_secrets
from ...backoff import Backoff
from ...contract import OK, Endpoint
from ...errors import EndpointUnreachable, ScenarioError
from ...fastpath.cql import CqlError, CqlTimeoutError, CqlWire, Login
from ..params import NosqlBurstParams
from ..records import Fields, Row
from .contract import MARKER, Connection, Store

CONNECT_TIMEOUT_S = 5.0
PORT = 9042
_LOAD_AT_ONCE = 64
_LOAD_STEP = 500
_DDL_TIMEOUT_S = 60.0

_BY_CLASS: tuple[tuple[type[BaseException], str], ...] = (
    (cassandra.WriteTimeout, "write_timeout"),
    (cassandra.ReadTimeout, "read_timeout"),
    (cassandra.WriteFailure, "write_failure"),
    (cassandra.ReadFailure, "read_failure"),
    (cassandra.Unavailable, "unavailable"),
    (cassandra.AuthenticationFailed, "authentication"),
    (messages.BadCredentials, "authentication"),
    (cassandra.Unauthorized, "permission"),
    (messages.OverloadedErrorMessage, "overloaded"),
    (messages.IsBootstrappingErrorMessage, "loading"),
    (messages.ServerError, "server_error"),
    (cassandra.InvalidRequest, "invalid"),
    (messages.SyntaxException, "invalid"),
    (OperationTimedOut, "timeout"),
    (CqlTimeoutError, "timeout"),
    (CqlError, "connection_lost"),
    (cassandra.connection.ConnectionException, "connection_lost"),
    (OSError, "connection_lost"),
)
_FAILURES = (
    *(cassandra.DriverException, messages.ErrorMessage, NoHostAvailable, CqlError),
    *(cassandra.RequestExecutionException, cassandra.connection.ConnectionException, OSError),
)


def outcome_of(error: BaseException) -> str:
    """The name of a failure; ``error_<class>`` where it has none here."""
    if isinstance(error, messages.ErrorMessage):
        error = error.to_exception()
    if isinstance(error, NoHostAvailable):
        causes = [one for one in error.errors.values() if isinstance(one, BaseException)]
        named = [name for one in causes if (name := outcome_of(one)) not in {"connection_lost", "timeout"}]
        return named[0] if named else "connection_lost"
    for kind, outcome in _BY_CLASS:
        if isinstance(error, kind):
            return outcome
    return f"error_{type(error).__name__.lower()}"


def open_store(endpoint: Endpoint, name: str, params: NosqlBurstParams) -> Store:
    """See ``contract``."""
    return Cassandra(endpoint, name, params)


class Cassandra:
    """One cluster; a scenario has a table of its own, in the keyspace the URL names.

    A record is a row: ``partition`` is its number over ``partition_width``, ``item`` the number itself.
    """

    def __init__(self, endpoint: Endpoint, name: str, params: NosqlBurstParams) -> None:
        self._endpoint = endpoint
        self._params = params
        self._comment = f"{MARKER} ({name})"
        url = urlsplit(endpoint.url)
        login, _, hosts = url.netloc.rpartition("@")
        user, _, password = login.partition(":")
        self._user = endpoint.options.get("user") or unquote(user)
        self._password = endpoint.options.get("password") or unquote(password)
        self._nodes = [_node(host) for host in hosts.split(",") if host]
        self._keyspace = unquote(url.path.strip("/"))
        self._tls = parse_qs(url.query).get("tls") == ["true"]
        self._short = f"pinch_{name.replace('-', '_')}"
        self.table = f'"{self._keyspace}"."{self._short}"'
        self._lock = threading.Lock()
        self._cluster: Any = None
        self._session: Any = None
        self._users = 0

    # ---- outside the load ------------------------------------------------------------------------

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
        """Make our table anew; raises ``ScenarioError`` where another of its name lies there."""
        with self._client() as session:
            if self._drop(session):
                progress("dropped the table of an earlier run")
            columns = ", ".join(f"field{number} blob" for number in range(self._params.fields))
            session.execute(
                f"CREATE TABLE {self.table} (partition bigint, item bigint, {columns}, "
                f"PRIMARY KEY ((partition), item)) WITH comment = '{self._comment}'",
                timeout=_DDL_TIMEOUT_S,
            )

    def load(self, rows: Iterable[Row], progress: Callable[[int], None]) -> None:
        """Write many records, some dozens at once; raises ``ScenarioError`` where one is refused."""
        with self._client() as session:
            statement = session.prepare(self.write_query())
            statement.consistency_level = self.levels()[0]
            remaining, loaded = iter(rows), 0
            while batch := list(itertools.islice(remaining, _LOAD_STEP)):
                values = [self._values(item, fields) for item, fields in batch]
                execute_concurrent_with_args(session, statement, values, concurrency=_LOAD_AT_ONCE)
                loaded += len(batch)
                progress(loaded)

    def remove(self) -> None:
        """Drop our table; nothing without the mark."""
        with self._client() as session:
            self._drop(session, strict=False)

    # ---- the load --------------------------------------------------------------------------------

    def connect(self, session: int) -> Connection:
        """A session's connection: to one of the URL's nodes by the fast path, by the library to all."""
        fast = self._params.driver == "fast" and self._params.cassandra.prepared and not self._tls
        if not fast:
            return LibraryConnection(self)
        host, port = self._nodes[session % len(self._nodes)]
        login = Login(host, port, self._user, self._password)
        return FastConnection(CqlWire(login, CONNECT_TIMEOUT_S, self._params.timeout_s), self)

    @property
    def params(self) -> NosqlBurstParams:
        """The scenario's parameters."""
        return self._params

    def acquire(self) -> Any:
        """The library's session that all connections of this process share, made when first wanted."""
        with self._lock:
            if self._session is None:
                cluster = self._made()
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

    def levels(self) -> tuple[int, int]:
        """The consistency of writes, and of reads, by the protocol's numbers: no read can ask for ANY."""
        asked = self._params.cassandra.consistency
        write, read = (
            getattr(ConsistencyLevel, name) for name in (asked, "ONE" if asked == "ANY" else asked)
        )
        return int(write), int(read)

    def write_query(self) -> str:
        """The statement that writes a record."""
        fields = range(self._params.fields)
        columns = ", ".join(f"field{number}" for number in fields)
        places = ", ".join("?" for _ in fields)
        ttl = "" if self._params.ttl_s is None else f" USING TTL {max(1, round(self._params.ttl_s))}"
        return f"INSERT INTO {self.table} (partition, item, {columns}) VALUES (?, ?, {places}){ttl}"  # noqa: S608 - our own names

    def read_query(self) -> str:
        """The statement that reads one."""
        columns = ", ".join(f"field{number}" for number in range(self._params.fields))
        return f"SELECT {columns} FROM {self.table} WHERE partition = ? AND item = ?"  # noqa: S608 - our own names

    def _values(self, item: int, fields: Fields) -> tuple[Any, ...]:
        return (item // self._params.partition_width, item, *fields)

    # ---- connecting ------------------------------------------------------------------------------

    def _made(self) -> Any:
        params = self._params.cassandra
        profile = ExecutionProfile(
            load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy(params.local_datacenter or "")),
            # A failure is an outcome: nothing tries again behind our back.
            retry_policy=FallthroughRetryPolicy(),
            consistency_level=self.levels()[1],
            request_timeout=self._params.timeout_s,
            row_factory=lambda _, rows: rows,
        )
        login = PlainTextAuthProvider(self._user, self._password) if self._user else None
        return Cluster(
            contact_points=self._nodes,
            auth_provider=login,
            ssl_context=_tls_context() if self._tls else None,
            protocol_version=4,
            connect_timeout=CONNECT_TIMEOUT_S,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            monitor_reporting_enabled=False,
        )

    @contextmanager
    def _client(self) -> Iterator[Session]:
        """The library for work outside the load; its failures come out as sentences."""
        try:
            cluster = self._made()
            try:
                yield cluster.connect()
            finally:
                cluster.shutdown()
        except _FAILURES as error:
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

    def _drop(self, session: Any, *, strict: bool = True) -> bool:
        """Drop the table where it is ours; whether it was there. ``strict``: another's is an error."""
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
        session.execute(f"DROP TABLE {self.table}", timeout=_DDL_TIMEOUT_S)
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
        elif level in {"ONE", "LOCAL_ONE"} and (replicas is None or replicas > 1):
            yield f"consistency is {level}, so a write is acknowledged when one replica has it"


class FastConnection:
    """One session's connection by ``fastpath.cql``, opened when needed and again, with pauses, when lost."""

    def __init__(self, wire: CqlWire, store: Cassandra) -> None:
        params = store.params
        self._wire = wire
        self._write, self._read = store.write_query(), store.read_query()
        self._width = params.partition_width
        self._write_level, self._read_level = store.levels()
        self._logged = params.cassandra.batch_type == "logged"
        self._backoff = Backoff()
        self._connect()

    def wait_until_due(self) -> None:
        """See ``contract.Connection``."""
        self._backoff.wait()

    def write(self, rows: Sequence[Row]) -> str:
        """See ``contract.Connection``."""
        if failure := self._connect():
            return failure
        try:
            values = [[*_key(item, self._width), *fields] for item, fields in rows]
            if len(values) == 1:
                self._wire.execute(self._write, values[0], self._write_level, _now_us())
            else:
                self._wire.batch(self._write, values, self._write_level, _now_us(), logged=self._logged)
        except _FAILURES as error:
            return self._failed(error)
        return OK

    def read(self, items: Sequence[int]) -> tuple[str, list[Fields | None]]:
        """See ``contract.Connection``."""
        if failure := self._connect():
            return failure, []
        found: list[Fields | None] = []
        try:
            for item in items:
                rows = self._wire.execute(self._read, _key(item, self._width), self._read_level, None)
                found.append(_record(rows[0]) if rows else None)
        except _FAILURES as error:
            return self._failed(error), []
        return OK, found

    def close(self) -> None:
        """See ``contract.Connection``."""
        self._wire.close()

    def _failed(self, error: BaseException) -> str:
        if not isinstance(error, messages.ErrorMessage):
            self._wire.close()  # a late answer must not be taken for the next one
        return outcome_of(error)

    def _connect(self) -> str:
        if self._wire.connected:
            return ""
        try:
            self._wire.connect()
        except _FAILURES as error:
            self._wire.close()
            self._backoff.failed()
            outcome = outcome_of(error)
            return "unreachable" if outcome in {"connection_lost", "timeout"} else outcome
        self._backoff.succeeded()
        return ""


class LibraryConnection:
    """One session's part of the library's connections, which all sessions of a process share."""

    def __init__(self, store: Cassandra) -> None:
        self._store = store
        self._session: Any = None
        self._statements: tuple[Any, Any] | None = None
        self._backoff = Backoff()
        self._connect()

    def wait_until_due(self) -> None:
        """See ``contract.Connection``."""
        self._backoff.wait()

    def write(self, rows: Sequence[Row]) -> str:
        """See ``contract.Connection``."""
        if failure := self._connect():
            return failure
        store = self._store
        width = store.params.partition_width
        try:
            write, _ = self._prepared()
            values = [(item // width, item, *fields) for item, fields in rows]
            if len(values) == 1:
                self._session.execute(write, values[0])
            else:
                kind = store.params.cassandra.batch_type
                batch_type = BatchType.LOGGED if kind == "logged" else BatchType.UNLOGGED
                batch = BatchStatement(batch_type=batch_type, consistency_level=store.levels()[0])
                for each in values:
                    batch.add(write, each)
                self._session.execute(batch)
        except _FAILURES as error:
            return outcome_of(error)
        return OK

    def read(self, items: Sequence[int]) -> tuple[str, list[Fields | None]]:
        """See ``contract.Connection``."""
        if failure := self._connect():
            return failure, []
        width = self._store.params.partition_width
        found: list[Fields | None] = []
        try:
            _, read = self._prepared()
            for item in items:
                rows = list(self._session.execute(read, (item // width, item)))
                found.append(_record(rows[0]) if rows else None)
        except _FAILURES as error:
            return outcome_of(error), []
        return OK, found

    def close(self) -> None:
        """See ``contract.Connection``."""
        if self._session is not None:
            self._session = None
            self._store.release()

    def _prepared(self) -> tuple[Any, Any]:
        if self._statements is None:
            queries = self._store.write_query(), self._store.read_query()
            if self._store.params.cassandra.prepared:
                self._statements = self._session.prepare(queries[0]), self._session.prepare(queries[1])
            else:  # the library puts the values in as text
                write, read = (SimpleStatement(query.replace("?", "%s")) for query in queries)
                self._statements = write, read
            self._statements[0].consistency_level = self._store.levels()[0]
        return self._statements

    def _connect(self) -> str:
        if self._session is not None:
            return ""
        try:
            self._session = self._store.acquire()
        except _FAILURES as error:
            self._backoff.failed()
            outcome = outcome_of(error)
            return "unreachable" if outcome in {"connection_lost", "timeout"} else outcome
        self._backoff.succeeded()
        return ""


_clock = threading.local()


def _now_us() -> int:
    """UTC microseconds that only rise: of two writes to one record, the later one must win."""
    now = max(time.time_ns() // 1000, getattr(_clock, "last", 0) + 1)
    _clock.last = now
    return now


def _key(item: int, width: int) -> list[bytes]:
    return [struct.pack(">q", item // width), struct.pack(">q", item)]


def _record(row: Sequence[bytes | None]) -> Fields:
    return [b"" if value is None else value for value in row]


def _node(host: str) -> tuple[str, int]:
    """Host and port of ``c1``, ``c1:9042``, ``[::1]:9042``."""
    parts = urlsplit(f"//{host}")
    return parts.hostname or "", parts.port or PORT


def _tls_context() -> Any:
    import ssl  # noqa: PLC0415 - only where a URL asks for it

    return ssl.create_default_context()


def _settings(session: Any) -> tuple[str, dict[str, str]]:
    """Which server it is, and what it says of its commit log; "not known" where we may not read it."""
    names = ("commitlog_sync", "commitlog_sync_period")
    for server, table in (("cassandra", "system_views.settings"), ("scylla", "system.config")):
        try:
            query = f"SELECT name, value FROM {table} WHERE name = %s"  # noqa: S608 - our own names
            rows = [session.execute(query, (name,)).one() for name in names]
        except (InvalidRequest, cassandra.Unauthorized):
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
