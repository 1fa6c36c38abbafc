"""What SQL Server's applications send as remote procedure calls, as Extended Events write it down.

A call is written as T-SQL that could have made it: ``exec dbo.place_order @customer=7``; with output
parameters ``declare @p1 int set @p1=13 exec sp_prepexec @p1 output,N'@P1 int',N'SELECT @P1',7 select @p1``.
"""

from __future__ import annotations

import re
from dataclasses import replace

from .captured import Entry

_LITERAL = r"N?'(?:[^']|'')*'"
_SET = rf"set\s+@\w+\s*=\s*(?:{_LITERAL}|[^\s';]+)"
_DECLARED = rf"(?:(?:declare\s+@\w+\s+[\w.]+(?:\([^)]*\))?|{_SET})\s*+(?:;\s++|(?<=\s)))*"
"""What a call may have before it, read in one way alone: thirty lines of it would else have 2^30."""
_CALL = re.compile(rf"(?is)\s*{_DECLARED}exec(?:ute)?\s+(?P<name>[\w.\[\]$#]++)(?!\s*\()")
"""Without parentheses after the name: those stand where other servers execute what was prepared."""
_HANDED_OVER = re.compile(
    rf"(?is)\s*exec(?:ute)?\s+(?:sys\.)?sp_executesql\s+(?:@\w+\s*=\s*)?(?P<text>{_LITERAL})"
)

_PREPARED = re.compile(
    rf"(?is)\s*declare\s+@\w+\s+int\s+set\s+@\w+\s*=\s*(?P<handle>\S+)\s+"
    rf"exec\s+(?P<how>sp_prepexec|sp_prepare)\s+@\w+\s+output\s*,\s*"
    rf"(?P<types>NULL|{_LITERAL})\s*,\s*(?P<text>{_LITERAL})(?P<values>.*?)(?:\s+select\s+@\w+)?\s*"
)
_EXECUTED = re.compile(r"(?is)\s*exec\s+sp_execute\s+(?P<handle>\d+)(?P<values>.*)")
_FORGOTTEN = "sp_unprepare"
_RESET = "sp_reset_connection"
_CURSOR = "sp_cursor"


def called(text: str) -> str | None:
    """The procedure that a text calls and does no more; None: it calls none."""
    match = _CALL.match(text)
    return match["name"].replace("[", "").replace("]", "") if match else None


def handed_over(text: str) -> str | None:
    """The statement that a call of ``sp_executesql`` has executed; None: it is no such call."""
    match = _HANDED_OVER.match(text)
    return _unquoted(match["text"]) if match else None


def resets(text: str) -> bool:
    """Whether a connection pool hands the connection to the next user: what the last one left is gone."""
    return (called(text) or "").lower().rpartition(".")[2] == _RESET


class Handles:
    """The statements that one session has prepared, which have other numbers when they are prepared again.

    So what was prepared and executed by a number becomes ``sp_executesql``, which has none.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str]] = {}

    def replayable(self, entry: Entry) -> Entry:
        """The entry as it can be made again, or why it cannot."""
        procedure = called(entry.text or "")
        if entry.text is None or procedure is None:
            return entry
        name = procedure.lower().rpartition(".")[2]
        if name in ("sp_prepexec", "sp_prepare"):
            return self._prepared(entry, entry.text)
        if name == "sp_execute":
            return self._executed(entry, entry.text)
        if name.startswith(_CURSOR):
            return replace(entry, left_out=entry.left_out or "server_cursor")
        if name in (_FORGOTTEN, _RESET):
            return replace(entry, left_out=entry.left_out or "connections_housekeeping")
        return entry

    def _prepared(self, entry: Entry, text: str) -> Entry:
        match = _PREPARED.fullmatch(text)
        if match is None:
            return entry
        self._known[match["handle"]] = (match["text"], match["types"])
        if match["how"].lower() == "sp_prepare":
            return replace(entry, left_out=entry.left_out or "connections_housekeeping")
        return replace(entry, text=_executesql(match["text"], match["types"], match["values"]))

    def _executed(self, entry: Entry, text: str) -> Entry:
        match = _EXECUTED.fullmatch(text)
        known = self._known.get(match["handle"]) if match else None
        if match is None or known is None:
            return replace(entry, left_out=entry.left_out or "prepared_before_the_capture")
        return replace(entry, text=_executesql(*known, match["values"]))


def _executesql(text: str, types: str, values: str) -> str:
    if types.upper() == "NULL" or not _unquoted(types).strip():
        return f"exec sp_executesql {text}"
    return f"exec sp_executesql {text},{types}{values.rstrip()}"


def _unquoted(literal: str) -> str:
    return literal[literal.index("'") + 1 : -1].replace("''", "'")
