"""Parses a script to statements and pgbench commands that can be executed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pinchpoint_collectors.common.names import unknown

from ..sql_text import copies_with_client, first_word
from .expression import Expression, ExpressionError, parsed
from .lexer import Meta, Pieces, Ref, ScriptError, ScriptStatement, cut

BUILT_IN = ("client_id", "default_seed", "random_seed", "scale")
"""Variables that every script has."""
_SLEEP_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_SLEEP = re.compile(
    r"(?::(?P<name>[^\W\d]\w*)|(?P<number>[+-]?\d+)(?P<near>us|ms|s)?)(?(near)|(?:\s+(?P<unit>us|ms|s))?)",
    re.IGNORECASE,
)
_REFUSED = {
    **dict.fromkeys(
        ("setshell", "shell"),
        "it starts a program on the machine that makes the load, and what that takes would be measured as "
        "the database's; compute the value by \\set, or take it from a file by the parameter values",
    ),
    **dict.fromkeys(
        ("startpipeline", "syncpipeline", "endpipeline"),
        "statements of a pipeline share one round trip and one failure, so that none could be timed or "
        "counted; write them one after the other",
    ),
}
_COMMANDS = ("set", "sleep", "if", "elif", "else", "endif", "gset", "aset")


@dataclass(frozen=True, slots=True)
class SqlStatement:
    r"""A statement to be sent.

    Attributes:
        line: number of its first line, from 1.
        pieces: text of the statement.
        joined: number of statements that are sent together.
        word: first word of the statement in lower case: ``update``.
        prefix: prefix of the variables that get the columns of its row; None: no variables are set.
        many: whether the last row of each joined statement is used, if it has rows (``\aset``). Otherwise the
            last statement must have one row, which is used (``\gset``).
    """

    line: int
    pieces: Pieces
    joined: int
    word: str
    prefix: str | None = None
    many: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    r"""``\set``: sets a variable to the value of an expression."""

    line: int
    name: str
    expression: Expression
    reads: frozenset[str]


@dataclass(frozen=True, slots=True)
class Sleep:
    r"""``\sleep``: a pause of a number of ``unit_s``. The number is a constant or a variable."""

    line: int
    amount: float | Ref
    unit_s: float


@dataclass(frozen=True, slots=True)
class Arm:
    r"""One part of an ``\if``: its condition (None: ``\else``) and its commands."""

    line: int
    condition: Expression | None
    reads: frozenset[str]
    commands: list[Command]


@dataclass(frozen=True, slots=True)
class Branch:
    r"""``\if`` to ``\endif``: the first part whose condition is true is executed."""

    line: int
    arms: list[Arm] = field(default_factory=list)


Command = SqlStatement | Set | Sleep | Branch


@dataclass(frozen=True, slots=True)
class Script:
    """One script, which is one operation.

    Attributes:
        name: name of the operation.
        file: file of the script, for messages.
        commands: statements and commands in order.
    """

    name: str
    file: str
    commands: list[Command]

    def statements(self) -> Iterator[SqlStatement]:
        """Return every statement in order."""
        return (each for each in flat(self.commands) if isinstance(each, SqlStatement))

    def variables(self) -> frozenset[str]:
        """Return the variables that the script uses."""
        return frozenset(name for command in flat(self.commands) for _, name, _ in uses(command))


def flat(commands: list[Command]) -> Iterator[Command]:
    """Yield every command, including those within branches."""
    for command in commands:
        yield command
        if isinstance(command, Branch):
            for arm in command.arms:
                yield from flat(arm.commands)


def uses(command: Command) -> Iterator[tuple[int, str, bool]]:
    """Yield the variables that a command itself uses: line, name, and whether within quotes."""
    match command:
        case Set(line=line, reads=reads):
            yield from ((line, name, False) for name in sorted(reads))
        case Sleep(line=line, amount=Ref(name=name)):
            yield line, name, False
        case Branch(arms=arms):
            yield from ((arm.line, name, False) for arm in arms for name in sorted(arm.reads))
        case SqlStatement(line=line, pieces=pieces):
            yield from ((line, piece.name, piece.quoted) for piece in pieces if isinstance(piece, Ref))


def read(name: str, file: str, text: str) -> Script:
    """Parse the text of a script. Raises ``ScriptError`` for the first line that is not valid."""
    reader = _ScriptReader(file)
    for part in cut(text, file):
        if isinstance(part, ScriptStatement):
            reader.statement(part)
        else:
            reader.command(part)
    commands = reader.done()
    if not any(isinstance(each, SqlStatement) for each in flat(commands)):
        raise ScriptError(f"{file}: no statement; needed: at least one")
    return Script(name, file, commands)


class _ScriptReader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._commands: list[list[Command]] = [[]]
        self._branches: list[Branch] = []

    def statement(self, value: ScriptStatement) -> None:
        text = "".join(piece for piece in value.pieces if isinstance(piece, str))
        if copies_with_client(text):
            raise self._error(
                value.line,
                "COPY from or to the client",
                "INSERT and SELECT, or COPY with a file of the server",
            )
        self._commands[-1].append(SqlStatement(value.line, value.pieces, value.joined, first_word(text)))

    def command(self, meta: Meta) -> None:
        name = meta.name.lower()
        if name in _REFUSED:
            raise ScriptError(f"{self._file}:{meta.line}: \\{name} is refused: {_REFUSED[name]}")
        if name not in _COMMANDS:
            raise ScriptError(f"{self._file}:{meta.line}: {unknown('command', name, _COMMANDS)}")
        match name:
            case "set":
                self._set(meta)
            case "sleep":
                self._sleep(meta)
            case "gset" | "aset":
                self._keep(meta, many=name == "aset")
            case _:
                self._branch(meta, name)

    def done(self) -> list[Command]:
        if self._branches:
            raise self._error(self._branches[-1].line, "an \\if that never ends", "an \\endif after it")
        return self._commands[0]

    def _set(self, meta: Meta) -> None:
        name, text = (*meta.rest.split(None, 1), "", "")[:2]
        if not name.isidentifier() or not text:
            raise self._error(meta.line, f"\\set {meta.rest}", "\\set NAME EXPRESSION")
        expression, reads = self._expression(meta.line, text)
        self._commands[-1].append(Set(meta.line, name, expression, reads))

    def _sleep(self, meta: Meta) -> None:
        match = _SLEEP.fullmatch(meta.rest)
        if match is None:
            raise self._error(
                meta.line,
                f"\\sleep {meta.rest}",
                "\\sleep NUMBER [us|ms|s], a whole number or a :variable",
            )
        amount = Ref(match["name"], quoted=False) if match["name"] else float(match["number"])
        unit = match["unit"] or match["near"] or "s"
        self._commands[-1].append(Sleep(meta.line, amount, _SLEEP_UNITS_S[unit.lower()]))

    def _keep(self, meta: Meta, *, many: bool) -> None:
        last = self._commands[-1][-1] if self._commands[-1] else None
        if not isinstance(last, SqlStatement) or last.prefix is not None:
            raise self._error(meta.line, f"\\{meta.name} without a statement", "a query before it")
        prefix = meta.rest
        if prefix and not prefix.isidentifier():
            raise self._error(meta.line, f"\\{meta.name} {prefix}", "a prefix of letters, digits and _")
        self._commands[-1][-1] = SqlStatement(last.line, last.pieces, last.joined, last.word, prefix, many)

    def _branch(self, meta: Meta, name: str) -> None:
        if name == "if":
            branch = Branch(meta.line)
            self._commands[-1].append(branch)
            self._branches.append(branch)
        elif not self._branches:
            raise self._error(meta.line, f"\\{name} without an \\if", "an \\if before it")
        else:
            self._commands.pop()
            branch = self._branches[-1]
            if branch.arms[-1].condition is None and name != "endif":
                raise self._error(meta.line, f"\\{name} after \\else", "\\endif")
        if name == "endif":
            self._branches.pop()
            return
        condition, reads = None, frozenset[str]()
        if name != "else":
            condition, reads = self._expression(meta.line, meta.rest)
        branch.arms.append(Arm(meta.line, condition, reads, []))
        self._commands.append(branch.arms[-1].commands)

    def _expression(self, line: int, text: str) -> tuple[Expression, frozenset[str]]:
        try:
            return parsed(text)
        except ExpressionError as error:
            raise ScriptError(f"{self._file}:{line}: {text.strip()}: {error}") from error

    def _error(self, line: int, value: str, allowed: str) -> ScriptError:
        return ScriptError(f"{self._file}:{line}: {value}; allowed: {allowed}")
