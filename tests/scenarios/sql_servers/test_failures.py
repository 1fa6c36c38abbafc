"""What drivers say, as they were heard to say it, and the names and sentences it becomes."""

from __future__ import annotations

import pytest

from pinchpoint_scenarios.contract import Endpoint

try:
    import pyodbc
except ImportError as missing:
    pytest.skip(f"ODBC's driver manager is missing: {missing} (Debian: unixodbc)", allow_module_level=True)

from pinchpoint_scenarios.databases.odbc.failures import outcome_of, parsed, refused

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
    """By the server's own number where that says more, else by the SQLSTATE."""
    assert outcome_of(error(state, text), kind) == outcome


def test_what_no_driver_said_is_an_error_of_ours() -> None:
    """It is raised again, whatever class it has."""
    ours = pyodbc.ProgrammingError(
        "The SQL contains 2 parameter markers, but 3 parameters were supplied", "HY000"
    )
    with pytest.raises(pyodbc.ProgrammingError, match="parameter markers"):
        outcome_of(ours, "mssql")


def test_a_text_is_shown_without_codes_and_vendors() -> None:
    """One line, without the driver manager's prefix."""
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
        "no answer within",
        "start the server",
    ),
    (
        "mssql",
        "08S01",
        "[FreeTDS][SQL Server]Unable to connect: Adaptive Server is unavailable or does not exist (20009)",
        "unreachable",
        "no answer within",
        "start the server",
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
]


@pytest.mark.parametrize(("kind", "state", "text", "outcome", "cause", "remedy"), CONNECTING)
def test_why_nobody_is_let_in_is_explained(
    kind: str, state: str, text: str, outcome: str, cause: str, remedy: str
) -> None:
    """A name for a session, and a sentence with cause and remedy for a person, on one line."""
    connecting = error(state, text, "SQLDriverConnect")
    assert outcome_of(connecting, kind, connecting=True) == outcome
    message = str(refused(Endpoint("sql", f"{kind}+odbc://u:p@h/d"), connecting, kind))
    assert message.startswith("endpoint sql (h): ")
    assert cause in message
    assert remedy in message
    assert "\n" not in message
