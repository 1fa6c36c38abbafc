"""RESP, the protocol of Valkey and Redis, versions 2 and 3: commands out, replies in, by hiredis."""

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
"""The header of a list, map or set, with the number of its values."""
_HEADER_BYTES = 26
_MOST_VALUES = 2**20
_LARGEST_BYTES = 2**29
"""Limits of one answer: hiredis reserves memory for all values of a list as soon as it has read the
header."""

pack = cast("Callable[[Command], bytes]", hiredis.pack_command)  # its type declares one argument


class RespDriver:
    """A ``Driver`` for RESP replies.

    A refusal is an answer: valkey-py's ``valkey.exceptions.ResponseError``. Invalid RESP, and replies without
    a request, raise ``valkey.exceptions.InvalidResponse``.
    """

    def __init__(self) -> None:
        # An incomplete reply is MORE, because hiredis' own sign for it, False, is a reply in RESP3.
        self._reader = hiredis.Reader(
            protocolError=exceptions.InvalidResponse, replyError=DefaultParser.parse_error, notEnoughData=MORE
        )
        self._replies: list[Any] | None = None
        self._awaited = 1
        self._begins = True  # with the next byte, an answer
        self._may_be_lists = False
        self._bytes = self._values = 0  # of the answer that is arriving
        self._last = _LINE  # where the header of a list may have begun

    def command(self, *command: str | bytes) -> bytes:
        """The bytes of one command, whose reply is the next answer."""
        self._replies, self._awaited = None, 1
        return pack(command)

    def commands(self, commands: Sequence[Command]) -> bytes:
        """The bytes of several commands; the next answer is the list of their replies."""
        self._replies, self._awaited = [], len(commands)
        return b"".join(map(pack, commands))

    def receive(self, content: bytes) -> Any:
        """See ``Driver``: a reply, or the list of them."""
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
        except TypeError as error:  # hiredis' error for a map whose key is a list or a map
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
        """Raise ``InvalidResponse`` if an answer's lists announce too many values.

        Bytes inside a value that look like a header count, too; no requested answer comes near the limit.
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
