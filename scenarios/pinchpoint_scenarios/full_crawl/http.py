"""Sends HTTP requests of a crawler over one connection, with a total time limit and named failures."""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from time import monotonic, perf_counter_ns
from typing import Protocol

from urllib3.exceptions import LocationParseError
from urllib3.util import Url, parse_url

from pinchpoint_collectors.common.backoff import retry_after_s

from ..errors import ScenarioError
from ..fastpath.http import HttpConnection, HttpError, Response
from .failures import Failure, LoginFailed, Skipped
from .politeness import LONGEST_HOLD_S

# The functions below unpack gzip or zlib data of a server, with limits of size and of gzip members.

_GZIP = b"\x1f\x8b"
_STEP_BYTES = 2**14
_MOST_MEMBERS = 20_000
"""Largest number of gzip members. Each costs 10 µs; tools that write several (bgzip, pigz) put KBs into
each."""


class UnpackError(Exception):
    """An answer cannot be unpacked; the message is the reason."""


class TooMuchError(UnpackError):
    """An unpacked answer is larger than allowed."""


def unpacked(packed: bytes, largest_bytes: int) -> bytes:
    """Return the unpacked content of all gzip members (RFC 1952, 2.2), without trailing bytes.

    Raises:
        UnpackError: the data is damaged or incomplete, or has more than 20,000 members.
        TooMuchError: the content is larger than allowed.
    """
    parts: list[bytes] = []
    left_bytes, at = largest_bytes + 1, 0
    if not packed:
        return b""
    for _ in range(_MOST_MEMBERS):
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)  # accepts gzip and zlib
        while not unpacker.eof:
            # Data is unpacked in steps, because the rest of a member's last step is copied for the next
            # member.
            step = packed[at : at + _STEP_BYTES]
            if not step:
                raise UnpackError("it is cut off")
            at += len(step)
            try:
                parts.append(unpacker.decompress(step, left_bytes))
            except zlib.error as error:
                raise UnpackError(str(error)) from error
            left_bytes -= len(parts[-1])
            if left_bytes <= 0:
                raise TooMuchError(f"it unpacks to more than {largest_bytes // 2**20} MiB")
        at -= len(unpacker.unused_data)
        if packed[at : at + 2] != _GZIP:
            return b"".join(parts)
    raise UnpackError(f"it has more than {_MOST_MEMBERS:,} members")


LARGEST_BYTES = 64 * 2**20
"""Largest body in bytes that is kept in memory. A document with a larger body is skipped."""
_TOO_LARGE = f"larger than {LARGEST_BYTES // 2**20} MiB"
_CONNECT_TIMEOUT_S = 5.0

_KINDS = {401: "authentication", 403: "permission", 404: "not_found", 410: "not_found"}
_WORTH_TRYING_AGAIN = frozenset({408, 425, 429})  # all other 4xx mean that the request itself is wrong
_THROTTLED = frozenset({429, 503})
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(slots=True)  # not frozen, because creating it would take three times as long
class HttpAnswer:
    """A complete answer.

    Attributes:
        status: status code.
        body: body, decoded if the server had packed it.
        response: answer as received.
        start_ns: ``time.perf_counter_ns()`` at the start of the request.
        end_ns: ``time.perf_counter_ns()`` at the last byte of the answer.
    """

    status: int
    body: bytes
    response: Response
    start_ns: int
    end_ns: int

    def header(self, name: str) -> str:
        """Return the value of a header field; "" if it is missing."""
        return self.response.header(name.lower().encode("ascii"))


class HttpLogin(Protocol):
    """A login. There is one object for each connection, or for each request."""

    @property
    def each_request(self) -> bool | None:
        """Return whether each request needs the login, like a token.

        False means that the login applies to a connection, like NTLM.

        Returns None if the server decides, as with Kerberos.
        """
        ...

    def headers(self, challenge: str) -> Mapping[str, str] | None:
        """Return the header fields to send next.

        Args:
            challenge: ``WWW-Authenticate`` of the server; "" at the start.

        Returns:
            Header fields of the next request; None if the login has ended and was not accepted.

        Raises ``Failure`` if no login is possible.
        """
        ...


class Http:
    """Sends requests to one server.

    Args:
        base_url: ``http(s)://HOST[:PORT][/PREFIX]``; paths are appended to it.
        timeout_s: time limit of a whole request in seconds, from the connection to the last byte.
        headers: header fields of every request.
        login: begins a login; None if header fields suffice.
    """

    def __init__(
        self,
        base_url: str,
        *,
        timeout_s: float,
        headers: Mapping[str, str],
        login: Callable[[], HttpLogin] | None = None,
    ) -> None:
        url = _parsed(base_url)
        scheme = url.scheme or "http"
        self.origin = f"{scheme}://{url.netloc}"
        self.prefix = (url.path or "").rstrip("/")
        self._timeout_s = timeout_s
        self._login = login
        self._logged_in = 0  # number of the logged-in connection
        self._each_request = False  # whether the login is needed for each request
        self._begin = f"GET {self.prefix}"
        self._head = _fields({"Host": url.netloc or "", "Accept-Encoding": "identity", **headers})
        self._end = f" HTTP/1.1\r\n{self._head}\r\n"
        self._connection = HttpConnection(
            (url.host or "").strip("[]"),
            url.port or _DEFAULT_PORTS[scheme],
            tls=_tls() if scheme == "https" else None,
            connect_timeout_s=_CONNECT_TIMEOUT_S,
            largest_bytes=LARGEST_BYTES,
        )

    def request(
        self,
        method: str,
        target: str,
        *,
        body: bytes | None = None,
        accept: Collection[int] = (),
        headers: Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        """Request ``target`` (path and query, without the prefix).

        Args:
            method: ``GET`` or ``POST``.
            target: text after ``base_url``.
            body: bytes to send.
            accept: statuses besides 2xx that are not failures.
            headers: header fields sent in addition to the common ones.

        Raises:
            Failure: no connection, no answer in time, a broken answer, or a status that means failure.
            Skipped: the body is larger than ``LARGEST_BYTES``.
        """
        start_ns, deadline = perf_counter_ns(), monotonic() + self._timeout_s
        try:
            if target and method == "GET" and not headers and body is None and self._login is None:
                # Nearly every request is of this form, so its constant part is built once.
                message = f"{self._begin}{target}{self._end}".encode("latin-1")
                response = self._connection.exchange(message, deadline, again=True)
            else:
                fields = self._head + _fields(headers) if headers else self._head
                response = self._any(_HttpRequest(method, self.prefix + target, fields, body), deadline)
        except HttpError as error:
            if error.kind == "too_large":
                raise Skipped(_TOO_LARGE) from error
            raise Failure(error.kind, str(error)) from error
        end_ns = perf_counter_ns()
        status = response.status
        if not (200 <= status < 300 or status in accept):
            raise refusal(response)
        content = _decoded(response) if response.encoded else response.body
        return HttpAnswer(status, content, response, start_ns, end_ns)

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        self._connection.close()

    def _any(self, request: _HttpRequest, deadline: float) -> Response:
        """Send any request, with or without a login."""
        if self._login is not None:
            return self._ask(self._login, request, deadline)
        message = _message(request.method, request.path, request.fields, request.body)
        return self._connection.exchange(message, deadline, again=request.method == "GET")

    def _ask(self, begin: Callable[[], HttpLogin], request: _HttpRequest, deadline: float) -> Response:
        """Send the request on a logged-in connection."""
        connection = self._connection
        asked_again = False
        if not self._each_request and self._logged_in == connection.opened > 0:
            # The request is not repeated on a new connection, which would have to log in first.
            message = _message(request.method, request.path, request.fields, request.body)
            response = connection.exchange(message, deadline, again=False)
            same = self._logged_in == connection.opened
            if response.status != 401 and same:
                return response
            asked_again = same
        login = begin()
        response = self._log_in(login, request, deadline)
        if login.each_request or (asked_again and login.each_request is None):
            self._each_request = True
        return response

    def _log_in(self, login: HttpLogin, request: _HttpRequest, deadline: float) -> Response:
        """Send the requests of the login and then the request, on the same connection."""
        more, again = login.headers(""), request.method == "GET"
        while True:
            if more is None:
                raise LoginFailed(
                    "the server refused the credentials", "correct auth, user or password in farm.yaml"
                )
            message = _message(request.method, request.path, request.fields + _fields(more), request.body)
            response = self._connection.exchange(message, deadline, again=again)
            if response.status != 401:
                self._logged_in = self._connection.opened
                return response
            more, again = login.headers(response.header(b"www-authenticate")), False


@dataclass(frozen=True, slots=True)
class _HttpRequest:
    method: str
    path: str
    fields: str
    body: bytes | None


def refusal(response: Response) -> Failure:
    """Return the failure for a status other than 2xx."""
    status = response.status
    permanent = 300 <= status < 500 and status not in _WORTH_TRYING_AGAIN
    # Limited to what a clock or a crawl database can represent.
    asked_s = retry_after_s(response.header(b"retry-after")) if status in _THROTTLED else None
    wait_s = min(LONGEST_HOLD_S, asked_s or 0.0)
    return Failure(_KINDS.get(status, f"http_{status}"), permanent=permanent, retry_after_s=wait_s)


def _message(method: str, path: str, fields: str, body: bytes | None) -> bytes:
    if body is None and method == "GET":
        return f"GET {path or '/'} HTTP/1.1\r\n{fields}\r\n".encode("latin-1")
    head, content = f"{method} {path or '/'} HTTP/1.1\r\n{fields}", body or b""
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode("latin-1") + content


def _fields(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}: {_one_line(value)}\r\n" for name, value in headers.items())


def _one_line(value: str) -> str:
    """Return a header value without line breaks, which would begin another field."""
    if "\r" in value or "\n" in value or not value.isascii():
        raise ScenarioError("a header field takes one line of ASCII; correct token, user or cookies")
    return value


def _parsed(url: str) -> Url:
    try:
        return parse_url(url)
    except LocationParseError as error:
        raise ScenarioError(f"{url!r} is no URL; write it like https://intranet.example") from error


@cache
def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _decoded(response: Response) -> bytes:
    """Return the body decoded, if the server encoded it although no encoding was requested."""
    encoding = response.header(b"content-encoding").lower()
    if encoding in ("", "identity"):
        return response.body
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise Failure("bad_answer", f"content encoding {encoding!a} was not asked for", permanent=True)
    try:
        return unpacked(response.body, LARGEST_BYTES)
    except TooMuchError as error:
        raise Skipped(_TOO_LARGE) from error
    except UnpackError as error:
        why = f"its {encoding} cannot be unpacked: {error}"
        raise Failure("bad_answer", why, permanent=True) from error
