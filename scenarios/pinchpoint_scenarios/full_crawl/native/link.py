"""Contract of a link to the machine of the farm on which the crawl script runs.

The script is sent over the link and stays loaded. A request then costs the farm a few reads, instead of a
start of PowerShell with SharePoint's cmdlets, which needs many seconds of CPU time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Protocol
from urllib.parse import SplitResult, urlsplit

from pinchpoint_collectors.common.powershell import Line

from ...addresses import without_secrets
from ...contract import Endpoint

SCRIPT = "pinchpoint-crawl.ps1"


class FarmRefused(Exception):  # noqa: N818 - the farm's answer, not an error of ours
    """The script refused the request; the message is that of the farm."""


class CrawlLink(Protocol):
    """One session with the script."""

    def ask(self, request: Mapping[str, Any], within_s: float) -> list[Line]:
        """Return the lines of the answer to one request.

        Raises:
            LinkLost: there was no complete answer in time.
            FarmRefused: the answer is an error.
        """
        ...

    def close(self) -> None:
        """End the session like a lost link, which stops its watched crawls. A second call does nothing."""
        ...


@cache
def script() -> str:
    """Return the script that is sent."""
    return (files(__package__) / SCRIPT).read_text("utf-8")


def parts(endpoint: Endpoint) -> SplitResult:
    """Return the parts of an endpoint's URL."""
    return urlsplit(endpoint.url)


def request_text(request: Mapping[str, Any]) -> str:
    """Return a request in the form of the script: one line of ASCII."""
    return json.dumps(request, ensure_ascii=True)


def checked(lines: Iterable[Line]) -> list[Line]:
    """Return the lines of an answer without the last one.

    Raises ``FarmRefused`` if the last one is an error.
    """
    *result, last = lines
    if last["kind"] == "error":
        raise FarmRefused(str(last.get("why") or "no reason was given"))
    return result


def ends(line: Line, number: int) -> bool:
    """Return whether a line is the last one of an answer."""
    return line["kind"] in ("done", "error") and line.get("id") in (number, None)


def message_of(texts: Iterable[str], endpoint: Endpoint) -> str:
    """Return the end of a program's output for a message, on one line, without secrets."""
    text = " ".join(" ".join(texts).split())
    return without_secrets(text[-400:], endpoint)
