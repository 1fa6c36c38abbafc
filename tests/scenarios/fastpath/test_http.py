"""Tests of the fast HTTP connection compared with urllib3, on a test server, also with TLS."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import pytest
import urllib3
from support import require

from pinchpoint_scenarios.fastpath.http import HttpConnection, HttpError, Response

Talk: TypeAlias = Callable[[socket.socket, bytes], bool]
"""Answers one request on a connection; returns True if the connection stays open."""

REQUEST = b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n"


@contextmanager
def serving(talk: Talk, context: ssl.SSLContext | None = None) -> Iterator[tuple[int, list[bytes]]]:
    """Run a server of raw bytes; yield its port and the requests so far."""
    got: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(10)
    clients: list[socket.socket] = []

    def answer(client: socket.socket) -> None:
        with suppress(OSError):  # the client has already closed
            connection = context.wrap_socket(client, server_side=True) if context else client
            with connection:
                while request := connection.recv(65_536):
                    got.append(request)
                    if not talk(connection, request):
                        break
        client.close()

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            clients.append(client)
            threading.Thread(target=answer, args=(client,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], got
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)
        for client in clients:
            client.close()


def connection(
    port: int, tls: ssl.SSLContext | None = None, largest_bytes: int = 10_000_000
) -> HttpConnection:
    return HttpConnection("127.0.0.1", port, tls=tls, connect_timeout_s=5, largest_bytes=largest_bytes)


def ask(
    made: HttpConnection, request: bytes = REQUEST, *, within_s: float = 5, again: bool = True
) -> Response:
    return made.exchange(request, time.monotonic() + within_s, again=again)


def saying(*parts: bytes, goes_on: bool = True, pause_s: float = 0) -> Talk:
    def talk(peer: socket.socket, _: bytes) -> bool:
        for part in parts:
            peer.sendall(part)
            time.sleep(pause_s)
        return goes_on

    return talk


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-A: 1\r\nx-a: 2\r\n"


@pytest.mark.parametrize(
    ("parts", "goes_on", "body"),
    [
        ([HEAD + b"Content-Length: 3\r\n\r\nabc"], True, b"abc"),
        ([HEAD + b"Content-Length: 0\r\n\r\n"], True, b""),
        (
            [HEAD + b"content-length:3\r\nKeep-Alive: timeout=5\r\nConnection: Keep-Alive\r\n\r\nabc"],
            True,
            b"abc",
        ),
        ([HEAD + b"Content-Length: 3\r\nConnection:keep-alive\r\n\r\nabc"], True, b"abc"),
        ([HEAD + b"Content-Length: 3\r\nConnection: close\r\n\r\nabc"], False, b"abc"),
        ([HEAD + b"X-Content-Length: 9\r\nContent-Length: 3\r\n\r\nabc"], True, b"abc"),
        ([HEAD + b"Content-Length: 40000\r\n\r\n", b"x" * 20_000, b"x" * 20_000], True, b"x" * 40_000),
        ([HEAD[:20], HEAD[20:] + b"Content-Length: 3\r\n\r\na", b"bc"], True, b"abc"),
        ([HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", b"1\r\nc\r\n0\r\n\r\n"], True, b"abc"),
        ([HEAD + b"\r\nabc", b"def"], False, b"abcdef"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: 2\r\n\r\nok"], True, b"ok"),
        ([b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nX-A: 1\r\nX-A: 2\r\n\r\nold"], False, b"old"),
    ],
)
def test_answers_of_every_form_are_read_as_urllib3_reads_them(
    parts: list[bytes], goes_on: bool, body: bytes
) -> None:
    """Each form of reply is read as by urllib3: length, chunks, end of connection, interim reply."""
    with serving(saying(*parts, goes_on=goes_on, pause_s=0.01)) as (port, _):
        made = connection(port)
        plain = urllib3.HTTPConnectionPool("127.0.0.1", port, retries=False)
        for _ in range(3):
            found = ask(made)
            expected = plain.request("GET", "/x")
            assert (found.status, found.body) == (expected.status, expected.data) == (200, body)
            assert found.header(b"x-a") == expected.headers["X-A"] == "1, 2"
        assert made.opened == (1 if goes_on else 3)
        made.close()
        made.close()
        plain.close()


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"Content-Length: 5\r\n\r\nhello",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
    ],
)
def test_an_answer_may_come_in_two_pieces_cut_anywhere(answer: bytes) -> None:
    """A reply in two pieces, split at any place, is read correctly, and the connection can be used again."""
    cuts = iter(range(1, len(answer)))

    def talk(peer: socket.socket, _: bytes) -> bool:
        cut = next(cuts)
        peer.sendall(answer[:cut])
        time.sleep(0.002)
        peer.sendall(answer[cut:])
        return True

    with serving(talk) as (port, _):
        made = connection(port)
        for _ in range(1, len(answer)):
            found = ask(made)
            assert (found.status, found.body, found.header(b"x-a")) == (200, b"hello", "1, 2")
        assert made.opened == 1
        made.close()


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n", 204),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n", 304),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404),
    ],
)
def test_an_answer_without_a_body_is_complete_with_its_head(answer: bytes, status: int) -> None:
    """A reply without a body, such as a 304, ends with its head, whatever its Content-Length."""
    with serving(saying(answer)) as (port, _):
        made = connection(port)
        for _ in range(2):
            found = ask(made)
            assert (found.status, found.body) == (status, b"")
        assert made.opened == 1
        made.close()


@pytest.mark.parametrize("tls", [False, True])
def test_what_follows_an_answer_is_not_taken_for_the_next(tls: bool, tmp_path: Path) -> None:
    """Bytes after a reply, whole or in part or after chunks, are not read as the next reply."""
    whole = HEAD + b"Content-Length: 4\r\n\r\nmine"
    more = HEAD + b"Content-Length: 5\r\n\r\nother"
    chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\nmine\r\n0\r\n\r\n"
    said = iter([whole + more, whole + more[:30], chunked + more, chunked + more[:30], whole, whole])
    contexts = tls_contexts(tmp_path) if tls else (None, None)

    def talk(peer: socket.socket, _: bytes) -> bool:
        peer.sendall(next(said))
        return True

    with serving(talk, contexts[0]) as (port, _):
        made = connection(port, contexts[1])
        assert [ask(made).body for _ in range(6)] == [b"mine"] * 6
        assert made.opened == 5
        made.close()


def test_an_idle_connection_that_was_closed_is_opened_again() -> None:
    """On an idle connection that was closed, a GET is sent again; a POST uses a new connection at once."""
    with serving(saying(HEAD + b"Content-Length: 1\r\n\r\nx", goes_on=False)) as (port, got):
        made = connection(port)
        post = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\ny"
        for request, again in ((REQUEST, True), (REQUEST, True), (post, False), (post, False)):
            assert ask(made, request, again=again).body == b"x"
            time.sleep(0.05)  # so that the end of the connection has arrived
        assert made.opened == len(got) == 4
        made.close()


@pytest.mark.parametrize(
    ("talk", "kind"),
    [
        (saying(b"SSH-2.0-OpenSSH\r\n"), "bad_answer"),
        (saying(HEAD + b"Content-Length: 10\r\n\r\nabc", goes_on=False), "connection_lost"),
        (saying(b"", goes_on=False), "connection_lost"),
        (saying(HEAD + b"Content-Length: 10\r\n\r\n"), "timeout"),
        (saying(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"), "bad_answer"),
        (saying(HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc"), "bad_answer"),
        (saying(HEAD + b"Content-Length: +3\r\n\r\nabc"), "bad_answer"),
        (saying(HEAD + b"Content-Length: 99999999999999999999999\r\n\r\nabc"), "bad_answer"),
        (saying(HEAD + b"Content-Length: 100\r\n\r\n" + b"x" * 100), "too_large"),
        (saying(HEAD + b"X: " + b"x" * 1_000_000), "bad_answer"),
        (saying(b"HTTP/1.1 100 Continue\r\n\r\n" * 40_000), "bad_answer"),
    ],
)
def test_broken_answers_have_names(talk: Talk, kind: str) -> None:
    """Each broken reply has its named failure, and the next request gets its own reply."""
    good = saying(HEAD + b"Content-Length: 4\r\n\r\ngood")
    asked = 0

    def first_bad(peer: socket.socket, request: bytes) -> bool:
        nonlocal asked
        asked += 1
        return (talk if asked == 1 else good)(peer, request)

    with serving(first_bad) as (port, _):
        made = connection(port, largest_bytes=50)
        with pytest.raises(HttpError) as caught:
            ask(made, within_s=0.4)
        assert caught.value.kind == kind
        assert ask(made).body == b"good"
        made.close()


def test_a_server_that_drips_is_given_up_in_time() -> None:
    """The time limit is for the whole reply, not for each byte."""
    drip = saying(HEAD + b"Content-Length: 1000\r\n\r\n", *[b"x"] * 100, pause_s=0.03)
    with serving(drip) as (port, _):
        made = connection(port)
        started = time.monotonic()
        with pytest.raises(HttpError, match="in time"):
            ask(made, within_s=0.3)
        assert time.monotonic() - started < 1.5
        made.close()


def test_a_refusal_that_does_not_wait_for_the_body_is_read() -> None:
    """A refusal before the body was sent is read, whether the server closes or not."""
    refusal = saying(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
    with serving(refusal) as (port, _):
        made = connection(port)
        size = 30_000_000
        head = f"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {size}\r\n\r\n".encode()
        assert ask(made, head + bytes(size), again=False).status == 413
        made.close()


def test_nobody_there() -> None:
    """A port without a listener and an invalid host name are connection failures."""
    for host in ("127.0.0.1", "no such host"):
        made = HttpConnection(host, 1, tls=None, connect_timeout_s=2, largest_bytes=10)
        with pytest.raises(HttpError) as caught:
            ask(made)
        assert caught.value.kind == "unreachable"


def certificate(folder: Path) -> tuple[Path, Path]:
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        [
            require("openssl", "openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-keyout", key, "-out", cert, "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
        ],
        check=True, capture_output=True, timeout=30,
    )  # fmt: skip
    return key, cert


def tls_contexts(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the TLS contexts of a server and of a client that trusts it."""
    key, cert = certificate(folder)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    return server, ssl.create_default_context(cafile=str(cert))


def test_tls(tmp_path: Path) -> None:
    """Replies through TLS are the same, also large ones; an unknown certificate is a named failure."""
    server, trusting = tls_contexts(tmp_path)
    body = bytes(range(256)) * 4096
    with serving(saying(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body), server) as (port, _):
        made = connection(port, trusting)
        for _ in range(3):
            assert ask(made).body == body
        assert made.opened == 1
        made.close()
        stranger = connection(port, ssl.create_default_context())
        with pytest.raises(HttpError) as caught:
            ask(stranger)
        assert caught.value.kind == "tls"
    with serving(saying(HEAD + b"Content-Length: 0\r\n\r\n")) as (port, _):
        plain = connection(port, trusting)
        with pytest.raises(HttpError) as caught:
            ask(plain)
        assert caught.value.kind == "tls"


def test_tls_in_many_small_records(tmp_path: Path) -> None:
    """A reply in many small TLS records is read correctly."""
    server, trusting = tls_contexts(tmp_path)
    answer = HEAD + b"Content-Length: 50\r\n\r\n" + bytes(range(50))
    pieces = [answer[at : at + 7] for at in range(0, len(answer), 7)]
    with serving(saying(*pieces), server) as (port, _):
        made = connection(port, trusting)
        for _ in range(5):
            assert ask(made).body == bytes(range(50))
        assert made.opened == 1
        made.close()


def test_the_end_of_tls_is_an_end(tmp_path: Path) -> None:
    """The TLS end ends a body without a length; a body shorter than its length is no reply."""
    server, trusting = tls_contexts(tmp_path)

    def talk(peer: socket.socket, request: bytes) -> bool:
        peer.sendall(HEAD + (b"Content-Length: 10\r\n\r\nabc" if b"/short" in request else b"\r\nabc"))
        if isinstance(peer, ssl.SSLSocket):
            peer.unwrap()
        return False

    with serving(talk, server) as (port, _):
        made = connection(port, trusting)
        assert ask(made).body == b"abc"
        with pytest.raises(HttpError) as caught:
            ask(made, REQUEST.replace(b"/x", b"/short"))
        assert caught.value.kind == "connection_lost"
        made.close()
