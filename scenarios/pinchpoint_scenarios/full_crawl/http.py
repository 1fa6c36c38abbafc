"""HTTP for a crawler: one connection kept alive, a time limit on the whole request, failures by kind."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import urllib3
from urllib3.util import Timeout, parse_url

from .failures import Failure, Skipped

LARGEST_BYTES = 64 * 2**20
"""A larger body is not kept in memory: the document is skipped."""
_CONNECT_TIMEOUT_S = 5.0
_CHUNK_BYTES = 2**18

_KINDS = {401: "authentication", 403: "permission", 404: "not_found", 410: "not_found"}
_WORTH_TRYING_AGAIN = frozenset({408, 425, 429})  # the other 4xx mean that the request itself is wrong


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer: status and the bytes of its body."""

    status: int
    body: bytes


class Http:
    """Requests to one server.

    Args:
        base_url: ``http(s)://HOST[:PORT][/PREFIX]``; paths are put behind it.
        timeout_s: limit of a whole request, from the connection to the last byte.
        headers: sent with every request.
    """

    def __init__(self, base_url: str, *, timeout_s: float, headers: Mapping[str, str]) -> None:
        url = parse_url(base_url)
        self.origin = f"{url.scheme}://{url.netloc}"
        self.prefix = (url.path or "").rstrip("/")
        self._timeout_s = timeout_s
        self._headers = {**headers, "Accept-Encoding": "identity"}  # bytes as they are stored
        self._pool = urllib3.connection_from_url(self.origin, maxsize=1, retries=False)

    def request(
        self, method: str, target: str, *, body: bytes | None = None, accept: Collection[int] = ()
    ) -> Answer:
        """Ask for ``target`` (path and query, without the prefix).

        Args:
            method: ``GET`` or ``POST``.
            target: what follows ``base_url``.
            body: bytes to send.
            accept: statuses besides 2xx that are answers, not failures.

        Raises:
            Failure: no connection, no answer in time, a broken one, or a status that means failure.
            Skipped: the body is larger than ``LARGEST_BYTES``.
        """
        deadline = time.monotonic() + self._timeout_s
        try:
            response = self._pool.urlopen(
                method,
                self.prefix + target,
                body=body,
                headers=self._headers,
                redirect=False,
                preload_content=False,
                timeout=Timeout(connect=min(_CONNECT_TIMEOUT_S, self._timeout_s), read=self._timeout_s),
            )
            with contextlib.closing(response):  # also gives up the connection of a body not read to its end
                content = _body(response, deadline)
        except urllib3.exceptions.HTTPError as error:
            raise Failure(_kind(error), str(error)) from error
        if not (200 <= response.status < 300 or response.status in accept):
            raise _refusal(response)
        return Answer(response.status, content)

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._pool.close()


def _body(response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    """The whole body, read as it comes: a server that drips bytes cannot hold us past the deadline."""
    parts = []
    size = 0
    while chunk := response.read1(_CHUNK_BYTES):
        parts.append(chunk)
        size += len(chunk)
        if size > LARGEST_BYTES:
            raise Skipped(f"larger than {LARGEST_BYTES // 2**20} MiB")
        if time.monotonic() > deadline:
            raise Failure("timeout", "the body was not complete in time")
    return b"".join(parts)


def _kind(error: urllib3.exceptions.HTTPError) -> str:
    exceptions = urllib3.exceptions
    if isinstance(error, exceptions.ConnectTimeoutError):  # also: refused, no such host
        return "unreachable"
    if isinstance(error, exceptions.TimeoutError):
        return "timeout"
    if isinstance(error, exceptions.SSLError):
        return "tls"
    if isinstance(error, exceptions.DecodeError | exceptions.InvalidHeader):
        return "bad_answer"
    return "connection_lost"


def _refusal(response: urllib3.BaseHTTPResponse) -> Failure:
    status = response.status
    permanent = 300 <= status < 500 and status not in _WORTH_TRYING_AGAIN
    wait = response.headers.get("Retry-After", "")
    retry_after_s = float(wait) if wait.isdecimal() else 0.0
    return Failure(_KINDS.get(status, f"http_{status}"), permanent=permanent, retry_after_s=retry_after_s)
