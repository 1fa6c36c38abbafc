"""Tests of the connection to the server: its facts, and the reasons for refused connections."""

from __future__ import annotations

import psycopg
import pytest
from scenarios.sql_mix.helpers import LOG_ONLY, ask, other_url, prepared, with_options
from scenarios.sql_mix.server import Server
from scenarios.support import made

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.databases.native import FastConnection
from pinchpoint_scenarios.databases.postgresql import outcome_of
from pinchpoint_scenarios.databases.schema import MARKER
from pinchpoint_scenarios.errors import EndpointUnreachable


def test_check_tells_version_and_settings_and_changes_nothing(sql: Endpoint) -> None:
    """``check`` returns facts for the manifest and leaves the database unchanged."""
    facts = made("sql-mix", {"sql": sql}).check()["sql"]
    assert facts["version"].startswith("18")
    assert {"shared_buffers", "fsync", "synchronous_commit"} <= facts["settings"].keys()
    assert facts["warnings"] == []
    assert ask(sql, "SELECT FROM pg_namespace WHERE nspname LIKE 'pinchpoint%%'") == []


def test_the_mark_of_a_schema_is_the_comment_on_it(sql: Endpoint) -> None:
    """A schema's comment is the mark by which a later run recognises it."""
    with prepared(sql, LOG_ONLY):
        query = "SELECT obj_description('pinchpoint_test'::regnamespace, 'pg_namespace')"
        assert ask(sql, query) == [(MARKER,)]


def test_a_server_that_does_not_wait_for_the_disk_is_said(sql: Endpoint) -> None:
    """A setting that is not durable gives a warning in the check."""
    facts = made("sql-mix", {"sql": with_options(sql, synchronous_commit="off")}).check()["sql"]
    assert ["synchronous_commit is off" in warning for warning in facts["warnings"]] == [True]


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"password": "se%26cret"}, "the server refused the user or the password; correct them in farm.yaml"),
        ({"port": "1"}, "connection refused; start the server, or correct host and port in farm.yaml"),
        ({"dbname": "nowhere"}, "the database of the url does not exist; create it"),
        ({"host": "no-such-host.invalid"}, "the host name cannot be resolved"),
        (
            {"sslmode": "require"},
            "the url asks for encryption, and the server has none; write ?sslmode=disable",
        ),
    ],
)
def test_a_server_that_lets_us_not_in_is_explained(
    sql: Endpoint, changes: dict[str, str], cause: str
) -> None:
    """A refused connection gives one sentence with endpoint, address, cause and remedy, without password."""
    endpoint = other_url(sql, **changes)
    with pytest.raises(EndpointUnreachable) as caught:
        made("sql-mix", {"sql": endpoint}).check()
    message = str(caught.value)
    assert message.startswith("endpoint sql (")
    assert cause in message
    assert "\n" not in message
    for secret in ("se%26cret", "se&cret", str(psycopg.conninfo.conninfo_to_dict(sql.url)["password"])):
        assert secret not in message


def test_a_user_without_the_right_to_make_a_schema_is_told_the_grant(sql: Endpoint) -> None:
    """A user who may not create a schema gets the GRANT statement as remedy."""
    ((database, user),) = ask(sql, "SELECT current_database(), current_user")
    ask(sql, f'REVOKE CREATE ON DATABASE "{database}" FROM "{user}"')
    try:
        with pytest.raises(EndpointUnreachable) as caught:
            made("sql-mix", {"sql": sql}).check()
    finally:
        ask(sql, f'GRANT CREATE ON DATABASE "{database}" TO "{user}"')
    assert "may not create a schema" in str(caught.value)
    assert f'run: GRANT CREATE ON DATABASE "{database}" TO "{user}"' in str(caught.value)


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ('connection to server at "db1", port 5432 failed: SSL error: certificate verify failed', "tls"),
        ('server certificate for "db1" (and 1 other name) does not match host name "db2"', "tls"),
        ("server does not support SSL, but SSL was required", "tls"),
        ("FATAL:  sorry, too many clients already", "too_many_connections"),
        ("something that nobody has seen", "unreachable"),
    ],
)
def test_libpqs_words_become_outcomes(said: str, outcome: str) -> None:
    """Messages of libpq, which have no SQLSTATE, become outcomes."""
    assert outcome_of(psycopg.OperationalError(said), connecting=True) == outcome


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (psycopg.errors.DeadlockDetected, "deadlock"),
        (psycopg.errors.SerializationFailure, "serialization"),
        (psycopg.errors.QueryCanceled, "statement_timeout"),
        (psycopg.errors.DiskFull, "disk_full"),
        (psycopg.errors.TooManyConnections, "too_many_connections"),
        (psycopg.errors.InsufficientPrivilege, "permission"),
        (psycopg.errors.AdminShutdown, "connection_lost"),
        (psycopg.errors.ConnectionFailure, "connection_lost"),
        (psycopg.errors.DivisionByZero, "sqlstate_22012"),
        (psycopg.OperationalError, "connection_lost"),
    ],
)
def test_sqlstates_become_outcomes(error: type[psycopg.Error], outcome: str) -> None:
    """SQLSTATEs become the outcome names of a report."""
    assert outcome_of(error("message")) == outcome


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_texts_and_values_are_written_alike_whatever_a_database_stores(server: Server, encoding: str) -> None:
    """A letter in a statement's text and in a value is the same in any encoding of the database."""
    name = f"stored_in_{encoding.lower()}"
    ask(server.admin, f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    connection = FastConnection(
        other_url(server.admin, dbname=name), application=name, statement_timeout_s=10, greet=lambda _: None
    )
    try:
        for prepared in (True, False):
            answer = connection.execute_as_text(
                "SELECT 'é' = $1::text, 'é', $1::text", ["é".encode()], prepared=prepared
            )
            assert answer.texts().rows == (("t", "é", "é"),)
        assert connection.query("SELECT 'é'").texts().rows == (("é",),)
        assert connection.execute("SELECT 'é' = $1::text, 'é'", ["é"]).fetchall() == [(True, "é")]
    finally:
        connection.close()
        ask(server.admin, f"DROP DATABASE {name} WITH (FORCE)")
