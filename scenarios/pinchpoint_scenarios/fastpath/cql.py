"""Talks to Cassandra and ScyllaDB by the native protocol, version 4, at about the speed of a C program.

The library of the driver knows the cluster and its types. Each operation executes statements one at a time on
one connection, either prepared once or parsed each time. Errors of the server are raised as exceptions of the
library.
"""

from __future__ import annotations

import io
import socket
import ssl
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from cassandra.protocol import ErrorMessage

from .channel import Channel, ChannelError, ChannelTimeoutError
from .drivers import MORE, EndedError
from .drivers.cql import DAMAGED, CqlDriver, CqlError

_VERSION = 4
_SHORT, _INT, _LONG = struct.Struct(">H"), struct.Struct(">i"), struct.Struct(">q")
_BIGINT = struct.Struct(">iq")  # the length comes before it
_LEVEL_AND_FLAGS = struct.Struct(">HBH")  # and the number of values

_ERROR, _STARTUP, _READY, _AUTHENTICATE, _QUERY, _PREPARE = 0x00, 0x01, 0x02, 0x03, 0x07, 0x09
_EXECUTE, _BATCH, _AUTH_RESPONSE, _AUTH_SUCCESS = 0x0A, 0x0D, 0x0F, 0x10
_ROWS, _PREPARED = 2, 4  # kinds of results
_VALUES, _SKIP_METADATA, _TIMESTAMP = 0x01, 0x02, 0x20  # flags of an execution
_NO_METADATA = 0x04  # flag of a result's rows
_UNPREPARED = 0x2500
_TLS_READ_BYTES = 2**16
_FORGOTTEN_AGAIN = 3
"""Number of attempts: while a schema changes, a node may forget a prepared statement before executing it."""

Value = int | bytes
"""A ``bigint``, or a ``blob``."""
Row = list[bytes | None]


class CqlTimeoutError(CqlError):
    """No answer arrived in time."""


@dataclass(frozen=True, slots=True)
class Login:
    """Address and login of a node.

    Attributes:
        host: name or address of the node.
        port: port of the native protocol.
        user: name of the user; empty: no login.
        password: password of the user.
        tls: TLS settings; None: without TLS.
    """

    host: str
    port: int
    user: str = ""
    password: str = ""
    tls: ssl.SSLContext | None = None


class _TlsChannel:
    """A ``Channel`` over TLS. Its socket waits by itself, and gevent makes this cooperative."""

    def __init__(self, connected: ssl.SSLSocket, driver: CqlDriver, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._socket = connected
        self._driver = driver

    def send(self, message: bytes) -> None:
        with _broken():
            self._socket.settimeout(self.timeout_s)
            self._socket.sendall(message)

    def __call__(self) -> tuple[int, bytes]:
        while True:
            with _broken():
                content = self._socket.recv(_TLS_READ_BYTES)
            answer = self._driver.receive(content)
            if answer is not MORE:
                return answer

    def close(self) -> None:
        """Do nothing, because the opener of the socket closes it."""


@contextmanager
def _broken() -> Iterator[None]:
    """Convert errors of a socket to those of a ``Channel``."""
    try:
        yield
    except TimeoutError as error:
        raise ChannelTimeoutError("no answer in time") from error
    except OSError as error:
        raise ChannelError(f"the connection broke: {error.strerror or error}") from error


class CqlWire:
    """A connection to one node.

    Args:
        login: address and login of the node.
        connect_timeout_s: time limit for connecting and logging in, in seconds.
        timeout_s: time limit for all other waits, in seconds.
        prepared: whether the server prepares a statement once; otherwise it parses the statement each time.
    """

    def __init__(
        self, login: Login, connect_timeout_s: float, timeout_s: float, *, prepared: bool = True
    ) -> None:
        self._login = login
        self._connect_timeout_s = connect_timeout_s
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._prepares = prepared
        self._driver = CqlDriver()
        self._channel: Channel[tuple[int, bytes]] | _TlsChannel | None = None
        self._prepared: dict[str, bytes] = {}

    @property
    def connected(self) -> bool:
        """Return whether the connection is open."""
        return self._channel is not None

    def connect(self) -> None:
        """Connect and log in, unless connected. Raises ``CqlError`` or the error of the server."""
        if self._channel is not None:
            return
        login = self._login
        try:
            self._socket = socket.create_connection((login.host, login.port), self._connect_timeout_s)
        except OSError as error:
            raise CqlError(f"cannot connect: {error.strerror or error}") from error
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._driver = CqlDriver()
            if login.tls is None:
                self._channel = Channel(self._socket.fileno(), self._driver, self._connect_timeout_s)
            else:
                shaken = login.tls.wrap_socket(self._socket, server_hostname=login.host)
                self._socket = shaken
                self._channel = _TlsChannel(shaken, self._driver, self._connect_timeout_s)
            self._log_in()
            self._channel.timeout_s = self._timeout_s
        except OSError as error:  # error of the handshake: refused, reset, or too slow
            self.close()
            raise CqlError(f"TLS: {error}") from error
        except BaseException:
            self.close()
            raise

    def execute(
        self, statement: str, values: Sequence[Value], consistency: int, timestamp_us: int | None
    ) -> list[Row]:
        """Execute one statement. It is prepared the first time if statements are prepared.

        Args:
            statement: text with a ``?`` for each value.
            values: values in the order of the placeholders.
            consistency: number of the consistency level in the protocol.
            timestamp_us: timestamp of the write in microseconds; None: the time of the server.

        Returns:
            The rows.

        Raises:
            CqlError: the connection is lost, or no answer arrived in time.
            ErrorMessage: error of the server.
        """
        flags, last = _VALUES | _SKIP_METADATA, b""
        if timestamp_us is not None:
            flags, last = flags | _TIMESTAMP, _LONG.pack(timestamp_us)
        tail = _LEVEL_AND_FLAGS.pack(consistency, flags, len(values)) + _encoded(values) + last
        if not self._prepares:
            return _rows(self._ask(_QUERY, _long_string(statement) + tail)[1])
        return _rows(self._ask_prepared(_EXECUTE, statement, lambda known: known + tail))

    def batch(
        self,
        statement: str,
        rows: Sequence[Sequence[Value]],
        consistency: int,
        timestamp_us: int,
        *,
        logged: bool,
    ) -> None:
        """Execute one statement for many rows, in one batch. Raises the same errors as ``execute``."""
        first = struct.pack(">BH", 0 if logged else 1, len(rows))
        last = struct.pack(">HB", consistency, _TIMESTAMP) + _LONG.pack(timestamp_us)
        encoded = [_SHORT.pack(len(values)) + _encoded(values) for values in rows]

        def body(named: bytes) -> bytes:
            return first + b"".join([named + row for row in encoded]) + last

        if self._prepares:
            self._ask_prepared(_BATCH, statement, lambda known: body(b"\x01" + known))
        else:
            self._ask(_BATCH, body(b"\x00" + _long_string(statement)))

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        if self._channel is not None:
            self._channel.close()  # before its socket is closed
            self._channel = None
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

    def _ask_prepared(self, opcode: int, statement: str, body: Callable[[bytes], bytes]) -> bytes:
        """Send ``body`` after a prepared statement's id on this node. Return the body of the answer."""
        known = self._prepared.get(statement) or self._prepare(statement)
        for _ in range(_FORGOTTEN_AGAIN):
            try:
                return self._ask(opcode, body(known))[1]
            except ErrorMessage as error:
                if error.code != _UNPREPARED:
                    raise
            # The server has forgotten the statement (restart, too many statements, new table), so it is
            # prepared again.
            known = self._prepare(statement)
        return self._ask(opcode, body(known))[1]

    def _prepare(self, statement: str) -> bytes:
        """Return the id of the statement on this node, with the length of the id."""
        _, body = self._ask(_PREPARE, _long_string(statement))
        if len(body) < 6 or _INT.unpack_from(body)[0] != _PREPARED:
            raise CqlError("the server did not prepare a statement")
        length = _SHORT.unpack_from(body, 4)[0]
        self._prepared[statement] = known = body[4 : 6 + length]
        return known

    def _ask(self, opcode: int, body: bytes) -> tuple[int, bytes]:
        """Send one message and wait for the answer. Return its opcode and its body."""
        channel = self._channel
        if channel is None:
            raise CqlError("not connected")
        try:
            channel.send(self._driver.message(opcode, body))
            answered, content = channel()
            answer = ErrorMessage.recv_body(io.BytesIO(content), _VERSION) if answered == _ERROR else None
        except (ChannelError, EndedError) as error:
            kind = CqlTimeoutError if isinstance(error, ChannelTimeoutError) else CqlError
            raise kind(str(error)) from error
        except (ArithmeticError, LookupError, struct.error, TypeError, ValueError) as error:
            raise CqlError(f"{DAMAGED}: {error}") from error
        if answer is not None:
            raise answer
        return answered, content


def _encoded(values: Sequence[Value]) -> bytes:
    """Return each value with its length, in the encoding of its type."""
    return b"".join(
        [
            _BIGINT.pack(8, value) if isinstance(value, int) else _INT.pack(len(value)) + value
            for value in values
        ]
    )


def _string(text: str) -> bytes:
    return _SHORT.pack(len(text.encode())) + text.encode()


def _long_string(text: str) -> bytes:
    return _INT.pack(len(text.encode())) + text.encode()


def _rows(body: bytes) -> list[Row]:
    """Return the rows of a result without metadata; none for a result without rows. Raises ``CqlError``."""
    try:
        return _values(body)
    except struct.error as error:
        raise CqlError(f"{DAMAGED}: {error}") from error


def _values(body: bytes) -> list[Row]:
    if _INT.unpack_from(body)[0] != _ROWS:
        return []
    flags, columns = struct.unpack_from(">ii", body, 4)
    if not flags & _NO_METADATA or flags & 0x02:
        raise CqlError("the server described or paged a result where it was asked not to")
    at = 12
    count = _INT.unpack_from(body, at)[0]
    at += 4
    if count * max(1, columns) * _INT.size > len(body) - at:  # the length comes before a value
        raise CqlError(f"{DAMAGED}: it has fewer values than it says")
    rows = []
    for _ in range(count):
        row: Row = []
        for _ in range(columns):
            length = _INT.unpack_from(body, at)[0]
            at += 4
            row.append(None if length < 0 else body[at : at + length])
            at += max(0, length)
        rows.append(row)
    return rows
