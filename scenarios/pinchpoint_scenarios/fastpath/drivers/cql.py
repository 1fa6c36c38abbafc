"""Parses frames of Cassandra's native protocol, version 4: one message sent, one answer received."""

from __future__ import annotations

import struct

from . import MORE, EndedError, More

_VERSION = 4
_HEADER = struct.Struct(">BBhBi")  # version, flags, stream, opcode, length of the body
_HEADER_BYTES = _HEADER.size
_SHORT = struct.Struct(">H")
_LARGEST_BYTES = 2**24
"""Largest accepted answer in bytes. An answer is copied with each piece that arrives."""
DAMAGED = "the server's answer is damaged"


class CqlError(Exception):
    """The connection failed, or its data are invalid. It must be closed."""


class CqlDriver:
    """A ``Driver`` with answers (opcode, body). An invalid or too long frame raises ``CqlError``."""

    def __init__(self) -> None:
        self._content = b""

    def message(self, opcode: int, body: bytes) -> bytes:
        """Return the bytes of one message. Its answer is the next one."""
        return _HEADER.pack(_VERSION, 0, 0, opcode, len(body)) + body

    def receive(self, content: bytes) -> tuple[int, bytes] | More:
        if not content:
            raise EndedError
        if self._content:
            content = self._content + content
        if len(content) < _HEADER_BYTES:
            self._content = content
            return MORE
        _, flags, _, opcode, length = _HEADER.unpack_from(content)
        if not 0 <= length <= _LARGEST_BYTES:
            raise CqlError(f"{DAMAGED}: its length is {length:,} bytes; allowed: {_LARGEST_BYTES:,}")
        whole = _HEADER_BYTES + length
        if len(content) < whole:
            self._content = content
            return MORE
        if len(content) > whole:
            raise CqlError("the server sent more than was requested")
        self._content = b""
        return opcode, content[_HEADER_BYTES + (_skipped(flags, content) if flags else 0) :]


def _skipped(flags: int, content: bytes) -> int:
    """Return the number of bytes before an answer's own body.

    They are the id of a trace (16) and warnings (a list of strings).
    """
    at = _HEADER_BYTES + (16 if flags & 0x02 else 0)
    try:
        if flags & 0x08:
            count = _SHORT.unpack_from(content, at)[0]
            at += 2
            for _ in range(count):
                at += 2 + _SHORT.unpack_from(content, at)[0]
    except struct.error as error:
        raise CqlError(f"{DAMAGED}: {error}") from error
    return at - _HEADER_BYTES
