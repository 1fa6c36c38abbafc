"""The search tier: where crawled documents go (``kind: pinchpoint``)."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from ..contract import Endpoint
from ..errors import ScenarioError
from ..names import unknown
from .failures import Failure, Skipped
from .http import Http

KINDS = ("pinchpoint",)
_NO_DOCUMENT = 415
_LONGEST_REASON = 200


class Index:
    """One session's connection to the content-processing and index service.

    Args:
        endpoint: the endpoint ``search``.
        timeout_s: limit of a whole request.
    """

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        kind = endpoint.options.get("kind", KINDS[0])
        if kind not in KINDS:
            raise ScenarioError(f"endpoint {endpoint.name}: {unknown('kind', kind, KINDS)}")
        headers = {"Content-Type": "application/octet-stream"}
        self._http = Http(endpoint.url, timeout_s=timeout_s, headers=headers)

    def stats(self) -> dict[str, Any]:
        """What the service says about itself; raises ``Failure``."""
        answer = self._http.request("GET", "/stats")
        try:
            found = json.loads(answer.body)
        except ValueError as error:
            raise Failure("bad_answer", "its /stats is no JSON", permanent=True) from error
        return found if isinstance(found, dict) else {}

    def reset(self) -> None:
        """Empty the index; raises ``Failure``."""
        self._http.request("POST", "/reset")

    def add(self, source: str, url: str, content: bytes) -> None:
        """Have one document processed and indexed; raises ``Failure``, or ``Skipped`` where it is none."""
        target = "/documents?" + urlencode({"url": url, "source": source})
        answer = self._http.request("POST", target, body=content, accept=(_NO_DOCUMENT,))
        if answer.status == _NO_DOCUMENT:
            raise Skipped(_reason(answer.body))

    def commit(self) -> None:
        """Make everything added findable; raises ``Failure``."""
        self._http.request("POST", "/commit")

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._http.close()


def _reason(body: bytes) -> str:
    """The reason as text that any database takes: whatever is not printable ASCII is escaped."""
    try:
        found = json.loads(body)["reason"]
    except (ValueError, KeyError, TypeError):
        return "refused without a reason"
    return ascii(str(found)[:_LONGEST_REASON])[1:-1]
