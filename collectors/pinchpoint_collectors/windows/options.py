"""Checks the options of a Windows host in farm.yaml before connecting."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pinchpoint_collectors.errors import OptionError
from pinchpoint_collectors.options import file, flag, port, text, texts
from pinchpoint_collectors.options import interval_s as checked_interval_s
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.windows.script import ProcessSelector, What

TRANSPORTS = ("winrm", "ssh")
AUTHS = ("negotiate", "ntlm", "kerberos", "basic")
_PORTS = {True: 5986, False: 5985}
_SHORTEST_S, _LONGEST_S = 0.2, 15.0
_WINRM = frozenset({"auth", "password", "tls", "ca", "cert_validation", "configuration"})
_SSH = ssh.OPTIONS - {"address", "user", "port"}

OF_TIER: tuple[What, ...] = ("process", "service", "command_line")
"""Keys that select the processes of the tier. At most one of them is given."""
OPTIONS = (
    frozenset({"address", "transport", "user", "port", "interval", "sql_server", "diskspd", *OF_TIER})
    | _WINRM
    | _SSH
)
"""Keys of a ``collect`` entry."""
PUBLIC = frozenset(
    {"address", "transport", "user", "port", "interval", "sql_server", "process", "service", "diskspd"}
    | {"auth", "tls", "ca", "cert_validation", "configuration", "identity", "config"}
)
"""Options whose values may be shown. A command line may contain a password."""


@dataclass(frozen=True, slots=True)
class WinRm:
    r"""The address and the login of a machine over WinRM.

    Attributes:
        host: name or address of the machine.
        port: port; by default 5986 with TLS, 5985 without.
        tls: whether TLS is used. Without it the login encrypts every message (never with ``basic``).
        auth: one of ``AUTHS``; ``negotiate`` uses Kerberos if it works, or else NTLM.
        user: ``DOMAIN\user`` or ``user@DOMAIN``; None: the owner of the Kerberos ticket on this machine.
        password: password; it is never shown.
        ca: file with the authority of the machine's certificate; None: those that the system trusts.
        cert_validation: whether the certificate must be valid.
        configuration: session configuration; None: that of PowerShell.
    """

    host: str
    port: int
    tls: bool = True
    auth: str = "negotiate"
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca: str | None = None
    cert_validation: bool = True
    configuration: str | None = None

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def transport(options: Mapping[str, Any]) -> WinRm | ssh.Address:
    """Return the address of a machine. Raises ``CollectorError`` with key, value and allowed values."""
    way = options.get("transport", "winrm")
    if way not in TRANSPORTS:
        raise OptionError("transport", f"found {way!r}; allowed: {' or '.join(TRANSPORTS)}")
    foreign = (_SSH if way == "winrm" else _WINRM) & options.keys()
    if foreign:
        name, other = min(foreign), "ssh" if way == "winrm" else "winrm"
        hint = (
            "; ssh takes keys only, as `identity:` or from its agent" if name == "password" else ""
        )  # a password would be visible on a command line
        raise OptionError(name, f"given with the transport {way}; it is of `transport: {other}`{hint}")
    return _winrm(options) if way == "winrm" else ssh.Address.of(options)


def interval_s(options: Mapping[str, Any]) -> float:
    """Return the seconds between two readings, by default 1. Raises ``CollectorError``."""
    return checked_interval_s(options, _SHORTEST_S, _LONGEST_S)


def sql_server(options: Mapping[str, Any]) -> bool:
    """Return whether SQL Server's counters are also read. Raises ``CollectorError``."""
    return flag(options, "sql_server")


def sought(options: Mapping[str, Any]) -> ProcessSelector | None:
    """Return the selection of the tier's processes; None if none is given. Raises ``CollectorError``."""
    given = [what for what in OF_TIER if options.get(what) is not None]
    if not given:
        return None
    if len(given) > 1:
        raise OptionError(given[1], f"given beside `{given[0]}`; allowed: one of {', '.join(OF_TIER)}")
    return ProcessSelector(given[0], texts(options, given[0], "a text or a list of texts") or ())


def _is_host(value: str) -> bool:
    return bool(value) and not re.search(r"[\0/\s]", value)


def _winrm(options: Mapping[str, Any]) -> WinRm:
    host = text(options, "address", _is_host, "a name or an address, without a scheme")
    if host is None:
        raise OptionError("address", "missing; needed: the machine's name or address")
    tls, auth = flag(options, "tls"), _text(options, "auth") or "negotiate"
    if auth not in AUTHS:
        raise OptionError("auth", f"found {auth!r}; allowed: {', '.join(AUTHS)}")
    if auth == "basic" and not tls:
        raise OptionError(
            "auth",
            "basic without TLS would send the password for all to read; allowed: ntlm, kerberos or "
            "negotiate, or `tls: true`",
        )
    user, password = _text(options, "user"), _text(options, "password")
    if auth in ("basic", "ntlm") and (user is None or password is None):
        raise OptionError("auth", f"{auth} needs `user:` and `password:`, as ${{NAME}} of the environment")
    if user is not None and password is None and auth == "negotiate":
        raise OptionError("password", "missing beside `user:`; give it as ${NAME}, or say `auth: kerberos`")
    return WinRm(
        host=host,
        port=port(options) or _PORTS[tls],
        tls=tls,
        auth=auth,
        user=user,
        password=password,
        ca=file(options, "ca"),
        cert_validation=flag(options, "cert_validation"),
        configuration=_text(options, "configuration"),
    )


def _text(options: Mapping[str, Any], name: str) -> str | None:
    return text(options, name, lambda value: bool(value) and "\0" not in value, "text that is not empty")
