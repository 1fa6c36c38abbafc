"""A database that statements of the user's own may change, whatever kind of server holds it."""

from __future__ import annotations

from typing import Any, Protocol

from ...databases.contract import TextConnection
from ..params import ValuesParams
from ..scope import Value

MARKER = "pinchpoint.copy/1: a copy for load tests, which may change and lose what it holds"
"""The mark on a database that says it may be written to. What follows the version is for people."""
VERSION = MARKER.partition(":")[0]


class Copy(Protocol):
    """The user's database: marked as a copy, or empty where that will do."""

    @property
    def blocks(self) -> bool:
        """Whether its connections wait inside C code (``contract.Blocking``)."""
        ...

    def check(self) -> dict[str, Any]:
        """Version and settings of the server; raises where its database is not to be written to."""
        ...

    def hold(self) -> None:
        """Keep other runs of this name out until ``release``; checks the mark again."""
        ...

    def run_file(self, file: str, text: str, *, mark: bool) -> None:
        """Run a file of SQL while the database is held.

        Args:
            file: its name, for messages.
            text: what is in it.
            mark: whether a database that could be written to because it was empty is marked first, so that
                the next run finds what this one makes.

        Raises:
            ScenarioError: a statement failed.
        """
        ...

    def column(self, name: str, values: ValuesParams) -> list[Value]:
        """The values of a column: so many at most, evenly taken from all of them in their order.

        Raises ``ScriptError``.
        """
        ...

    def connection(self, timeout_s: float) -> TextConnection:
        """A session's connection, not opened yet: as the server gives it, but for its name and time limit."""
        ...

    def encoded(self, value: Value) -> Any:
        """A value as it travels beside a statement."""
        ...

    def literal(self, value: Value) -> str:
        """A value as it is put into a statement's text."""
        ...

    def translated(self, statement: str) -> str:
        """What begins a transaction, as a driver of SQL Server's did it, in this server's words."""
        ...

    def release(self) -> None:
        """Let other runs in. Safe to call twice."""
        ...
