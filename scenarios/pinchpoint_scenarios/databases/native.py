"""Provides access to PostgreSQL by its own library."""

from __future__ import annotations

import math
import select
import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from operator import call
from time import monotonic
from typing import Any, LiteralString

import psycopg
from psycopg.adapt import Transformer
from psycopg.conninfo import conninfo_to_dict
from psycopg.postgres import types
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult

from ..contract import Endpoint
from ..errors import EndpointUnreachable
from ..fastpath.readiness import readiness
from ..sql_text import forgets, sets_time_limit
from .access import Access
from .contract import DatabaseFailure, Link, ReadableResult, Reopening, Result, TextResult, Texts
from .postgresql import CONNECTION_LOST, Connection, connect, first_line, outcome_of, refused
from .servers.contract import POSTGRESQL

# Statements run directly over libpq (psycopg's ``pq``), at nearly the cost of a C program. Compared with a
# cursor, the following is left out: types and formats per call (a statement is described once, when it is
# prepared), generators that drive the protocol, a watcher per wait, and rows that are not fetched.

# These are plain numbers, because a comparison with members of an enumeration takes longer than the libpq
# call.
_BINARY = int(Format.BINARY)
_IN_TRANSACTION = frozenset({int(TransactionStatus.INTRANS), int(TransactionStatus.INERROR)})
_ROWS = int(ExecStatus.TUPLES_OK)
_FAILED = int(ExecStatus.FATAL_ERROR)
# The ping of a pool may consist of a comment, which is an empty query.
_GOOD = frozenset({int(ExecStatus.COMMAND_OK), _ROWS, int(ExecStatus.EMPTY_QUERY)})
_PARTS = _GOOD | {_FAILED}  # after any other status, libpq waits for more input or never ends
_COPYING = frozenset({int(ExecStatus.COPY_IN)})
_COPIED_BYTES = 2**18
"""Number of bytes of COPY that are given to libpq at once."""

_Encode = Callable[[Any], bytes]
_BINARY_FORMS: Mapping[str, _Encode] = {
    "bool": struct.Struct(">?").pack,
    "int2": struct.Struct(">h").pack,
    "int4": struct.Struct(">i").pack,
    "int8": struct.Struct(">q").pack,
    "float4": struct.Struct(">f").pack,
    "float8": struct.Struct(">d").pack,
    "bytea": bytes.__bytes__,
}
"""Type -> binary form of its values (PostgreSQL's sources, each type's ``*recv`` function)."""
_AS_TEXT = ("text", "varchar", "bpchar")
SILENT_S = 10.0
"""Seconds beyond a statement's time limit after which a server that sends and accepts no data counts as
lost."""


class FastConnection(Reopening):
    """One session's connection. Its statements run directly on libpq.

    Args:
        endpoint: endpoint of the server.
        application: ``application_name`` of the connection on the server.
        statement_timeout_s: time limit of a statement on the server in seconds.
        greet: called with every new connection before its first use (search path, facts).
        pinned: whether names are those of the server itself (see ``connect``).
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        application: str,
        statement_timeout_s: float,
        greet: Callable[[Connection], None],
        pinned: bool = True,
    ) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._application = application
        self._statement_timeout_s = statement_timeout_s
        self._greet = greet
        self._pinned = pinned
        self._connection: Connection | None = None
        self._direct: _Direct | None = None

    def execute(self, statement: LiteralString, parameters: Sequence[Any] = ()) -> Result:
        """Run one prepared statement (see ``SqlConnection``). Raises ``DatabaseFailure``."""
        direct = self._direct or self._open()
        try:
            return direct.execute(statement, parameters)
        except psycopg.Error as error:
            raise self._failure(error) from error

    def query(self, text: str) -> TextResult:
        """Send a text unchanged, with one or several statements. Raises ``DatabaseFailure``.

        Several statements are one transaction unless they begin transactions of their own. Returns the result
        of the last statement.
        """
        direct = self._direct or self._open()
        try:
            return direct.query(text)
        except psycopg.Error as error:
            raise self._failure(error) from error

    def execute_as_text(
        self, statement: str, parameters: Sequence[bytes | None], *, prepared: bool = True
    ) -> TextResult:
        """Run one statement. The server determines the types of its ``$1`` placeholders.

        Args:
            statement: text of the statement.
            parameters: values as text; None is null.
            prepared: whether the statement is prepared once, or parsed and planned each time.

        Raises:
            DatabaseFailure: the statement failed, or the text of a parameter is not a value of its type.
        """
        direct = self._direct or self._open()
        try:
            if prepared:
                return direct.execute_prepared(statement, parameters)
            return direct.execute_once(statement, parameters)
        except psycopg.Error as error:
            raise self._failure(error) from error

    def copy(self, statement: LiteralString, content: bytes) -> Result:
        """Run ``COPY ... FROM STDIN`` with ``content`` as the whole input. Raises ``DatabaseFailure``.

        Outside ``transaction()`` each call is a transaction of its own, so a return means that it is
        committed.
        """
        direct = self._direct or self._open()
        try:
            return direct.copy(statement, content)
        except psycopg.Error as error:
            raise self._failure(error) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run several statements as a transaction: committed at the end, rolled back by an exception."""
        self.query("BEGIN")
        try:
            yield
        except BaseException:
            with suppress(DatabaseFailure):  # the connection is lost, and with it the transaction
                self.roll_back()
            raise
        self.query("COMMIT")

    @property
    def in_transaction(self) -> bool:
        """Return whether a transaction is still open."""
        result = self._connection
        return result is not None and result.pgconn.transaction_status in _IN_TRANSACTION

    def roll_back(self) -> None:
        """Roll back the open transaction, if there is one. Raises ``DatabaseFailure``."""
        if self.in_transaction:
            self.query("ROLLBACK")

    def _open(self) -> _Direct:
        try:
            connection = connect(self._endpoint, self._application, pinned=self._pinned)
        except psycopg.Error as error:
            self._backoff.failed()
            raise DatabaseFailure(outcome_of(error, connecting=True), str(error)) from error
        try:
            timeout_ms = str(max(1, round(self._statement_timeout_s * 1000)))
            connection.execute("SELECT pg_catalog.set_config('statement_timeout', %s, false)", [timeout_ms])
            self._greet(connection)
        except psycopg.Error as error:
            connection.close()
            self._backoff.failed()
            raise DatabaseFailure(outcome_of(error), str(error)) from error
        self._backoff.succeeded()
        self._connection = connection
        self._direct = _Direct(connection, self._statement_timeout_s + SILENT_S)
        return self._direct

    def _failure(self, error: psycopg.Error) -> DatabaseFailure:
        outcome = outcome_of(error)
        if outcome == CONNECTION_LOST or (self._connection is not None and self._connection.closed):
            self._drop()
        return DatabaseFailure(outcome, str(error))

    def _drop(self) -> None:
        if self._direct is not None:
            self._direct.close()  # before its descriptor is closed
            self._direct = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@dataclass(frozen=True, slots=True)
class _Statement:
    """A prepared statement: its name on the server, and encoding and format of each parameter."""

    name: bytes
    encoders: tuple[_Encode, ...]
    formats: list[int]

    def encoded(self, parameters: Sequence[Any]) -> list[bytes | None]:
        if len(parameters) != len(self.encoders):
            raise psycopg.ProgrammingError(
                f"{len(parameters)} parameters were given to a statement that takes {len(self.encoders)}"
            )
        try:
            return list(map(call, self.encoders, parameters))
        except (struct.error, TypeError):  # if no parameter is None, the error is raised again
            pairs = zip(self.encoders, parameters, strict=True)
            return [None if value is None else encode(value) for encode, value in pairs]


_NO_TEXTS = Texts((), ())


class _Direct:
    """An open connection without psycopg's cursors, and the ``Result`` of its last statement.

    All failures are raised as ``psycopg.Error``.

    Args:
        connection: open connection.
        limit_s: time limit in seconds of one wait for the server during a statement, until a text of the user
            sets another limit.
    """

    def __init__(self, connection: Connection, limit_s: float) -> None:
        self._limit_s = limit_s
        self._pgconn = connection.pgconn  # non-blocking, as psycopg set it
        self._encoding = connection.info.encoding
        self._readiness = readiness(self._pgconn.socket)
        self._transformer = Transformer(connection)
        self._statements: dict[str, _Statement] = {}
        self._names: dict[str, bytes] = {}
        self._named = 0
        self._result: PGresult | None = None
        self._results: list[PGresult] = []
        self._next_row = 0

    def execute(self, statement: LiteralString, parameters: Sequence[Any]) -> _Direct:
        known = self._statements.get(statement) or self._prepare(statement)
        self._pgconn.send_query_prepared(known.name, known.encoded(parameters), known.formats, _BINARY)
        self._result = self._answer(self._limit_s)
        self._next_row = 0
        return self

    def query(self, text: str) -> _Direct:
        if self._names and forgets(text):
            self._names.clear()  # the statements that this process prepared are forgotten, too
        limit_s = self._limit_of(text)
        self._pgconn.send_query(text.encode(self._encoding))
        self._result = self._answer(limit_s)
        return self

    def execute_once(self, statement: str, parameters: Sequence[bytes | None]) -> _Direct:
        limit_s = self._limit_of(statement)
        self._pgconn.send_query_params(statement.encode(self._encoding), parameters)
        self._result = self._answer(limit_s)
        return self

    def execute_prepared(self, statement: str, parameters: Sequence[bytes | None]) -> _Direct:
        name = self._names.get(statement)
        if name is None:
            # each name is used once, because DEALLOCATE of a text forgets one name and not the others
            self._named += 1
            name = b"text_%d" % self._named
            self._pgconn.send_prepare(name, statement.encode(self._encoding))
            self._answer(self._limit_of(statement))
            self._names[statement] = name
        self._pgconn.send_query_prepared(name, parameters)
        self._result = self._answer(self._limit_s)
        return self

    def copy(self, statement: LiteralString, content: bytes) -> _Direct:
        pgconn = self._pgconn
        pgconn.send_query(statement.encode(self._encoding))
        self._answer(self._limit_s, _COPYING)
        for first in range(0, len(content), _COPIED_BYTES):
            pgconn.put_copy_data(
                content[first : first + _COPIED_BYTES]
            )  # libpq's buffer has room: the message was sent
            while pgconn.flush():
                self._wait_writable(self._limit_s)
        pgconn.put_copy_end()
        self._result = self._answer(self._limit_s)
        return self

    def texts(self) -> Texts:
        return self._texts(self._result)

    def every(self) -> list[Texts]:
        return [self._texts(each) for each in self._results]

    def _texts(self, answer: PGresult | None) -> Texts:
        """Return every value of an answer in text format."""
        if answer is None or answer.status != _ROWS:
            return _NO_TEXTS
        columns, encoding = range(answer.nfields), self._encoding
        names = tuple((answer.fname(column) or b"").decode(encoding) for column in columns)
        result = (tuple(answer.get_value(row, column) for column in columns) for row in range(answer.ntuples))
        rows = tuple(
            tuple(None if value is None else value.decode(encoding) for value in values) for values in result
        )
        return Texts(names, rows)

    def close(self) -> None:
        self._readiness.close()

    # ---- the last statement's result -------------------------------------------------------------

    @property
    def rowcount(self) -> int:
        """Return the number of rows inserted, changed or selected; -1 if the statement has no count."""
        rows = self._result.command_tuples if self._result else None
        return -1 if rows is None else rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row; None after the last row."""
        if self._next_row >= self._rows():
            return None
        self._next_row += 1
        return self._transformer.load_row(self._next_row - 1, tuple)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all further rows."""
        first, self._next_row = self._next_row, self._rows()
        return self._transformer.load_rows(first, self._next_row, tuple)

    def _rows(self) -> int:
        result = self._result
        if result is None or result.status != _ROWS:
            raise psycopg.ProgrammingError("the statement gives no rows")
        if self._transformer.pgresult is not result:
            self._transformer.set_pgresult(result)
        return result.ntuples

    # ---- statements ------------------------------------------------------------------------------

    def _prepare(self, statement: LiteralString) -> _Statement:
        name = b"direct_%d" % len(self._statements)
        self._pgconn.send_prepare(name, statement.encode(self._encoding))
        self._answer(self._limit_s)
        self._pgconn.send_describe_prepared(name)
        described = self._answer(self._limit_s)
        encoders = tuple(
            self._encoder(statement, number, described.param_type(number))
            for number in range(described.nparams)
        )
        known = _Statement(name, encoders, [_BINARY] * len(encoders))
        self._statements[statement] = known
        return known

    def _encoder(self, statement: str, number: int, oid: int) -> _Encode:
        result = types.get(oid)
        name = result.name if result else f"of OID {oid}"
        if name in _AS_TEXT:
            return lambda value: str.encode(value, self._encoding)
        if name not in _BINARY_FORMS:
            raise psycopg.ProgrammingError(
                f"parameter ${number + 1} of {statement!r} has type {name}; "
                f"cast it to one of {', '.join((*_BINARY_FORMS, *_AS_TEXT))}"
            )
        return _BINARY_FORMS[name]

    # ---- answers ---------------------------------------------------------------------------------

    def _limit_of(self, text: str) -> float:
        """Return the time limit of one wait for the answer to a text.

        The limit of the server applies to each statement in the text.

        The limit is unknown from the first text on that sets a limit itself, because any value is possible.
        """
        if sets_time_limit(text):
            self._limit_s = math.inf
        return self._limit_s * (1 + text.count(";"))

    def _wait_writable(self, limit_s: float) -> None:
        _within(limit_s, self._readiness.wait_writable)
        self._pgconn.consume_input()

    def _answer(self, limit_s: float, good: Collection[int] = _GOOD) -> PGresult:
        """Wait for the whole answer. Return its first failure, or else its last part.

        A wait longer than ``limit_s`` is a lost connection.

        A successful statement is not committed yet, and its commit may still fail. All parts are kept for
        ``every``.
        """
        pgconn, wait = self._pgconn, self._readiness.wait_readable
        answer: PGresult | None = None
        parts = self._results = []
        try:
            while pgconn.flush():
                self._wait_writable(limit_s)
            while True:
                while pgconn.is_busy():
                    _within(limit_s, wait)
                    pgconn.consume_input()
                part = pgconn.get_result()
                if part is None:
                    break
                parts.append(part)
                if answer is None or answer.status != _FAILED:
                    answer = part
                if part.status not in _PARTS:
                    break
        except psycopg.OperationalError:
            # Otherwise the server sent the reason before it closed the connection.
            if answer is None or answer.status != _FAILED:
                raise
        if answer is None or answer.status not in good:
            raise self._error(answer)
        return answer

    def _error(self, answer: PGresult | None) -> psycopg.Error:
        if answer is None:
            return psycopg.OperationalError("the server sent no answer")
        if answer.status != _FAILED:
            result = ExecStatus(answer.status).name
            return psycopg.ProgrammingError(f"execute: a statement cannot be answered by {result}")
        error = psycopg.errors.error_from_result(answer, encoding=self._encoding)
        if error.sqlstate is None and self._pgconn.status == ConnStatus.BAD:
            return psycopg.OperationalError(str(error))  # text of libpq for a lost connection
        return error


def _within(limit_s: float, wait: Callable[[float], bool]) -> None:
    if not wait(monotonic() + limit_s):
        raise psycopg.OperationalError("the server took or sent nothing for longer than a statement may take")


_UNLOCK_S = 5.0
_INSPECTION_TIMEOUT = "SET LOCAL statement_timeout = '5s'"
"""Time limit for reading the catalogue. The limit of the role may be too short for that."""
_LIMITS = """SELECT current_user, r.rolconnlimit, d.datname, d.datconnlimit,
    (SELECT reset_val || unit FROM pg_settings WHERE name = 'statement_timeout' AND reset_val <> '0'),
    pg_backend_pid()
    FROM pg_roles r, pg_database d WHERE r.rolname = current_user AND d.datname = current_database()"""


class NativeLink:
    """A ``Link`` that uses psycopg. Raises ``psycopg.Error``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cursor = psycopg.RawCursor(connection)

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> ReadableResult:
        cursor = self._cursor.execute(statement.encode(), parameters or None)
        return ReadableResult(cursor.rowcount, cursor.fetchall() if cursor.description else ())

    def send(self, text: str) -> None:
        self._cursor.execute(text.encode())

    def parse(self, text: str) -> None:
        """Let the server parse one statement of any kind without executing it."""
        answer = self._connection.pgconn.prepare(b"", text.encode())
        if answer.status == psycopg.pq.ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(answer)

    def transaction(self) -> AbstractContextManager[Any]:
        return self._connection.transaction()

    def lists_as_texts(self) -> None:
        """Return the text unchanged, because libpq sends no length."""

    @property
    def server_process(self) -> int:
        """Return the process number of the session, as reported when the connection was opened."""
        return self._connection.info.backend_pid

    def alive(self) -> bool:
        try:
            self._connection.execute("SELECT")
        except psycopg.OperationalError:
            return False
        return True

    def release_locks(self, unlock: str) -> None:
        link, until_s = self._connection.pgconn, monotonic() + _UNLOCK_S
        with suppress(psycopg.Error, OSError, ValueError):  # the connection is lost, and with it its locks
            link.send_query(unlock.encode())
            while link.is_busy() and (left_s := until_s - monotonic()) > 0:
                if select.select([link.socket], [], [], left_s)[0]:
                    link.consume_input()
        self.close()

    def close(self) -> None:
        self._connection.close()


class NativeAccess(Access):
    """Access to PostgreSQL by psycopg; a session's statements use libpq."""

    error = psycopg.Error
    native = True

    def __init__(self, endpoint: Endpoint, name: str) -> None:
        super().__init__(endpoint, name, POSTGRESQL)

    def open(self, *, pinned: bool = True) -> NativeLink:
        return NativeLink(connect(self.endpoint, self.name, pinned=pinned))

    @contextmanager
    def inspection(self) -> Iterator[NativeLink]:
        """Inspect the server within one transaction, which leaves no setting behind.

        A pooler may give the session on the server to users of the farm next.
        """
        try:
            connection = connect(self.endpoint, self.name, pinned=False)
        except psycopg.Error as error:
            raise self.refused(error) from error
        with connection, connection.transaction():
            connection.execute(_INSPECTION_TIMEOUT)
            connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
            yield NativeLink(connection)

    @property
    def database(self) -> str:
        return str(conninfo_to_dict(self.endpoint.url).get("dbname") or "")

    def facts(self, link: Link) -> dict[str, Any]:
        """Return facts about the server, with warnings about limits of the role and about a pooler."""
        assert isinstance(link, NativeLink)  # noqa: S101 - for the type: it was opened here
        result = super().facts(link)
        row = link.execute(_LIMITS).fetchone()
        assert row is not None  # noqa: S101 - there is a role, and a database
        role, of_role, database, of_database, timeout, pid = row
        warnings = [
            f"{what} may have {limit} connections at once (CONNECTION LIMIT); a load needs one for each "
            "user, and one more"
            for what, limit in ((f"role {role}", of_role), (f"database {database}", of_database))
            if limit >= 0
        ]
        if timeout:
            warnings.append(
                f"statement_timeout is {timeout} for this role or database; the load has limits of its own "
                "in its place"
            )
        if pid != link.server_process:
            warnings.append(
                "a connection pooler answers in place of the server: the number of sessions at the server "
                "and their names are the pooler's, waiting for the pool counts as response time, and a "
                "session's settings may reach other clients; name the server, or use pool_mode = session"
            )
        result["warnings"] += [f"{self.place}: {why}" for why in warnings]
        return result

    def session(self, timeout_s: float, ready: Callable[[Link], None]) -> FastConnection:
        return FastConnection(
            self.endpoint,
            application=self.name,
            statement_timeout_s=timeout_s,
            greet=lambda connection: ready(NativeLink(connection)),
        )

    def own_session(self, timeout_s: float) -> FastConnection:
        return FastConnection(
            self.endpoint,
            application=self.name,
            statement_timeout_s=timeout_s,
            greet=lambda _: None,
            pinned=False,
        )

    def parse(self, link: Link, text: str) -> bool:
        assert isinstance(link, NativeLink)  # noqa: S101 - for the type: it was opened here
        link.parse(text)
        return True

    def refused(self, error: psycopg.Error) -> EndpointUnreachable:
        return refused(self.endpoint, error)

    def message(self, error: psycopg.Error) -> str:
        return first_line(error)

    def state(self, error: psycopg.Error) -> str:
        return error.sqlstate or ""
