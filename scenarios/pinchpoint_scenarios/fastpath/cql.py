"""Cassandra and ScyllaDB at about the speed of C: a frame, a wait, a frame, by native protocol version 4.

The driver's library knows the cluster and its types; what is done for every operation is to execute
statements that were prepared once, on one connection, one at a time. The errors a server sends are the
library's own exceptions.
"""

from __future__ import annotations

import io
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cassandra.protocol import ErrorMessage

from .readiness import Readiness, readiness

_READ_BYTES = 65_536
_VERSION = 4
_HEADER = struct.Struct(">BBhBi")  # version, flags, stream, opcode, length of the body
_SHORT, _INT, _LONG = struct.Struct(">H"), struct.Struct(">i"), struct.Struct(">q")

_ERROR, _STARTUP, _READY, _AUTHENTICATE, _RESULT, _PREPARE = 0x00, 0x01, 0x02, 0x03, 0x08, 0x09
_EXECUTE, _BATCH, _AUTH_RESPONSE, _AUTH_SUCCESS = 0x0A, 0x0D, 0x0F, 0x10
_ROWS, _PREPARED = 2, 4  # kinds of a result
_VALUES, _SKIP_METADATA, _TIMESTAMP = 0x01, 0x02, 0x20  # flags of an execution
_NO_METADATA = 0x04  # flag of a result's rows
_UNPREPARED = 0x2500


class CqlError(Exception):
    """The connection failed, or what came over it cannot be understood: it must be closed."""


class CqlTimeoutError(CqlError):
    """No answer in time."""


@dataclass(frozen=True, slots=True)
class Login:
    """Where a node is and who we are there.

    Attributes:
        host: its name or address.
        port: of its native protocol.
        user: empty: nobody asks.
        password: the user's.
    """

    host: str
    port: int
    user: str = ""
    password: str = ""


class CqlWire:
    """One connection to one node.

    Args:
        login: where to.
        connect_timeout_s: for connecting and logging in.
        timeout_s: for everything else.
    """

    def __init__(self, login: Login, connect_timeout_s: float, timeout_s: float) -> None:
        self._login = login
        self._connect_timeout_s = connect_timeout_s
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._readiness: Readiness | None = None
        self._prepared: dict[str, bytes] = {}

    @property
    def connected(self) -> bool:
        """Whether it is open."""
        return self._socket is not None

    def connect(self) -> None:
        """Connect and log in, unless that is done. Raises ``CqlError`` or the server's error."""
        if self._socket is not None:
            return
        login = self._login
        try:
            self._socket = socket.create_connection((login.host, login.port), self._connect_timeout_s)
        except OSError as error:
            raise CqlError(f"cannot connect: {error.strerror or error}") from error
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.setblocking(False)
            self._readiness = readiness(self._socket.fileno())
            self._log_in()
        except BaseException:
            self.close()
            raise

    def execute(
        self, query: str, values: Sequence[bytes], consistency: int, timestamp_us: int | None
    ) -> list[Any]:
        """Execute one statement, preparing it the first time.

        Args:
            query: the statement, with a ``?`` for each value.
            values: as the types' own encoding has them (``bigint``: 8 bytes, big end first).
            consistency: the protocol's number of the level.
            timestamp_us: when a write is said to have happened; None: the server's time.

        Returns:
            The rows, each a list of bytes or None.

        Raises:
            CqlError: the connection is lost, or no answer came in time.
            ErrorMessage: what the server said instead.
        """
        values_given = _SHORT.pack(len(values)) + b"".join(
            [_INT.pack(len(value)) + value for value in values]
        )
        flags = _VALUES | _SKIP_METADATA | (0 if timestamp_us is None else _TIMESTAMP)
        tail = struct.pack(">HB", consistency, flags) + values_given
        if timestamp_us is not None:
            tail += _LONG.pack(timestamp_us)
        return _rows(self._ask_prepared(_EXECUTE, lambda: self._id(query) + tail, (query,)))

    def batch(
        self,
        query: str,
        rows: Sequence[Sequence[bytes]],
        consistency: int,
        timestamp_us: int,
        *,
        logged: bool,
    ) -> None:
        """Execute one statement for many rows, in one batch. Raises as ``execute``."""

        def body() -> bytes:
            one = b"\x01" + self._id(query)
            parts = [struct.pack(">BH", 0 if logged else 1, len(rows))]
            for values in rows:
                parts += (one, _SHORT.pack(len(values)))
                parts += [_INT.pack(len(value)) + value for value in values]
            return b"".join(parts) + struct.pack(">HB", consistency, _TIMESTAMP) + _LONG.pack(timestamp_us)

        self._ask_prepared(_BATCH, body, (query,))

    def close(self) -> None:
        """Close it. Safe to call twice."""
        if self._readiness is not None:
            self._readiness.close()  # before its descriptor is
            self._readiness = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._prepared.clear()

    def _log_in(self) -> None:
        options = {"CQL_VERSION": "3.0.0"}
        body = _SHORT.pack(len(options))
        for name, value in options.items():
            body += _string(name) + _string(value)
        opcode, _ = self._ask(_STARTUP, body)
        if opcode == _AUTHENTICATE:
            token = f"\0{self._login.user}\0{self._login.password}".encode()
            opcode, _ = self._ask(_AUTH_RESPONSE, _INT.pack(len(token)) + token)
            if opcode != _AUTH_SUCCESS:
                raise CqlError("the server asks for more than a user and a password")
        elif opcode != _READY:
            raise CqlError(f"the server answered the greeting with message {opcode:#04x}")

    def _id(self, query: str) -> bytes:
        """The prepared statement's name on this node, with its length."""
        if query not in self._prepared:
            text = query.encode()
            _, body = self._ask(_PREPARE, _INT.pack(len(text)) + text)
            if _INT.unpack_from(body)[0] != _PREPARED:
                raise CqlError("the server did not prepare a statement")
            length = _SHORT.unpack_from(body, 4)[0]
            self._prepared[query] = body[4 : 6 + length]
        return self._prepared[query]

    def _ask_prepared(self, opcode: int, body: Any, queries: Sequence[str]) -> bytes:
        try:
            return self._ask(opcode, body())[1]
        except ErrorMessage as error:
            if error.code != _UNPREPARED:
                raise
        for query in queries:  # the server has forgotten it (a restart, too many others): once more
            self._prepared.pop(query, None)
        return self._ask(opcode, body())[1]

    def _ask(self, opcode: int, body: bytes) -> tuple[int, bytes]:
        """Send one message, wait for the answer: (opcode, body)."""
        self._send(_HEADER.pack(_VERSION, 0, 0, opcode, len(body)) + body)
        answered, content = self._receive()
        if answered == _ERROR:
            raise ErrorMessage.recv_body(io.BytesIO(content), _VERSION)
        return answered, content

    def _send(self, message: bytes) -> None:
        sock, ready = self._open()
        try:
            sent = _some(sock.send, message)
            while sent < len(message):
                if not ready.wait_writable_for(self._timeout_s):
                    raise CqlTimeoutError("the server took no more of a message in time")
                sent += _some(sock.send, memoryview(message)[sent:])
        except OSError as error:
            raise CqlError(f"the connection broke: {error.strerror or error}") from error

    def _receive(self) -> tuple[int, bytes]:
        sock, ready = self._open()
        content, wanted = b"", _HEADER.size
        while len(content) < wanted:
            if not ready.wait_readable_for(self._timeout_s):
                raise CqlTimeoutError("no answer in time")
            try:
                more = sock.recv(max(_READ_BYTES, wanted - len(content)))
            except BlockingIOError:
                continue  # woken for nothing
            except OSError as error:
                raise CqlError(f"the connection broke: {error.strerror or error}") from error
            if not more:
                raise CqlError("the server closed the connection")
            content = content + more if content else more
            if len(content) >= _HEADER.size:
                wanted = _HEADER.size + _HEADER.unpack_from(content)[4]
        _, flags, _, opcode, length = _HEADER.unpack_from(content)
        if len(content) > _HEADER.size + length:
            raise CqlError("the server sent more than was asked for")
        return opcode, content[_HEADER.size + _skipped(flags, content) :]

    def _open(self) -> tuple[socket.socket, Readiness]:
        if self._socket is None or self._readiness is None:
            raise CqlError("not connected")
        return self._socket, self._readiness


def _some(send: Any, content: bytes | memoryview) -> int:
    try:
        return int(send(content))
    except BlockingIOError:
        return 0


def _skipped(flags: int, content: bytes) -> int:
    """Bytes before an answer's own body: a trace's id (16) and warnings (a list of strings)."""
    if not flags:
        return 0
    at = _HEADER.size + (16 if flags & 0x02 else 0)
    if flags & 0x08:
        count = _SHORT.unpack_from(content, at)[0]
        at += 2
        for _ in range(count):
            at += 2 + _SHORT.unpack_from(content, at)[0]
    return at - _HEADER.size


def _string(text: str) -> bytes:
    return _SHORT.pack(len(text.encode())) + text.encode()


def _rows(body: bytes) -> list[Any]:
    """The rows of a result that left its metadata out; none of one that has no rows."""
    if _INT.unpack_from(body)[0] != _ROWS:
        return []
    flags, columns = struct.unpack_from(">ii", body, 4)
    if not flags & _NO_METADATA or flags & 0x02:
        raise CqlError("the server described or paged a result where it was asked not to")
    at = 12
    count = _INT.unpack_from(body, at)[0]
    at += 4
    rows = []
    for _ in range(count):
        row: list[bytes | None] = []
        for _ in range(columns):
            length = _INT.unpack_from(body, at)[0]
            at += 4
            row.append(None if length < 0 else body[at : at + length])
            at += max(0, length)
        rows.append(row)
    return rows
