"""Why a server lets nobody in, by the words of the ODBC drivers for it."""

from __future__ import annotations

import functools

from ..postgresql import REFUSALS as POSTGRESQL_REFUSALS
from ..refusals import CONNECT_TIMEOUT_S, Refusal, refusal
from ..servers.contract import MSSQL, MYSQL, POSTGRESQL

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
"""The driver itself is missing."""
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
        r"login timeout expired|adaptive server is unavailable|error code 0x(6F|274D)\b|\(111\b|"
        r"can't connect to|unable to connect to data source",
        "unreachable",
        f"nobody answered there within {CONNECT_TIMEOUT_S} s",
        "start the server, or correct host and port in farm.yaml",
    ),
    *POSTGRESQL_REFUSALS,
)
"""The server, or what is between, says no."""


@functools.cache
def refusals(kind: str) -> tuple[Refusal, ...]:
    """Why one is not let in, for a kind of server: the first that fits is the reason."""
    return (*_DRIVER, *_encryption(kind), *_LOGIN)


def _encryption(kind: str) -> tuple[Refusal, ...]:
    """What each kind of server is told about encryption differs."""
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
