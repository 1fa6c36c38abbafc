"""What drivers say, as they were heard to say it, and the names and sentences it becomes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mariadbserver import mariadb
from scenarios.sql_mix.helpers import LOG_ONLY
from scenarios.sql_servers.targets import Postgres, Target, need_driver
from scenarios.support import made
from support import require, run_cli

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import EndpointUnreachable

try:
    import pyodbc
except ImportError as missing:
    pytest.skip(f"ODBC's driver manager is missing: {missing} (Debian: unixodbc)", allow_module_level=True)

from pinchpoint_scenarios.databases.odbc.failures import outcome_of, refused, said

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
    found = said(error("42S02", f"{MICROSOFT}[SQL Server]Invalid object name 'x'. (208)"))
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
        "nobody answered",
        "start the server",
    ),
    (
        "mssql",
        "08S01",
        "[FreeTDS][SQL Server]Unable to connect: Adaptive Server is unavailable or does not exist (20009)",
        "unreachable",
        "nobody answered",
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


def test_a_password_is_in_no_message(odbc_target: Target) -> None:
    """Of a server that is there and refuses it: whatever the driver says, in any spelling."""
    scheme, _, rest = odbc_target.endpoint.url.partition("://")
    host = rest.rpartition("@")[2]
    for secret in ("hunter2", "hunt;er}2", "hun@ter/2"):
        quoted = secret.replace(";", "%3B").replace("}", "%7D").replace("@", "%40").replace("/", "%2F")
        endpoint = Endpoint("sql", f"{scheme}://nobody:{quoted}@{host}")
        with pytest.raises(EndpointUnreachable) as caught:
            made("sql-mix", {"sql": endpoint}, LOG_ONLY).check()
        assert "refused the user or the password" in str(caught.value)
        assert secret not in str(caught.value)
        assert quoted not in str(caught.value)


def test_without_libodbc_one_sentence_names_the_package(tmp_path: Path) -> None:
    """``check`` in a process in which pyodbc cannot be loaded: no traceback, exit status 5."""
    (tmp_path / "pyodbc.py").write_text("raise ImportError('libodbc.so.2: cannot open shared object file')\n")
    (tmp_path / "farm.yaml").write_text(
        "name: f\nenvironment: test\nendpoints: {sql: {url: 'mssql+odbc://u:p@127.0.0.1:1/d'}}\n"
    )
    (tmp_path / "plan.yaml").write_text(
        "name: p\nseed: 1\nscenarios: {orders: {use: sql-mix, load: {model: closed, users: 1}}}\n"
        "phases: {warm_up: 1s, measure: 1s, cool_down: 0s}\n"
    )
    done = run_cli(
        *("check", tmp_path / "plan.yaml", "--farm", tmp_path / "farm.yaml"),
        env={"PYTHONPATH": str(tmp_path)},
    )
    said = done.stdout + done.stderr
    assert done.returncode == 5, said
    assert "ODBC's driver manager cannot be loaded on this machine (libodbc.so.2: cannot open" in said
    assert "apt-get install unixodbc" in said
    assert "Traceback" not in said


def test_freetds_says_that_nobody_is_there() -> None:
    """A real driver, a port nobody listens on."""
    need_driver("FreeTDS", package="tdsodbc")
    endpoint = Endpoint("sql", "mssql+odbc://u:hunter2@127.0.0.1:1/d?driver=FreeTDS")
    with pytest.raises(EndpointUnreachable, match="nobody answered there") as caught:
        made("sql-mix", {"sql": endpoint}, LOG_ONLY).check()
    assert "hunter2" not in str(caught.value)


@pytest.mark.skipif(sys.platform != "linux", reason="the wheel's driver is looked for by its Linux path")
def test_microsofts_driver_of_the_wheel_is_loaded_by_its_path() -> None:
    """It says itself that nobody listens there; the endpoint's facts would name it."""
    pytest.importorskip(
        "mssql_python_odbc", reason="the wheel mssql-python-odbc is missing (extra microsoft-odbc)"
    )
    endpoint = Endpoint("sql", "mssql+odbc://u:hunter2@127.0.0.1:1/d")
    with pytest.raises(EndpointUnreachable, match="nobody answered there") as caught:
        made("sql-mix", {"sql": endpoint}, LOG_ONLY).check()
    assert "hunter2" not in str(caught.value)


def test_a_certificate_nobody_vouches_for_is_explained(tmp_path: Path) -> None:
    """A real server with a certificate of its own: refused, with the way out; taken where nobody looks."""
    need_driver("MariaDB", package="odbc-mariadb")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *(require("openssl", "openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes"),
            *("-days", "2"),
            *("-keyout", str(key), "-out", str(certificate), "-subj", "/CN=elsewhere"),
        ],
        check=True,
        capture_output=True,
        timeout=30,
    )
    key.chmod(0o644)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    with mariadb(f"--ssl-cert={certificate}", f"--ssl-key={key}") as server:
        url = f"{server.url}?FORCETLS=1&SSLVERIFY="
        for keywords in ("1", f"1&SSLCA={certificate}"):
            with pytest.raises(EndpointUnreachable, match="TLS certificate is not trusted here") as caught:
                made("sql-mix", {"sql": Endpoint("sql", url + keywords)}, LOG_ONLY).check()
            assert "or accept any certificate (?SSLVERIFY=0)" in str(caught.value)
        assert made("sql-mix", {"sql": Endpoint("sql", url + "0")}, LOG_ONLY).check()["sql"]["version"]


def test_a_server_without_encryption_is_explained(postgres_odbc: Postgres) -> None:
    """The driver insists on TLS, the server has none."""
    endpoint = Endpoint("sql", postgres_odbc.endpoint.url + "?SSLmode=require")
    with pytest.raises(EndpointUnreachable, match=r"do not agree on encryption .*write .SSLmode=disable"):
        made("sql-mix", {"sql": endpoint}, LOG_ONLY).check()
