"""Tests of the detection of USE, which leaves the marked database, where the server would execute it."""

from __future__ import annotations

import time

import pytest

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.sql_script.use_statements import find_use, server_kinds

ON_ANY = (
    "USE prod",
    "use `prod`",
    "SELECT 1; use prod",
    "/* ApplicationName=DBeaver */ USE `shop`",
    "/* step 1 */ USE prod;",
    "-- the other one\nUSE prod",
    "USE /* the other one */ prod",
    "SELECT 'it''s'; USE prod; SELECT 'x'",
)
LEAVING = [
    *(("mssql", text) for text in ON_ANY),
    *(("mysql", text) for text in ON_ANY),
    ("mssql", "SET NOCOUNT ON USE prod"),
    ("mssql", "IF 1=1 USE prod"),
    ("mssql", "IF 1=1USE[prod]"),
    ("mssql", 'USE"prod"'),
    ("mssql", "SELECT * FROM #t USE prod"),
    ("mssql", "SELECT 'C:\\' USE prod"),
    ("mssql", "SELECT [a]]b 'c] USE prod SELECT 'x'"),
    ("mssql", "/* it /* isn't */ over */ USE prod SELECT 'x'"),
    ("mssql", "USE hint"),
    ("mysql", "# isn't it\nUSE prod"),
    ("mysql", "SELECT 5--1; USE prod"),
    ("mysql", "SELECT 'it\\'s'; USE prod; SELECT 'x'"),
    ("mysql", "/*!40101 USE prod */"),
    ("mysql", "/*!40101USE prod */"),
    ("mysql", "/*M! USE `prod` */"),
    ("mysql", "USE plan"),
    ("mysql", "/* /* */ USE prod; SELECT '*/'"),
]


@pytest.mark.parametrize(("kind", "text"), LEAVING)
def test_a_text_that_leaves_is_found(kind: str, text: str) -> None:
    """USE is found behind comments, literals and other statements, with and without a semicolon."""
    at = find_use(text, [kind])
    assert at is not None
    assert text[at : at + 3].lower() == "use"


ON_NONE = (
    "SELECT 1",
    "INSERT INTO users VALUES ('use prod')",
    "-- USE prod\nSELECT 1",
    "/* USE prod */ SELECT 1",
    "SELECT * FROM t\nUSE INDEX (i)",
    "SELECT * FROM t USE  KEY FOR JOIN (i)",
    "SELECT @use x, u.use y, because z, use_it a FROM u",
)
STAYING = [
    *(("mssql", text) for text in ON_NONE),
    *(("mysql", text) for text in ON_NONE),
    ("mssql", "SELECT 1 OPTION (USE PLAN N'<x/>')"),
    ("mssql", "SELECT 1 OPTION (USE HINT ('FORCE_ORDER'))"),
    ("mssql", "SELECT [use it], 'C:\\', 'we use it' FROM #use t"),
    ("mssql", "/* it /* is */ USE prod */ SELECT 1"),
    ("mysql", "SELECT 1 # USE prod"),
    ("mysql", "SELECT 'a' AS `use`, \"use it\" FROM t"),
    ("mysql", "SELECT 'it\\'s'' use prod'"),
    ("mysql", 'SELECT `use prod`, "it\\" use prod"'),
    ("postgresql", "SELECT use x FROM t; USE prod"),
]


@pytest.mark.parametrize(("kind", "text"), STAYING)
def test_what_only_has_the_word_stays(kind: str, text: str) -> None:
    """USE in comments, literals, names and hints is ignored, and on PostgreSQL it is a name."""
    assert find_use(text, [kind]) is None


def test_where_the_server_is_not_known_each_may_be_it() -> None:
    """If the server is unknown, as with a data source or without a farm, each dialect's rules apply."""
    text = "SELECT '\\'; USE prod -- '"
    assert [find_use(text, [kind]) is not None for kind in ("mssql", "mysql")] == [True, False]
    assert find_use(text, server_kinds(Endpoint("sql", "odbc:///?dsn=shop"))) is not None
    assert find_use(text, server_kinds(Endpoint("sql", "mariadb+odbc://h/d"))) is None
    assert find_use(text, server_kinds(Endpoint("sql", "postgres://h/d"))) is None
    assert find_use(text, ()) is None


@pytest.mark.parametrize("kind", ["mssql", "mysql"])
def test_long_texts_are_read_in_no_time(kind: str) -> None:
    """A text with many comments and literals is read in linear time."""
    begun_s = time.process_time()
    assert find_use("use " + "/* a */ -- b\n" * 20_000 + "'use x', " * 20_000, [kind]) is None
    assert time.process_time() - begun_s < 2
