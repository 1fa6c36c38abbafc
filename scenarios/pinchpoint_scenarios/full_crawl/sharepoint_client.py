"""A SharePoint server's REST API: Office365-REST-Python-Client logs in, our fast path carries every byte.

The library's requests use our transport, so that its login and form digest serve the fast path,
too, one connection does for both, and a 429 or 503 is reported instead of being retried in silence.
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

# What is in the answers of SharePoint's REST API, in either of their JSON forms.

LIGHT = "application/json;odata=nometadata"
"""The ``Accept`` that asks for the smaller form."""


def opened(answer: Any) -> Any:
    """What is in an answer, whichever its form: the verbose one is wrapped in ``d``."""
    return answer["d"] if isinstance(answer, dict) and set(answer) == {"d"} else answer


def page(answer: Any, target: str) -> tuple[list[dict[str, Any]], str]:
    """The entries of a list, and the URL of its next page ("" at its end). Raises ``Failure``."""
    result = answer.get("value", answer.get("results")) if isinstance(answer, dict) else None
    if not isinstance(result, list) or not all(isinstance(entry, dict) for entry in result):
        raise Failure("bad_answer", f"{target} has no list of the expected form", permanent=True)
    following = answer.get("odata.nextLink") or answer.get("@odata.nextLink") or answer.get("__next")
    return result, str(following or "")


_OF_ANOTHER_FORM = (ValueError, AttributeError, TypeError, KeyError, RecursionError)
"""What the library raises on what is not SharePoint's JSON: a page to log in at, where cookies have ended."""
# It logs a traceback of that, too.
logging.getLogger("office365").addHandler(logging.NullHandler())


class SharePointClient:
    """One session's client of one site.

    Args:
        endpoint: its URL is the site's; options ``auth`` and what ``logins.LOGINS`` has for it.
        begin: begins a login that is more than a header field: ``login.http_login``.
        timeout_s: limit of a request.
        pace: is called when the server asks for a pause.

    Raises:
        ScenarioError: the options make no login.
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
        """Scheme, host and port."""
        return self._http.origin

    @property
    def prefix(self) -> str:
        """Server-relative path of the site, without a slash at its end."""
        return self._http.prefix

    def get(self, target: str) -> Any:
        """The JSON at ``target`` (path and query behind the site's URL), out of its envelope.

        Raises ``Failure``.
        """
        return self._json(target, RequestOptions(self._url(target), headers={"Accept": LIGHT}))

    def post(self, target: str, body: Mapping[str, Any]) -> Any:
        """Likewise the answer to a POST of JSON in the verbose form, which every version understands."""
        options = RequestOptions(
            self._url(target),
            method=HttpMethod.Post,
            data=json.dumps(body).encode(),
            headers={"Accept": LIGHT, "Content-Type": "application/json;odata=verbose"},
        )
        return self._json(target, options)

    def content(self, target: str, *, accept: str = "*/*") -> HttpAnswer:
        """The bytes at ``target``, with the library's headers. Raises ``Failure`` and ``Skipped``."""
        try:
            with self._failures(target):
                return self._http.request("GET", target, headers={**self._headers(), "Accept": accept})
        except Failure:
            self._borrowed = None  # a digest may have ended before its time
            raise

    def target(self, url: str) -> str:
        """Path and query after the site's URL. A link's host is ignored: a token is sent nowhere else."""
        parts = urlsplit(url)
        path = self.behind(parts.path)
        return path + (f"?{parts.query}" if parts.query else "")

    def behind(self, path: str) -> str:
        """What of a server-relative path (percent-encoded) follows the site's own; all of one elsewhere.

        Capitals do not count: SharePoint answers with those the site was made with, whatever the URL has.
        """
        own, rest = path[: len(self.prefix)], path[len(self.prefix) :]
        return rest if own.casefold() == self.prefix.casefold() and rest[:1] in ("", "/") else path

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._http.close()

    def _url(self, target: str) -> str:
        return self.origin + self.prefix + target

    def _headers(self) -> Mapping[str, str]:
        """The header fields of the library: its login and its digest, used while the digest is valid."""
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
        """What goes wrong with a request, or the digest that the library gets before it, as ``Failure``."""
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
    """Carries the library's requests; every refusal but a 403 (a digest may be too old) is a ``Failure``."""

    def __init__(self, http: Http, *, by_itself: bool) -> None:
        self._http = http
        self._by_itself = by_itself

    @property
    def auth(self) -> Any | None:
        """Makes the library leave the login to the transport."""
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
