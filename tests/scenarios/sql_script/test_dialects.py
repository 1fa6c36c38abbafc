"""What differs between servers: how values are written, how a file is sent, what leaves a marked database."""

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
        *((kind, "now()", "now()") for kind in DIALECTS),  # what a query gave stands as it is
    ],
)
def test_a_value_is_written_as_the_server_reads_it(kind: str, value: Value, literal: str) -> None:
    """Quotes, backslashes, letters of any alphabet."""
    assert DIALECTS[kind].literal(value) == literal


def test_a_file_for_sql_server_is_sent_batch_by_batch() -> None:
    """GO is a line of its own, in any case; a word that begins so is none."""
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
    """With file and line; a hint that begins with the same word is none, nor is a name of PostgreSQL's."""
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
    """Where pyodbc cannot be loaded; the plan is still read."""
    (script,) = written(tmp_path, one="SELECT 1;")
    monkeypatch.setitem(sys.modules, "pyodbc", None)  # as Python has it: importing it fails
    loaded = [name for name in sys.modules if name.startswith("pinchpoint_scenarios.") and "odbc" in name]
    for name in sorted(loaded, reverse=True):  # what is inside first
        above, _, last = name.rpartition(".")
        monkeypatch.setattr(sys.modules[above], last, sys.modules[name])  # so that it stands there again
        monkeypatch.delitem(sys.modules, name)
    params = {"scripts": script} if use == "sql-script" else {"capture": script}
    driver = made(use, {"sql": Endpoint("sql", "mysql+odbc://u:geheim@127.0.0.1:1/d")}, params)
    with pytest.raises(EndpointUnreachable, match=r"cannot be loaded .* apt-get install unixodbc") as told:
        driver.check()
    assert "geheim" not in str(told.value)
    driver.finish(keep_data=False)
