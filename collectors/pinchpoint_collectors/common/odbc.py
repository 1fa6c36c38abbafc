"""ODBC helpers: values in a connection string, and the driver of a wheel."""

from __future__ import annotations

import importlib.util
import platform
from pathlib import Path

_SPECIAL = frozenset("[]{}(),;?*=!@")
_WHEEL = "mssql_python_odbc"
_MACHINES = {"aarch64": ("aarch64", "arm64"), "arm64": ("arm64", "aarch64"), "x86_64": ("x86_64",)}


def quoted(value: str) -> str:
    """A value of a connection string, in braces where ODBC asks for it (SQLDriverConnect, "Comments")."""
    if _SPECIAL.isdisjoint(value) and value == value.strip():
        return value
    return "{" + value.replace("}", "}}") + "}"


def wheel_library() -> Path | None:
    """Microsoft's driver in the wheel ``mssql-python-odbc``, for this system; None without the wheel."""
    found = importlib.util.find_spec(_WHEEL)
    if found is None or found.origin is None:
        return None
    libraries = Path(found.origin).parent / "libs"
    machines = _MACHINES.get(platform.machine(), (platform.machine(),))
    systems = {"Linux": f"linux/{_distribution()}", "Darwin": "macos"}
    folder = libraries / systems.get(platform.system(), "windows")
    for pattern in ("libmsodbcsql*.so*", "libmsodbcsql*.dylib", "msodbcsql*.dll"):
        for path in sorted(folder.rglob(pattern), reverse=True):
            if set(machines) & set(path.relative_to(folder).parts):
                return path
    return None


def _distribution() -> str:
    """The wheel's name for this Linux; what is not known is likely to be Debian's kin."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return "debian_ubuntu"
    kin = f"{release.get('ID', '')} {release.get('ID_LIKE', '')}"
    for name, folder in (("alpine", "alpine"), ("suse", "suse"), ("rhel", "rhel"), ("fedora", "rhel")):
        if name in kin:
            return folder
    return "debian_ubuntu"
