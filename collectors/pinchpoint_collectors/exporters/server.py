"""Queries a Prometheus server, or one with the same API (Thanos, Mimir, VictoriaMetrics), over HTTP."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

import requests
from requests.auth import AuthBase, HTTPBasicAuth
from urllib3.exceptions import HTTPError

from pinchpoint_collectors.common import legible
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.exporters.means import Series
from pinchpoint_collectors.exporters.query import data_of, matrix, partial, vector

CONNECT_S, ANSWER_S = 3.0, 10.0
_LARGEST_BYTES = 64 * 2**20
"""Largest answer in bytes. The series of a farm's machines have some MB."""
_HALF_MS = 500_000
"""Half a millisecond, because the server reports its time truncated to whole milliseconds."""

T = TypeVar("T")


class _Bearer(AuthBase):
    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the token to a request."""
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class Server:
    """A connection to one Prometheus server. Only one thread may use it.

    Args:
        where: name of the server in messages, without secrets.
        url: address of the server, with the path before ``/api/v1`` if there is one; a login in it is used.
        options: ``token``; or ``user`` and ``password``; ``ca``: a file of certificates (PEM).

    Raises:
        CollectorError: an option is wrong.
    """

    def __init__(self, where: str, url: str, options: Mapping[str, Any]) -> None:
        self._where = where
        self._url, login = _taken_apart(where, url)
        self._session = requests.Session()
        self._session.headers.update({"Accept": "application/json", "Accept-Encoding": "gzip"})
        token, user = options.get("token"), options.get("user")
        if token is not None:
            self._session.auth = _Bearer(str(token))
        elif user is not None:
            self._session.auth = HTTPBasicAuth(str(user), str(options.get("password") or ""))
        elif login is not None:
            self._session.auth = HTTPBasicAuth(*login)
        self._verify: bool | str = True
        if (ca := options.get("ca")) is not None:
            if not Path(str(ca)).is_file():
                raise CollectorError(f"{where}: ca: there is no file {ca}; name one of certificates (PEM)")
            self._verify = str(ca)
        self.received_bytes = 0
        self.partial: str | None = None
        """Why its latest answers may be incomplete, in its own words; None if it reports no reason."""

    def series(self, selector: str, seconds: float, until_s: float) -> list[Series]:
        """Return every scrape of the selected series in the seconds before a time of the server's clock."""
        query = {"query": f"{selector}[{max(1, round(seconds * 1000))}ms]", "time": f"{until_s:.3f}"}
        return self._ask("query", query, lambda content: list(matrix(content)))

    def latest(self, selector: str) -> list[tuple[dict[str, str], float]]:
        """Return labels and current values of the selected series, if scraped in the last five minutes."""
        return self._ask("query", {"query": selector}, lambda content: list(vector(content)))

    def clock(self) -> tuple[int, int, int]:
        """Return the time of the request, the server's time, and the time of the answer, in UTC ns.

        The first and the last time are those of the local clock.
        """
        sent_ns = time.time_ns()
        data = self._ask("query", {"query": "time()"}, data_of)
        received_ns = time.time_ns()
        try:
            host_s = float(data["result"][1])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise CollectorError(f"{self._where}: the query time() was answered with no time") from error
        return sent_ns, round(host_s * 1e9) + _HALF_MS, received_ns

    def targets(self) -> list[Mapping[str, Any]]:
        """Return the scrape targets of the server; empty if it has no targets API."""
        try:
            data = self._ask("targets", {"state": "active"}, data_of)
        except CollectorError:
            return []  # stores of several servers' series scrape nothing themselves
        result = data.get("activeTargets")
        return [each for each in result if isinstance(each, dict)] if isinstance(result, list) else []

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        self._session.close()

    def _ask(self, what: str, query: Mapping[str, str], parse: Callable[[object], T]) -> T:
        until = time.monotonic() + CONNECT_S + ANSWER_S
        try:
            # No redirect is followed, because the login is only for this scheme, host and port.
            with self._session.get(
                f"{self._url}/api/v1/{what}",
                params=query,
                timeout=(CONNECT_S, ANSWER_S),
                verify=self._verify,
                stream=True,
                allow_redirects=False,
            ) as answer:
                if answer.is_redirect:
                    raise CollectorError(f"{self._where}: {_moved(answer)}")
                body = self._body(answer, until)
        except (requests.RequestException, HTTPError, zlib.error) as error:
            raise CollectorError(f"{self._where}: {_message(error)}") from error
        remedy = _STATUS.get(answer.status_code)
        if remedy is not None:
            raise CollectorError(f"{self._where}: HTTP {answer.status_code} {answer.reason}; {remedy}")
        try:
            content = legible.loads(body.decode("utf-8", "replace"))
            self.partial = partial(content) or self.partial
            return parse(content)
        except ValueError as error:
            busy = answer.status_code == _TOO_MANY or answer.status_code >= _FAILED
            result = _BUSY if busy else _NO_PROMETHEUS
            raise CollectorError(f"{self._where}: {result.format(status=answer.status_code)}") from error
        except CollectorError as error:
            raise CollectorError(f"{self._where}: {error}") from error

    def _body(self, answer: requests.Response, until: float) -> bytes:
        """Return the whole body, with limits of size and time for a body that arrives slowly."""
        packed = answer.headers.get("content-encoding", "identity") != "identity"
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32) if packed else None  # gzip with one member
        parts, left_bytes = [], _LARGEST_BYTES + 1
        # Only bytes that have arrived are read; iter_content would wait for more.
        while part := answer.raw.read1(2**16, decode_content=False):
            self.received_bytes += len(part)
            parts.append(unpacker.decompress(part, left_bytes) if unpacker else part)
            left_bytes -= len(parts[-1])
            if left_bytes <= 0:
                raise CollectorError(
                    f"{self._where}: its answer is larger than {_LARGEST_BYTES // 2**20} MiB; "
                    "correct the url in farm.yaml"
                )
            if time.monotonic() > until:
                raise CollectorError(f"{self._where}: its answer was not complete in time; check the server")
            if unpacker and unpacker.eof:
                break
        return b"".join(parts)


_STATUS = {
    401: "give `token`, or `user` and `password`, in farm.yaml",
    403: "this login may not query it: grant that, or give another in farm.yaml",
    404: "correct the url in farm.yaml: it is what stands before /api/v1",
    502: "a proxy before it does not reach it",
    504: "a proxy before it does not reach it",
}
"""HTTP status -> remedy."""

_TOO_MANY, _FAILED = 429, 500
_BUSY = "HTTP {status}, with no word of Prometheus; it is starting (it reads its log first), or overloaded"
_NO_PROMETHEUS = (
    "what answers is no Prometheus (HTTP {status}, no JSON); correct the url in farm.yaml: it is what stands "
    "before /api/v1"
)

_WORDS = {
    "CERTIFICATE_VERIFY_FAILED": "its certificate is of no known authority; say ca: FILE in farm.yaml",
    "WRONG_VERSION_NUMBER": "it does not speak TLS; correct the url in farm.yaml",
    "SSL": "no TLS connection comes about; check its certificate, and the url in farm.yaml",
    "NameResolution": "its name is not known; correct the host in farm.yaml",
    "Failed to resolve": "its name is not known; correct the host in farm.yaml",
    "refused": "connection refused; start the server, or correct host and port in farm.yaml",
    "timed out": "nothing came back in time; check the server, the address and the firewalls between",
}


def _moved(answer: requests.Response) -> str:
    """Return the redirect target, and the line to write instead."""
    parts = urlsplit(urljoin(answer.url, answer.headers["location"]))
    place = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    url = place.partition("/api/v1/")[0]
    return f"it redirects to {place}, and the login goes to no other address; write url: {url} in farm.yaml"


def _message(error: Exception) -> str:
    text = str(error)
    known = next((said for words, said in _WORDS.items() if words in text), None)
    return known or f"no answer ({type(error).__name__}); check the server, and the url in farm.yaml"


def _taken_apart(where: str, url: str) -> tuple[str, tuple[str, str] | None]:
    """Return the address without a login, and the login."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise CollectorError(f"{where}: the url cannot be read; correct it in farm.yaml") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise CollectorError(f"{where}: the url is none of http:// or https://; correct it in farm.yaml")
    login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    bare = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
    return bare, login
