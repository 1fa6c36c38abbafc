"""A link to the machine of the farm on which the crawl script runs.

The script is sent over it and stays loaded, so that a request costs the farm a few reads and not a start of
PowerShell with SharePoint's cmdlets, which takes many seconds of a core.
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
    """The script answered that what was requested cannot be done; the message is the farm's."""


class CrawlLink(Protocol):
    """One session with the script."""

    def ask(self, request: Mapping[str, Any], within_s: float) -> list[Line]:
        """The lines of the answer to one request.

        Raises:
            LinkLost: there was no whole answer within this many seconds.
            FarmRefused: the answer is an error.
        """
        ...

    def close(self) -> None:
        """End the session as a lost link does, which stops the crawls it looks after. Safe to call twice."""
        ...


@cache
def script() -> str:
    """The script that is sent."""
    return (files(__package__) / SCRIPT).read_text("utf-8")


def parts(endpoint: Endpoint) -> SplitResult:
    """The parts of an endpoint's URL."""
    return urlsplit(endpoint.url)


def request_text(request: Mapping[str, Any]) -> str:
    """A request as the script takes it: one line of ASCII."""
    return json.dumps(request, ensure_ascii=True)


def checked(lines: Iterable[Line]) -> list[Line]:
    """The lines of an answer except its last one. Raises ``FarmRefused`` where that is an error."""
    *result, last = lines
    if last["kind"] == "error":
        raise FarmRefused(str(last.get("why") or "no reason was given"))
    return result


def ends(line: Line, number: int) -> bool:
    """Whether it is the last line of the answer to a request."""
    return line["kind"] in ("done", "error") and line.get("id") in (number, None)


def message_of(texts: Iterable[str], endpoint: Endpoint) -> str:
    """What a program has printed, for a message: the end of it, on one line, without secrets."""
    text = " ".join(" ".join(texts).split())
    return without_secrets(text[-400:], endpoint)
