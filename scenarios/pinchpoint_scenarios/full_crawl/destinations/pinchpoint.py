"""``kind: pinchpoint``: uses Pinchpoint's own content-processing and index service on one or more hosts.

Each of several hosts has a part of the index. A document goes to the host with the least work. A later
document with the same address may go to another host, and the commit at the end of a crawl keeps the newest
one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode, urlsplit

from ...contract import Endpoint
from ..failures import Failure, Skipped
from ..http import Http
from .contract import Request

_NO_DOCUMENT = 415
_LONGEST_REASON = 200
_AT_A_TIME = 100_000
_AVOIDED_S = 2.0
"""Seconds after a failure in which a host gets documents only if all other hosts failed, too."""


class Balance:
    """Chooses the host of the next document. The sessions of a process share it.

    Args:
        hosts: addresses of the hosts, ``host:port``.
    """

    def __init__(self, hosts: Sequence[str]) -> None:
        self.hosts = tuple(hosts)
        self._in_progress = dict.fromkeys(hosts, 0)
        self._sent = dict.fromkeys(hosts, 0)
        self._failed_s = dict.fromkeys(hosts, -_AVOIDED_S)

    @contextmanager
    def next(self) -> Iterator[str]:
        """Take the host that processes the fewest documents of this process, for one document.

        Of several such hosts, the one that was sent fewer documents is taken. A host that has just failed
        comes last.
        """
        host = min(self.hosts, key=self._rank)
        self._in_progress[host] += 1
        self._sent[host] += 1
        try:
            yield host
        except Failure:
            self._failed_s[host] = time.monotonic()
            raise
        finally:
            self._in_progress[host] -= 1

    def _rank(self, host: str) -> tuple[bool, int, int]:
        failed = time.monotonic() - self._failed_s[host] < _AVOIDED_S
        return failed, self._in_progress[host], self._sent[host]


class Pinchpoint:
    """The service. Every session has a connection of its own to each host.

    Args:
        endpoint: endpoint ``search``. Its URL may contain several hosts (``http://app3:8200,app4:8200``).
        scenario: ignored, because the index of a farm contains one crawl.
        timeout_s: time limit of a whole request in seconds.
    """

    limit = None
    index = ""

    def __init__(self, endpoint: Endpoint, scenario: str, timeout_s: float) -> None:
        del scenario
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._balance = Balance(urlsplit(endpoint.url).netloc.split(","))

    def connect(self) -> PinchpointIndex:
        """Return a session's connections."""
        return PinchpointIndex(self._endpoint, self._balance, self._timeout_s)


class PinchpointIndex:
    """One session's connections to the hosts of the index service."""

    takes_documents = True

    def __init__(self, endpoint: Endpoint, balance: Balance, timeout_s: float) -> None:
        self._balance = balance
        headers = {"Content-Type": "application/octet-stream"}
        if token := endpoint.options.get("token"):
            headers["Authorization"] = f"Bearer {token}"
        url = urlsplit(endpoint.url)
        self._hosts = {
            host: Http(url._replace(netloc=host).geturl(), timeout_s=timeout_s, headers=headers)
            for host in balance.hosts
        }
        self._each = tuple(self._hosts.values())

    def check(self) -> Mapping[str, Any]:
        """Return the facts that the service reports; with several hosts, by host."""
        found = {}
        for host, http in self._hosts.items():
            try:
                found[host] = _asked(http, "/stats")
            except Failure as failure:
                failure.place = host
                raise
        return {"hosts": found} if len(found) > 1 else next(iter(found.values()))

    def reset(self) -> None:
        """Empty the index."""
        for http in self._each:
            http.request("POST", "/reset")

    def add(self, source: str, url: str, content: bytes) -> None:
        """Send one document for processing and indexing. Raises ``Skipped`` if it is not a document."""
        target = "/documents?" + urlencode({"url": url, "source": source})
        with self._balance.next() as host:
            answer = self._hosts[host].request("POST", target, body=content, accept=(_NO_DOCUMENT,))
        if answer.status == _NO_DOCUMENT:
            raise Skipped(_reason(answer.body))

    def remove(self, source: str, url: str) -> None:
        """Remove one document from the index."""
        for http in self._each:
            http.request("POST", "/remove?" + urlencode({"url": url, "source": source}))

    def commit(self) -> None:
        """Make all added documents searchable. Of several documents with one address, the newest is kept."""
        for http in self._each:
            http.request("POST", "/commit")
        if len(self._each) > 1:
            self._keep_newest()

    def requests(self) -> tuple[Request, ...]:
        """Return no request, because each session sends its own requests."""
        return ()

    def close(self) -> None:
        """Close the connections. A second call does nothing."""
        for http in self._each:
            http.close()

    def _keep_newest(self) -> None:
        added = [_added(http) for http in self._each]
        for http, own in zip(self._each, added, strict=True):
            older = [url for url, at in own.items() if any(other.get(url, at) > at for other in added)]
            for url in older:
                http.request("POST", "/remove?" + urlencode({"url": url}))
            if older:
                http.request("POST", "/commit")


def _added(http: Http) -> dict[str, int]:
    """When each document of a host was added: URL -> ns since 1970."""
    result: dict[str, int] = {}
    after_ns = 0
    while page := _asked(http, f"/added?after_ns={after_ns}&limit={_AT_A_TIME}"):
        result |= page
        after_ns = max(page.values())
    return result


def _asked(http: Http, path: str) -> dict[str, Any]:
    """Send a request and return the object in the answer."""
    try:
        result = json.loads(http.request("GET", path).body)
    except Skipped as too_large:
        raise Failure("bad_answer", f"its {path} is {too_large}", permanent=True) from too_large
    except (ValueError, RecursionError) as error:
        raise Failure("bad_answer", f"its {path} is no JSON", permanent=True) from error
    return result if isinstance(result, dict) else {}


def _reason(body: bytes) -> str:
    """Return the reason as text that any database accepts: non-ASCII and control characters are escaped."""
    try:
        result = json.loads(body)["reason"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "refused without a reason"
    return ascii(str(result)[:_LONGEST_REASON])[1:-1]
