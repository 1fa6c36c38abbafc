"""Tests of a network interface of known speed in front of an endpoint: rate, metrics and removal."""

from __future__ import annotations

import os
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pinchpoint_collectors.linux import net_dev
from pinchpoint_collectors.linux.inventory import interfaces
from pinchpoint_infra.faults.interface import InterfaceProxy, PacketRate, missing

SPEED = 1_000_000.0
ON_LINUX_AS_ROOT = pytest.mark.skipif(missing() is not None, reason=f"needs {missing()}")


class Sink(socketserver.BaseRequestHandler):
    """Counts its input and sends the count."""

    def handle(self) -> None:
        size = 0
        while data := self.request.recv(65536):
            size += len(data)
        self.request.sendall(str(size).encode())


@pytest.fixture
def behind() -> Iterator[int]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Sink) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.fixture
def proxy(behind: int, tmp_path: Path) -> Iterator[InterfaceProxy]:
    made = InterfaceProxy("sql", behind, SPEED, tmp_path / "log", os.environ)
    yield made
    made.stop()


def ours() -> set[str]:
    return {name for name in interfaces() if name.startswith("sql")}


def send(port: int, size_bytes: int) -> float:
    """Return the seconds until the server has received ``size_bytes``."""
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(b"x" * size_bytes)
        client.shutdown(socket.SHUT_WR)
        assert client.recv(100) == str(size_bytes).encode()
    return time.monotonic() - begun


def test_packets_follow_one_another_at_the_interfaces_speed() -> None:
    """A packet waits for earlier ones; idle time is not saved; without a limit no packet waits."""
    rate = PacketRate(1000.0)
    assert rate.wait_s(1.0, 500) == 0.0
    rate.on = True
    assert rate.wait_s(10.0, 100) == pytest.approx(0.1)
    assert rate.wait_s(10.0, 100) == pytest.approx(0.2)
    assert rate.wait_s(20.0, 50) == pytest.approx(0.05)


def test_who_slept_too_long_catches_up() -> None:
    """The average rate is the interface's speed even if each packet is sent 5 ms late."""
    rate, now = PacketRate(1000.0), 0.0
    rate.on = True
    for _ in range(100):
        now += rate.wait_s(now, 100) + 0.005
    assert now == pytest.approx(10.0, rel=0.01)


@ON_LINUX_AS_ROOT
def test_it_is_one_of_the_kernels_with_a_speed_and_counters(behind: int, tmp_path: Path) -> None:
    """The collector reads the interface's speed and counters, and the interface ends with its process."""
    before = ours()
    proxy = InterfaceProxy("sql", behind, SPEED, tmp_path / "log", os.environ)
    try:
        (name,) = ours() - before
        assert interfaces()[name] == SPEED
        proxy.apply(on=True)
        sent = net_dev.parse(Path("/proc/net/dev").read_text())[name].sent_bytes
        assert send(proxy.port, 700_000) > 0.6
        carried = net_dev.parse(Path("/proc/net/dev").read_text())[name].sent_bytes - sent
        assert 700_000 <= carried <= 800_000  # with packet headers and retransmissions
    finally:
        proxy.stop()
    assert ours() == before


@ON_LINUX_AS_ROOT
def test_without_limits_it_is_fast(proxy: InterfaceProxy) -> None:
    """Without limits data is loaded at full speed."""
    proxy.apply(on=False)
    assert send(proxy.port, 7_000_000) < 3.5


@ON_LINUX_AS_ROOT
def test_a_server_that_is_not_there_breaks_the_connection(tmp_path: Path) -> None:
    """A missing server breaks the client's connection, as without the interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nobody = probe.getsockname()[1]
    proxy = InterfaceProxy("sql", nobody, SPEED, tmp_path / "log", os.environ)
    try:
        with (  # on a slow machine the connect itself may fail
            pytest.raises(ConnectionResetError),
            socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client,
        ):
            client.recv(1)
    finally:
        proxy.stop()


def test_what_ends_at_its_start_says_why(tmp_path: Path) -> None:
    """A proxy process that cannot create its interface gives an error with its last output at once."""
    with pytest.raises(ConnectionError, match="the interface proxy has ended: "):
        InterfaceProxy("no/name", 1, SPEED, tmp_path / "log", os.environ)
