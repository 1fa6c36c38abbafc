"""Tests of the fast path to Valkey compared with valkey-py: same failure names."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
import valkey

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.fastpath.resp import LibraryWire
from pinchpoint_scenarios.nosql_burst.params import NosqlBurstParams
from pinchpoint_scenarios.nosql_burst.stores.valkey import Valkey, ValkeyConnection

BOTH = pytest.mark.parametrize("fast", [True, False], ids=["fast", "library"])
PREFIX = "fastpath-test:"
KEY = f"{PREFIX}0"


class Writer:
    """A session that writes one record repeatedly."""

    def __init__(self, connection: ValkeyConnection) -> None:
        self._connection = connection

    def write(self, *records: list[bytes]) -> str:
        return self._connection.write(list(enumerate(records)))


@contextmanager
def opened(endpoint: Endpoint, fast: bool, timeout_s: float = 5) -> Iterator[Writer]:
    store = Valkey(endpoint, PREFIX, NosqlBurstParams.model_validate({"timeout_s": f"{timeout_s:g}s"}))
    connection = (
        store.connect(0) if fast else store._connection(lambda node: LibraryWire(store._library(node)))
    )
    try:
        yield Writer(connection)
    finally:
        connection.close()


def run(client: valkey.Valkey, *command: str) -> None:
    ask: Callable[..., object] = client.execute_command
    ask(*command)


def as_user(endpoint: Endpoint, user: str, password: str, query: str = "") -> Endpoint:
    parts = urlsplit(endpoint.url)
    return Endpoint("nosql", f"valkey://{user}:{password}@{parts.hostname}:{parts.port}/0{query}")


@BOTH
def test_what_is_written_is_there(nosql: Endpoint, client: valkey.Valkey, fast: bool) -> None:
    """Values and hashes of any bytes and large sizes are stored."""
    contents = [b"", b"\r\n$5\r\n\0\xff", bytes(range(256)) * 2**14]
    with opened(nosql, fast) as connection:
        for content in contents:
            assert connection.write([content]) == "ok"
            assert client.get(KEY) == content
        client.delete(KEY)
        assert connection.write(contents) == "ok"
    assert client.hgetall(KEY) == {b"field%d" % n: content for n, content in enumerate(contents)}


@BOTH
def test_refusals_are_named_and_the_connection_stays(
    nosql: Endpoint, client: valkey.Valkey, fast: bool
) -> None:
    """A refusal by the server is an outcome, and the connection stays in use."""
    run(client, "ACL", "SETUSER", "narrow", "on", ">narrow", "~*", "+@all", "-hset")
    try:
        with opened(as_user(nosql, "narrow", "narrow"), fast) as connection:
            client.rpush(KEY, "a list")
            client.config_resetstat()
            assert connection.write([b"x", b"y"]) == "permission"
            client.config_set("maxmemory", 1)
            assert connection.write([b"x"]) == "out_of_memory"
            client.config_set("maxmemory", 0)
            assert connection.write([b"x"]) == "ok"
            info = cast("dict[str, Any]", client.info("stats"))
            assert info["total_connections_received"] == 0
        with opened(nosql, fast) as connection:
            client.delete(KEY)
            client.rpush(KEY, "a list")
            assert connection.write([b"x", b"y"]) == "wrong_type"
    finally:
        client.config_set("maxmemory", 0)
        run(client, "ACL", "DELUSER", "narrow")


@BOTH
def test_of_several_at_once_one_may_be_refused(nosql: Endpoint, client: valkey.Valkey, fast: bool) -> None:
    """If one of several writes is refused, its name is the outcome; the others are written."""
    with opened(nosql, fast) as connection:
        client.rpush(f"{PREFIX}1", "a list")
        client.config_resetstat()
        assert connection.write(*([b"%d" % item, b"y"] for item in range(4))) == "wrong_type"
        assert connection.write([b"z", b"z"]) == "ok"
        assert cast("dict[str, Any]", client.info("stats"))["total_connections_received"] == 0
    assert client.hgetall(f"{PREFIX}3") == {b"field0": b"3", b"field1": b"y"}
    assert client.hgetall(KEY) == {b"field0": b"z", b"field1": b"z"}


@BOTH
def test_more_than_a_server_hears_at_once(nosql: Endpoint, client: valkey.Valkey, fast: bool) -> None:
    """Sixteen megabytes in one batch are written, with the first replies before the last bytes."""
    records = [[bytes([item]) * 2**14] for item in range(250)] * 4
    with opened(nosql, fast) as connection:
        assert connection.write(*records) == "ok"
    assert client.get(f"{PREFIX}999") == records[999][0]
    assert client.dbsize() == len(records)


@BOTH
@pytest.mark.parametrize("query", ["", "?protocol=3"])
def test_both_versions_of_the_protocol_with_login(
    nosql: Endpoint, client: valkey.Valkey, fast: bool, query: str
) -> None:
    """Login works in RESP2 and RESP3, and a wrong password is a named failure."""
    run(client, "ACL", "SETUSER", "one", "on", ">secret", "~*", "+@all")
    try:
        with opened(as_user(nosql, "one", "secret", query), fast) as connection:
            assert connection.write([b"x"]) == "ok"
        with opened(as_user(nosql, "one", "wrong", query), fast) as connection:
            assert connection.write([b"x"]) == "authentication"
    finally:
        run(client, "ACL", "DELUSER", "one")


@BOTH
def test_a_killed_connection_is_lost_once(nosql: Endpoint, client: valkey.Valkey, fast: bool) -> None:
    """After a kill of the connection one write fails by name, and the next has a new connection."""
    with opened(nosql, fast) as connection:
        assert connection.write([b"x"]) == "ok"
        run(client, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert [connection.write([b"x"]) for _ in range(3)] == ["connection_lost", "ok", "ok"]


@BOTH
def test_a_server_that_takes_no_more_is_a_timeout(nosql: Endpoint, client: valkey.Valkey, fast: bool) -> None:
    """A value larger than all buffers, to a server that reads nothing, is a timeout."""
    with _answering(lambda _: None) as endpoint, opened(endpoint, fast, timeout_s=0.3) as connection:
        begun = time.monotonic()
        assert connection.write([bytes(2**25)]) == "timeout"
        assert 0.3 <= time.monotonic() - begun < 3


ANSWERS = {
    "ok": [b"+O", b"K\r", b"\n"],
    "connection_lost": [b"+O", b""],
    "error_protocol": [b"what?\r\n"],
    "loading": [b"-LOADING Valkey is loading the dataset in memory\r\n"],
    "busy": [b"-BUSY Valkey is busy running a script\r\n"],
    "cluster_down": [b"-CLUSTERDOWN The cluster ", b"is down\r\n"],
}


@BOTH
@pytest.mark.parametrize("name", ANSWERS)
def test_answers_in_pieces_and_answers_that_are_none(fast: bool, name: str) -> None:
    """Split, truncated and malformed replies have the same outcome in both drivers."""

    def answer(peer: socket.socket) -> None:
        peer.recv(65_536)
        for piece in ANSWERS[name]:
            if not piece:
                peer.shutdown(socket.SHUT_WR)
                return
            peer.sendall(piece)
            time.sleep(0.02)

    with _answering(answer) as endpoint, opened(endpoint, fast) as connection:
        assert connection.write([b"x"]) == name


@BOTH
def test_a_server_that_is_loading_is_left_in_the_middle_of_several(fast: bool) -> None:
    """If a loading server refuses one of several writes, this is the outcome, and the connection closes."""

    def answer(peer: socket.socket) -> None:
        peer.recv(65_536)
        peer.sendall(b"+OK\r\n-LOADING Valkey is loading the dataset in memory\r\n+OK\r\n")
        peer.settimeout(5)  # until the client closes or resets the connection
        with contextlib.suppress(ConnectionResetError):
            while peer.recv(65_536):
                continue

    with _answering(answer) as endpoint, opened(endpoint, fast) as connection:
        assert connection.write([b"x"], [b"y"], [b"z"]) == "loading"


@contextmanager
def _answering(answer: Callable[[socket.socket], None]) -> Iterator[Endpoint]:
    """Run a server of one connection with the test's replies."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        done = threading.Event()

        def serve() -> None:
            peer, _ = listening.accept()
            with peer:
                answer(peer)
                done.wait(10)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Endpoint("nosql", f"valkey://127.0.0.1:{listening.getsockname()[1]}/0")
        finally:
            done.set()
            thread.join()
