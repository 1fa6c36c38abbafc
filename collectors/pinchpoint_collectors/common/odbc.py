"""ODBC helpers: quotes values of a connection string, and finds the driver for a SQL Server."""

from __future__ import annotations

import importlib.util
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_SPECIAL = frozenset("[]{}(),;?*=!@")
_WHEEL = "mssql_python_odbc"
_MICROSOFT = re.compile(r"ODBC Driver (\d+) for SQL Server", re.IGNORECASE)
_FREETDS = re.compile(r"freetds|tdsodbc", re.IGNORECASE)
_ENCRYPTION = {
    **dict.fromkeys(("yes", "mandatory", "true"), "require"),
    "strict": "strict",
    **dict.fromkeys(("no", "optional", "false"), "request"),
}
"""Microsoft's ``Encrypt`` -> FreeTDS's ``Encryption`` (documentation of both drivers). Without data
encryption, both still encrypt the login if the server supports it: FreeTDS calls this ``request``."""

INSTALL_SQLSERVER_DRIVER = (
    "install Microsoft's ODBC Driver 18, or `pip install mssql-python-odbc`, "
    "or FreeTDS (Debian and Ubuntu: apt-get install tdsodbc)"
)
_MACHINES = {"aarch64": ("aarch64", "arm64"), "arm64": ("arm64", "aarch64"), "x86_64": ("x86_64",)}


def quoted(value: str) -> str:
    """Return a value of a connection string, in braces if ODBC needs them (SQLDriverConnect, "Comments")."""
    if _SPECIAL.isdisjoint(value) and value == value.strip():
        return value
    return "{" + value.replace("}", "}}") + "}"


class SqlServerDriver(NamedTuple):
    """An ODBC driver for SQL Server.

    Attributes:
        keyword: value of ``DRIVER=``: the registered name, or the path of the library.
        shown: driver and its location as text.
    """

    keyword: str
    shown: str


def sqlserver_driver(registered: Sequence[str]) -> SqlServerDriver | None:
    """Return the best installed driver for SQL Server: Microsoft's, the one in the wheel, or else FreeTDS.

    Args:
        registered: names in the system's odbcinst.ini (``pyodbc.drivers()``).
    """
    microsoft = [(int(match[1]), name) for name in registered if (match := _MICROSOFT.fullmatch(name))]
    if microsoft:
        name = max(microsoft)[1]
        return SqlServerDriver(name, f"{name} (the system's)")
    if library := wheel_library():
        return SqlServerDriver(str(library), f"Microsoft's {library.name} (of the wheel mssql-python-odbc)")
    name = next((name for name in registered if is_freetds(name)), "")
    return SqlServerDriver(name, f"{name} (the system's; Microsoft's is not installed)") if name else None


def is_freetds(driver: str) -> bool:
    """Return whether a driver's name or library is FreeTDS, which has keywords of its own."""
    return bool(_FREETDS.search(driver))


def freetds_encryption(encrypt: str | None) -> dict[str, str]:
    """Return FreeTDS's keyword for Microsoft's ``Encrypt``, which FreeTDS ignores; empty if none is given.

    An unknown value requests encryption: FreeTDS then refuses a server without encryption.
    """
    return {"Encryption": _ENCRYPTION.get(encrypt.lower(), "require")} if encrypt else {}


def wheel_library() -> Path | None:
    """Return Microsoft's driver in the wheel ``mssql-python-odbc`` for this system; None if not there."""
    result = importlib.util.find_spec(_WHEEL)
    if result is None or result.origin is None:
        return None
    libraries = Path(result.origin).parent / "libs"
    machines = _MACHINES.get(platform.machine(), (platform.machine(),))
    systems = {"Linux": f"linux/{_distribution()}", "Darwin": "macos"}
    folder = libraries / systems.get(platform.system(), "windows")
    for pattern in ("libmsodbcsql*.so*", "libmsodbcsql*.dylib", "msodbcsql*.dll"):
        for path in sorted(folder.rglob(pattern), reverse=True):
            if set(machines) & set(path.relative_to(folder).parts):
                return path
    return None


def _distribution() -> str:
    """Return the wheel's name for this Linux. An unknown distribution counts as a relative of Debian."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return "debian_ubuntu"
    kin = f"{release.get('ID', '')} {release.get('ID_LIKE', '')}"
    for name, folder in (("alpine", "alpine"), ("suse", "suse"), ("rhel", "rhel"), ("fedora", "rhel")):
        if name in kin:
            return folder
    return "debian_ubuntu"
