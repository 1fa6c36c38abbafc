"""Parses HTTP/1.1 answers from pieces of any size. httptools (llhttp) finds the end of an answer.

The cost of an answer is the Python code around the parser. Therefore the head is stored unparsed and searched
when a field is requested, and the parser calls back for little else than the body.
"""

from __future__ import annotations

import re
from typing import Literal

import httptools

from . import MORE, More

_ENCODED = re.compile(rb"\r\ncontent-encoding:", re.IGNORECASE).search
_HEAD_END = b"\r\n\r\n"
_LARGEST_HEAD_BYTES = 2**18
"""Largest accepted head in bytes, including interim answers."""

Kind = Literal["unreachable", "timeout", "tls", "connection_lost", "bad_answer", "too_large"]


class HttpError(Exception):
    """There is no answer, and the connection is closed.

    Attributes:
        kind: ``unreachable`` (no connection), ``timeout``, ``tls`` (handshake or record),
            ``connection_lost``, ``bad_answer`` (not HTTP), ``too_large``.
    """

    def __init__(self, kind: Kind, detail: str) -> None:
        super().__init__(detail)
        self.kind: Kind = kind


class UnansweredError(HttpError):
    """The server closed an idle connection while the request was sent, and did not read the request."""


class Response:
    """A complete answer.

    Args:
        status: status code.
        head: unparsed head, including the empty line.
        body: bytes of the body, in any content encoding.
    """

    __slots__ = ("_head", "_names", "body", "status")

    def __init__(self, status: int, head: bytes, body: bytes) -> None:
        self.status = status
        self.body = body
        self._head = head
        self._names = b""

    def header(self, name: bytes) -> str:
        """Return the value of a field (``name`` in lower case), several joined by commas; "" without one."""
        names = self._names or self._lowered()
        wanted = b"\r\n" + name + b":"
        at = names.find(wanted)
        if at < 0:
            return ""
        result = []
        while at >= 0:
            begin = at + len(wanted)
            end = names.find(b"\r\n", begin)
            result.append(self._head[begin:end].strip())
            at = names.find(wanted, end)
        return b", ".join(result).decode("latin-1")

    @property
    def encoded(self) -> bool:
        """Return whether the answer has a content encoding, which is checked for every answer."""
        return _ENCODED(self._head) is not None

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """Return the names and values of all header fields, unchanged."""
        pairs = (line.partition(b":") for line in self._head.split(b"\r\n")[1:-2])
        return tuple((name, value.strip()) for name, _, value in pairs)

    def _lowered(self) -> bytes:
        self._names = self._head.lower()
        return self._names


class HttpDriver:
    """A ``Driver`` for HTTP answers. The callbacks of httptools keep their own names.

    A callback that only appends is the method of a list, so that no Python code runs.

    Args:
        largest_bytes: largest size of a body in bytes; a larger body is not read to its end.

    Attributes:
        keep_alive: whether another answer may follow.
    """

    def __init__(self, largest_bytes: int) -> None:
        self.keep_alive = False
        self._largest_bytes = largest_bytes
        self._status = self._interim = self._further_bytes = 0
        self._received = b""  # the bytes with the head
        # whether there was more than a head and its body: chunks, a head in pieces, or a body that is too
        # large
        self._mixed = False
        self._parts: list[bytes] = []
        self._awaited: list[None] = [None]
        # Each answer belongs to a waiting request. An answer without a request is an error.
        self.on_message_begin = self._awaited.pop
        self.on_body = self._parts.append
        self._parser = httptools.HttpResponseParser(self)
        self._feed = self._parser.feed_data

    @property
    def begun(self) -> bool:
        """Return whether any byte of the next answer has arrived."""
        return bool(self._received)

    def receive(self, content: bytes) -> Response | More:
        """Process received bytes (see ``Driver``). Raises ``HttpError``."""
        if content:
            if self._received:
                self._take_further(content)
            else:
                self._received = content
            try:
                self._feed(content)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
                if not self._status:
                    raise HttpError("bad_answer", f"the answer is no HTTP: {error}") from error
                self.keep_alive, self._mixed = False, True  # further bytes belong to no answer
        else:
            self._end()
        if not self._status:
            return MORE
        # These lines are inlined, because a call costs the same time as each of them.
        parts = self._parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        if len(body) > self._largest_bytes:
            raise self._too_large()
        if self._mixed:
            head = self._head()
            self._interim, self._further_bytes, self._mixed = 0, 0, False
        else:
            # searching for its end would take longer
            head = self._received[: len(self._received) - len(body)]
        answer = Response(self._status, head, body)
        parts.clear()
        self._status = 0
        self._received = b""
        self._awaited.append(None)
        return answer

    def on_message_complete(self) -> None:
        """Record the end of a message. httptools calls this for each message, including interim ones."""
        status = self._parser.get_status_code()
        if status >= 200:
            self._status = status
            self.keep_alive = self._parser.should_keep_alive()
        else:
            self._interim, self._mixed = self._interim + 1, True  # the final answer follows
            self._awaited.append(None)

    def on_chunk_header(self) -> None:
        """Record the start of a chunk. httptools calls this."""
        self._mixed = True

    def _take_further(self, content: bytes) -> None:
        """Process a piece after the first, which may contain more of the head or exceed the limit."""
        if _HEAD_END not in self._final():
            self._received += content
            if len(self._received) > _LARGEST_HEAD_BYTES:
                raise HttpError("bad_answer", f"its head is larger than {_LARGEST_HEAD_BYTES} bytes")
        self._mixed = True
        self._further_bytes += len(content)
        if self._further_bytes > self._largest_bytes < sum(map(len, self._parts)):
            raise self._too_large()

    def _end(self) -> None:
        """Process the end of the connection, which is the regular end of an answer without a length."""
        if not self._received:
            raise UnansweredError("connection_lost", "the server closed the connection")
        head = Response(self._parser.get_status_code(), self._head(), b"")
        if (
            _HEAD_END not in self._final()
            or head.header(b"content-length")
            or head.header(b"transfer-encoding")
        ):
            raise HttpError("connection_lost", "the server closed the connection in an answer")
        self._status, self.keep_alive = head.status, False

    def _head(self) -> bytes:
        """Return the head alone from the received bytes."""
        return b"".join(self._final().partition(_HEAD_END)[:2])

    def _final(self) -> bytes:
        """Return the received bytes without interim answers."""
        received = self._received
        for _ in range(self._interim):
            received = received.partition(_HEAD_END)[2]
        return received

    def _too_large(self) -> HttpError:
        return HttpError("too_large", f"larger than {self._largest_bytes} bytes")
