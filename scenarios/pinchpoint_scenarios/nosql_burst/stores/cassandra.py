"""Accesses Cassandra and ScyllaDB: by the library of the driver, and by ``CqlWire`` for operations."""

from __future__ import annotations

import itertools
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import SystemRandom
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import cassandra
from cassandra import (
    AlreadyExists,
    ConsistencyLevel,
    InvalidRequest,
    OperationTimedOut,
    Unauthorized,
    connection,
)
from cassandra import protocol as messages
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import DCAwareRoundRobinPolicy, FallthroughRetryPolicy, TokenAwarePolicy
from cassandra.protocol import ErrorMessage
from cassandra.query import SimpleStatement

from pinchpoint_collectors.common.backoff import Backoff

from ...addresses import place, unreachable, without_secrets
from ...contract import OK, Endpoint
from ...errors import EndpointUnreachable, ScenarioError
from ...fastpath.cql import CqlTimeoutError, CqlWire, Login
from ...fastpath.drivers.cql import CqlError
from ..hold import Hold, HoldEntry
from ..params import NosqlBurstParams
from ..records import Fields, Row
from .contract import MARKER, Store

CONNECT_TIMEOUT_S = 5.0
PORT = 9042
_LOAD_AT_ONCE = 64
_LOAD_STEP = 500
_DDL_TIMEOUT_S = 60.0
_NUMBERS = {"ONE": 1, "LOCAL_ONE": 1, "TWO": 2, "THREE": 3}
"""Consistency levels that are a number of replicas. All other levels need most or all replicas."""
_HOLDERS = -1
"""Partition of the rows that name the runs with the table. Records have partitions from 0 on."""

# ---- failures ---------------------------------------------------------------------------------------------

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
    (connection.ConnectionException, "connection_lost"),
    (OSError, "connection_lost"),
)
FAILURES = (
    *(cassandra.DriverException, messages.ErrorMessage, NoHostAvailable, CqlError),
    *(cassandra.RequestExecutionException, connection.ConnectionException, OSError),
)
"""Exceptions of all possible failures. Any other exception is an internal error."""


def outcome_of(error: BaseException) -> str:
    """Return the name of a failure; ``error_<class>`` for an unknown one."""
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


def outcome_of_connecting(error: BaseException) -> str:
    """Return the name of a failure to connect."""
    outcome = outcome_of(error)
    return "unreachable" if outcome in {"connection_lost", "timeout"} else outcome


# ---- statements, and a session's connection ---------------------------------------------------------------

Values = tuple[int | bytes, ...]
"""Values for the placeholders of a statement, in order."""


class TableStatements:
    """The statements of one table.

    Args:
        table: name of the table with its keyspace.
        params: parameters of the scenario.

    Attributes:
        create: statement that creates the table, without its options.
        write: statement that writes a record with ``values``.
        read: statement that reads the record with a ``key``.
        write_level: consistency level of writes, as the number in the protocol.
        read_level: consistency level of reads, which cannot be ANY.
        logged: whether a batch of writes is all or nothing.
    """

    def __init__(self, table: str, params: NosqlBurstParams) -> None:
        names = [f"field{number}" for number in range(params.fields)]
        columns, places = ", ".join(names), ", ".join("?" for _ in names)
        ttl = "" if params.ttl_s is None else f" USING TTL {max(1, round(params.ttl_s))}"
        typed = ", ".join(f"{name} blob" for name in names)
        self.create = (
            f"CREATE TABLE {table} (partition bigint, item bigint, {typed}, PRIMARY KEY ((partition), item))"
        )
        self.write = f"INSERT INTO {table} (partition, item, {columns}) VALUES (?, ?, {places}){ttl}"  # noqa: S608 - our own names
        self.read = f"SELECT {columns} FROM {table} WHERE partition = ? AND item = ?"  # noqa: S608 - our own names
        asked = params.cassandra.consistency
        self.write_level = int(getattr(ConsistencyLevel, asked))
        self.read_level = int(getattr(ConsistencyLevel, "ONE" if asked == "ANY" else asked))
        self.logged = params.cassandra.batch_type == "logged"
        self._width = params.partition_width

    def key(self, item: int) -> tuple[int, int]:
        """Return the values for ``read``: the partition of a record, and its number."""
        return item // self._width, item

    def values(self, row: Row) -> Values:
        """Return the values for ``write``."""
        item, fields = row
        return (item // self._width, item, *fields)


def record(rows: Sequence[Sequence[bytes | None]]) -> Fields | None:
    """Return the record that ``read`` found; None if there is none."""
    return [value or b"" for value in rows[0]] if rows else None


class CassandraConnection:
    """One session's connection. It is opened when needed, and reopened after a loss, with pauses.

    Args:
        wire: sends a statement.
        statements: the statements of the table.
    """

    def __init__(self, wire: CqlWire, statements: TableStatements) -> None:
        self._wire = wire
        self._statements = statements
        self._backoff = Backoff()
        self._connect()

    def wait_until_due(self) -> None:
        self._backoff.wait()

    def write(self, rows: Sequence[Row]) -> str:
        if not self._wire.connected and (failure := self._connect()):
            return failure
        answer = self._statements
        try:
            if len(rows) == 1:
                self._wire.execute(answer.write, answer.values(rows[0]), answer.write_level, _now_us())
            else:
                values = [answer.values(row) for row in rows]
                self._wire.batch(answer.write, values, answer.write_level, _now_us(), logged=answer.logged)
        except FAILURES as error:
            return self._failed(error)
        return OK

    def read(self, items: Sequence[int]) -> tuple[str, list[Fields | None]]:
        if not self._wire.connected and (failure := self._connect()):
            return failure, []
        answer = self._statements
        try:
            result = [
                self._wire.execute(answer.read, answer.key(item), answer.read_level, None) for item in items
            ]
        except FAILURES as error:
            return self._failed(error), []
        return OK, [record(rows) for rows in result]

    def close(self) -> None:
        self._wire.close()

    def _failed(self, error: BaseException) -> str:
        if not isinstance(error, ErrorMessage):
            self._wire.close()  # a late answer must not be mistaken for the next one
        return outcome_of(error)

    def _connect(self) -> str:
        try:
            self._wire.connect()
        except FAILURES as error:
            self._wire.close()
            self._backoff.failed()
            return outcome_of_connecting(error)
        self._backoff.succeeded()
        return ""


class WriteClock:
    """Returns UTC microseconds that only increase in this process.

    Of two writes to one record, the later one must win.

    All sessions of a process share it, because they share records, and because a clock may be set back.
    """

    def __init__(self) -> None:
        self._last_us = 0
        self._lock = threading.Lock()

    def now_us(self) -> int:
        """Return the time of a new write in UTC microseconds."""
        with self._lock:
            self._last_us = max(time.time_ns() // 1000, self._last_us + 1)
            return self._last_us


_now_us = WriteClock().now_us


# ---- the cluster ------------------------------------------------------------------------------------------


class _ClusterAddress:
    """The nodes of a cluster, the login, and the settings of the library.

    Args:
        endpoint: endpoint of the farm.
        params: parameters of the scenario.
        statements: statements with the consistency levels.
    """

    def __init__(self, endpoint: Endpoint, params: NosqlBurstParams, statements: TableStatements) -> None:
        url = urlsplit(endpoint.url)
        login, _, hosts = url.netloc.rpartition("@")
        user, _, password = login.partition(":")
        self._user = endpoint.options.get("user") or unquote(user)
        self._password = endpoint.options.get("password") or unquote(password)
        self._nodes = [_node(host) for host in hosts.split(",") if host]
        self._params = params
        self._level = statements.read_level
        self._tls = ssl.create_default_context() if parse_qs(url.query).get("tls") == ["true"] else None

    def login(self, session: int) -> Login:
        """Return the node and login for a session. Sessions use the nodes in turn."""
        host, port = self._nodes[session % len(self._nodes)]
        return Login(host, port, self._user, self._password, self._tls)

    def cluster(self) -> Any:
        """Return a cluster object of the library that is not connected yet."""
        params = self._params.cassandra
        profile = ExecutionProfile(
            load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy(params.local_datacenter or "")),
            # A failure is an outcome, so the driver must not retry.
            retry_policy=FallthroughRetryPolicy(),
            consistency_level=self._level,
            request_timeout=self._params.timeout_s,
            row_factory=lambda _, rows: rows,
        )
        return Cluster(
            contact_points=self._nodes,
            auth_provider=PlainTextAuthProvider(self._user, self._password) if self._user else None,
            ssl_context=self._tls,
            protocol_version=4,
            connect_timeout=CONNECT_TIMEOUT_S,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            monitor_reporting_enabled=False,
        )


def _node(host: str) -> tuple[str, int]:
    """Return host and port of ``c1``, ``c1:9042`` or ``[::1]:9042``."""
    parts = urlsplit(f"//{host}")
    return parts.hostname or "", parts.port or PORT


# ---- what a scenario has there ----------------------------------------------------------------------------


def open_store(endpoint: Endpoint, name: str, params: NosqlBurstParams) -> Store:
    """Return the store of an endpoint without connecting to it."""
    return Cassandra(endpoint, name, params)


class Cassandra:
    """One cluster.

    A record is a row: ``partition`` is its number ÷ ``partition_width``, ``item`` the number itself.
    """

    def __init__(self, endpoint: Endpoint, name: str, params: NosqlBurstParams) -> None:
        self._endpoint = endpoint
        self._params = params
        self._comment = f"{MARKER} ({name})"
        self._keyspace = unquote(urlsplit(endpoint.url).path.strip("/"))
        self._short = f"pinch_{name.replace('-', '_')}"
        self._table = f'"{self._keyspace}"."{self._short}"'
        self._statements = TableStatements(self._table, params)
        self._access = _ClusterAddress(endpoint, params, self._statements)
        self.what = f"the table {self._short} of the keyspace {self._keyspace}"
        self._hold = Hold(endpoint, self.what)

    def check(self) -> Mapping[str, Any]:
        """Return version, durability of an acknowledged write, and whether the keyspace exists."""
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

    def claim(self, progress: Callable[[str], None], *, take_over: bool = False) -> None:
        """Create the table anew and reserve it for this run.

        Raises ``ScenarioError`` if another table has the same name, or if another run has the table.
        """

        def hold(entry: HoldEntry) -> bool:
            self._hold.take(entry, over=take_over)
            return True

        with self._client() as session:
            if self._drop(session, hold):
                progress("dropped the table of an earlier run")
            created = f"{self._statements.create} WITH comment = '{self._comment}'"
            try:
                session.execute(created, timeout=_DDL_TIMEOUT_S)
            except AlreadyExists as error:
                raise self._hold.refusal("it has just begun") from error
            # The reservation was dropped with the table. A run that entered meanwhile keeps its reservation.
            self._hold.take(self._entry(session))

    def load(self, rows: Iterable[Row], progress: Callable[[int], None]) -> None:
        """Write many records, some dozens at a time. Raises ``ScenarioError`` if one is refused."""
        answer = self._statements
        with self._client() as session:
            statement = session.prepare(answer.write)
            statement.consistency_level = answer.write_level
            remaining, loaded = iter(rows), 0
            while batch := list(itertools.islice(remaining, _LOAD_STEP)):
                values = [answer.values(row) for row in batch]
                execute_concurrent_with_args(session, statement, values, concurrency=_LOAD_AT_ONCE)
                loaded += len(batch)
                progress(loaded)

    def connect(self, session: int) -> CassandraConnection:
        """Return a session's connection to one of the nodes in the URL."""
        wire = CqlWire(
            self._access.login(session),
            CONNECT_TIMEOUT_S,
            self._params.timeout_s,
            prepared=self._params.cassandra.prepared,
        )
        return CassandraConnection(wire, self._statements)

    def remove(self) -> None:
        """Drop the table with its reservation. A table without the mark is not dropped."""
        with self._client() as session:
            self._drop(session, self._hold.have, strict=False)
            self._hold.release(self._entry(session))

    def release(self) -> None:
        if self._hold.held:
            with self._client() as session:
                self._hold.release(self._entry(session))

    def _entry(self, session: Any) -> HoldEntry:
        return _HoldRows(self._table, session)

    @contextmanager
    def _client(self) -> Iterator[Session]:
        """Open the library for work outside the load. Its failures become messages."""
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
        causes = error.errors.values() if isinstance(error, NoHostAvailable) else (error,)
        text = without_secrets("; ".join(dict.fromkeys(map(str, causes))) or str(error), self._endpoint)
        cause, remedy = {
            "authentication": ("the server refused the user or the password", "correct them in farm.yaml"),
            "permission": (f"the user lacks a right: {text}", "grant it, or name another user"),
            "connection_lost": ("no node answers", "start one, or correct hosts and port in farm.yaml"),
            "timeout": ("the server did not answer in time", "check the address and the server's load"),
            "error_unresolvablecontactpoints": ("no host name can be resolved", "correct it in farm.yaml"),
        }.get(outcome, (f"the server said: {text}", "see the server's log"))
        return unreachable(self._endpoint, cause, remedy)

    def _drop(self, session: Any, hold: Callable[[HoldEntry], bool], *, strict: bool = True) -> bool:
        """Drop the table if it has the mark and ``hold`` can reserve it. Return whether it was dropped.

        ``strict`` is that of ``_there``.
        """
        if not self._there(session, strict=strict):
            return False
        try:
            held = hold(self._entry(session))
        except InvalidRequest:
            # The run that has the table may have ended and dropped it meanwhile.
            session.cluster.refresh_schema_metadata()
            if self._there(session, strict=strict):
                raise
            return False
        if held:
            session.execute(f"DROP TABLE {self._table}", timeout=_DDL_TIMEOUT_S)
            self._hold.dropped()
        return held

    def _there(self, session: Any, *, strict: bool) -> bool:
        """Return whether the table exists and has the mark.

        ``strict``: a table without the mark is an error.
        """
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
        """Yield what makes an acknowledged write less than durable on the requested replicas."""
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
    """Return the server's name and its commit log settings; "not known" without the right to read them."""
    names = ("commitlog_sync", "commitlog_sync_period")
    for server, table in (("cassandra", "system_views.settings"), ("scylla", "system.config")):
        try:
            query = f"SELECT name, value FROM {table} WHERE name = %s"  # noqa: S608 - our own names
            rows = [session.execute(query, (name,)).one() for name in names]
        except (InvalidRequest, Unauthorized):
            continue
        result = {row[0]: row[1] for row in rows if row is not None}
        return server, {"commitlog_sync": "not known"} | result
    return "cassandra", {"commitlog_sync": "not known"}


def _replicas(keyspace: Any) -> int | None:
    """Return the replicas of a row over all data centers; None if the strategy does not define them."""
    strategy = keyspace.replication_strategy
    factors = getattr(strategy, "dc_replication_factors", None)
    if factors:
        return sum(int(getattr(factor, "all_replicas", factor)) for factor in factors.values())
    factor = getattr(strategy, "replication_factor", None)
    return None if factor is None else int(factor)


class _HoldRows:
    """A ``HoldEntry`` in rows of a partition without records. Every run that enters has a row.

    Each run writes to most nodes before it reads from most nodes. Of two runs at least one sees the other,
    and if both do, both leave. A lightweight transaction would let one of them enter, but ScyllaDB up to
    2025.3 has none in keyspaces with tablets.
    """

    def __init__(self, table: str, session: Any) -> None:
        self._table = table
        self._session = session

    def enter(self, holder: str, *, over: bool) -> str | None:
        entered = self._entered()
        if over:
            for other in entered.keys() - {holder}:
                self._delete(entered[other])
        elif holder not in entered and entered:
            return min(entered)
        if holder in entered:
            return None  # the other run also sees this one, and leaves
        item = SystemRandom().getrandbits(63)
        insert = f"INSERT INTO {self._table} (partition, item, field0) VALUES (%s, %s, %s)"  # noqa: S608 - our own names
        self._run(insert, item, holder.encode())
        others = self._entered().keys() - {holder}
        if not others:
            return None
        self._delete(item)
        return min(others)

    def leave(self, holder: str) -> str | None:
        entered = self._entered()
        if (item := entered.pop(holder, None)) is not None:
            self._delete(item)
        return min(entered, default=None)

    def _entered(self) -> dict[str, int]:
        rows = self._run(f"SELECT item, field0 FROM {self._table} WHERE partition = %s")  # noqa: S608 - our own names
        return {holder.decode(errors="replace"): item for item, holder in rows}

    def _delete(self, item: int) -> None:
        self._run(f"DELETE FROM {self._table} WHERE partition = %s AND item = %s", item)  # noqa: S608 - our own names

    def _run(self, statement: str, *values: Any) -> Any:
        answer = SimpleStatement(statement, consistency_level=ConsistencyLevel.QUORUM)
        return self._session.execute(answer, (_HOLDERS, *values))
