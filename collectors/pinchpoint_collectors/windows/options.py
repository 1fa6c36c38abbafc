"""What farm.yaml says of a Windows machine: how to get there, checked before anything is tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pinchpoint_collectors.errors import CollectorError, OptionError
from pinchpoint_collectors.remote import machine, ssh
from pinchpoint_collectors.windows.script import Sought, What

TRANSPORTS = ("winrm", "ssh")
AUTHS = ("negotiate", "ntlm", "kerberos", "basic")
_PORTS = {True: 5986, False: 5985}
_SHORTEST_S, _LONGEST_S = 0.2, 15.0
_WINRM = frozenset({"auth", "password", "tls", "ca", "cert_validation", "configuration"})
_SSH = ssh.OPTIONS - {"address", "user", "port"}

OF_TIER: tuple[What, ...] = ("process", "service", "command_line")
"""The keys that say which processes are the tier's: one of them is given, or none."""
OPTIONS = (
    frozenset({"address", "transport", "user", "port", "interval", "sql_server", *OF_TIER}) | _WINRM | _SSH
)
"""The keys of a ``collect`` entry."""
PUBLIC = frozenset(
    {"address", "transport", "user", "port", "interval", "sql_server", "process", "service"}
    | {"auth", "tls", "ca", "cert_validation", "configuration", "identity", "config"}
)
"""Those of them that may be shown: a command line may hold a password."""


@dataclass(frozen=True, slots=True)
class WinRm:
    r"""A machine reached over WinRM.

    Attributes:
        host: its name or address.
        port: 5986 with TLS, 5985 without, where nothing is said.
        tls: without, every message is sealed by the login itself (never with ``basic``).
        auth: one of ``AUTHS``; ``negotiate`` takes Kerberos where it works, else NTLM.
        user: ``DOMAIN\user`` or ``user@DOMAIN``; None: whoever has a Kerberos ticket here.
        password: shown nowhere.
        ca: a file with the authority of the machine's certificate; None: those the system trusts.
        cert_validation: whether the certificate must be good.
        configuration: the session configuration; None: PowerShell's own.
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
    """The way to a machine. Raises ``CollectorError`` that names the key, what was found, what is allowed."""
    way = options.get("transport", "winrm")
    if way not in TRANSPORTS:
        raise OptionError("transport", f"found {way!r}; allowed: {' or '.join(TRANSPORTS)}")
    foreign = (_SSH if way == "winrm" else _WINRM) & options.keys()
    if foreign:
        name, other = min(foreign), "ssh" if way == "winrm" else "winrm"
        hint = (
            "; ssh takes keys only, as `identity:` or from its agent" if name == "password" else ""
        )  # a password would have to stand on a command line
        raise OptionError(name, f"given with the transport {way}; it is of `transport: {other}`{hint}")
    return _winrm(options) if way == "winrm" else ssh.Address.of(options)


def interval_s(options: Mapping[str, Any]) -> float:
    """Seconds between two readings, 1 where nothing is said. Raises ``CollectorError``."""
    return machine.interval_s(options, _SHORTEST_S, _LONGEST_S)


def sql_server(options: Mapping[str, Any]) -> bool:
    """Whether SQL Server's counters are read as well. Raises ``CollectorError``."""
    return _flag(options, "sql_server")


def sought(options: Mapping[str, Any]) -> Sought | None:
    """Which processes are the tier's; None where nothing is said. Raises ``CollectorError``."""
    given = [what for what in OF_TIER if options.get(what) is not None]
    if not given:
        return None
    if len(given) > 1:
        raise OptionError(given[1], f"given beside `{given[0]}`; allowed: one of {', '.join(OF_TIER)}")
    value = options[given[0]]
    texts = [value] if isinstance(value, str) else value
    if not (
        isinstance(texts, list | tuple) and texts and all(isinstance(t, str) and t.strip() for t in texts)
    ):
        raise OptionError(given[0], f"found {value!r}; allowed: a text or a list of texts")
    return Sought(given[0], tuple(texts))


def _winrm(options: Mapping[str, Any]) -> WinRm:
    host = _text(options, "address")
    if host is None:
        raise OptionError("address", "missing; needed: the machine's name or address")
    tls, auth = _flag(options, "tls"), _text(options, "auth") or "negotiate"
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
    port = options.get("port", _PORTS[tls])
    if type(port) is not int or not 1 <= port <= 65535:
        raise OptionError("port", f"found {port!r}; allowed: a number from 1 to 65535")
    return WinRm(
        host=host,
        port=port,
        tls=tls,
        auth=auth,
        user=user,
        password=password,
        ca=_file(options, "ca"),
        cert_validation=_flag(options, "cert_validation"),
        configuration=_text(options, "configuration"),
    )


def _text(options: Mapping[str, Any], name: str) -> str | None:
    value = options.get(name)
    if value is None:
        return None
    shown = "a value (not shown)" if name == "password" else repr(value)
    if not isinstance(value, str) or not value or "\0" in value:
        raise OptionError(name, f"found {shown}; allowed: text that is not empty")
    if name == "address" and ("/" in value or any(letter.isspace() for letter in value)):
        raise OptionError("address", f"found {shown}; allowed: a name or an address, without a scheme")
    return value


def _flag(options: Mapping[str, Any], name: str) -> bool:
    value = options.get(name, True)
    if not isinstance(value, bool):
        raise OptionError(name, f"found {value!r}; allowed: true or false")
    return value


def _file(options: Mapping[str, Any], name: str) -> str | None:
    value = _text(options, name)
    if value is None:
        return None
    path = Path(value).expanduser()
    if not path.is_absolute() or not path.is_file():
        raise CollectorError(f"{name}: {value} is no file on this machine; allowed: an absolute path to one")
    return str(path)
