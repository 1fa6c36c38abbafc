"""``kind: pinchpoint``: the project's own content-processing and index service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from ...contract import Endpoint
from ..failures import Failure, Skipped
from ..http import Http
from .contract import Request

_NO_DOCUMENT = 415
_LONGEST_REASON = 200


class Pinchpoint:
    """The service: every session has a connection of its own.

    Args:
        endpoint: the endpoint ``search``.
        scenario: does not matter: a farm's index holds one crawl.
        timeout_s: limit of a whole request.
    """

    limit = None
    index = ""

    def __init__(self, endpoint: Endpoint, scenario: str, timeout_s: float) -> None:
        del scenario
        self._endpoint = endpoint
        self._timeout_s = timeout_s

    def connect(self) -> PinchpointIndex:
        """A session's own connection."""
        return PinchpointIndex(self._endpoint, self._timeout_s)


class PinchpointIndex:
    """One session's connection to the index service."""

    takes_documents = True

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        headers = {"Content-Type": "application/octet-stream"}
        if token := endpoint.options.get("token"):
            headers["Authorization"] = f"Bearer {token}"
        self._http = Http(endpoint.url, timeout_s=timeout_s, headers=headers)

    def check(self) -> Mapping[str, Any]:
        """What the service says about itself."""
        answer = self._http.request("GET", "/stats")
        try:
            result = json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise Failure("bad_answer", "its /stats is no JSON", permanent=True) from error
        return result if isinstance(result, dict) else {}

    def reset(self) -> None:
        """Empty the index."""
        self._http.request("POST", "/reset")

    def add(self, source: str, url: str, content: bytes) -> None:
        """Send one document to be processed and indexed; raises ``Skipped`` if it is no document."""
        target = "/documents?" + urlencode({"url": url, "source": source})
        answer = self._http.request("POST", target, body=content, accept=(_NO_DOCUMENT,))
        if answer.status == _NO_DOCUMENT:
            raise Skipped(_reason(answer.body))

    def remove(self, source: str, url: str) -> None:
        """Take one document out of the index."""
        self._http.request("POST", "/remove?" + urlencode({"url": url, "source": source}))

    def commit(self) -> None:
        """Make everything added findable."""
        self._http.request("POST", "/commit")

    def requests(self) -> tuple[Request, ...]:
        """Each session asks for itself."""
        return ()

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._http.close()


def _reason(body: bytes) -> str:
    """The reason as text that any database takes: whatever is not printable ASCII is escaped."""
    try:
        result = json.loads(body)["reason"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "refused without a reason"
    return ascii(str(result)[:_LONGEST_REASON])[1:-1]
