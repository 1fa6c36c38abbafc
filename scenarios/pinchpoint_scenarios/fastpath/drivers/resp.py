"""Builds commands and parses replies of RESP, versions 2 and 3, the protocol of Valkey and Redis."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, cast

import hiredis
from valkey import exceptions
from valkey.connection import DefaultParser

from . import MORE, EndedError

Command = tuple[str | bytes, ...]

_LINE = b"\r\n"
_LISTS = (b"*", b"%", b"~", b">", b"|")
_LIST = re.compile(rb"\r\n[*%~>|](\d{1,20})(?=\r\n)")
"""Pattern of the header of a list, map or set, with the number of its values."""
_HEADER_BYTES = 26
_MOST_VALUES = 2**20
_LARGEST_BYTES = 2**29
"""Limits of one answer, because hiredis reserves memory for all values of a list after reading the header."""

pack = cast("Callable[[Command], bytes]", hiredis.pack_command)  # its type hints declare one argument


class RespDriver:
    """A ``Driver`` for RESP replies.

    A refusal is an answer: valkey-py's ``valkey.exceptions.ResponseError``. Invalid RESP and replies without
    a request raise ``valkey.exceptions.InvalidResponse``.
    """

    def __init__(self) -> None:
        # An incomplete reply is MORE, because False, which hiredis uses for that, is also a reply in RESP3.
        self._reader = hiredis.Reader(
            protocolError=exceptions.InvalidResponse, replyError=DefaultParser.parse_error, notEnoughData=MORE
        )
        self._replies: list[Any] | None = None
        self._awaited = 1
        self._begins = True  # the next byte begins an answer
        self._may_be_lists = False
        self._bytes = self._values = 0  # values of the answer that is arriving
        self._last = _LINE  # position at which the header of a list may have begun

    def command(self, *command: str | bytes) -> bytes:
        """Return the bytes of one command. Its reply is the next answer."""
        self._replies, self._awaited = None, 1
        return pack(command)

    def commands(self, commands: Sequence[Command]) -> bytes:
        """Return the bytes of several commands. The next answer is the list of their replies."""
        self._replies, self._awaited = [], len(commands)
        return b"".join(map(pack, commands))

    def receive(self, content: bytes) -> Any:
        """Process received bytes (see ``Driver``). Return a reply, or the list of replies."""
        reader = self._reader
        if not content:
            raise EndedError
        if self._begins:
            self._begins = False
            self._may_be_lists = self._awaited > 1 or content[:1] in _LISTS
        if self._may_be_lists:
            self._count(content)
        reader.feed(content)
        try:
            answer = reader.gets() if self._replies is None else self._all(self._replies)
        except TypeError as error:  # error of hiredis for a map whose key is a list or a map
            raise exceptions.InvalidResponse(f"the server's answer is no RESP: {error}") from error
        if answer is MORE:
            self._bytes += len(content)
            if self._bytes > _LARGEST_BYTES:
                raise exceptions.InvalidResponse(
                    f"the server's answer has more than {_LARGEST_BYTES:,} bytes"
                )
            return MORE
        if reader.has_data():
            raise exceptions.InvalidResponse("the server sent more than was requested")
        self._begins = True
        self._bytes, self._values, self._last = 0, 0, _LINE
        return answer

    def _count(self, content: bytes) -> None:
        """Raises ``InvalidResponse`` if the lists of an answer announce too many values.

        Bytes inside a value that look like a header also count. No requested answer comes near the limit.
        """
        seen, at = self._last + content, 0
        for header in _LIST.finditer(seen):
            self._values += int(header[1])
            at = header.end()
        if self._values > _MOST_VALUES:
            raise exceptions.InvalidResponse(f"the server's answer has more than {_MOST_VALUES:,} values")
        self._last = seen[max(at, len(seen) - _HEADER_BYTES) :]

    def _all(self, replies: list[Any]) -> Any:
        while len(replies) < self._awaited:
            reply = self._reader.gets()
            if reply is MORE:
                return MORE
            replies.append(reply)
        return replies
