"""Connects to PostgreSQL by psycopg, and names the failures of connections."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow

from ..addresses import unreachable, without_secrets
from ..contract import Endpoint
from ..errors import EndpointUnreachable
from .contract import CONNECT_TIMEOUT_S, found_in, refusal
from .servers.postgresql import PIN

Connection = psycopg.Connection[TupleRow]
Cursor = psycopg.RawCursor[TupleRow]

CONNECTION_LOST = "connection_lost"
TCP_USER_TIMEOUT_MS = 30_000  # a peer without an acknowledgement for this time is lost

OUTCOMES = {
    "08": CONNECTION_LOST,
    "57P01": CONNECTION_LOST,  # an administrator ended the session, or the server shuts down
    "57P02": CONNECTION_LOST,  # another server process crashed
    "57P03": "unreachable",  # the server is starting or stopping
    "57014": "statement_timeout",
    "55P03": "lock_timeout",
    "40P01": "deadlock",
    "40001": "serialization",
    "53100": "disk_full",
    "53200": "out_of_memory",
    "53300": "too_many_connections",
    "53400": "temp_file_limit",  # the only configured limit that a load test can reach
    "42501": "permission",
    "25006": "read_only",
    "28": "authentication",
    "3D000": "unknown_database",
}
"""SQLSTATE, or its class -> name of the failure (PostgreSQL manual, appendix A)."""


REFUSALS = (
    refusal(
        r"password authentication failed|no password supplied|role \".*\" does not exist",
        "authentication",
        "the server refused the user or the password",
        "correct them in farm.yaml",
    ),
    refusal(
        r"no pg_hba\.conf entry",
        "authentication",
        "the server lets this user, database or client address in by no rule of its pg_hba.conf",
        "add a rule there, or correct the url in farm.yaml",
    ),
    refusal(
        r"database \".*\" does not exist",
        "unknown_database",
        "the database of the url does not exist",
        "create it, or correct the url in farm.yaml",
    ),
    refusal(
        r"certificate verify failed|certificate has expired|root certificate file|does not match host name",
        "tls",
        "the server's TLS certificate is not trusted here",
        "name the authority that issued it (?sslrootcert=FILE), or accept any certificate (?sslmode=require)",
    ),
    refusal(
        r"does not support SSL|SSL was required",
        "tls",
        "the url asks for encryption, and the server has none",
        "write ?sslmode=disable, or give the server a certificate",
    ),
    refusal(
        r"too many connections for (role|database)",
        "too_many_connections",
        "the CONNECTION LIMIT of the role or the database is reached",
        "raise it (ALTER ROLE ... CONNECTION LIMIT), or use fewer users",
    ),
    refusal(
        r"too many (clients|connections)|remaining connection slots",
        "too_many_connections",
        "the server has no connection left",
        "raise max_connections, or use fewer users",
    ),
    refusal(
        r"starting up|shutting down|not yet accepting|recovery mode",
        "unreachable",
        "the server is starting or stopping",
        "wait until it accepts connections",
    ),
    refusal(
        r"connection refused",
        "unreachable",
        "connection refused",
        "start the server, or correct host and port in farm.yaml",
    ),
    refusal(
        r"failed to resolve|could not translate host|name or service",
        "unreachable",
        "the host name cannot be resolved",
        "correct it in farm.yaml",
    ),
    refusal(
        r"timeout expired|timed out",
        "unreachable",
        f"no answer within {CONNECT_TIMEOUT_S} s",
        "check the address and the firewalls between",
    ),
    refusal(
        r"received invalid response|expected authentication request|lost synchronization|message type 0x|"
        r"insufficient data in|unexpected response from server|message contents do not agree|"
        r"protocol version|wrong version number|unexpected eof",
        "unreachable",
        "what answered does not speak PostgreSQL's protocol",
        "correct host and port in farm.yaml; if they are right, look for a proxy or firewall on the way that "
        "changes what it forwards",
    ),
    refusal(
        r"closed the connection unexpectedly|connection reset by peer|broken pipe",
        "unreachable",
        "the server closed the connection before it had answered",
        "look for the reason in the server's log; if it has none, another server or a proxy answers there: "
        "correct host and port in farm.yaml",
    ),
    refusal(
        r"no error details available",
        "unreachable",
        "no connection could be made, and the driver gives no reason",
        "look whether this user may open more files (ulimit -n); if so, correct host and port in farm.yaml",
    ),
)
"""Reasons for a refused connection. libpq has only a text for them and no SQLSTATE."""


def outcome_of(error: psycopg.Error, *, connecting: bool = False) -> str:
    """Return the name of a failure by SQLSTATE, or by its class, or else ``sqlstate_XXXXX``.

    Raises ``error`` again if the server never received the statement, because that is an internal error.
    """
    state = error.sqlstate
    if state is not None:
        return OUTCOMES.get(state) or OUTCOMES.get(state[:2]) or f"sqlstate_{state}"
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        raise error
    if not connecting:
        return CONNECTION_LOST
    why = found_in(REFUSALS, str(error))
    return why.outcome if why else "unreachable"


def refused(endpoint: Endpoint, error: psycopg.Error) -> EndpointUnreachable:
    """Return the sentence for a login that the server refused."""
    why = found_in(REFUSALS, str(error))
    if why:
        return unreachable(endpoint, why.cause, why.remedy)
    text = without_secrets(first_line(error), endpoint)
    return unreachable(endpoint, f"the server said: {text}", "correct the url in farm.yaml")


def first_line(error: psycopg.Error) -> str:
    """Return the first line of the message of the server or libpq."""
    return (error.diag.message_primary or str(error)).strip().partition("\n")[0] or type(error).__name__


def connect(endpoint: Endpoint, application: str, *, pinned: bool = True) -> Connection:
    """Open a new autocommit connection. The server shows it as ``application``. Raises ``psycopg.Error``.

    If ``pinned``, names are resolved as by ``PIN``; otherwise by the settings of the role and the database.
    """
    login = {key: endpoint.options[key] for key in ("user", "password") if key in endpoint.options}
    connection = psycopg.connect(
        # UTF-8 for any encoding of the database, because texts of users and captures may contain any
        # character.
        make_conninfo(endpoint.url, **login, client_encoding="UTF8"),
        autocommit=True,
        connect_timeout=CONNECT_TIMEOUT_S,
        tcp_user_timeout=TCP_USER_TIMEOUT_MS,
        keepalives_idle=10,
        keepalives_interval=5,
        keepalives_count=3,
        application_name=application,
    )
    if pinned:
        try:
            connection.execute(PIN)
        except psycopg.Error:
            connection.close()
            raise
    return connection
