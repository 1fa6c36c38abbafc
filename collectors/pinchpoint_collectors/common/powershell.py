"""Runs PowerShell scripts on another machine, and reads their answers.

``powershell -Command -`` reads commands from standard input line by line. The only one it is given
(``loader``) reads the next line, which is the script (``encoded``), and runs it; from then on the script
reads the lines.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from pinchpoint_collectors.common import legible

POWERSHELL = "powershell -NoProfile -NonInteractive -ExecutionPolicy Bypass -Command -"

Line = Mapping[str, Any]


class LinkLost(Exception):  # noqa: N818 - a state of the link: it can be opened again
    """Nothing comes over the link any more, or it cannot be opened now; the message says why."""


def loader(arguments: str) -> str:
    """The command that runs the script on the next line of standard input."""
    return (
        "& ([ScriptBlock]::Create([Text.Encoding]::UTF8.GetString([Convert]::FromBase64String("
        f"[Console]::In.ReadLine())))) {arguments}"
    )


def encoded(script: str) -> str:
    """A script as one line."""
    return base64.b64encode(script.encode()).decode()


def line_of(text: str) -> Line | None:
    """A line of a script, ``{"kind": ...}``; None for what a profile or a cmdlet has printed beside."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        line = legible.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) and isinstance(line.get("kind"), str) else None
