"""Tests of the statements for SQL Server, which is not available: parsed, and compared with PostgreSQL's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any, cast

import pyodbc
import pytest
import sqlglot
from sqlglot import exp

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.databases.odbc.address import FREETDS, MICROSOFT
from pinchpoint_scenarios.databases.odbc.link import OdbcLink
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.full_crawl.dialects import DIALECTS, OURS, TABLES, known, too_old, within

TSQL = {
    f"{name}[{number}]": statement
    for name, given in asdict(DIALECTS["mssql"]).items()
    for number, statement in enumerate(given if isinstance(given, tuple) else (given,))
}
PROCEDURAL = ("place[0]",)  # a loop around a stored procedure


class Overheard:
    """A connection and cursor that records the input sizes."""

    rowcount, description = 1, None

    def __init__(self) -> None:
        self.sizes: Sequence[Any] = ()

    def cursor(self) -> Overheard:
        return self

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        self.sizes = sizes

    def execute(self, text: str, *parameters: Any) -> None: ...

    def nextset(self) -> bool:
        return False


def table_of(made: exp.Create) -> str:
    table = made.find(exp.Table)
    assert table is not None
    return table.name


def parsed(name: str) -> list[exp.Expr]:
    return [each for each in sqlglot.parse(TSQL[name], read="tsql") if each is not None]


@pytest.mark.parametrize("name", sorted(TSQL))
def test_every_statement_is_tsql(name: str) -> None:
    """Each statement parses completely as T-SQL."""
    statements = parsed(name)
    assert statements
    commands = [each.sql(dialect="tsql") for each in statements for each in each.find_all(exp.Command)]
    assert name in PROCEDURAL or not [
        each for each in commands if not each.startswith(("EXEC", "IF", "WHILE"))
    ]


def test_what_is_taken_is_locked_row_by_row_and_what_others_hold_is_passed_over() -> None:
    """READPAST, UPDLOCK and ROWLOCK are on the queue where an item is taken."""
    hints = {
        hint.sql(dialect="tsql").upper()
        for statement in parsed("take[0]")
        for with_hints in statement.find_all(exp.WithTableHint)
        for hint in with_hints.expressions
    }
    assert {"READPAST", "UPDLOCK", "ROWLOCK"} <= hints


def test_a_queue_s_insert_locks_no_range_of_keys() -> None:
    """No index but the clustered one ignores duplicate keys, because others would lock key ranges."""
    passing = [each for each in DIALECTS["mssql"].create if "IGNORE_DUP_KEY" in each]
    assert [each.partition(" ON our.queue ([key]) ")[0] for each in passing] == [
        "CREATE UNIQUE CLUSTERED INDEX queue_key"
    ]


def test_names_that_differ_in_case_alone_stay_two() -> None:
    """Names of users are compared with case, whatever the database's collation."""
    (granted,) = [
        each
        for statement in parsed("finish[0]")
        for each in statement.find_all(exp.Insert)
        if each.this.find(exp.Table).name == "access"
    ]
    collated = {each.this.name for each in granted.find_all(exp.Collate)}
    assert collated == {"principal", "rights"}


@pytest.mark.parametrize(
    ("driver", "sizes"), [(MICROSOFT, [None, (pyodbc.SQL_WVARCHAR, 0, 0)]), (FREETDS, [])]
)
def test_a_list_travels_without_its_length(driver: str, sizes: list[Any]) -> None:
    """A list has no declared length, because Microsoft's driver would prepare a plan for each length."""
    told = Overheard()
    link = OdbcLink(cast("pyodbc.Connection", told), driver)
    link.lists_as_texts()
    link.execute("DECLARE @limit int = $1, @ids nvarchar(max) = $2", (1, "[1, 2]"))
    assert list(told.sizes) == sizes


def test_only_tables_that_are_made_are_used() -> None:
    """Each table in a statement is part of the crawl database, a variable, or defined in the statement."""
    made = {
        table_of(each)
        for name in TSQL
        if name.startswith("create[")
        for each in parsed(name)
        if isinstance(each, exp.Create) and each.kind == "TABLE"
    }
    assert made == set(TABLES)
    for name in TSQL.keys() - {"there[0]"}:  # these read the server's own catalogue
        for statement in parsed(name):
            own = {cte.alias for cte in statement.find_all(exp.CTE)} | {
                table.alias for table in statement.find_all(exp.Table) if table.alias
            }
            used = {
                table.name
                for table in statement.find_all(exp.Table)
                if isinstance(table.this, exp.Identifier)
            }
            assert {each for each in used if each and not each.startswith(("@", "sp_"))} <= made | own, name


def test_every_table_stands_in_the_schema_of_the_crawl() -> None:
    """Each table is written with its schema, because a connection uses its user's schema."""
    sql = within(DIALECTS["mssql"], "[pinchpoint_crawl]")
    bare = re.compile(rf"\b(?:FROM|JOIN|INTO|UPDATE|TABLE|ON) (?:{'|'.join(TABLES)})\b")
    for each in fields(sql):
        given = getattr(sql, each.name)
        for statement in given if isinstance(given, tuple) else (given,):
            assert OURS not in statement
            assert not bare.search(statement), statement
            for table in (
                each
                for one in sqlglot.parse(statement, read="tsql")
                if one
                for each in one.find_all(exp.Table)
            ):
                assert table.name not in TABLES or table.db == "pinchpoint_crawl", statement


def test_parameters_are_numbered_as_they_are_given() -> None:
    """Each batch declares its parameters first, in the order of ``CrawlSql``."""
    for name, statement in TSQL.items():
        numbers = [int(number) for number in re.findall(r"\$(\d+)", statement)]
        assert numbers == list(range(1, len(numbers) + 1)), name
        assert "?" not in statement, name
        beside = getattr(DIALECTS["postgresql"], name.partition("[")[0])
        if isinstance(beside, str):
            assert len(numbers) == max(map(int, re.findall(r"\$(\d+)", beside)), default=0), name


def test_columns_are_the_same_in_all_dialects() -> None:
    """A table has the same columns on every server."""

    def columns(dialect: str, read: str) -> dict[str, list[str]]:
        found = {}
        for statement in DIALECTS[dialect].create:
            each = sqlglot.parse_one(statement, read=read)
            if isinstance(each, exp.Create) and each.kind == "TABLE":
                found[table_of(each)] = [
                    column.name for column in each.this.expressions if isinstance(column, exp.ColumnDef)
                ]
        return found

    assert columns("postgresql", "postgres") == columns("mssql", "tsql") == columns("mysql", "mysql")


def test_a_server_that_is_not_driven_is_refused_in_words() -> None:
    """PostgreSQL over ODBC and unknown schemes are refused with a message."""
    with pytest.raises(ScenarioError, match="not driven by ODBC; allowed: postgresql://"):
        known(Endpoint("sql", "postgresql+odbc://host/db"))
    with pytest.raises(ScenarioError, match=r"'mysql'.*no crawl database is known"):
        known(Endpoint("sql", "mysql://host/db"))
    known(Endpoint("sql", "mariadb+odbc://host/db"))
    known(Endpoint("sql", "mssql+odbc://host/db"))


@pytest.mark.parametrize(
    ("kind", "version", "settings", "said"),
    [
        ("mssql", "15.0.2000.5 Developer Edition", {"compatibility_level": "150"}, ""),
        ("mssql", "12.0.2000.8 SQL Azure", {"compatibility_level": "160"}, ""),
        (
            "mssql",
            "15.0.2000.5 Developer Edition",
            {"compatibility_level": "120"},
            "COMPATIBILITY_LEVEL = 140",
        ),
        ("mysql", "10.11.19-MariaDB-0+deb12u1", {}, ""),
        ("mysql", "11.4.2-MariaDB", {}, ""),
        ("mysql", "10.5.23-MariaDB", {}, "MariaDB 10.6 and later"),
        ("mysql", "8.0.36", {}, "MariaDB 10.6 and later"),
    ],
)
def test_a_server_that_is_too_old_is_said_before(
    kind: str, version: str, settings: dict[str, str], said: str
) -> None:
    """MySQL, an old MariaDB, and a low compatibility level of SQL Server are refused with the reason."""
    why = too_old(kind, {"version": version, "settings": settings})
    assert said in why
    assert bool(why) == bool(said)
