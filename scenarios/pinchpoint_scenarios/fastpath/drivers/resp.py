"""RESP, the protocol of Valkey and Redis, versions 2 and 3: commands out, replies in, by hiredis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import hiredis
from valkey import exceptions
from valkey.connection import DefaultParser

from . import MORE, EndedError

Command = tuple[str | bytes, ...]

pack = cast("Callable[[Command], bytes]", hiredis.pack_command)  # its type says one argument


class RespDriver:
    """A ``Driver`` whose answers are replies.

    A refusal is an answer: the ``valkey.exceptions.ResponseError`` that valkey-py makes of it. What is no
    RESP, or was not requested, is raised as ``valkey.exceptions.InvalidResponse``.
    """

    def __init__(self) -> None:
        # Half a reply is MORE, as hiredis' own sign for it, False, is a reply in RESP3.
        self._reader = hiredis.Reader(
            protocolError=exceptions.InvalidResponse, replyError=DefaultParser.parse_error, notEnoughData=MORE
        )
        self._replies: list[Any] | None = None
        self._awaited = 1

    def command(self, *command: str | bytes) -> bytes:
        """What to send for one command, whose reply is the next answer."""
        self._replies = None
        return pack(command)

    def commands(self, commands: Sequence[Command]) -> bytes:
        """What to send for several at once; the next answer is the list of their replies."""
        self._replies, self._awaited = [], len(commands)
        return b"".join(map(pack, commands))

    def receive(self, content: bytes) -> Any:
        """See ``Driver``: a reply, or the list of them."""
        reader = self._reader
        if not content:
            raise EndedError
        reader.feed(content)
        answer = reader.gets() if self._replies is None else self._all(self._replies)
        if answer is not MORE and reader.has_data():
            raise exceptions.InvalidResponse("the server sent more than was requested")
        return answer

    def _all(self, replies: list[Any]) -> Any:
        while len(replies) < self._awaited:
            reply = self._reader.gets()
            if reply is MORE:
                return MORE
            replies.append(reply)
        return replies
