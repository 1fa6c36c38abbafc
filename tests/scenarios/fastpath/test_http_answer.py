"""Tests of HTTP replies in pieces, also hostile ones: read exactly as by httptools alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

import httptools
import pytest

from pinchpoint_scenarios.fastpath.drivers import MORE
from pinchpoint_scenarios.fastpath.drivers.http import HttpDriver, HttpError, Response

LARGEST = 2**62
HEADS = (
    b"HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: %d\r\nX-A: 1\r\n\r\n",
    b"HTTP/1.1 404 Not Found\r\ncontent-length:%d\t\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
    b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX-Content-Length: 3\r\nContent-Length: %d \r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nContent-Length: 40000\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: %d\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX-A: a\r\n Content-Length: 9\r\nContent-Length: %d\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length:\r\n %d\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nContent-Length: 7\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: %d\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: +%d\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nUpgrade: h2c\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\n",
)
SIZES = (0, 1, 500, 16_000, 40_000, 120_000)
JUNK = b"\r\n\t :;,%x09aZ\0\xff+-"


@dataclass
class Plain:
    """The reference: each callback in Python, each byte through the parser."""

    body: bytes = b""
    status: int = 0
    keeps: bool = False
    whole: bool = False
    fields: list[tuple[bytes, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.whole:
            self.fields.append((name, value))

    def on_body(self, part: bytes) -> None:
        if not self.whole:
            self.body += part

    def on_message_complete(self) -> None:
        if self.whole:
            return
        status = self.parser.get_status_code()
        if status < 200:
            self.fields.clear()
            return
        self.status, self.whole, self.keeps = status, True, self.parser.should_keep_alive()


def plainly(pieces: list[bytes]) -> Plain | None:
    """Return the reference's reading; None if the reply is refused or incomplete."""
    plain = Plain()
    for piece in pieces:
        try:
            plain.parser.feed_data(piece)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            break
        if plain.whole:
            break
    return plain if plain.whole else None


def taken(pieces: list[bytes]) -> tuple[Response, bool] | None:
    """Return the driver's reading: the response, and True if the connection stays open."""
    driver = HttpDriver(LARGEST)
    try:
        for piece in pieces:
            answer = driver.receive(piece)
            if answer is not MORE:
                return answer, driver.keep_alive
    except HttpError as error:
        if error.kind != "bad_answer":
            raise
    return None


def said(random: Random) -> bytes:
    """Return a mostly valid reply, with some changed bytes, or truncated, or with further bytes."""
    size = random.choice(SIZES)
    if random.random() < 0.2:
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in [b"y" * size, b"z" * 9] if part)
        whole = head + body + b"0\r\n\r\n"
    else:
        head = random.choice(HEADS) % size
        whole = head + random.randbytes(4) * (size // 4) + b"x" * (size % 4)
    if random.random() < 0.5:
        at = random.randrange(len(head))
        whole = whole[:at] + bytes([random.choice(JUNK)]) + whole[at + random.randrange(2) :]
    return random.choice((whole, whole, whole, whole + b"HTTP/1.1 200 OK\r\n", whole[: len(whole) * 2 // 3]))


def cut(whole: bytes, random: Random) -> list[bytes]:
    """Return up to five pieces, often split near the end of the head."""
    near = whole.find(b"\r\n\r\n") + 4
    places = {random.choice((random.randrange(1, len(whole) + 1), near, near + 1)) for _ in range(4)}
    edges = [0, *sorted(place for place in places if 0 < place < len(whole)), len(whole)]
    return [whole[begin:end] for begin, end in pairwise(edges)]


@pytest.mark.parametrize("seed", range(8))
def test_no_answer_is_read_otherwise_than_by_the_parser_alone(seed: int) -> None:
    """Status, body, fields and connection state are the reference's, and the same replies are refused."""
    random = Random(seed)
    whole = 0
    for number in range(250):
        pieces = cut(said(random), random)
        expected, found = plainly(pieces), taken(pieces)
        told = f"answer {number}: {[piece[:200] for piece in pieces]}"
        assert (found is None) == (expected is None), told
        if found is None or expected is None:
            continue
        whole += 1
        answer, keep_alive = found
        assert (answer.status, answer.body) == (expected.status, expected.body), told
        folded = any(b"\r\n " in piece or b"\r\n\t" in piece for piece in pieces)
        if not folded:
            assert answer.headers == tuple((name, value.strip()) for name, value in expected.fields), told
        if b"".join(pieces).endswith(answer.body) or not answer.body:
            assert keep_alive <= expected.keeps, told
    assert whole > 50


def test_what_chunks_say_is_no_field_of_the_head() -> None:
    """A body that looks like the end of a head and fields adds no field, wherever it is split."""
    body = b"a\r\nContent-Encoding: gzip\r\nX-A: 2\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n"
    whole = head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    for at in range(1, len(whole) + 1):
        found = taken([piece for piece in (whole[:at], whole[at:]) if piece])
        assert found is not None
        answer, _ = found
        assert (answer.body, answer.header(b"x-a"), answer.encoded) == (body, "1", False), at
        assert answer.headers == ((b"Transfer-Encoding", b"chunked"), (b"X-A", b"1")), at
