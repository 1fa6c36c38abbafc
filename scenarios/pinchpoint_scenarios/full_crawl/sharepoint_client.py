"""Accesses a SharePoint server's REST API. Office365-REST-Python-Client logs in; the fast path does the rest.

The requests of the library use the transport of this module. Its login and form digest also serve the fast
path, and both share one connection. A 429 or 503 is reported instead of being retried unnoticed.
"""

from __future__ import annotations

import base64
import io
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import urlsplit

import requests
from office365.runtime.auth.token_response import TokenResponse
from office365.runtime.client_request_exception import ClientRequestException
from office365.runtime.http.http_method import HttpMethod
from office365.runtime.http.request_options import RequestOptions
from office365.runtime.transport.base import BaseTransport
from office365.sharepoint.request import SharePointRequest
from requests.structures import CaseInsensitiveDict

from ..contract import Endpoint
from .failures import Failure
from .http import Http, HttpAnswer, HttpLogin
from .login import cookies, login
from .politeness import RequestLimits

# The functions below read the answers of SharePoint's REST API in both JSON forms.

LIGHT = "application/json;odata=nometadata"
"""``Accept`` header for the smaller form."""


def opened(answer: Any) -> Any:
    """Return the content of an answer in either form. The verbose form wraps it in ``d``."""
    return answer["d"] if isinstance(answer, dict) and set(answer) == {"d"} else answer


def page(answer: Any, target: str) -> tuple[list[dict[str, Any]], str]:
    """Return the entries of a list, and the URL of its next page ("" at the end). Raises ``Failure``."""
    result = answer.get("value", answer.get("results")) if isinstance(answer, dict) else None
    if not isinstance(result, list) or not all(isinstance(entry, dict) for entry in result):
        raise Failure("bad_answer", f"{target} has no list of the expected form", permanent=True)
    following = answer.get("odata.nextLink") or answer.get("@odata.nextLink") or answer.get("__next")
    return result, str(following or "")


_OF_ANOTHER_FORM = (ValueError, AttributeError, TypeError, KeyError, RecursionError)
"""Errors of the library for answers that are not SharePoint's JSON, such as a login page after cookies have
expired."""
# The library also logs a traceback of this.
logging.getLogger("office365").addHandler(logging.NullHandler())


class SharePointClient:
    """A session's client of one site.

    Args:
        endpoint: endpoint of the site, with the option ``auth`` and those of ``logins.LOGINS``.
        begin: begins a login that is more than a header field (see ``login.http_login``).
        timeout_s: time limit of a request in seconds.
        pace: called when the server requests a pause.

    Raises:
        ScenarioError: the options do not form a login.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        begin: Callable[[], HttpLogin] | None,
        timeout_s: float,
        pace: RequestLimits,
    ) -> None:
        auth = login(endpoint)
        options = endpoint.options
        self._http = Http(endpoint.url, timeout_s=timeout_s, headers={}, login=begin)
        self._pace = pace
        self._transport = _Transport(self._http, by_itself=auth == "none" or begin is not None)
        self._request = SharePointRequest(self._http.origin + self._http.prefix)
        self._request.transport = self._transport
        _authenticate(self._request, auth, options)
        self._borrowed: dict[str, str] | None = None

    @property
    def origin(self) -> str:
        """Return scheme, host and port."""
        return self._http.origin

    @property
    def prefix(self) -> str:
        """Return the server-relative path of the site, without a trailing slash."""
        return self._http.prefix

    def get(self, target: str) -> Any:
        """Return the unwrapped JSON at ``target`` (path and query after the URL of the site).

        Raises ``Failure``.
        """
        return self._json(target, RequestOptions(self._url(target), headers={"Accept": LIGHT}))

    def post(self, target: str, body: Mapping[str, Any]) -> Any:
        """Send JSON by POST in the verbose form, which every version understands. Return the answer."""
        options = RequestOptions(
            self._url(target),
            method=HttpMethod.Post,
            data=json.dumps(body).encode(),
            headers={"Accept": LIGHT, "Content-Type": "application/json;odata=verbose"},
        )
        return self._json(target, options)

    def content(self, target: str, *, accept: str = "*/*") -> HttpAnswer:
        """Return the bytes at ``target``, with the library's headers. Raises ``Failure`` and ``Skipped``."""
        try:
            with self._failures(target):
                return self._http.request("GET", target, headers={**self._headers(), "Accept": accept})
        except Failure:
            self._borrowed = None  # a digest may expire early
            raise

    def target(self, url: str) -> str:
        """Return path and query after the URL of the site.

        The host of a link is ignored, so that no other host gets a token.
        """
        parts = urlsplit(url)
        path = self.behind(parts.path)
        return path + (f"?{parts.query}" if parts.query else "")

    def behind(self, path: str) -> str:
        """Return the part of a server-relative path (percent-encoded) after the site's, or else the path.

        Letter case is ignored, because SharePoint answers with that of the site's creation, whatever the URL
        has.
        """
        own, rest = path[: len(self.prefix)], path[len(self.prefix) :]
        return rest if own.casefold() == self.prefix.casefold() and rest[:1] in ("", "/") else path

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        self._http.close()

    def _url(self, target: str) -> str:
        return self.origin + self.prefix + target

    def _headers(self) -> Mapping[str, str]:
        """Return the header fields of the library: its login and its digest, while the digest is valid."""
        if self._borrowed is None or not self._request.context_info.is_valid:
            options = RequestOptions(self._url(""))
            self._request.beforeExecute(options)
            left_out = {"Content-Type", "Accept"}
            self._borrowed = {name: value for name, value in options.headers.items() if name not in left_out}
        return self._borrowed

    def _json(self, target: str, options: RequestOptions) -> Any:
        with self._failures(target):
            return opened(self._request.execute_request_direct(options).json())

    @contextmanager
    def _failures(self, target: str) -> Iterator[None]:
        """Convert failures of a request, or of the library's digest before it, to ``Failure``."""
        try:
            yield
        except Failure as failure:
            self._pace.hold("", failure.retry_after_s)
            raise
        except ClientRequestException as error:
            status = getattr(error.response, "status_code", 0)
            kind = "permission" if status == 403 else f"http_{status}"
            raise Failure(kind, "the server refused it", permanent=True) from error
        except _OF_ANOTHER_FORM as error:
            raise Failure("bad_answer", f"{target}: an answer is no such JSON", permanent=True) from error


class _Transport(BaseTransport):
    """Sends the requests of the library. Refusals except 403 (an old digest) raise ``Failure``."""

    def __init__(self, http: Http, *, by_itself: bool) -> None:
        self._http = http
        self._by_itself = by_itself

    @property
    def auth(self) -> Any | None:
        """Let the library leave the login to the transport."""
        return self if self._by_itself else None

    def execute(self, request: RequestOptions) -> requests.Response:
        target = request.url.removeprefix(self._http.origin).removeprefix(self._http.prefix)
        body = cast("bytes | None", request.data)
        answer = self._http.request(
            request.method.value, target, body=body, accept=(403,), headers=request.headers
        )
        response = requests.Response()
        response.status_code = answer.status
        response.url = request.url
        response.raw = io.BytesIO(answer.body)
        response.encoding = "utf-8"
        response.headers = CaseInsensitiveDict(
            {name.decode("latin-1"): value.decode("latin-1") for name, value in answer.response.headers}
        )
        return response


def _authenticate(request: SharePointRequest, auth: str, options: Mapping[str, str]) -> None:
    if auth == "bearer":
        request.with_access_token(lambda: TokenResponse(options["token"], "Bearer"))
    elif auth == "basic":
        pair = base64.b64encode(f"{options['user']}:{options['password']}".encode()).decode()
        request.with_access_token(lambda: TokenResponse(pair, "Basic"))
    elif auth == "cookies":
        request.with_cookies(lambda: cookies(options["cookies"]))
