"""Splits a script into statements and commands by psql's rules, which pgbench follows.

A statement ends with a ``;`` outside of quotes, comments and parentheses, or where a command begins. A
command is a backslash and the rest of its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import ScenarioError


class ScriptError(ScenarioError):
    """A script is invalid: ``FILE:LINE: what was found; what is allowed``."""


@dataclass(frozen=True, slots=True)
class Ref:
    """The place of a variable's value in a statement.

    Attributes:
        name: name of the variable.
        quoted: whether the place is within quotes or slice bounds, where no parameter is allowed.
    """

    name: str
    quoted: bool


Pieces = tuple[str | Ref, ...]
"""The text of a statement, split at variables."""


@dataclass(frozen=True, slots=True)
class ScriptStatement:
    r"""One SQL statement, or several joined by ``\;``.

    Attributes:
        line: number of its first line, from 1.
        pieces: text of the statement.
        joined: number of its statements.
    """

    line: int
    pieces: Pieces
    joined: int


@dataclass(frozen=True, slots=True)
class Meta:
    """One backslash command: its line, its name without the backslash, and the rest of its line."""

    line: int
    name: str
    rest: str


_TOKEN = re.compile(
    r"""
    (?P<comment>--[^\n]*)
    |(?P<block>/\*)
    |(?P<string>[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<dollar>\$(?:[^\W\d]\w*)?\$)
    |(?P<word>\w[\w$]*)
    |(?P<cast>::|:=)
    |:(?P<variable>[^\W\d]\w*)
    |(?P<join>\\;)
    |(?P<meta>\\)
    |(?P<open>[(\[])
    |(?P<close>[)\]])
    |(?P<end>;)
    |(?P<space>\s+)
    |(?P<quote>['"])
    |(?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_QUOTES = re.compile(r"(?<!:):([^\W\d]\w*)")
_BOUND = re.compile(r"[\w)\]]$")
_META = re.compile(r"[ \t]*(\S+)[ \t]*((?:\\\r?\n|[^\n])*)")
_CONTINUED = re.compile(r"\\\r?\n")
_BLOCK = re.compile(r"/\*|\*/")


def cut(text: str, file: str) -> Iterator[ScriptStatement | Meta]:
    """Return the statements and commands of a script in order.

    Args:
        text: text of the script.
        file: name of the script for messages.

    Raises:
        ScriptError: quotes or a comment without an end, or a backslash without a command.
    """
    cutter = _Cutter(text, file)
    while cutter.at < len(text):
        yield from cutter.step()
    yield from cutter.ended()


class _Cutter:
    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self.at = 0
        self._forget()

    def step(self) -> Iterator[ScriptStatement | Meta]:
        """Read one token. Return the statement or command that it completes."""
        match = _TOKEN.match(self._text, self.at)
        if match is None:
            # The last alternative matches anything.
            raise AssertionError(f"{self._file}: no token at {self.at}")
        self.at = match.end()
        kind, result = str(match.lastgroup), match[0]
        match kind:
            case "comment":
                self._add(" ", match.start())
            case "end" if "(" not in self._open:
                yield from self.ended()
            case "join":
                self._joined += 1
                self._add(";", match.start())
            case "meta":
                yield from self.ended()
                yield self._command(match.start())
            case "block" | "dollar" | "string" | "quote":
                self._span(kind, result, match.start())
            case "variable":
                self._add(Ref(match["variable"], quoted=self._in_slice()), match.start())
            case _:
                if kind == "open":
                    self._open.append(result)
                elif kind == "close" and self._open:
                    self._open.pop()
                self._add(result, match.start())

    def ended(self) -> Iterator[ScriptStatement]:
        """Return the statement read so far, if there is one."""
        pieces = tuple(_merged(self._pieces))
        if self._line and pieces:
            yield ScriptStatement(self._line, pieces, self._joined)
        self._forget()

    def _forget(self) -> None:
        self._pieces: list[str | Ref] = []
        self._line = 0
        self._open: list[str] = []
        self._joined = 1

    def _in_slice(self) -> bool:
        """Return whether a colon separates the bounds of a slice: ``array[1:n]``."""
        before = self._pieces[-1] if self._pieces else ""
        return "[" in self._open and isinstance(before, str) and bool(_BOUND.search(before))

    def _add(self, piece: str | Ref, start: int) -> None:
        if not self._line and (isinstance(piece, Ref) or piece.strip()):
            self._line = self._text.count("\n", 0, start) + 1
        self._pieces.append(piece)

    def _span(self, kind: str, value: str, start: int) -> None:
        """Read a part with its own end mark: a comment, or quoted text."""
        match kind:
            case "block":
                self._add(self._until_balanced(start), start)
            case "dollar":
                self._quoted(value + self._until(value, start), start)
            case "string":
                self._quoted(value, start)
            case _:
                place = self._place(start)
                raise ScriptError(f"{place}: a quote that never ends; add the closing {value}")

    def _quoted(self, value: str, start: int) -> None:
        at = 0
        for match in _IN_QUOTES.finditer(value):
            self._add(value[at : match.start()], start)
            self._add(Ref(match[1], quoted=True), start)
            at = match.end()
        self._add(value[at:], start)

    def _until(self, end: str, start: int) -> str:
        result = self._text.find(end, self.at)
        if result < 0:
            raise ScriptError(f"{self._place(start)}: a {end} that never ends; add the closing {end}")
        inside, self.at = self._text[self.at : result + len(end)], result + len(end)
        return inside

    def _until_balanced(self, start: int) -> str:
        depth = 1
        while depth:
            match = _BLOCK.search(self._text, self.at)
            if match is None:
                raise ScriptError(f"{self._place(start)}: a comment that never ends; add the closing */")
            depth += 1 if match[0] == "/*" else -1
            self.at = match.end()
        return self._text[start : self.at]

    def _command(self, start: int) -> Meta:
        match = _META.match(self._text, self.at)
        if match is None or "\n" in self._text[self.at : match.start(1)]:
            raise ScriptError(f"{self._place(start)}: a backslash without a command; remove it")
        self.at = match.end()
        rest = _CONTINUED.sub(" ", match[2]).strip()
        return Meta(self._text.count("\n", 0, start) + 1, match[1], rest)

    def _place(self, start: int) -> str:
        return f"{self._file}:{self._text.count(chr(10), 0, start) + 1}"


def _merged(pieces: list[str | Ref]) -> Iterator[str | Ref]:
    """Return the pieces with adjacent texts merged. White space and separators at the ends are removed."""
    merged: list[str | Ref] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    for place, strip in ((0, str.lstrip), (-1, str.rstrip)):
        if merged and isinstance(merged[place], str):
            merged[place] = strip(str(merged[place]))
    yield from (piece for piece in merged if piece)
