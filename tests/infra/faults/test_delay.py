"""Tests of the delay proxy with real sockets: latency, bandwidth, and the end of connections."""

from __future__ import annotations

import os
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pinchpoint_infra.faults.delay import DelayedEndpoint, DelayProxy


class Echo(socketserver.BaseRequestHandler):
    """Sends back its input, and sends goodbye when the client has ended."""

    def handle(self) -> None:
        while data := self.request.recv(65536):
            if data.startswith(b"reset"):
                self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                self.request.close()
                return
            self.request.sendall(data)
        self.request.sendall(b"bye")


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 512


@pytest.fixture
def behind() -> Iterator[int]:
    with Server(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


class Far:
    """A delay proxy in front of the echo server."""

    def __init__(self, port: int, log: Path, delay: DelayedEndpoint) -> None:
        self.proxy = DelayProxy([(port, delay)], log, os.environ)
        self.port = self.proxy.ports[0]

    def __enter__(self) -> Far:
        self.proxy.apply(on=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.proxy.stop()

    def connect(self) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made


def exchange(connection: socket.socket, data: bytes) -> float:
    """Return the seconds until all of the data came back."""
    begun = time.monotonic()
    connection.sendall(data)
    left = len(data)
    while left:
        left -= len(connection.recv(left))
    return time.monotonic() - begun


@pytest.mark.parametrize("round_trip_s", [0.02, 0.25])
def test_every_exchange_takes_a_round_trip_longer(behind: int, tmp_path: Path, round_trip_s: float) -> None:
    """Each exchange takes one round trip longer; the first takes two because of the handshake."""
    with Far(behind, tmp_path / "log", DelayedEndpoint(round_trip_s)) as far, far.connect() as connection:
        assert 2 * round_trip_s <= exchange(connection, b"x") < 3 * round_trip_s
        times = [exchange(connection, b"x" * 100) for _ in range(8)]
        assert round_trip_s <= min(times) <= round_trip_s + 0.005  # any further time is this machine's


def test_a_delay_is_no_lower_rate(behind: int, tmp_path: Path) -> None:
    """8 MiB in both directions over a delay of 200 ms take little more than a round trip."""
    with Far(behind, tmp_path / "log", DelayedEndpoint(0.2)) as far, far.connect() as connection:
        exchange(connection, b"x")
        data = os.urandom(8 * 2**20)
        sender = threading.Thread(target=connection.sendall, args=(data,))
        begun = time.monotonic()
        sender.start()
        received = bytearray()
        while len(received) < len(data):
            received += connection.recv(65536)
        sender.join()
        assert time.monotonic() - begun < 1.2
        assert bytes(received) == data


def test_a_bandwidth_is_shared_and_kept(behind: int, tmp_path: Path) -> None:
    """Four clients together get the bandwidth of 400 KB per second in each direction."""
    with Far(behind, tmp_path / "log", DelayedEndpoint(0.01, 400e3)) as far:
        clients = [far.connect() for _ in range(4)]
        for client in clients:
            exchange(client, b"x")
        begun = time.monotonic()
        threads = [threading.Thread(target=exchange, args=(client, b"x" * 300_000)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 1.2e6 / (time.monotonic() - begun) == pytest.approx(400e3, rel=0.1)
        for client in clients:
            client.close()


def test_it_is_short_until_applied_and_after_it_was_lifted(behind: int, tmp_path: Path) -> None:
    """The delay is active only between apply on and off, so that data is loaded at full speed."""
    with Far(behind, tmp_path / "log", DelayedEndpoint(0.3)) as far:
        far.proxy.apply(on=False)
        with far.connect() as connection:
            assert exchange(connection, b"x") < 0.1
            far.proxy.apply(on=True)
            assert exchange(connection, b"x") >= 0.3
            far.proxy.apply(on=False)
            assert exchange(connection, b"x") < 0.1


def test_ends_and_resets_are_handed_on(behind: int, tmp_path: Path) -> None:
    """The proxy passes on half-closed connections, resets, and refused connections."""
    with Far(behind, tmp_path / "log", DelayedEndpoint(0.05)) as far:
        with far.connect() as connection:
            exchange(connection, b"x")
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(10) == b"bye"
            assert connection.recv(10) == b""
        with far.connect() as connection:
            connection.sendall(b"reset")
            with pytest.raises(ConnectionResetError):
                connection.recv(10)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody: int = closed.getsockname()[1]
        # The reset may come during the connect.
        with (
            Far(nobody, tmp_path / "log", DelayedEndpoint(0.05)) as far,
            pytest.raises(ConnectionResetError),
            far.connect() as connection,
        ):
            connection.recv(1)


def test_hundreds_of_connections(behind: int, tmp_path: Path) -> None:
    """Three hundred connections at once each take one round trip."""
    with Far(behind, tmp_path / "log", DelayedEndpoint(0.1)) as far:
        clients = [far.connect() for _ in range(300)]
        begun = time.monotonic()
        for client in clients:
            client.sendall(b"x")
        for client in clients:
            assert client.recv(1) == b"x"
        assert time.monotonic() - begun < 2
        for client in clients:
            client.close()
    assert "Traceback" not in (tmp_path / "log").read_text()
