"""Tests of differences between servers: literals, batches, and statements that leave the marked database."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scenarios.sql_script.helpers import written
from scenarios.support import made

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import EndpointUnreachable, ScenarioError
from pinchpoint_scenarios.sql_script.marked_copy import DIALECTS
from pinchpoint_scenarios.sql_script.scope import GeneratedText, Value


@pytest.mark.parametrize(
    ("kind", "value", "literal"),
    [
        ("mssql", GeneratedText("it's é"), "N'it''s é'"),
        ("mssql", True, "1"),
        ("mysql", GeneratedText("it's \\"), "'it''s \\\\'"),
        ("mysql", True, "true"),
        ("postgresql", GeneratedText("it's \\"), "'it''s \\'"),
        *((kind, 1.5, "1.5") for kind in DIALECTS),
        *((kind, None, "NULL") for kind in DIALECTS),
        *((kind, "now()", "now()") for kind in DIALECTS),  # a query's result is used unchanged
    ],
)
def test_a_value_is_written_as_the_server_reads_it(kind: str, value: Value, literal: str) -> None:
    """Literals with quotes, backslashes and any letters are read correctly by the server."""
    assert DIALECTS[kind].literal(value) == literal


def test_a_file_for_sql_server_is_sent_batch_by_batch() -> None:
    """For SQL Server a file is sent in batches; GO must be alone on its line, in any case."""
    text = "CREATE TABLE t (x int)\nGO\n\nCREATE PROCEDURE p AS SELECT 1 -- go on\r\n go ;\r\n"
    text += "GOTO x\nGo -- end\n"
    batches = [batch.strip() for batch in DIALECTS["mssql"].batches(text)]
    assert batches == ["CREATE TABLE t (x int)", "CREATE PROCEDURE p AS SELECT 1 -- go on", "GOTO x"]
    for kind in ("mysql", "postgresql"):
        assert DIALECTS[kind].batches(text) == [text]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("SELECT 1;\nUSE other;", 2),
        ("SELECT 1; use [other]", 1),
        ("\n\n  Use `other`;", 3),
        ("/* step 1 */ USE other;", 1),
    ],
)
def test_a_script_that_leaves_the_marked_database_is_refused(tmp_path: Path, text: str, line: int) -> None:
    """A script with USE is refused with file and line; an index hint and a name on PostgreSQL are not."""
    use, hint = written(tmp_path, use=text, hint="SELECT * FROM t\nUSE INDEX (i) WHERE x = 'use y';")
    endpoint = Endpoint("sql", "mysql+odbc://u:p@127.0.0.1:1/d")
    made("sql-script", {"sql": endpoint}, {"scripts": hint})
    for given in ({"scripts": use}, {"scripts": hint, "setup": use}):
        with pytest.raises(ScenarioError, match=rf"use\.sql:{line}: USE, which leaves the database"):
            made("sql-script", {"sql": endpoint}, given)
    made("sql-script", {"sql": Endpoint("sql", "postgresql://u:p@127.0.0.1:1/d")}, {"scripts": use})


@pytest.mark.parametrize("use", ["sql-script", "sql-replay"])
def test_without_libodbc_one_sentence_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    """Without libodbc the plan is read, and one sentence names the package."""
    (script,) = written(tmp_path, one="SELECT 1;")
    monkeypatch.setitem(sys.modules, "pyodbc", None)  # None makes Python's import fail
    loaded = [name for name in sys.modules if name.startswith("pinchpoint_scenarios.") and "odbc" in name]
    for name in sorted(loaded, reverse=True):  # submodules first
        above, _, last = name.rpartition(".")
        # so that the module is restored afterwards
        monkeypatch.setattr(sys.modules[above], last, sys.modules[name])
        monkeypatch.delitem(sys.modules, name)
    params = {"scripts": script} if use == "sql-script" else {"capture": script}
    driver = made(use, {"sql": Endpoint("sql", "mysql+odbc://u:geheim@127.0.0.1:1/d")}, params)
    with pytest.raises(EndpointUnreachable, match=r"cannot be loaded .* apt-get install unixodbc") as told:
        driver.check()
    assert "geheim" not in str(told.value)
    driver.finish(keep_data=False)
