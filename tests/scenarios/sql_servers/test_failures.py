"""Tests of recorded driver errors: their outcome names and sentences."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from unittest.mock import MagicMock

import pytest
from scenarios.sql_servers.targets import need_driver

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.databases.contract import DatabaseFailure
from pinchpoint_scenarios.databases.odbc.address import FREETDS, parse
from pinchpoint_scenarios.databases.reach import access_to
from pinchpoint_scenarios.databases.servers import SERVERS
from pinchpoint_scenarios.errors import EndpointUnreachable

try:
    import pyodbc
except ImportError as missing:
    pytest.skip(f"ODBC's driver manager is missing: {missing} (Debian: unixodbc)", allow_module_level=True)

from pinchpoint_scenarios.databases.odbc.access import OdbcConnection
from pinchpoint_scenarios.databases.odbc.failures import outcome_of, parsed, refused
from pinchpoint_scenarios.databases.odbc.link import OdbcLink

MICROSOFT = "[Microsoft][ODBC Driver 18 for SQL Server]"
RUNNING = [
    (
        "mssql",
        "40001",
        (
            f"{MICROSOFT}[SQL Server]Transaction (Process ID 78) was deadlocked on lock resources with "
            "another process and has been chosen as the deadlock victim. Rerun the transaction. (1205)"
        ),
        "deadlock",
    ),
    (
        "mssql",
        "42000",
        f"{MICROSOFT}[SQL Server]Lock request time out period exceeded. (1222)",
        "lock_timeout",
    ),
    ("mssql", "HYT00", f"{MICROSOFT}Query timeout expired (0)", "statement_timeout"),
    (
        "mssql",
        "42000",
        f"{MICROSOFT}[SQL Server]Snapshot isolation transaction aborted due to update conflict. (3960)",
        "serialization",
    ),
    (
        "mssql",
        "42000",
        (
            f"{MICROSOFT}[SQL Server]Could not allocate space for object 'log' in database 'd' because the "
            "'PRIMARY' filegroup is full. (1105)"
        ),
        "disk_full",
    ),
    (
        "mssql",
        "42000",
        f"{MICROSOFT}[SQL Server]The transaction log for database 'd' is full due to 'LOG_BACKUP'. (9002)",
        "disk_full",
    ),
    (
        "mssql",
        "42000",
        f"{MICROSOFT}[SQL Server]The INSERT permission was denied on the object 'log'. (229)",
        "permission",
    ),
    ("mssql", "08S01", f"{MICROSOFT}Communication link failure (0)", "connection_lost"),
    ("mssql", "08S01", f"{MICROSOFT}TCP Provider: Error code 0x68 (104)", "connection_lost"),
    ("mssql", "42S02", f"{MICROSOFT}[SQL Server]Invalid object name 'x'. (208)", "sqlstate_42S02"),
    (
        "mysql",
        "40001",
        (
            "[ma-3.1.15][10.11.6-MariaDB]Deadlock found when trying to get lock; try restarting transaction "
            "(1213)"
        ),
        "deadlock",
    ),
    (
        "mysql",
        "HY000",
        "[ma-3.1.15][10.11.6-MariaDB]Lock wait timeout exceeded; try restarting transaction (1205)",
        "lock_timeout",
    ),
    (
        "mysql",
        "70100",
        "[ma-3.1.15][10.11.6-MariaDB]Query execution was interrupted (max_statement_time exceeded) (1969)",
        "statement_timeout",
    ),
    (
        "mysql",
        "HY000",
        "[ma-3.1.15][11.8.2-MariaDB]Record has changed since last read in table 'hot' (1020)",
        "serialization",
    ),
    ("mysql", "HY000", "[ma-3.1.15][10.11.6-MariaDB]The table 'log' is full (1114)", "disk_full"),
    ("mysql", "08S01", "[ma-3.1.15]Server has gone away (2006)", "connection_lost"),
    (
        "mysql",
        "HY000",
        "[ma-3.1.15][10.11.6-MariaDB]Lost connection to server during query (2013)",
        "connection_lost",
    ),
    ("postgresql", "40P01", "ERROR: deadlock detected;\nError while executing the query (1)", "deadlock"),
    (
        "postgresql",
        "40001",
        "ERROR: could not serialize access due to concurrent update;\nError (1)",
        "serialization",
    ),
    (
        "postgresql",
        "57014",
        "ERROR: canceling statement due to statement timeout;\nError (1)",
        "statement_timeout",
    ),
    (
        "postgresql",
        "53100",
        'ERROR: could not extend file "base/1/2": No space left on device;\nError (1)',
        "disk_full",
    ),
    ("postgresql", "08S01", "server closed the connection unexpectedly (35)", "connection_lost"),
    ("postgresql", "HY000", "no connection to the server (26)", "connection_lost"),
]


def error(state: str, text: str, where: str = "SQLExecDirectW") -> pyodbc.Error:
    return pyodbc.Error(state, f"[{state}] {text} ({where})")


@pytest.mark.parametrize(("kind", "state", "text", "outcome"), RUNNING)
def test_failures_have_the_same_names_on_every_server(kind: str, state: str, text: str, outcome: str) -> None:
    """The outcome comes from the server's error number if it is more specific, else from the SQLSTATE."""
    assert outcome_of(error(state, text), kind) == outcome


def test_what_no_driver_said_is_an_error_of_ours() -> None:
    """An error that no driver reported is raised again."""
    ours = pyodbc.ProgrammingError(
        "The SQL contains 2 parameter markers, but 3 parameters were supplied", "HY000"
    )
    with pytest.raises(pyodbc.ProgrammingError, match="parameter markers"):
        outcome_of(ours, "mssql")


def test_a_text_is_shown_without_codes_and_vendors() -> None:
    """A driver's text is shown in one line without codes and the driver manager's prefix."""
    found = parsed(error("42S02", f"{MICROSOFT}[SQL Server]Invalid object name 'x'. (208)"))
    assert (found.state, found.numbers, found.text) == ("42S02", (208,), "Invalid object name 'x'")


CONNECTING = [
    (
        "mssql",
        "08001",
        (
            f"{MICROSOFT}SSL Provider: [error:0A000086:SSL routines::certificate verify failed:self-signed "
            "certificate] (-1)"
        ),
        "tls",
        "TLS certificate is not trusted",
        "?TrustServerCertificate=yes",
    ),
    (
        "mssql",
        "08001",
        f"{MICROSOFT}SSL Provider: The target principal name is incorrect. (-2146893022)",
        "tls",
        "TLS certificate is not trusted",
        "?HostNameInCertificate=NAME",
    ),
    (
        "mssql",
        "08001",
        f"{MICROSOFT}SSL Provider: [error:0A000102:SSL routines::unsupported protocol] (-1)",
        "tls",
        "do not agree on encryption",
        "?Encrypt=no",
    ),
    (
        "mssql",
        "28000",
        f"{MICROSOFT}[SQL Server]Login failed for user 'sa'. (18456)",
        "authentication",
        "refused the user or the password",
        "farm.yaml",
    ),
    (
        "mssql",
        "42000",
        f'{MICROSOFT}[SQL Server]Cannot open database "d" requested by the login. The login failed. (4060)',
        "unknown_database",
        "does not exist",
        "create it",
    ),
    (
        "mssql",
        "HY000",
        f"{MICROSOFT}SSPI Provider: No Kerberos credentials available (default cache: FILE:/tmp/x) (851968)",
        "authentication",
        "Kerberos ticket",
        "kinit",
    ),
    (
        "mssql",
        "FA004",
        (
            f"{MICROSOFT}[SQL Server]Failed to authenticate the user 'u@x.com' in Active Directory "
            "(Authentication option is 'ActiveDirectoryPassword'). Error code 0xCAA2000C; AADSTS50126 (0)"
        ),
        "authentication",
        "Entra login failed",
        "ActiveDirectory",
    ),
    (
        "mssql",
        "HYT00",
        f"{MICROSOFT}Login timeout expired (0)",
        "unreachable",
        "the host name cannot be resolved",
        "correct it in farm.yaml",
    ),
    (
        "mssql",
        "08S01",
        "[FreeTDS][SQL Server]Unable to connect: Adaptive Server is unavailable or does not exist (20009)",
        "unreachable",
        "the host name cannot be resolved",
        "correct it in farm.yaml",
    ),
    (
        "mysql",
        "HY000",
        "[ma-3.1.15]Access denied for user 'u'@'localhost' (using password: YES) (1045)",
        "authentication",
        "refused the user or the password",
        "farm.yaml",
    ),
    (
        "mysql",
        "HY000",
        "[ma-3.1.15]TLS/SSL error: self-signed certificate in certificate chain (2026)",
        "tls",
        "TLS certificate is not trusted",
        "?SSLCA=FILE",
    ),
    (
        "mysql",
        "HY000",
        "[ma-3.1.15]Unknown server host 'nowhere' (-2) (2005)",
        "unreachable",
        "cannot be resolved",
        "correct it",
    ),
    (
        "postgresql",
        "08001",
        'connection to server at "h", port 1 failed: Connection refused (101)',
        "unreachable",
        "connection refused",
        "start the server",
    ),
    (
        "postgresql",
        "08001",
        'FATAL:  password authentication failed for user "u" (101)',
        "authentication",
        "refused the user or the password",
        "correct them",
    ),
    (
        "mssql",
        "01000",
        "[unixODBC][Driver Manager]Can't open lib 'nothing.so' : file not found (0)",
        "unreachable",
        "driver cannot be loaded",
        "odbcinst -q -d",
    ),
    (
        "mssql",
        "IM002",
        "[unixODBC][Driver Manager]Data source name not found and no default driver specified (0)",
        "unreachable",
        "no data source",
        "odbcinst -q -s",
    ),
    (
        "mysql",
        "HY000",
        "[ma-3.1.15]Lost connection to server at 'handshake: reading initial communication packet' (2013)",
        "unreachable",
        "what answered broke off",
        "correct host and port",
    ),
    (
        "postgresql",
        "08001",
        "[unixODBC]Error: SqlState=08001 (101)",
        "unreachable",
        "the driver gives no reason",
        "correct host and port",
    ),
]


@pytest.mark.parametrize(("kind", "state", "text", "outcome", "cause", "remedy"), CONNECTING)
def test_why_nobody_is_let_in_is_explained(
    kind: str, state: str, text: str, outcome: str, cause: str, remedy: str
) -> None:
    """A refused connection has an outcome for a session, and one line with cause and remedy for a user."""
    connecting = error(state, text, "SQLDriverConnect")
    assert outcome_of(connecting, kind, connecting=True) == outcome
    endpoint = Endpoint("sql", f"{kind}+odbc://u:p@h.invalid/d")
    message = str(refused(endpoint, connecting, kind, parse(endpoint)))
    assert message.startswith("endpoint sql (h.invalid): ")
    assert cause in message
    assert remedy in message
    assert "\n" not in message


@contextlib.contextmanager
def listening(*, closes: bool) -> Iterator[int]:
    """Yield the port of a server that is silent, or that closes at the first bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    taken.append(server.accept()[0])
                    if closes:
                        taken[-1].recv(1)
                        taken[-1].close()

        taken: list[socket.socket] = []
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            for each in taken:
                each.close()


@pytest.mark.parametrize(
    ("place", "cause"),
    [
        ("nowhere.invalid", "the host name cannot be resolved"),
        ("127.0.0.1:1", "connection refused"),
        ("closes", "the server takes connections, and the login did not finish"),
    ],
)
def test_freetds_has_one_error_for_all_and_we_tell_them_apart(place: str, cause: str) -> None:
    need_driver("FreeTDS", package="tdsodbc")
    with listening(closes=True) as port:
        host = f"127.0.0.1:{port}" if place == "closes" else place
        access = access_to(Endpoint("sql", f"mssql+odbc://u:p@{host}/d?driver=FreeTDS"), "test")
        with pytest.raises(EndpointUnreachable, match=re.escape(cause)):
            access.reach()


def test_a_link_is_not_used_again_where_the_return_to_autocommit_failed() -> None:
    """A link whose return to autocommit fails, as in FreeTDS after a deadlock, is replaced."""
    opened: list[MagicMock] = []

    def connect() -> OdbcLink:
        opened.append(MagicMock(spec=pyodbc.Connection))
        return OdbcLink(opened[-1], FREETDS)

    session = OdbcConnection("mssql", connect)
    session.try_open()
    opened[0].rollback.side_effect = error("01000", "[FreeTDS][SQL Server]not in a transaction (3903)")
    with pytest.raises(DatabaseFailure) as failed, session.transaction():
        raise error("40001", "[FreeTDS][SQL Server]deadlock victim (1205)")
    assert failed.value.outcome == "deadlock"
    with session.transaction():
        pass
    assert len(opened) == 2
    opened[0].close.assert_called_once()
    opened[1].commit.assert_called_once()


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("13.0.5026.0 Standard Edition (64-bit)", ""),
        ("12.0.2000.8 SQL Azure", ""),
        ("12.0.6024.0 Enterprise Edition", "the server is SQL Server 12.0.6024.0 Enterprise Edition; 2016"),
    ],
)
def test_a_sql_server_older_than_2016_is_refused(version: str, why: str) -> None:
    assert SERVERS["mssql"].too_old(version).startswith(why)
    assert bool(SERVERS["mssql"].too_old(version)) == bool(why)
