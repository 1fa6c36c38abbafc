"""Tests of the statements for SQL Server, which is not available: parsed by a T-SQL parser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from random import Random
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from pinchpoint_scenarios.databases.servers.contract import ServerSql
from pinchpoint_scenarios.databases.servers.tsql import SQL as SERVER
from pinchpoint_scenarios.sql_mix import SqlMixParams
from pinchpoint_scenarios.sql_mix.dialects.tsql import mix_sql
from pinchpoint_scenarios.sql_mix.operations import OPERATIONS, SessionState
from pinchpoint_scenarios.sql_script.marked_copy import DIALECTS, CopySql

MIX = mix_sql("[pinchpoint_test]")
COPY = DIALECTS["mssql"]
"""Statements around a stored procedure; the parser does not parse EXEC."""


class Overheard:
    """A connection that records statements and reports that the bulk table is too large."""

    rowcount = 1

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.parameters: list[int] = []

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Overheard:
        self.statements.append(statement)
        self.parameters.append(len(parameters))
        return self

    def insert_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> Overheard:
        return self.execute(statement, rows[0])

    def fetchone(self) -> tuple[int]:
        return (2**40,)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        yield


def overheard() -> dict[str, tuple[str, int]]:
    """Return operation and position -> (statement, number of parameters)."""
    found = {}
    params = SqlMixParams.model_validate(
        {"operations": dict.fromkeys(OPERATIONS, 1), "hot_rows": 2, "lock_rows": 2}
    )
    for name, saying in MIX.sayings.items():
        drawn = OPERATIONS[name].draw(SessionState(Random(1), 1, params))
        connection: Any = Overheard()
        saying.run(connection, saying.encode(drawn) if saying.encode else drawn)
        for place, statement in enumerate(connection.statements):
            found[f"{name}[{place}]"] = (statement, connection.parameters[place])
    return found


def filled(text: str) -> str:
    return text.format(
        schema="[s]",
        table="[s].[t]",
        tables="[s].[t], [s].[u]",
        column="[c]",
        name="s",
        marker="mark",
        owned="mark",
        label="label",
        database="d",
        user="u",
    )


def said_of(sql: Any) -> Iterator[tuple[str, str]]:
    """Yield every statement of a dialect with its name."""
    for field in fields(sql):
        value = getattr(sql, field.name)
        texts = value if isinstance(value, tuple) else (value,)
        if field.name in ("make", "isolation"):
            texts = tuple(text for each in value.values() for text in each)
        texts = tuple(text[0] if isinstance(text, tuple) and text else text for text in texts)
        for place, text in enumerate(texts):
            if isinstance(text, str) and " " in text and field.name not in ("may_know_cache", "quotes"):
                yield (f"{field.name}[{place}]" if len(texts) > 1 else field.name), filled(text)


STATEMENTS = {
    **{f"server {name}": text for name, text in said_of(SERVER)},
    **{f"mix {name}": text for name, text in said_of(MIX)},
    **{f"copy {name}": text for name, text in said_of(COPY)},
    **{name: text for name, (text, _) in overheard().items()},
}


RESERVED = """
ADD ALL ALTER AND ANY AS ASC AUTHORIZATION BACKUP BEGIN BETWEEN BREAK BROWSE BULK BY CASCADE CASE
CHECK CHECKPOINT CLOSE CLUSTERED COALESCE COLLATE COLUMN COMMIT COMPUTE CONSTRAINT CONTAINS
CONTAINSTABLE CONTINUE CONVERT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP
CURRENT_USER CURSOR DATABASE DBCC DEALLOCATE DECLARE DEFAULT DELETE DENY DESC DISK DISTINCT
DISTRIBUTED DOUBLE DROP DUMP ELSE END ERRLVL ESCAPE EXCEPT EXEC EXECUTE EXISTS EXIT EXTERNAL FETCH
FILE FILLFACTOR FOR FOREIGN FREETEXT FREETEXTTABLE FROM FULL FUNCTION GOTO GRANT GROUP HAVING
HOLDLOCK IDENTITY IDENTITYCOL IDENTITY_INSERT IF IN INDEX INNER INSERT INTERSECT INTO IS JOIN KEY
KILL LEFT LIKE LINENO LOAD MERGE NATIONAL NOCHECK NONCLUSTERED NOT NULL NULLIF OF OFF OFFSETS ON
OPEN OPENDATASOURCE OPENQUERY OPENROWSET OPENXML OPTION OR ORDER OUTER OVER PERCENT PIVOT PLAN
PRECISION PRIMARY PRINT PROC PROCEDURE PUBLIC RAISERROR READ READTEXT RECONFIGURE REFERENCES
REPLICATION RESTORE RESTRICT RETURN REVERT REVOKE RIGHT ROLLBACK ROWCOUNT ROWGUIDCOL RULE SAVE
SCHEMA SECURITYAUDIT SELECT SEMANTICKEYPHRASETABLE SEMANTICSIMILARITYDETAILSTABLE
SEMANTICSIMILARITYTABLE SESSION_USER SET SETUSER SHUTDOWN SOME STATISTICS SYSTEM_USER TABLE
TABLESAMPLE TEXTSIZE THEN TO TOP TRAN TRANSACTION TRIGGER TRUNCATE TRY_CONVERT TSEQUAL UNION UNIQUE
UNPIVOT UPDATE UPDATETEXT USE USER VALUES VARYING VIEW WAITFOR WHEN WHERE WHILE WITH WITHIN
WRITETEXT
"""
"""Transact-SQL's reserved keywords (Microsoft's reference), which the parser accepts as names."""

BEYOND = (r"WAITFOR DELAY @\w+;", r"SET TRANSACTION ISOLATION LEVEL SNAPSHOT")
"""T-SQL that the parser does not know; it is removed before parsing."""


def parsed(text: str) -> list[exp.Expr]:
    """Return the parsed statements of a text with ODBC placeholders."""
    for pattern in BEYOND:
        text = re.sub(pattern, "SELECT 1;", text)
    return [each for each in sqlglot.parse(re.sub(r"\$\d+", "?", text), read="tsql") if each is not None]


def test_no_statement_is_forgotten() -> None:
    """Every field of both dialects with a statement is parsed by the tests."""
    named = {re.sub(r"\[.*", "", name.partition(" ")[2]) for name in STATEMENTS}
    not_sql = {
        "name",
        "quotes",
        "longest_name",
        "durable",
        "bound",
        "driver_times_out",
        "enter",
        "unlock",
        "pin",
        "unpin",
        "depends",
        "free_bytes",
        "too_old",
    }
    assert {field.name for field in fields(ServerSql)} - named == not_sql
    assert {field.name for field in fields(MIX)} - named == {
        "may_know_cache",
        "fill_fast",
        "spill",
        "sayings",
    }
    assert {field.name for field in fields(CopySql)} - named == {
        "literal", "batches", "begins", "numeric", "of_the_server", "prepare",
    }  # fmt: skip
    assert {name.partition("[")[0] for name in overheard()} == set(OPERATIONS)


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_every_statement_is_tsql(name: str) -> None:
    """Each statement parses completely as T-SQL."""
    statements = parsed(STATEMENTS[name])
    assert statements
    commands = [each.sql(dialect="tsql") for each in statements for each in each.find_all(exp.Command)]
    allowed = ("EXEC", "WAITFOR", "UPDATE STATISTICS", "GRANT", "SET", "ALTER DATABASE")
    assert not [each for each in commands if not each.upper().startswith(allowed)], commands


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_no_name_is_a_keyword(name: str) -> None:
    """No name is a keyword without brackets, which SQL Server would refuse."""
    named = {
        each.name.upper()
        for statement in parsed(STATEMENTS[name])
        for each in statement.find_all(exp.Identifier)
        if not each.args.get("quoted")
    }
    assert named.isdisjoint(RESERVED.split())


def test_placeholders_are_the_parameters() -> None:
    """Each statement has as many placeholders as parameters."""
    for name, (text, given) in overheard().items():
        assert max((int(found) for found in re.findall(r"\$(\d+)", text)), default=0) == given, name


def test_every_table_is_qualified() -> None:
    """Each table has its schema, because a session has no schema of its own."""
    for name, (text, _) in overheard().items():
        for statement in parsed(text):
            for table in statement.find_all(exp.Table):
                if isinstance(table.this, exp.Identifier) and table.name not in (
                    "numbers",
                    "whole",
                    "sorted",
                ):
                    assert table.db in ("pinchpoint_test", "sys"), f"{name}: {table.sql()}"


def test_rows_are_locked_one_by_one_and_the_bulk_table_as_a_whole() -> None:
    """Changed rows are locked with ROWLOCK, the emptied table with TABLOCKX."""
    hints = {name: set(re.findall(r"WITH \(([A-Z, ]+)\)", text)) for name, (text, _) in overheard().items()}
    assert hints["data_update[0]"] == {"ROWLOCK"}
    assert hints["lock_contend[0]"] == {"ROWLOCK"}
    [locking] = [text for text, _ in overheard().values() if "TABLOCKX, HOLDLOCK" in text]
    assert "TOP (0)" not in locking, "its plan would not touch the table, so that no lock were taken"


def test_texts_of_two_databases_are_compared_as_one_does() -> None:
    """Texts of tempdb and the database are compared with one collation, because theirs may differ."""
    [own, temporary] = SERVER.files.split("UNION ALL")
    for each in (own, temporary):
        assert each.count("COLLATE DATABASE_DEFAULT") == 2
