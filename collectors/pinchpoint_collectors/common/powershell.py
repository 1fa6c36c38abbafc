"""Runs PowerShell scripts on another machine, and reads their output.

``powershell -Command -`` reads commands from standard input line by line. It gets one command (``loader``),
which reads the next line as the script (``encoded``) and runs it; all later lines are the script's input.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from pinchpoint_collectors.common import legible

POWERSHELL = "powershell -NoProfile -NonInteractive -ExecutionPolicy Bypass -Command -"

Line = Mapping[str, Any]


class LinkLost(Exception):  # noqa: N818 - a state of the link: it can be opened again
    """The link is lost or cannot be opened now. The message says why."""


def loader(arguments: str) -> str:
    """Return the command that runs the script on the next line of standard input."""
    return (
        "& ([ScriptBlock]::Create([Text.Encoding]::UTF8.GetString([Convert]::FromBase64String("
        f"[Console]::In.ReadLine())))) {arguments}"
    )


def encoded(script: str) -> str:
    """Return a script as one line."""
    return base64.b64encode(script.encode()).decode()


def line_of(text: str) -> Line | None:
    """Return the JSON in a line of a script, ``{"kind": ...}``; None for output of a profile or a cmdlet."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        line = legible.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) and isinstance(line.get("kind"), str) else None
