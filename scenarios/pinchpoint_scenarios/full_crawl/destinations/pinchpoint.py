"""``kind: pinchpoint``: the project's own content-processing and index service, on one host or several.

Of several hosts each has a part of the index: a document is on the host that the hash of its address names,
so that it is replaced and removed where it was added, by every crawl and every process.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from ...contract import Endpoint
from ..failures import Failure, Skipped
from ..http import Http
from .contract import Request

_NO_DOCUMENT = 415
_LONGEST_REASON = 200


class Pinchpoint:
    """The service: every session has a connection of its own to each host.

    Args:
        endpoint: the endpoint ``search``; its URL may name several hosts (``http://app3:8200,app4:8200``).
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
        """A session's own connections."""
        return PinchpointIndex(self._endpoint, self._timeout_s)


class PinchpointIndex:
    """One session's connections to the hosts of the index service."""

    takes_documents = True

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        headers = {"Content-Type": "application/octet-stream"}
        if token := endpoint.options.get("token"):
            headers["Authorization"] = f"Bearer {token}"
        url = urlsplit(endpoint.url)
        self._hosts = {
            host: Http(url._replace(netloc=host).geturl(), timeout_s=timeout_s, headers=headers)
            for host in url.netloc.split(",")
        }
        self._each = tuple(self._hosts.values())

    def check(self) -> Mapping[str, Any]:
        """What the service says about itself; by host where there are several."""
        found = {}
        for host, http in self._hosts.items():
            try:
                found[host] = _stats(http)
            except Failure as failure:
                failure.place = host
                raise
        return {"hosts": found} if len(found) > 1 else next(iter(found.values()))

    def reset(self) -> None:
        """Empty the index."""
        for http in self._each:
            http.request("POST", "/reset")

    def add(self, source: str, url: str, content: bytes) -> None:
        """Send one document to be processed and indexed; raises ``Skipped`` if it is no document."""
        target = "/documents?" + urlencode({"url": url, "source": source})
        answer = self._host_of(url).request("POST", target, body=content, accept=(_NO_DOCUMENT,))
        if answer.status == _NO_DOCUMENT:
            raise Skipped(_reason(answer.body))

    def remove(self, source: str, url: str) -> None:
        """Take one document out of the index."""
        self._host_of(url).request("POST", "/remove?" + urlencode({"url": url, "source": source}))

    def commit(self) -> None:
        """Make everything added findable."""
        for http in self._each:
            http.request("POST", "/commit")

    def requests(self) -> tuple[Request, ...]:
        """Each session asks for itself."""
        return ()

    def close(self) -> None:
        """Close the connections. Safe to call twice."""
        for http in self._each:
            http.close()

    def _host_of(self, url: str) -> Http:
        """The connection to the host of a document: an address always has the same host."""
        if len(self._each) == 1:
            return self._each[0]
        number = int.from_bytes(hashlib.sha256(url.encode()).digest()[:8])
        return self._each[number % len(self._each)]


def _stats(http: Http) -> dict[str, Any]:
    try:
        result = json.loads(http.request("GET", "/stats").body)
    except (ValueError, RecursionError) as error:
        raise Failure("bad_answer", "its /stats is no JSON", permanent=True) from error
    return result if isinstance(result, dict) else {}


def _reason(body: bytes) -> str:
    """The reason as text that any database takes: whatever is not printable ASCII is escaped."""
    try:
        result = json.loads(body)["reason"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "refused without a reason"
    return ascii(str(result)[:_LONGEST_REASON])[1:-1]
