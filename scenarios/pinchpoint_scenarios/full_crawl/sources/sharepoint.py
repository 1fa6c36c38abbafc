"""A SharePoint-style site as a content source, by its REST API (``/_api/web``...)."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

import urllib3

from ...contract import Endpoint
from ...errors import ScenarioError
from ...names import unknown
from ..failures import Failure
from ..http import Http
from ..params import FullCrawlParams, SourceParams
from ..politeness import Pace
from .contract import Changes, Fetched, Item

AUTHS = ("none", "bearer", "basic")

_DOCUMENT_LIBRARY = 1  # SP.BaseType
_FILE = 0  # SP.FileSystemObjectType
_SELECT = "Id,FileRef,FileSystemObjectType"


class SharePoint:
    """The site, as one process knows it: see ``Repository``."""

    def __init__(self, endpoint: Endpoint, source: SourceParams, params: FullCrawlParams) -> None:
        self._endpoint = endpoint
        self._params = params
        self._pace = Pace(source.delay or 0.0, source.per_host)
        _login(endpoint)  # so that options that make no sense are told before anything starts

    def connect(self) -> SharePointSource:
        """See ``Repository``."""
        return SharePointSource(self._endpoint, self._params, self._pace)

    def pause_s(self) -> float:
        """See ``Repository``."""
        return self._pace.pause_s()


class SharePointSource:
    """Webs, their lists, their items by page, the files' bytes: each container is one GET.

    A container's ``detail`` is what its answer holds: ``web``, ``webs``, ``lists`` or ``items``; a document's
    is the path of its web.

    Args:
        endpoint: its URL is the site's; options ``auth`` (none, bearer, basic), ``token``, ``user``,
            ``password``.
        params: the crawl's; ``timeout_s`` limits a request, ``page_size`` is the items per page.
        pace: when it may be asked.
    """

    def __init__(self, endpoint: Endpoint, params: FullCrawlParams, pace: Pace) -> None:
        self._pace = pace
        headers = {"Accept": "application/json;odata=nometadata", **_login(endpoint)}
        self._http = Http(endpoint.url, timeout_s=params.timeout_s, headers=headers)
        self._page_size = params.page_size

    def check(self) -> Mapping[str, Any]:
        """Whether the site answers, and its title."""
        return {"kind": "sharepoint", "title": str(self._get("/_api/web").get("Title", ""))}

    def root(self) -> Item:
        """The site's top web."""
        return self._container("/_api/web", "web")

    def enumerate(self, container: Item) -> Sequence[Item]:
        """What a web, or a page of webs, lists or items, holds; the next page is one more container."""
        target = self._target(container.url)
        api = target.partition("/_api/")[0] + "/_api/web"  # of the web it belongs to
        answer = self._get(target)
        if container.detail == "web":
            return [self._container(f"{api}/webs", "webs"), self._container(f"{api}/lists", "lists")]
        read = {"webs": self._web, "lists": self._list, "items": self._document}[container.detail]
        try:
            found = [read(api, each) for each in answer["value"]]
            following = answer.get("odata.nextLink") or answer.get("@odata.nextLink")
            if following:
                found.append(self._container(self._target(str(following)), container.detail))
        except (KeyError, TypeError, AttributeError, UnicodeError) as error:
            raise Failure(
                "bad_answer", f"{target} has no list of the expected form", permanent=True
            ) from error
        return [item for item in found if item is not None]

    def turn(self, item: Item) -> AbstractContextManager[None]:
        """See ``Source``."""
        del item
        return self._pace.turn("")

    def fetch(self, document: Item) -> Fetched:
        """The file's bytes."""
        path = unquote(urlsplit(document.url).path, errors="surrogatepass")
        quoted = quote(path.replace("'", "''"), safe="/'", errors="surrogatepass")
        target = f"{document.detail}/getfilebyserverrelativeurl('{quoted}')/$value"
        start_ns = time.perf_counter_ns()
        content = self._http.request("GET", target).body
        return Fetched(content, start_ns, time.perf_counter_ns())

    def token(self) -> str | None:
        """No change log is read yet: versions tell."""
        return None

    def changes(self, since: str) -> Changes:
        """Not supported."""
        raise Failure("not_supported", f"no change log; asked since {since}", permanent=True)

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._http.close()

    def _get(self, target: str) -> dict[str, Any]:
        body = self._http.request("GET", target).body
        try:
            found = json.loads(body)
        except ValueError as error:
            raise Failure("bad_answer", f"{target} is no JSON", permanent=True) from error
        if not isinstance(found, dict):
            raise Failure("bad_answer", f"{target} is no JSON object", permanent=True)
        return found

    def _container(self, target: str, detail: str) -> Item:
        return Item("container", self._http.origin + self._http.prefix + target, detail)

    def _target(self, url: str) -> str:
        """Path and query behind the site's URL. A link's host is not looked at: a token goes nowhere else."""
        parts = urlsplit(url)
        path = parts.path.removeprefix(self._http.prefix)
        return path + (f"?{parts.query}" if parts.query else "")

    def _web(self, api: str, web: Mapping[str, Any]) -> Item:
        del api
        where = web.get("ServerRelativeUrl") or urlsplit(web["Url"]).path
        relative = quote(where, safe="/").removeprefix(self._http.prefix).rstrip("/")
        return self._container(f"{relative}/_api/web", "web")

    def _list(self, api: str, each: Mapping[str, Any]) -> Item | None:
        if each.get("Hidden") or each.get("BaseType", _DOCUMENT_LIBRARY) != _DOCUMENT_LIBRARY:
            return None
        title = quote(each["Title"].replace("'", "''"), safe="'")
        query = urlencode({"$top": self._page_size, "$select": _SELECT}, safe="$,")
        return self._container(f"{api}/lists/getbytitle('{title}')/items?{query}", "items")

    def _document(self, api: str, item: Mapping[str, Any]) -> Item | None:
        if item.get("FileSystemObjectType", _FILE) != _FILE:
            return None  # a folder: what lies in it is among the list's items
        url = self._http.origin + quote(item["FileRef"], safe="/", errors="surrogatepass")
        return Item("document", url, api)


def _login(endpoint: Endpoint) -> dict[str, str]:
    """The headers that log in; ``auth`` may be left out where the other options say it."""
    options = endpoint.options
    auth = options.get("auth") or (
        "bearer" if "token" in options else "basic" if "user" in options else "none"
    )
    if auth not in AUTHS:
        raise ScenarioError(f"endpoint {endpoint.name}: {unknown('auth', auth, AUTHS)}")
    needed = {"none": (), "bearer": ("token",), "basic": ("user", "password")}[auth]
    for option in needed:
        if not options.get(option):
            raise ScenarioError(f"endpoint {endpoint.name}: auth {auth} needs {option}; add it in farm.yaml")
    if auth == "bearer":
        return {"Authorization": f"Bearer {options['token']}"}
    if auth == "basic":
        return dict(urllib3.make_headers(basic_auth=f"{options['user']}:{options['password']}"))
    return {}
