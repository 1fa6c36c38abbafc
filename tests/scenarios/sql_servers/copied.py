"""A user database on each server, marked as a copy in the way that a refusal recommends."""

# ruff: noqa: S608 - the tests use SQL texts of their own

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
    """Accounts without movements in a marked database.

    Attributes:
        target: the server.
        endpoint: the database.
        inside: prefix of table names in queries to the server.
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
        """Statement that begins a transaction."""
        return "BEGIN TRANSACTION" if self.kind == "mssql" else "START TRANSACTION"

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows; ``~`` is replaced by the prefix of table names."""
        return self.target.ask(statement.replace("~", self.inside))

    def number(self, statement: str) -> int:
        """Return the single number of a query."""
        ((found,),) = self.ask(statement)
        return int(found or 0)

    def mark(self) -> None:
        """Mark the database as a copy in the way that a refusal recommends."""
        try:
            MarkedCopy(self.endpoint, "pinchpoint_test", empty_will_do=False).check()
        except ScenarioError as error:
            self.target.ask(str(error).partition("say so: ")[2])

    def unmark(self) -> None:
        """Remove the mark."""
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
        """Create the tables; names contain quotes and backslashes."""
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
        """Remove the tables and the mark."""
        self.unmark()
        self.ask(f"DROP TABLE IF EXISTS {', '.join(f'~{table}' for table in _TABLES)}")


@contextmanager
def copied(target: Target) -> Iterator[Copied]:
    """Yield a marked copy on a server and remove it afterwards."""
    endpoint, inside = target.endpoint, ""
    if isinstance(target, Maria):
        target.ask(f"CREATE DATABASE {_DATABASE} CHARACTER SET utf8mb4")  # clearing the target removes it
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
