"""A database of the user's on each server, marked as a copy the way a refusal says it is to be done."""

# ruff: noqa: S608 - the tests ask in SQL of their own

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from scenarios.sql_servers.targets import Maria, Mssql, Target

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.sql_script.marked_copy import MarkedCopy

ACCOUNTS = 20
_DATABASE = "pinchpoint_copy"
_TABLES = ("account", "moved", "made")
_BACKSLASH = {"mysql": "CHAR(92 USING utf8mb4)", "postgresql": "chr(92)", "mssql": "CHAR(92)"}


@dataclass(frozen=True)
class Copied:
    """Accounts and no movements, in a database that is marked.

    Attributes:
        target: the server.
        endpoint: the database.
        inside: what stands before a table's name in a question to the server.
    """

    target: Target
    endpoint: Endpoint
    inside: str

    @property
    def kind(self) -> str:
        """``mysql``, ``postgresql`` or ``mssql``."""
        return self.endpoint.url.partition("://")[0].partition("+")[0]

    @property
    def begin(self) -> str:
        """What begins a transaction there."""
        return "BEGIN TRANSACTION" if self.kind == "mssql" else "START TRANSACTION"

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement in which ``~`` stands before each table's name."""
        return self.target.ask(statement.replace("~", self.inside))

    def number(self, statement: str) -> int:
        """The one number of a query."""
        ((found,),) = self.ask(statement)
        return int(found or 0)

    def mark(self) -> None:
        """Say that it is a copy, as the refusal says it is to be said."""
        try:
            MarkedCopy(self.endpoint, "pinchpoint_test", empty_will_do=False).check()
        except ScenarioError as error:
            self.target.ask(str(error).partition("say so: ")[2])

    def unmark(self) -> None:
        """Take the mark off."""
        if isinstance(self.target, Maria):
            self.ask("DROP TABLE IF EXISTS ~pinchpoint")
        elif isinstance(self.target, Mssql):
            self.ask(
                "IF EXISTS (SELECT 1 FROM sys.extended_properties WHERE class = 0 AND name = N'pinchpoint') "
                "EXEC sp_dropextendedproperty @name = N'pinchpoint'"
            )
        else:
            self.ask("COMMENT ON DATABASE loadtest IS NULL")

    def fill(self) -> None:
        """Make the tables; names hold quotes and backslashes."""
        self.ask(
            "CREATE TABLE ~account (id int PRIMARY KEY, name varchar(40) NOT NULL, balance bigint NOT NULL)"
        )
        self.ask("CREATE TABLE ~moved (turn int, client int, amount bigint, note varchar(80))")
        names = (
            f"({number}, CONCAT('account ''{number}''', {_BACKSLASH[self.kind]}), 0)"
            for number in range(1, ACCOUNTS + 1)
        )
        self.ask(f"INSERT INTO ~account VALUES {', '.join(names)}")

    def clear(self) -> None:
        """Leave nothing of it."""
        self.unmark()
        self.ask(f"DROP TABLE IF EXISTS {', '.join(f'~{table}' for table in _TABLES)}")


@contextmanager
def copied(target: Target) -> Iterator[Copied]:
    """A marked copy on a server; nothing of it afterwards."""
    endpoint, inside = target.endpoint, ""
    if isinstance(target, Maria):
        target.ask(f"CREATE DATABASE {_DATABASE} CHARACTER SET utf8mb4")  # gone when the target is cleared
        endpoint, inside = (
            Endpoint("sql", endpoint.url.replace("/loadtest", f"/{_DATABASE}")),
            f"{_DATABASE}.",
        )
    copy = Copied(target, endpoint, inside)
    copy.clear()
    copy.fill()
    copy.mark()
    yield copy
    copy.clear()
