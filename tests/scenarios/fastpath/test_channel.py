"""Tests of messages and replies over a socket: whole replies in any pieces, and each kind of failure."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from pinchpoint_scenarios.fastpath.channel import (
    Channel,
    ChannelError,
    ChannelInterruptedError,
    ChannelTimeoutError,
)
from pinchpoint_scenarios.fastpath.drivers import MORE, EndedError, More


class Lines:
    """A driver whose replies end with a newline."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def receive(self, content: bytes) -> bytes | More:
        if not content:
            raise EndedError
        if content == b"what?":
            raise ValueError(content.decode())
        self.pieces.append(content)
        return b"".join(self.pieces) if content.endswith(b"\n") else MORE


class Lined(Channel[bytes]):
    """A channel whose replies are lines."""

    def __init__(self, descriptor: int, timeout_s: float) -> None:
        self.lines = Lines()
        super().__init__(descriptor, self.lines, timeout_s)

    def exchange(self, message: bytes) -> bytes:
        self.send(message)
        return self()


@contextmanager
def opened(serve: Callable[[socket.socket], None], timeout_s: float = 5) -> Iterator[Lined]:
    """Yield a channel to a peer that runs this function."""
    here, there = socket.socketpair()
    thread = threading.Thread(target=serve, args=(there,))
    channel = Lined(here.fileno(), timeout_s)
    thread.start()
    try:
        yield channel
    finally:
        channel.close()
        channel.close()
        here.close()
        thread.join(10)
        there.close()


def answer(*pieces: bytes) -> Callable[[socket.socket], None]:
    """Return a peer that reads one message, then sends these pieces with pauses."""

    def serve(peer: socket.socket) -> None:
        peer.recv(65_536)
        for piece in pieces:
            peer.sendall(piece)
            time.sleep(0.02)

    return serve


@pytest.mark.parametrize("pieces", [[b"yes\n"], [b"y", b"e", b"s\n"]])
def test_an_answer_is_whole_however_it_comes(pieces: list[bytes]) -> None:
    """A reply is complete however its bytes are split."""
    with opened(answer(*pieces)) as channel:
        assert channel.exchange(b"?") == b"yes\n"


def test_a_large_answer_is_read_in_large_pieces() -> None:
    """A small reply needs only a small buffer; a large reply grows it, so that few reads are needed."""
    content = bytes(range(65, 91)) * 40_000 + b"\n"
    with opened(answer(content)) as channel:
        assert channel.exchange(b"?") == content
        assert len(channel.lines.pieces[0]) < 1_000 < len(channel.lines.pieces[-2]) <= 65_536


def test_a_message_larger_than_all_buffers_is_sent_whole() -> None:
    """A message larger than all buffers is sent in pieces as the peer reads it."""
    message = bytes(2**24)
    taken: list[int] = []

    def serve(peer: socket.socket) -> None:
        while sum(taken) < len(message):
            taken.append(len(peer.recv(2**20)))
        peer.sendall(b"done\n")

    with opened(serve) as channel:
        assert channel.exchange(message) == b"done\n"
    assert sum(taken) == len(message)


def test_a_peer_that_says_nothing_or_takes_nothing_is_a_timeout() -> None:
    """A peer that sends or reads nothing causes a timeout at the time limit; half a reply is no reply."""
    done = threading.Event()

    def serve(peer: socket.socket) -> None:
        peer.recv(1)
        peer.sendall(b"half")
        done.wait(10)

    with opened(serve, timeout_s=0.2) as channel:
        for message in (b"?", bytes(2**24)):
            begun = time.monotonic()
            with pytest.raises(ChannelTimeoutError):
                channel.exchange(message)
            assert 0.2 <= time.monotonic() - begun < 2
        done.set()


def test_a_peer_that_hangs_up_is_an_end_and_one_that_is_gone_a_loss() -> None:
    """A peer that closes its side and a lost peer have different errors."""
    ended = pytest.raises(ChannelError, match="closed the connection")
    with opened(lambda peer: peer.shutdown(socket.SHUT_WR)) as channel, ended:
        channel.exchange(b"?")
    lost = pytest.raises(ChannelError, match="the connection broke")
    with opened(socket.socket.close) as channel, lost:
        time.sleep(0.05)
        channel.exchange(b"?")


def test_a_peer_that_answers_before_it_has_all_is_heard() -> None:
    """If a peer replies before it has read the whole message, the reply is read and no CPU is wasted."""
    done = threading.Event()

    def serve(peer: socket.socket) -> None:
        peer.recv(1)
        peer.sendall(b"too ")
        time.sleep(0.1)
        peer.sendall(b"large\n")
        done.wait(10)

    with opened(serve) as channel:
        used_s = time.process_time()
        with pytest.raises(ChannelInterruptedError) as caught:
            channel.exchange(bytes(2**24))
        assert caught.value.answer == b"too large\n"
        assert time.process_time() - used_s < 0.08
        done.set()


def test_answers_to_the_first_messages_are_read_while_the_last_are_sent() -> None:
    """A peer that reads no further until its replies are read does not block the sending."""

    def serve(peer: socket.socket) -> None:
        left = 2**24
        while left:
            left -= (taken := len(peer.recv(2**20)))
            peer.sendall(bytes(taken))
        peer.sendall(b"\n")

    with opened(serve) as channel:
        assert len(channel.exchange(bytes(2**24))) == 2**24 + 1


def test_what_a_driver_raises_comes_out() -> None:
    """An exception of the driver, as for an invalid reply, is passed on."""
    with opened(answer(b"what?")) as channel, pytest.raises(ValueError, match="what"):
        channel.exchange(b"?")
