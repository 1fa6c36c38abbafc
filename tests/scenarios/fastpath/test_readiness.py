"""Tests of waits for a descriptor without gevent; test_greenlets.py has those with gevent."""

from __future__ import annotations

import socket
import threading
import time

from pinchpoint_scenarios.fastpath.readiness import readiness


def test_what_is_there_is_seen_at_once_and_what_comes_in_time() -> None:
    """Present data, arriving data, and the end of the stream end a wait."""
    here, there = socket.socketpair()
    ready = readiness(here.fileno())
    there.send(b"x")
    ready.wait_readable()
    here.recv(1)
    coming = threading.Timer(0.1, there.send, [b"x"])
    coming.start()
    assert ready.wait_readable(time.monotonic() + 5)
    here.recv(1)
    coming.join()
    there.close()
    ready.wait_readable()
    assert here.recv(1) == b""
    ready.close()
    here.close()


def test_a_wait_ends_when_its_time_is_up() -> None:
    """A wait ends at its time limit, repeatedly."""
    here, there = socket.socketpair()
    ready = readiness(here.fileno())
    for _ in range(2):
        begun = time.monotonic()
        assert not ready.wait_readable(time.monotonic() + 0.1)
        assert 0.1 <= time.monotonic() - begun < 1.0
    ready.close()
    here.close()
    there.close()


def test_room_to_write_is_waited_for_until_somebody_reads() -> None:
    """A wait for writing ends when the peer reads from a full buffer; later waits for reading still work."""
    here, there = socket.socketpair()
    here.setblocking(False)
    ready = readiness(here.fileno())
    assert ready.wait_writable(time.monotonic() + 1)
    try:
        while True:
            here.send(bytes(65_536))
    except BlockingIOError:
        pass
    assert not ready.wait_writable(time.monotonic() + 0.1)
    reading = threading.Timer(0.1, there.recv, [2**24])
    reading.start()
    assert ready.wait_writable()
    reading.join()
    assert not ready.wait_readable(time.monotonic() + 0.05)
    ready.close()
    ready.close()
    here.close()
    there.close()
