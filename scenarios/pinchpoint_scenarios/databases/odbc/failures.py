"""Converts an error of an ODBC driver to the name of a failure or to a message.

An error has a SQLSTATE and a text that ends in the server's own number: ``[40001] [vendor]... (1205)
(SQLExecDirectW)``. The number is checked first, because it is more exact than the SQLSTATE: SQL Server and
MariaDB use 40001 for a deadlock, PostgreSQL for a serialization failure.
"""

from __future__ import annotations

import functools
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyodbc

from ...addresses import unreachable, without_secrets
from ...contract import Endpoint
from ...errors import EndpointUnreachable
from ..contract import CONNECT_TIMEOUT_S, Refusal, found_in, refusal
from ..postgresql import CONNECTION_LOST
from ..postgresql import OUTCOMES as POSTGRESQL_STATES
from ..postgresql import REFUSALS as POSTGRESQL_REFUSALS
from ..servers.contract import MSSQL, MYSQL, POSTGRESQL
from .address import OdbcAddress

_TRUST = {
    MSSQL: "have this machine trust the authority that issued it, or name the host it was issued for "
    "(?HostNameInCertificate=NAME), or accept any certificate (?TrustServerCertificate=yes)",
    MYSQL: "name the authority that issued it (?SSLCA=FILE), or accept any certificate (?SSLVERIFY=0)",
    POSTGRESQL: "name the authority that issued it (?pqopt=sslrootcert%3DFILE), or accept any certificate "
    "(?SSLmode=require)",
}
_ENCRYPT = {
    MSSQL: "write ?Encrypt=no (or optional) where the server has no TLS, ?Encrypt=yes (or strict) where it "
    "insists on it",
    MYSQL: "write ?FORCETLS=1 where the server insists on TLS, and leave it out where it has none",
    POSTGRESQL: "write ?SSLmode=disable where the server has no TLS, ?SSLmode=require where it insists on it",
}
_DRIVER = (
    refusal(
        r"can't open lib|specified driver could not be (loaded|connected)",
        "unreachable",
        "the ODBC driver cannot be loaded",
        "install it, or name another (?driver=NAME, as `odbcinst -q -d` lists them)",
    ),
    refusal(
        r"data source name not found",
        "unreachable",
        "no data source, or no driver, of this name is registered on this machine",
        "`odbcinst -q -s` lists data sources, `odbcinst -q -d` drivers",
    ),
)
"""SQLSTATE of a missing driver."""
_LOOK_BETWEEN = (
    "correct host and port in farm.yaml; if they are right, look into the server's log, and for a proxy or "
    "firewall on the way that changes what it forwards"
)
_LOGIN = (
    refusal(
        r"SSPI Provider|SSPI context|Kerberos|GSSAPI|GSS[- ]?API",
        "authentication",
        "the integrated login needs a Kerberos ticket that the server accepts",
        "get one (kinit USER@REALM), or write USER:PASSWORD@ into the url",
    ),
    refusal(
        r"AADSTS\d+|in Active Directory|Entra|invalid value specified for connection string attribute "
        r"'Authentication'",
        "authentication",
        "the Entra login failed",
        "correct Authentication=ActiveDirectory... and the user in the url",
    ),
    refusal(
        r"login failed for user|access denied for user|not associated with a trusted",
        "authentication",
        "the server refused the user or the password",
        "correct them in farm.yaml",
    ),
    refusal(
        r"cannot open database|unknown database",
        "unknown_database",
        "the database of the url does not exist, or this user may not open it",
        "create it, or correct the url in farm.yaml",
    ),
    refusal(
        r"too many connections|maximum number of user connections",
        "too_many_connections",
        "the server has no connection left",
        "raise its limit, or use fewer users",
    ),
    refusal(
        r"name resolution|unknown (mysql |server )?(server )?host|no such host|nodename nor servname",
        "unreachable",
        "the host name cannot be resolved",
        "correct it in farm.yaml",
    ),
    refusal(
        r"reading (initial communication|authorization) packet|lost connection to server during query",
        "unreachable",
        "what answered broke off, or did not answer in time",
        _LOOK_BETWEEN,
    ),
    refusal(
        r"\bError: SqlState=",  # stands in place of a reason
        "unreachable",
        "the driver gives no reason",
        _LOOK_BETWEEN,
    ),
)
"""SQLSTATE of a login that the server, or a component in between, refused."""
_NOT_REACHED = refusal(
    r"login timeout expired|adaptive server is unavailable|error code 0x(6F|274D)\b|\(111\b|"
    r"can't connect to|unable to connect to data source|unexpected EOF from the server",
    "unreachable",
    f"no answer within {CONNECT_TIMEOUT_S} s",
    "start the server, or correct host and port in farm.yaml",
)
"""SQLSTATE that drivers use for an unknown host, a closed port, a silent server and a refused login."""
_PORTS = {MSSQL: 1433, MYSQL: 3306, POSTGRESQL: 5432}


@functools.cache
def refusals(kind: str) -> tuple[Refusal, ...]:
    """Return reasons for a refused login by kind of server. The first match is the reason."""
    return (*_DRIVER, *_encryption(kind), *_LOGIN, _NOT_REACHED, *POSTGRESQL_REFUSALS)


def _encryption(kind: str) -> tuple[Refusal, ...]:
    """Return the reason for a failed encryption. Its options differ by kind of server."""
    return (
        refusal(
            r"certificate verif|certificate chain|self[- ]signed|certificate (has )?expired|"
            r"target principal name|host ?name mismatch|validation of SSL server certificate|"
            r"certificate.*(not trusted|does not match)|"
            r"does not match host",
            "tls",
            "the server's TLS certificate is not trusted here",
            _TRUST[kind],
        ),
        refusal(
            r"SSL Provider|TLS/SSL error|SSL is required|does not support SSL|encryption not supported|"
            r"insecure transport|no encryption|SSL off|unsupported protocol|require_secure_transport|sslmode",
            "tls",
            "the driver and the server do not agree on encryption",
            _ENCRYPT[kind],
        ),
    )


_NUMBERS = {
    # Numbers in sys.messages of SQL Server; 4xxxx are those of Azure SQL.
    MSSQL: {
        1205: "deadlock",
        1222: "lock_timeout",
        **dict.fromkeys((3960, 3961, 3962, 41302, 41305, 41325), "serialization"),
        **dict.fromkeys((1101, 1105, 3257, 9002, 40544), "disk_full"),
        **dict.fromkeys((701, 802, 8645, 8651), "out_of_memory"),
        **dict.fromkeys((10928, 10929, 17809, 40501), "too_many_connections"),
        **dict.fromkeys((229, 230, 262, 297, 300, 916), "permission"),
        **dict.fromkeys((18452, 18456, 18470, 18486, 18488), "authentication"),
        **dict.fromkeys((911, 4060, 4064), "unknown_database"),
        **dict.fromkeys((3906, 3908), "read_only"),
        **dict.fromkeys((596, 6005, 10053, 10054, 40197), CONNECTION_LOST),
        **dict.fromkeys((17142, 40613), "unreachable"),
        # Numbers of FreeTDS (sybdb.h): read or write failed, end of file, out of step, dead.
        **dict.fromkeys((20004, 20006, 20017, 20020, 20047), CONNECTION_LOST),
    },
    # Numbers in mysqld_error.h and errmsg.h of MariaDB and MySQL.
    MYSQL: {
        1213: "deadlock",
        1205: "lock_timeout",
        1020: "serialization",
        **dict.fromkeys((1969, 3024), "statement_timeout"),
        **dict.fromkeys((1021, 1114, 1026), "disk_full"),
        **dict.fromkeys((1037, 1038, 1041), "out_of_memory"),
        **dict.fromkeys((1040, 1203, 1226), "too_many_connections"),
        **dict.fromkeys((1044, 1142, 1143, 1227, 1370), "permission"),
        **dict.fromkeys((1045, 1698), "authentication"),
        1049: "unknown_database",
        **dict.fromkeys((1290, 1792, 1836), "read_only"),
        **dict.fromkeys((1053, 1927, 2006, 2013, 2055, 4031), CONNECTION_LOST),
        **dict.fromkeys((2002, 2003, 2005), "unreachable"),
    },
    POSTGRESQL: {},
}
_STATES: Mapping[str, Mapping[str, str]] = {
    MSSQL: {},
    MYSQL: {},
    POSTGRESQL: POSTGRESQL_STATES,
}
_ODBC_STATES = {
    "08001": "unreachable",
    "08004": "unreachable",
    "HYT01": CONNECTION_LOST,
    "08": CONNECTION_LOST,
    "HYT00": "statement_timeout",
    "HY008": "statement_timeout",  # the operation was cancelled, which only the timeout does
    "28": "authentication",
    "IM": "unreachable",
}
"""SQLSTATE, or its class -> name of the failure (ODBC reference, appendix A), for every server."""
_STATEMENT = "42"
"""Class of the SQLSTATEs of statements, because a session's first statements run while it connects."""
_LOST = re.compile(
    r"server closed the connection|no connection to the server|could not (send|receive) |communication link|"
    r"server has gone away|lost connection|connection was killed|dbprocess is dead|bad connection|"
    r"terminating connection|connection not open|socket (is )?closed",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\((-?\d+)\) \(SQL\w+\)")
_VENDORS = re.compile(r"^(\[[^\]]*\]\s*)+")


@dataclass(frozen=True, slots=True)
class DriverMessage:
    """The parsed error of a driver.

    Attributes:
        state: SQLSTATE.
        numbers: numbers of the server in order.
        text: sentence of the first error, without names of vendors and codes.
    """

    state: str
    numbers: tuple[int, ...]
    text: str


def parsed(error: pyodbc.Error) -> DriverMessage:
    """Parse a driver's error.

    Raises ``error`` again if the driver did not process the statement, because that is an internal error.
    """
    state, whole = (str(error.args[0]), str(error.args[-1])) if error.args else ("", str(error))
    if not whole.startswith("["):
        raise error  # errors of pyodbc itself: a wrong number of parameters, a closed cursor
    numbers = tuple(int(number) for number in _NUMBER.findall(whole))
    text = _NUMBER.split(_VENDORS.sub("", whole))[0].strip()
    return DriverMessage(state, numbers, text.partition("\n")[0].rstrip(" ;."))


def state(error: pyodbc.Error) -> str:
    """Return the SQLSTATE that a driver reported; empty if it reported none."""
    try:
        return parsed(error).state
    except pyodbc.Error:
        return ""


def message(error: pyodbc.Error, kind: str | None = None) -> str:
    """Return the message of the driver or of pyodbc, with the server's error number if there is one."""
    try:
        result = parsed(error)
    except pyodbc.Error:
        return str(error.args[0])
    number = next((number for number in result.numbers if number > 0), None)
    return (
        result.text if number is None or not _NUMBERS.get(kind or "") else f"{result.text} (error {number})"
    )


def outcome_of(error: pyodbc.Error, kind: str, *, connecting: bool = False) -> str:
    """Return the name of a failure; ``sqlstate_XXXXX`` for an unknown one.

    Raises ``error`` again if it is an internal error.
    """
    result = parsed(error)
    known = _NUMBERS[kind]
    by_number = next((known[number] for number in result.numbers if number in known), None)
    if by_number and not (connecting and by_number == CONNECTION_LOST):
        return by_number
    if why := found_in(refusals(kind), str(error.args[-1])) if connecting else None:
        return why.outcome
    states = _STATES[kind]
    by_state = states.get(result.state) or states.get(result.state[:2])
    if by_state and not (connecting and by_state == CONNECTION_LOST):
        return by_state
    if connecting and not result.state.startswith(_STATEMENT):
        return "unreachable"
    if _LOST.search(result.text):
        return CONNECTION_LOST
    by_odbc = _ODBC_STATES.get(result.state) or _ODBC_STATES.get(result.state[:2])
    return by_odbc or f"sqlstate_{result.state}"


def refused(endpoint: Endpoint, error: pyodbc.Error, kind: str, address: OdbcAddress) -> EndpointUnreachable:
    """Return the message for a login that the server or the driver refused."""
    result = parsed(error)
    text = without_secrets(result.text, endpoint)
    why = found_in(refusals(kind), str(error.args[-1]))
    if why is _NOT_REACHED and address.host:
        why = _network_refusal(address, kind)
    if why:
        return unreachable(endpoint, f"{why.cause} ({text})", why.remedy)
    return unreachable(endpoint, f"the driver said: {text}", "correct the url in farm.yaml")


def _network_refusal(address: OdbcAddress, kind: str) -> Refusal:
    """Return why a driver reached no server, by a TCP connection from this process."""
    host, _, instance = address.host.partition("\\")
    try:
        if instance and address.port is None:  # only the browser service of the server knows its port
            socket.getaddrinfo(host, None)
            return _NOT_REACHED
        socket.create_connection((host, address.port or _PORTS[kind]), CONNECT_TIMEOUT_S).close()
    except socket.gaierror:
        return found_in(_LOGIN, "no such host") or _NOT_REACHED
    except OSError as error:
        return found_in(POSTGRESQL_REFUSALS, str(error)) or _NOT_REACHED
    return replace(
        _NOT_REACHED,
        cause="the server takes connections, and the login did not finish",
        remedy=_ENCRYPT[kind],
    )
