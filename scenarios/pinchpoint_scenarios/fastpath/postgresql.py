"""PostgreSQL at about the speed of C: libpq itself, a wait per statement, nothing between (psycopg's ``pq``).

What is left out against a cursor: finding out types and formats for each call (a statement is described once,
when it is prepared), generators that drive the protocol, a watcher for each wait, rows that nobody fetches.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, cast

import psycopg
from psycopg import abc
from psycopg.adapt import Transformer
from psycopg.postgres import types
from psycopg.pq import ConnStatus, ExecStatus, Format
from psycopg.pq.abc import PGresult

from ..databases.contract import Result
from ..databases.postgresql import Connection, Cursor, ReconnectingConnection
from .readiness import readiness

_BINARY = int(Format.BINARY)
_GOOD = frozenset({int(ExecStatus.COMMAND_OK), int(ExecStatus.TUPLES_OK)})

_Encode = Callable[[Any], bytes]
_BINARY_FORMS: Mapping[str, _Encode] = {
    "bool": struct.Struct(">?").pack,
    "int2": struct.Struct(">h").pack,
    "int4": struct.Struct(">i").pack,
    "int8": struct.Struct(">q").pack,
    "float4": struct.Struct(">f").pack,
    "float8": struct.Struct(">d").pack,
    "bytea": bytes,
}
"""Type -> how its values travel in binary (PostgreSQL's sources, each type's ``*recv`` function)."""
_AS_TEXT = ("text", "varchar", "bpchar")


class FastConnection(ReconnectingConnection):
    """One session's connection: opened, greeted, lost and named as psycopg's, each statement run by libpq.

    COPY and what begins and ends a transaction of several statements stay psycopg's. Its arguments, too.
    """

    _direct: _Direct | None = None

    def execute(self, statement: LiteralString, parameters: Sequence[Any] = ()) -> Result:
        """Run one prepared statement; raises ``DatabaseFailure``. See ``SqlConnection``."""
        if self._direct is None:
            self._open()
        direct = cast("_Direct", self._direct)
        try:
            return direct.execute(statement, parameters)
        except psycopg.Error as error:
            raise self._failure(error) from error

    def _open(self) -> Cursor:
        cursor = super()._open()
        self._direct = _Direct(cursor.connection)
        return cursor

    def _drop(self) -> None:
        if self._direct is not None:
            self._direct.close()  # before its descriptor is
            self._direct = None
        super()._drop()


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement as the server knows it: its name there, how each parameter is encoded, in which format."""

    name: bytes
    encoders: tuple[_Encode, ...]
    formats: list[int]


class _Direct:
    """An open connection, past psycopg's cursors; raises ``psycopg.Error``."""

    def __init__(self, connection: Connection) -> None:
        self._pgconn = connection.pgconn  # non-blocking, as psycopg leaves it
        self._encoding = connection.info.encoding
        self._readiness = readiness(self._pgconn.socket)
        self._transformer = Transformer(connection)
        self._statements: dict[str, _Statement] = {}

    def execute(self, statement: LiteralString, parameters: Sequence[Any]) -> Answer:
        known = self._statements.get(statement) or self._prepare(statement)
        values = [
            None if value is None else encode(value)
            for encode, value in zip(known.encoders, parameters, strict=True)
        ]
        self._pgconn.send_query_prepared(known.name, values, known.formats, _BINARY)
        return Answer(self._answer(), self._transformer)

    def close(self) -> None:
        self._readiness.close()

    def _prepare(self, statement: LiteralString) -> _Statement:
        name = b"direct_%d" % len(self._statements)
        self._pgconn.send_prepare(name, statement.encode(self._encoding))
        self._answer()
        self._pgconn.send_describe_prepared(name)
        described = self._answer()
        encoders = tuple(
            self._encoder(statement, number, described.param_type(number))
            for number in range(described.nparams)
        )
        known = _Statement(name, encoders, [_BINARY] * len(encoders))
        self._statements[statement] = known
        return known

    def _encoder(self, statement: str, number: int, oid: int) -> _Encode:
        found = types.get(oid)
        name = found.name if found else f"of OID {oid}"
        if name in _AS_TEXT:
            return lambda value: value.encode(self._encoding)
        if name not in _BINARY_FORMS:
            raise psycopg.ProgrammingError(
                f"parameter ${number + 1} of {statement!r} has type {name}; "
                f"cast it to one of {', '.join((*_BINARY_FORMS, *_AS_TEXT))}"
            )
        return _BINARY_FORMS[name]

    def _answer(self) -> PGresult:
        """Wait for the whole answer to what was sent: a commit may fail after its statement went well."""
        pgconn, wait = self._pgconn, self._readiness.wait_readable
        good: PGresult | None = None
        bad: PGresult | None = None
        try:
            while pgconn.flush():
                self._readiness.wait_writable_for(None)
                pgconn.consume_input()
            while True:
                while pgconn.is_busy():
                    wait()
                    pgconn.consume_input()
                result = pgconn.get_result()
                if result is None:
                    break
                if result.status in _GOOD:
                    good = result
                else:
                    bad = bad or result
                    self._must_be_an_error(result)
        except psycopg.OperationalError:
            if bad is None:  # else the server has said why before it hung up
                raise
        if bad is not None:
            raise self._error(bad)
        if good is None:
            raise psycopg.OperationalError("the server sent no answer")
        return good

    def _must_be_an_error(self, result: PGresult) -> None:
        if result.status != ExecStatus.FATAL_ERROR:
            raise psycopg.ProgrammingError(f"a statement was answered by {ExecStatus(result.status).name}")

    def _error(self, result: PGresult) -> psycopg.Error:
        error = psycopg.errors.error_from_result(result, encoding=self._encoding)
        if error.sqlstate is None and self._pgconn.status == ConnStatus.BAD:
            return psycopg.OperationalError(str(error))  # libpq's own words for a lost connection
        return error


class Answer:
    """A statement's ``Result``: decoded where somebody asks for rows."""

    __slots__ = ("_loaded", "_next", "_result", "_transformer")

    def __init__(self, result: PGresult, transformer: abc.Transformer) -> None:
        self._result = result
        self._transformer = transformer
        self._next = 0
        self._loaded = False

    @property
    def rowcount(self) -> int:
        """Rows inserted, changed or selected; -1 where the statement is none that counts."""
        rows = self._result.command_tuples
        return -1 if rows is None else rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last."""
        self._load()
        if self._next >= self._result.ntuples:
            return None
        self._next += 1
        return self._transformer.load_row(self._next - 1, tuple)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All further rows."""
        self._load()
        first, self._next = self._next, self._result.ntuples
        return self._transformer.load_rows(first, self._next, tuple)

    def _load(self) -> None:
        if not self._loaded:
            if self._result.status != ExecStatus.TUPLES_OK:
                raise psycopg.ProgrammingError("the statement gives no rows")
            self._transformer.set_pgresult(self._result)
            self._loaded = True
