"""A SharePoint-style site as a content source, by its REST API (``/_api/web``...)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from ...contract import Endpoint
from ..failures import Failure
from ..login import login
from ..odata import page
from ..params import FullCrawlParams, SourceParams
from ..politeness import Pace
from .contract import Changes, Fetched, Grant, Item
from .one_host import OneHost
from .sharepoint_changes import ITEM_FIELDS, ChangeLog

if TYPE_CHECKING:
    from ..sharepoint_client import SharePointClient

_DOCUMENT_LIBRARY = 1  # SP.BaseType
_FILE = 0  # SP.FileSystemObjectType
_ASSIGNMENTS = "roleassignments?$expand=Member,RoleDefinitionBindings"
_REFUSED = frozenset({"permission", "not_found", "authentication"})


class SharePoint:
    """The site, as one process knows it: see ``Repository``."""

    def __init__(self, endpoint: Endpoint, source: SourceParams, params: FullCrawlParams) -> None:
        self._endpoint = endpoint
        self._params = params
        self._source = source
        self._pace = Pace(source.delay or 0.0, source.per_host)
        self._access: dict[str, tuple[Grant, ...] | None] = {}
        login(endpoint)  # so that options that make no sense are told before anything starts

    def connect(self) -> SharePointSource:
        """See ``Repository``."""
        # Not before it is needed: the library behind it takes a third of a second to load.
        from ..sharepoint_client import SharePointClient  # noqa: PLC0415 - see above

        client = SharePointClient(self._endpoint, self._params.timeout_s, self._pace)
        known = self._access if self._source.access else None
        return SharePointSource(client, self._pace, self._params.page_size, known)

    def pause_s(self) -> float:
        """See ``Repository``."""
        return self._pace.pause_s()


class SharePointSource(OneHost):
    """Webs, their lists, their items by page, the files' bytes: each container is one GET.

    A container's ``detail`` is what its answer holds: ``web``, ``webs``, ``lists`` or ``items`` (and of
    which list). A document's is the path of its web and of what its access list belongs to.

    Args:
        client: the session's.
        pace: when the site may be asked.
        page_size: items of a list asked for at a time.
        access: access lists of whole lists that the process knows; None where none are read.
    """

    def __init__(
        self,
        client: SharePointClient,
        pace: Pace,
        page_size: int,
        access: dict[str, tuple[Grant, ...] | None] | None,
    ) -> None:
        super().__init__(pace)
        self._client = client
        self._page_size = page_size
        self._access = access

    def check(self) -> Mapping[str, Any]:
        """Whether the site answers, and its title."""
        web = self._client.get("/_api/web")
        if not isinstance(web, dict):
            raise Failure("bad_answer", "/_api/web is no JSON object", permanent=True)
        return {"kind": "sharepoint", "title": str(web.get("Title", ""))}

    def root(self) -> Item:
        """The site's top web."""
        return self.container("/_api/web", "web")

    def enumerate(self, container: Item) -> Sequence[Item]:
        """What a web, or a page of webs, lists or items, holds; the next page is one more container."""
        target = self._client.target(container.url)
        api = target.partition("/_api/")[0] + "/_api/web"  # of the web it belongs to
        answer = self._client.get(target)
        what, _, list_id = container.detail.partition(" ")
        if what == "web":
            return [
                self.container(f"{api}/webs?$select=Title,Url,ServerRelativeUrl", "webs"),
                self.container(f"{api}/lists?$select=Id,Title,Hidden,BaseType", "lists"),
            ]
        entries, following = page(answer, target)
        try:
            if what == "webs":
                found: list[Item | None] = [self.web(entry) for entry in entries]
            elif what == "lists":
                found = [self.library(api, entry) for entry in entries]
            else:
                found = list(self.documents(api, list_id, target, entries))
            if following:
                found.append(self.container(self._client.target(following), container.detail))
        except (KeyError, TypeError, AttributeError, UnicodeError) as error:
            raise Failure(
                "bad_answer", f"{target} has no list of the expected form", permanent=True
            ) from error
        return [item for item in found if item is not None]

    def fetch(self, document: Item) -> Fetched:
        """The file's bytes, and its access list."""
        detail = json.loads(document.detail)
        access = self._access_list(detail["access"])
        path = unquote(urlsplit(document.url).path, errors="surrogatepass")
        quoted = quote(path.replace("'", "''"), safe="/'", errors="surrogatepass")
        answer = self._client.content(f"{detail['web']}/getfilebyserverrelativeurl('{quoted}')/$value")
        return Fetched(answer.body, answer.start_ns, answer.end_ns, version=document.version, access=access)

    def token(self) -> str | None:
        """The site collection's current change token."""
        return ChangeLog(self._client, self).token()

    def changes(self, since: str) -> Changes:
        """See ``Source``."""
        return ChangeLog(self._client, self).changes(since)

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._client.close()

    def container(self, target: str, detail: str) -> Item:
        """A container, by what follows the site's URL."""
        return Item("container", self._client.origin + self._client.prefix + target, detail)

    def web(self, web: Mapping[str, Any]) -> Item:
        """A web, as its parent names it."""
        where = web.get("ServerRelativeUrl") or urlsplit(web["Url"]).path
        relative = self._client.behind(quote(where, safe="/")).rstrip("/")
        return self.container(f"{relative}/_api/web", "web")

    def library(self, api: str, entry: Mapping[str, Any]) -> Item | None:
        """A list's first page of items; None where it is no library, or hidden."""
        if entry.get("Hidden") or entry.get("BaseType", _DOCUMENT_LIBRARY) != _DOCUMENT_LIBRARY:
            return None
        title = quote(entry["Title"].replace("'", "''"), safe="'")
        query = urlencode({"$top": self._page_size, "$select": ITEM_FIELDS}, safe="$,")
        detail = f"items {entry.get('Id', '')}".rstrip()
        return self.container(f"{api}/lists/getbytitle('{title}')/items?{query}", detail)

    def documents(
        self, api: str, list_id: str, target: str, entries: Iterable[Mapping[str, Any]]
    ) -> Iterable[Item]:
        """The files among a list's items; folders are left out: what lies in them is among the items, too."""
        where = target.partition("/items")[0]
        for entry in entries:
            if entry.get("FileSystemObjectType", _FILE) != _FILE:
                continue
            own = entry.get("HasUniqueRoleAssignments")
            detail = {"web": api, "access": f"{where}/items({entry['Id']})" if own else where}
            yield Item(
                "document",
                self._client.origin + quote(entry["FileRef"], safe="/", errors="surrogatepass"),
                json.dumps(detail, separators=(",", ":")),
                str(entry.get("Modified") or ""),
                f"{list_id}/{entry['Id']}" if list_id else "",
            )

    def _access_list(self, of: str) -> tuple[Grant, ...] | None:
        """Who may do what with a list or with an item of its own; a list's is asked for once."""
        if self._access is None:
            return None
        if of not in self._access:
            access = self._read_access(f"{of}/{_ASSIGNMENTS}")
            if of.endswith(")") and "/items(" in of:
                return access
            self._access[of] = access
        return self._access[of]

    def _read_access(self, target: str) -> tuple[Grant, ...] | None:
        grants: list[Grant] = []
        following, known = target, set[str]()
        while following:
            if following in known:
                raise Failure("bad_answer", f"{target}: its pages lead round", permanent=True)
            known.add(following)
            try:
                entries, following = page(self._client.get(following), target)
            except Failure as failure:
                if failure.kind in _REFUSED:  # who crawls may read documents, but not who else may
                    return None
                raise
            try:
                grants += [_grant(entry) for entry in entries]
            except (TypeError, AttributeError) as error:
                why = f"{target} has no access list of the expected form"
                raise Failure("bad_answer", why, permanent=True) from error
            following = self._client.target(following) if following else ""
        return tuple(grants)


def _grant(entry: Mapping[str, Any]) -> Grant:
    member = entry.get("Member") or {}
    bindings = entry.get("RoleDefinitionBindings") or []
    bindings = bindings.get("results", []) if isinstance(bindings, Mapping) else bindings
    return Grant(str(member.get("LoginName", "")), ", ".join(str(each.get("Name", "")) for each in bindings))
