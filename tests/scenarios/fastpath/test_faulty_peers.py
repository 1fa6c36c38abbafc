"""Tests of each driver with a peer that stalls, reads slowly or not at all, half-closes, or resets.

PostgreSQL and Valkey are real servers. HTTP, TLS and CQL have simple test servers, because a page and a frame
are enough. Each is behind a proxy that causes the fault.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from scenarios.fastpath.test_http import tls_contexts
from stalling import StallingProxy, stalling_proxy

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.databases import native
from pinchpoint_scenarios.databases.contract import DatabaseFailure
from pinchpoint_scenarios.databases.native import FastConnection
from pinchpoint_scenarios.databases.postgresql import Connection
from pinchpoint_scenarios.fastpath.cql import CqlTimeoutError, CqlWire, Login
from pinchpoint_scenarios.fastpath.drivers.cql import CqlError
from pinchpoint_scenarios.fastpath.http import HttpConnection, HttpError
from pinchpoint_scenarios.nosql_burst.params import NosqlBurstParams
from pinchpoint_scenarios.nosql_burst.stores.valkey import Valkey

LIMIT_S, PATIENT_S = 1.0, 60.0
"""Time limits of a driver in seconds: the usual one, and one for a peer that is only slow."""
LARGE = 2**24
"""More bytes than all buffers between driver and peer."""


class Asked(NamedTuple):
    """A connection; ``ask`` sends this number of bytes and returns the operation's outcome."""

    ask: Callable[[int], str]
    close: Callable[[], None]


class Peer(NamedTuple):
    """A server, and a function that connects a driver through a proxy's port."""

    port: int
    connect: Callable[[int, float], Asked]


@contextmanager
def serving(answer: Callable[[socket.socket], bool], tls: ssl.SSLContext | None) -> Iterator[int]:
    """Run a server and yield its port; ``answer`` replies to one message and returns False at the end."""
    clients: list[socket.socket] = []

    def talk(client: socket.socket) -> None:
        with suppress(OSError), tls.wrap_socket(client, server_side=True) if tls else client as peer:
            while answer(peer):
                pass

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                clients.append(client)
                threading.Thread(target=talk, args=(client,), daemon=True).start()

    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)
        for client in clients:
            client.close()


def received(peer: socket.socket, length: int) -> bytes:
    """Return this number of bytes; fewer at the end of the stream."""
    parts, left = [], length
    while left and (part := peer.recv(min(left, 65_536))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def answer_page(peer: socket.socket) -> bool:
    """Read a request with its body and send a page."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        part = peer.recv(1)
        if not part:
            return False
        head += part
    length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
    if len(received(peer, length)) < length:
        return False
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n" + b"x" * 20)
    return True


def answer_frame(peer: socket.socket) -> bool:
    """Read a CQL frame; answer a greeting with READY, any other frame with a result without rows."""
    head = received(peer, 9)
    if len(head) < 9:
        return False
    _, _, stream, opcode, length = struct.unpack(">BBhBi", head)
    if len(received(peer, length)) < length:
        return False
    kind, body = (0x02, b"") if opcode == 0x01 else (0x08, struct.pack(">i", 1))
    peer.sendall(struct.pack(">BBhBi", 0x84, 0, stream, kind, len(body)) + body)
    return True


@contextmanager
def http(request: pytest.FixtureRequest, *, tls: bool) -> Iterator[Peer]:
    """Yield a server of pages, with or without TLS."""
    folder: Path = request.getfixturevalue("tmp_path")
    theirs, ours = tls_contexts(folder) if tls else (None, None)

    def connect(port: int, limit_s: float) -> Asked:
        made = HttpConnection("127.0.0.1", port, tls=ours, connect_timeout_s=5, largest_bytes=1000)

        def ask(size: int) -> str:
            head = f"PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: {size}\r\n\r\n"
            try:
                made.exchange(head.encode() + bytes(size), time.monotonic() + limit_s, again=False)
            except HttpError as error:
                return error.kind
            return "ok"

        return Asked(ask, made.close)

    with serving(answer_page, theirs) as port:
        yield Peer(port, connect)


@contextmanager
def cql(request: pytest.FixtureRequest, *, tls: bool) -> Iterator[Peer]:
    """Yield a server of CQL statements without rows, with or without TLS."""
    folder: Path = request.getfixturevalue("tmp_path")
    theirs, ours = tls_contexts(folder) if tls else (None, None)

    def connect(port: int, limit_s: float) -> Asked:
        made = CqlWire(Login("127.0.0.1", port, tls=ours), 5, limit_s, prepared=False)

        def ask(size: int) -> str:
            try:
                made.connect()
                made.execute("INSERT", [bytes(size)], 1, None)
            except CqlError as error:
                made.close()
                return "timeout" if isinstance(error, CqlTimeoutError) else "connection_lost"
            return "ok"

        return Asked(ask, made.close)

    with serving(answer_frame, theirs) as port:
        yield Peer(port, connect)


def in_statement(connection: FastConnection, size: int) -> None:
    """Run a prepared statement, as sql-mix and the crawl do."""
    connection.execute("SELECT octet_length($1::bytea), repeat('x', 50)", [bytes(size)])


def in_text(connection: FastConnection, size: int) -> None:
    """Run a user's own text."""
    connection.query(f"SELECT octet_length('{'x' * size}'), repeat('x', 50)")


def in_text_with_values(connection: FastConnection, size: int) -> None:
    """Run a user's own text as a prepared statement with its values."""
    connection.execute_as_text("SELECT octet_length($1::text), repeat('x', 50)", [b"x" * size])


def in_copy(connection: FastConnection, size: int) -> None:
    """Copy rows of 64 bytes with COPY."""
    connection.copy("COPY pg_temp.copied FROM STDIN", (b"x" * 63 + b"\n") * (size // 64 + 1))


def in_transaction(connection: FastConnection, size: int) -> None:
    """Run a statement in a transaction."""
    with connection.transaction():
        in_statement(connection, size)


POSTGRESQL: dict[str, Callable[[FastConnection, int], None]] = {
    "postgresql": in_statement,
    "postgresql text": in_text,
    "postgresql text with values": in_text_with_values,
    "postgresql copy": in_copy,
    "postgresql transaction": in_transaction,
}
COPIED = "CREATE TEMP TABLE IF NOT EXISTS copied (v text)"


def fast_connection(url: str, limit_s: float) -> FastConnection:
    """Return a connection whose statements have this time limit."""

    def greet(connection: Connection) -> None:
        connection.execute(COPIED)

    return FastConnection(
        Endpoint("sql", url), application="faulty", statement_timeout_s=limit_s, greet=greet
    )


@contextmanager
def postgresql(request: pytest.FixtureRequest) -> Iterator[Peer]:
    """Yield a real PostgreSQL."""
    url, send = request.getfixturevalue("sql").url, POSTGRESQL[request.param]

    def connect(port: int, limit_s: float) -> Asked:
        made = fast_connection(through(url, port), limit_s)

        def ask(size: int) -> str:
            try:
                send(made, size)
            except DatabaseFailure as failure:
                return failure.outcome
            return "ok"

        return Asked(ask, made.close)

    yield Peer(urlsplit(url).port or 5432, connect)


@contextmanager
def valkey(request: pytest.FixtureRequest) -> Iterator[Peer]:
    """Yield a real Valkey."""
    url = request.getfixturevalue("nosql").url
    request.getfixturevalue("client")  # the fixture empties the server

    def connect(port: int, limit_s: float) -> Asked:
        params = NosqlBurstParams.model_validate({"timeout_s": f"{limit_s:g}s"})
        made = Valkey(Endpoint("nosql", through(url, port)), "faulty:", params).connect(0)
        return Asked(lambda size: made.write([(0, [bytes(size)])]), made.close)

    yield Peer(urlsplit(url).port or 6379, connect)


def through(url: str, port: int) -> str:
    """Return the same URL with another port."""
    return url.replace(f":{urlsplit(url).port}", f":{port}", 1)


DRIVERS: dict[str, Callable[[pytest.FixtureRequest], AbstractContextManager[Peer]]] = {
    "http": lambda request: http(request, tls=False),
    "https": lambda request: http(request, tls=True),
    **dict.fromkeys(POSTGRESQL, postgresql),
    "valkey": valkey,
    "cql": lambda request: cql(request, tls=False),
    "cql over tls": lambda request: cql(request, tls=True),
}


class Proxied(NamedTuple):
    """A connection that has worked once, its proxy, and the name of its timeout."""

    asked: Asked
    proxy: StallingProxy
    peer: Peer
    timeout: str


@pytest.fixture(params=DRIVERS)
def proxied(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxied]:
    """Yield a proxied connection of each driver."""
    monkeypatch.setattr(native, "SILENT_S", 0.0)
    with ExitStack() as stack:
        peer = stack.enter_context(DRIVERS[request.param](request))
        proxy = stack.enter_context(stalling_proxy(peer.port))
        asked = peer.connect(proxy.port, LIMIT_S)
        stack.callback(asked.close)
        assert asked.ask(10) == "ok"
        timeout = "connection_lost" if request.param in POSTGRESQL else "timeout"
        yield Proxied(asked, proxy, peer, timeout)


def test_a_server_that_stalls_is_a_timeout_in_time(proxied: Proxied) -> None:
    """A stalled server causes a timeout at the time limit; when the server continues, the driver works."""
    proxied.proxy.stalled.set()
    begun = time.monotonic()
    assert proxied.asked.ask(10) == proxied.timeout
    assert LIMIT_S * 0.9 <= time.monotonic() - begun < LIMIT_S + 10
    proxied.proxy.stalled.clear()
    assert goes_on(proxied)


def test_a_reader_that_is_slow_gets_all(proxied: Proxied) -> None:
    """A message larger than all buffers reaches a slow reader completely and is answered."""
    proxied.proxy.slow.set()
    patient = proxied.peer.connect(proxied.proxy.port, PATIENT_S)
    try:
        begun = time.monotonic()
        assert [patient.ask(size) for size in (LARGE, 10)] == ["ok", "ok"]
        assert time.monotonic() - begun > LARGE / 2**16 * 0.004
    finally:
        patient.close()


def test_a_reader_that_reads_nothing_is_a_timeout_in_time(proxied: Proxied) -> None:
    """A peer that reads nothing, so that the buffers fill, causes a timeout at the time limit."""
    proxied.proxy.unread.set()
    begun = time.monotonic()
    assert proxied.asked.ask(LARGE) == proxied.timeout
    assert LIMIT_S * 0.9 <= time.monotonic() - begun < LIMIT_S + 10
    proxied.proxy.unread.clear()
    assert goes_on(proxied)


def test_a_connection_closed_by_one_side_is_lost_at_once(proxied: Proxied) -> None:
    """A server that closes its sending side in place of a reply is a lost connection at once."""
    proxied.proxy.half_closed.set()
    begun = time.monotonic()
    assert proxied.asked.ask(10) == "connection_lost"
    assert time.monotonic() - begun < LIMIT_S + 10
    proxied.proxy.half_closed.clear()
    assert goes_on(proxied)


def test_a_reset_in_the_middle_of_an_answer_is_lost_at_once(proxied: Proxied) -> None:
    """A reset in the middle of a reply is a lost connection; the half reply is dropped."""
    proxied.proxy.reset.set()
    begun = time.monotonic()
    assert proxied.asked.ask(10) == "connection_lost"
    assert time.monotonic() - begun < LIMIT_S + 10
    proxied.proxy.reset.clear()
    assert goes_on(proxied)


def goes_on(proxied: Proxied) -> bool:
    """Return True if the driver works twice in a row, on a new connection if the old one is lost."""
    return [proxied.asked.ask(10) for _ in range(2)] == ["ok", "ok"]


def test_a_text_that_sets_its_own_time_limit_is_waited_for(
    sql: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that works on a text longer than the plan's statement limit is not taken for stalled."""
    monkeypatch.setattr(native, "SILENT_S", 0.0)
    limit_s = 4 * LIMIT_S  # high enough for a machine that stalls for a moment
    connection = fast_connection(sql.url, limit_s)
    try:
        connection.query("SET statement_timeout = '60s'")
        connection.query(f"SELECT pg_sleep({limit_s + 1})")
    finally:
        connection.close()


@pytest.mark.parametrize("answer", ["nothing", "a reset"])
def test_a_handshake_of_tls_that_does_not_end_has_the_name_of_its_driver(answer: str, tmp_path: Path) -> None:
    """An unfinished TLS handshake ends at the time limit with the driver's own error."""
    _, ours = tls_contexts(tmp_path)

    def greet(peer: socket.socket) -> bool:
        peer.recv(1)
        if answer == "a reset":
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        return bool(received(peer, 65_536))

    with serving(greet, None) as port:
        wire = CqlWire(Login("127.0.0.1", port, tls=ours), LIMIT_S, LIMIT_S)
        page = HttpConnection("127.0.0.1", port, tls=ours, connect_timeout_s=LIMIT_S, largest_bytes=1000)
        begun = time.monotonic()
        with pytest.raises(CqlError, match="TLS"):
            wire.connect()
        with pytest.raises(HttpError):
            page.exchange(b"GET / HTTP/1.1\r\n\r\n", time.monotonic() + 60, again=False)
        assert time.monotonic() - begun < 2 * LIMIT_S + 10
