"""Tests of the fast path to PostgreSQL compared with psycopg: same rows, errors and counts."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg
import pytest
from scenarios.reference import ReferenceConnection
from scenarios.sql_mix.helpers import ask, number, other_url
from support import until

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.databases.contract import DatabaseFailure, SqlConnection
from pinchpoint_scenarios.databases.native import FastConnection
from pinchpoint_scenarios.databases.postgresql import Connection

DRIVERS = (FastConnection, ReferenceConnection)
APPLICATION = "fastpath_test"


@contextmanager
def opened(
    endpoint: Endpoint,
    driver: type[FastConnection],
    greet: Callable[[Connection], None] = lambda _: None,
    timeout_s: float = 10,
) -> Iterator[FastConnection]:
    connection = driver(endpoint, application=APPLICATION, statement_timeout_s=timeout_s, greet=greet)
    connection.try_open()
    try:
        yield connection
    finally:
        connection.close()


@pytest.fixture
def table(sql: Endpoint) -> Iterator[Endpoint]:
    """Yield a database with one test table."""
    ask(sql, "CREATE SCHEMA pinchpoint_fast")
    ask(
        sql,
        "CREATE TABLE pinchpoint_fast.t (id int PRIMARY KEY, "
        "again int CONSTRAINT late UNIQUE DEFERRABLE INITIALLY DEFERRED, content bytea)",
    )
    yield sql
    ask(sql, "DROP SCHEMA pinchpoint_fast CASCADE")


def outcome(connection: SqlConnection, statement: LiteralString, *values: Any) -> str:
    """Return a statement's outcome: ``ok`` or the name of its failure."""
    try:
        connection.execute(statement, values)
    except DatabaseFailure as failure:
        return failure.outcome
    return "ok"


VALUES: Sequence[tuple[LiteralString, Any]] = (
    ("SELECT $1::int2", -32768),
    ("SELECT $1::int4", 2**31 - 1),
    ("SELECT $1::int8", -(2**63)),
    ("SELECT $1::float4", 0.5),
    ("SELECT $1::float8", 1e300),
    ("SELECT $1::bool", True),
    ("SELECT $1::bytea", b"\0\xff'\\"),
    ("SELECT $1::bytea", b""),
    ("SELECT $1::text", "naïve ✓ 'quoted'"),
    ("SELECT $1::varchar", ""),
    ("SELECT $1::int4", None),
    ("SELECT $1::bytea", None),
    ("SELECT $1::int8, now() - now(), 1.50::numeric, NULL, '{1,2}'::int[], $1::int8 * 2", 21),
    ("SELECT n, repeat('x', n) FROM generate_series(1, $1::int4) n", 1000),
    ("SELECT 1 WHERE $1::bool", False),
)


@pytest.mark.parametrize(("statement", "value"), VALUES)
def test_rows_are_those_of_the_reference(sql: Endpoint, statement: LiteralString, value: Any) -> None:
    """Each parameter type gives rows of the same values and types as psycopg, one by one or all at once."""
    found = []
    for driver in DRIVERS:
        with opened(sql, driver) as connection:
            for _ in range(2):  # the first time it is prepared, the second time it is known
                result = connection.execute(statement, [value])
                rowcount, first, rest = result.rowcount, result.fetchone(), result.fetchall()
                assert result.fetchone() is None
                types = [type(each) for each in first or ()]
                found.append((rowcount, first, rest, types))
    assert found == [found[0]] * 4


def test_counts_are_those_of_the_reference(table: Endpoint) -> None:
    """Counts of inserted, changed, deleted, copied and no rows are psycopg's."""
    found = []
    for driver in DRIVERS:
        with opened(table, driver) as connection:
            found.append(
                [
                    connection.execute(
                        "INSERT INTO pinchpoint_fast.t SELECT n, n FROM generate_series(1, $1::int4) n", [50]
                    ).rowcount,
                    connection.copy(
                        "COPY pinchpoint_fast.t (id, again) FROM STDIN",
                        b"".join(b"%d\t\\N\n" % n for n in (60, 61)),
                    ).rowcount,
                    connection.execute(
                        "UPDATE pinchpoint_fast.t SET content = $1::bytea WHERE id > $2::int4", [b"x", 10]
                    ).rowcount,
                    connection.execute(
                        "UPDATE pinchpoint_fast.t SET id = id WHERE id = $1::int4", [99]
                    ).rowcount,
                    connection.execute("SET work_mem = '1MB'").rowcount,
                    connection.execute("DELETE FROM pinchpoint_fast.t").rowcount,
                ]
            )
    assert found[0] == found[1] == [50, 2, 42, 0, -1, 52]


FAILING: dict[str, tuple[LiteralString, tuple[Any, ...]]] = {
    "sqlstate_22012": ("SELECT 1 / $1::int4", (0,)),
    "sqlstate_42P01": ("SELECT FROM no_such_table", ()),
    "sqlstate_42601": ("SELEC", ()),
    "sqlstate_23505": ("INSERT INTO pinchpoint_fast.t VALUES (1, 1), (1, 2)", ()),
    "permission": ("SELECT pg_read_file('/etc/passwd')", ()),
    "read_only": ("DELETE FROM pinchpoint_fast.t", ()),
    "statement_timeout": ("SELECT pg_sleep($1::float8)", (5.0,)),
}


@pytest.mark.parametrize("name", FAILING)
def test_failures_have_the_names_of_the_reference(table: Endpoint, name: str) -> None:
    """Each failure has the name that psycopg gives, and the connection works afterwards."""

    def greet(connection: Connection) -> None:
        if name == "read_only":
            connection.execute("SET default_transaction_read_only = on")

    statement, values = FAILING[name]
    for driver in DRIVERS:
        with opened(table, driver, greet, timeout_s=0.3) as connection:
            session = connection.execute("SELECT pg_backend_pid()").fetchone()
            assert outcome(connection, statement, *values) == name, driver
            assert outcome(connection, statement, *values) == name, "also once it is prepared"
            assert connection.execute("SELECT pg_backend_pid()").fetchone() == session


def test_a_commit_that_fails_is_no_ok(table: Endpoint) -> None:
    """A statement that succeeds with a failing commit is no success."""
    for driver in DRIVERS:
        with opened(table, driver) as connection:
            assert (
                outcome(connection, "INSERT INTO pinchpoint_fast.t VALUES (1, 7), (2, 7)") == "sqlstate_23505"
            )
            assert outcome(connection, "SELECT 1") == "ok"
    assert number(table, "SELECT count(*) FROM pinchpoint_fast.t") == 0


def test_transactions_commit_and_roll_back(table: Endpoint) -> None:
    """Statements in a transaction commit together, and an exception rolls all of them back."""
    insert: LiteralString = "INSERT INTO pinchpoint_fast.t (id) VALUES ($1::int4)"
    with opened(table, FastConnection) as connection:
        with connection.transaction():
            connection.execute(insert, [1])
            connection.execute(insert, [2])
            assert number(table, "SELECT count(*) FROM pinchpoint_fast.t") == 0
        with pytest.raises(ZeroDivisionError), connection.transaction():  # noqa: PT012 - that is the point
            connection.execute(insert, [3])
            raise ZeroDivisionError
        with connection.transaction():
            assert outcome(connection, insert, 1) == "sqlstate_23505"
        connection.execute(insert, [4])
    assert ask(table, "SELECT id FROM pinchpoint_fast.t ORDER BY id") == [(1,), (2,), (4,)]


def test_what_does_not_fit_into_one_packet(sql: Endpoint) -> None:
    """A parameter and a result larger than any socket buffer are sent at the same time."""
    content = bytes(range(256)) * 2**16  # 16 MiB
    with opened(sql, FastConnection) as connection:
        assert connection.execute("SELECT $1::bytea, $1::bytea", [content]).fetchall() == [(content, content)]


def test_notices_are_not_taken_for_the_answer(sql: Endpoint) -> None:
    """Notices before the reply, more than a socket buffer holds, are not read as the reply."""
    with opened(sql, FastConnection, _noisy) as connection:
        assert connection.execute("SELECT pg_temp.noisy($1::text)", ["content"]).fetchall() == [("content",)]


def _noisy(connection: Connection) -> None:
    connection.execute(
        "CREATE FUNCTION pg_temp.noisy(content text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN "
        "FOR n IN 1..20 LOOP RAISE NOTICE '%', repeat('n', 100000); END LOOP; RETURN content; END $$"
    )


def _kill(endpoint: Endpoint) -> None:
    ask(
        endpoint,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
        APPLICATION,
    )


def test_a_connection_killed_while_idle_is_lost_once(sql: Endpoint) -> None:
    """After a kill of an idle connection one statement fails by name, and the next has a new connection."""
    for driver in DRIVERS:
        greetings: list[Connection] = []
        with opened(sql, driver, greetings.append) as connection:
            assert outcome(connection, "SELECT 1") == "ok"
            _kill(sql)
            assert [outcome(connection, "SELECT 1") for _ in range(3)] == ["connection_lost", "ok", "ok"], (
                driver
            )
        assert len(greetings) == 2


def test_a_connection_killed_while_it_waits_is_lost_at_once(sql: Endpoint) -> None:
    """A connection killed while it waits fails at once."""
    for driver in DRIVERS:
        with opened(sql, driver) as connection:
            killing = threading.Timer(0.2, _kill, [sql])
            killing.start()
            begun = time.monotonic()
            assert outcome(connection, "SELECT pg_sleep(8)") == "connection_lost"
            assert time.monotonic() - begun < 4
            killing.join()
            assert outcome(connection, "SELECT 1") == "ok"


def test_a_server_that_is_away_is_named_and_waited_for(sql: Endpoint) -> None:
    """A missing server has psycopg's failure name, and each failure is followed by a pause."""
    for driver in DRIVERS:
        with opened(other_url(sql, port="1"), driver) as connection:
            begun = time.monotonic()
            for _ in range(3):
                connection.wait_until_due()
                assert outcome(connection, "SELECT 1") == "unreachable"
            assert time.monotonic() - begun > 0.2


WRONG: dict[str, tuple[LiteralString, tuple[Any, ...]]] = {
    "1 parameters were given to a statement that takes 2": ("SELECT $1::int4 + $2::int4", (1,)),
    "cast it to one of bool, int2": ("SELECT $1::inet", ("127.0.0.1",)),
    "cannot be answered by COPY_OUT": ("COPY (SELECT 1) TO STDOUT", ()),
}


@pytest.mark.parametrize("message", WRONG)
def test_errors_of_ours_are_no_outcomes(sql: Endpoint, message: str) -> None:
    """A wrong call raises an error and is not counted as a failure of the farm."""
    statement, values = WRONG[message]
    with opened(sql, FastConnection) as connection, pytest.raises(psycopg.ProgrammingError, match=message):
        connection.execute(statement, values)


@pytest.mark.parametrize(("statement", "value"), [("SELECT $1::bytea", 5), ("SELECT $1::int4", 2**31)])
def test_values_that_do_not_fit_are_no_outcomes(sql: Endpoint, statement: LiteralString, value: Any) -> None:
    """A value that does not fit raises an error before anything is sent, and the connection works."""
    with opened(sql, FastConnection) as connection:
        with pytest.raises((TypeError, struct.error)):
            connection.execute(statement, [value])
        assert outcome(connection, "SELECT 1") == "ok"


def test_a_statement_without_rows_gives_none(sql: Endpoint) -> None:
    """Reading rows of a statement without rows raises an error, as in psycopg."""
    for driver in DRIVERS:
        with opened(sql, driver) as connection, pytest.raises(psycopg.ProgrammingError):
            connection.execute("SET work_mem = '1MB'").fetchone()


def test_closing_twice_is_no_error_and_leaves_nothing(sql: Endpoint) -> None:
    """Closing twice is allowed, and the server's session is gone."""
    with opened(sql, FastConnection) as connection:
        connection.execute("SELECT 1")
        connection.close()
        connection.close()
    until(
        lambda: not ask(sql, "SELECT FROM pg_stat_activity WHERE application_name = %s", APPLICATION),
    )
