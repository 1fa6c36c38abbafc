"""Selects the environment variables of child processes, without the secrets of the parent."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping

_BASIC = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|LD_LIBRARY_PATH|SSL_CERT_(FILE|DIR)"
    r"|ODBCSYSINI|ODBCINI|VIRTUAL_ENV|PYTHON[A-Z]+"
)


def child_environment(
    permitted: Collection[str] = (), environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the variables that every process needs, and those named in ``permitted``."""
    return {name: value for name, value in environ.items() if name in permitted or _BASIC.fullmatch(name)}
