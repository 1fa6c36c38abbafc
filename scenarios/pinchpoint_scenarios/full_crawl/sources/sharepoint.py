"""A SharePoint-style site as a content source, by its REST API and its change log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from ...contract import Endpoint
from ..failures import Failure
from ..login import http_login
from ..params import FullCrawlParams, SourceParams
from ..politeness import RequestLimits
from ..sharepoint_client import page
from .contract import Changes, Fetched, Grant, Item, PoliteSource

if TYPE_CHECKING:
    from ..sharepoint_client import SharePointClient

_DOCUMENT_LIBRARY = 1  # values of SP.BaseType
_FILE = 0  # values of SP.FileSystemObjectType
_ASSIGNMENTS = "roleassignments?$expand=Member,RoleDefinitionBindings"
_REFUSED = frozenset({"permission", "not_found", "authentication"})
_ITEM_FIELDS = "Id,FileRef,FileSystemObjectType,Modified,HasUniqueRoleAssignments"
"""Fields of a list item in a request."""

_DELETED = frozenset({3, 5})  # values of SP.ChangeType: DeleteObject, MoveAway
_ASKED = (
    "Item", "List", "Web", "Add", "Update", "SystemUpdate", "DeleteObject", "Rename", "Move", "Restore",
    "RoleAssignmentAdd", "RoleAssignmentDelete",
)  # fmt: skip
_PAGE = 1_000
_ITEMS_AT_ONCE = 40  # each is one more condition in a URL


class SharePoint:
    """A site as one process sees it (see ``Repository``)."""

    def __init__(self, endpoint: Endpoint, source: SourceParams, params: FullCrawlParams) -> None:
        self._endpoint = endpoint
        self._params = params
        self._source = source
        self._pace = RequestLimits(source.delay or 0.0, source.per_host)
        self._access: dict[str, tuple[Grant, ...] | None] = {}
        self._login = http_login(endpoint)

    def connect(self) -> SharePointSource:
        # Imported late: the library takes a third of a second to load.
        from ..sharepoint_client import SharePointClient  # noqa: PLC0415 - see above

        client = SharePointClient(self._endpoint, self._login, self._params.timeout_s, self._pace)
        known = self._access if self._source.access else None
        return SharePointSource(client, self._pace, self._params.page_size, known)

    def pause_s(self) -> float:
        return self._pace.pause_s()


class SharePointSource(PoliteSource):
    """A site as a source: webs, lists, pages of items, and bytes of files. Each container is one GET.

    The ``detail`` of a container is the content of its answer: ``web``, ``webs``, ``lists`` or ``items``
    (with its list). That of a document is the path of its web and of the object with its access list.

    Args:
        client: client of the session.
        pace: request limits of the site.
        page_size: number of list items per request.
        access: access lists of whole lists, shared by the process; None if access lists are not read.
    """

    def __init__(
        self,
        client: SharePointClient,
        pace: RequestLimits,
        page_size: int,
        access: dict[str, tuple[Grant, ...] | None] | None,
    ) -> None:
        super().__init__(pace)
        self._client = client
        self._page_size = page_size
        self._access = access

    def check(self) -> Mapping[str, Any]:
        """Check that the site answers, and return its title."""
        web = self._client.get("/_api/web")
        if not isinstance(web, dict):
            raise Failure("bad_answer", "/_api/web is no JSON object", permanent=True)
        return {"kind": "sharepoint", "title": str(web.get("Title", ""))}

    def root(self) -> Item:
        """Return the top web of the site."""
        return self.container("/_api/web", "web")

    def enumerate(self, container: Item) -> Sequence[Item]:
        """Return the content of a web, or of a page of webs, lists or items.

        The next page is one more container.
        """
        target = self._client.target(container.url)
        api = target.partition("/_api/")[0] + "/_api/web"  # path of its web
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
                items: list[Item | None] = [self.web(entry) for entry in entries]
            elif what == "lists":
                items = [self.library(api, entry) for entry in entries]
            else:
                items = list(self.documents(api, list_id, target, entries))
            if following:
                items.append(self.container(self._client.target(following), container.detail))
        except (KeyError, TypeError, AttributeError, UnicodeError) as error:
            raise Failure(
                "bad_answer", f"{target} has no list of the expected form", permanent=True
            ) from error
        return [item for item in items if item is not None]

    def fetch(self, document: Item) -> Fetched:
        """Fetch the bytes of a file and its access list."""
        detail = json.loads(document.detail)
        access = self._access_list(detail["access"])
        path = unquote(urlsplit(document.url).path, errors="surrogatepass")
        quoted = quote(path.replace("'", "''"), safe="/'", errors="surrogatepass")
        answer = self._client.content(f"{detail['web']}/getfilebyserverrelativeurl('{quoted}')/$value")
        return Fetched(answer.body, answer.start_ns, answer.end_ns, version=document.version, access=access)

    def token(self) -> str | None:
        """Return the current change token of the site collection."""
        return _ChangeLog(self._client, self).token()

    def changes(self, since: str) -> Changes:
        return _ChangeLog(self._client, self).changes(since)

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        self._client.close()

    def container(self, target: str, detail: str) -> Item:
        """Return a container by the text after the URL of the site."""
        return Item("container", self._client.origin + self._client.prefix + target, detail)

    def web(self, web: Mapping[str, Any]) -> Item:
        """Return a web under the name that its parent uses."""
        where = web.get("ServerRelativeUrl") or urlsplit(web["Url"]).path
        relative = self._client.behind(quote(where, safe="/")).rstrip("/")
        return self.container(f"{relative}/_api/web", "web")

    def library(self, api: str, entry: Mapping[str, Any]) -> Item | None:
        """Return the first page of items of a list; None if it is hidden or not a library."""
        if entry.get("Hidden") or entry.get("BaseType", _DOCUMENT_LIBRARY) != _DOCUMENT_LIBRARY:
            return None
        title = quote(entry["Title"].replace("'", "''"), safe="'")
        query = urlencode({"$top": self._page_size, "$select": _ITEM_FIELDS}, safe="$,")
        detail = f"items {entry.get('Id', '')}".rstrip()
        return self.container(f"{api}/lists/getbytitle('{title}')/items?{query}", detail)

    def documents(
        self, api: str, list_id: str, target: str, entries: Iterable[Mapping[str, Any]]
    ) -> Iterable[Item]:
        """Yield the files among the items of a list. Folders are left out: their files are items, too."""
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
        """Return the access list of a list, or of an item with its own. That of a list is read once."""
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
                if (
                    failure.kind in _REFUSED
                ):  # the crawling user may read documents but not their access lists
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


# ---- what changed -----------------------------------------------------------------------------------


class _ChangeLog:
    """The change log of the site collection that a client belongs to.

    Args:
        client: client of a session.
        source: source of this session, which creates items from the answers of the server.
    """

    def __init__(self, client: SharePointClient, source: SharePointSource) -> None:
        self._client = client
        self._source = source

    def token(self) -> str:
        """Return the current token."""
        answer = self._client.get("/_api/site?$select=CurrentChangeToken")
        try:
            return str(answer["CurrentChangeToken"]["StringValue"])
        except (KeyError, TypeError) as error:
            raise Failure("bad_answer", "the site has no CurrentChangeToken", permanent=True) from error

    def changes(self, since: str) -> Changes:
        """Return the changes since a token.

        For a deleted list or web, the log does not name the contents, so the token counts as expired. The
        same applies if a changed list or web no longer exists, which a later page of the log may report.
        """
        entries = self._entries(since)
        try:
            newest = self._newest(entries)
            gone = tuple(f"{entry['ListId']}/{entry['ItemId']}" for entry in newest if _is_deleted(entry))
            items = [entry for entry in newest if "ItemId" in entry and not _is_deleted(entry)]
            changed = [*self._places(newest), *self._items(items)]
            token = entries[-1]["ChangeToken"]["StringValue"] if entries else since
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Failure(
                "bad_answer", "the change log is not of the expected form", permanent=True
            ) from error
        return Changes(tuple(changed), gone, str(token), len(entries) >= _PAGE)

    def _entries(self, since: str) -> list[dict[str, Any]]:
        query: dict[str, Any] = {
            "__metadata": {"type": "SP.ChangeQuery"},
            "ChangeTokenStart": {"__metadata": {"type": "SP.ChangeToken"}, "StringValue": since},
            "FetchLimit": _PAGE,
            **dict.fromkeys(_ASKED, True),
        }
        try:
            answer = self._client.post("/_api/site/getchanges", {"query": query})
        except Failure as failure:
            if failure.kind in {
                "http_400",
                "http_500",
            }:  # answer of a server to an unknown token
                raise Failure("token_expired", str(failure), permanent=True) from failure
            raise
        return page(answer, "/_api/site/getchanges")[0]

    @staticmethod
    def _newest(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the last entry of each changed object. Earlier entries no longer matter."""
        last = {(entry.get("WebId"), entry.get("ListId"), entry.get("ItemId")): entry for entry in entries}
        for entry in last.values():
            if "ItemId" not in entry and _is_deleted(entry):
                raise Failure("token_expired", "a list or a web was deleted as a whole", permanent=True)
        return list(last.values())

    def _places(self, entries: Iterable[Mapping[str, Any]]) -> Iterator[Item]:
        """Return added and changed lists and webs, which must be enumerated."""
        for entry in entries:
            if "ItemId" in entry:
                continue
            api = self._api(str(entry["WebId"]))
            if "ListId" not in entry:
                yield self._source.container(api, "web")
                continue
            item = self._library(api, str(entry["ListId"]))
            if item is not None:
                yield item

    def _items(self, entries: Iterable[Mapping[str, Any]]) -> Iterator[Item]:
        """Return the current items of libraries that were added or changed.

        Items that were deleted since, and items of other lists such as tasks (not files), are left out.
        """
        by_list: dict[tuple[str, str], list[int]] = {}
        for entry in entries:
            by_list.setdefault((str(entry["WebId"]), str(entry["ListId"])), []).append(int(entry["ItemId"]))
        for (web, list_id), numbers in by_list.items():
            api = self._api(web)
            if self._library(api, list_id) is None:
                continue
            rest = iter(numbers)
            while some := list(islice(rest, _ITEMS_AT_ONCE)):
                chosen = quote(" or ".join(f"Id eq {number}" for number in some), safe="")
                where = f"{api}/lists(guid'{list_id}')"
                target = f"{where}/items?$select={_ITEM_FIELDS}&$top={len(some)}&$filter={chosen}"
                with _still_there():
                    answer = self._client.get(target)
                result, _ = page(answer, target)
                yield from self._source.documents(api, list_id, target, result)

    def _library(self, api: str, list_id: str) -> Item | None:
        """Return a changed list, or one with changed items; None if it is hidden or not a library."""
        with _still_there():
            result = self._client.get(f"{api}/lists(guid'{list_id}')?$select=Id,Title,Hidden,BaseType")
        return self._source.library(api, result)

    def _api(self, web_id: str) -> str:
        """Return the path of a web's API. The top web of the site needs no request."""
        answer = self._client.get("/_api/web?$select=Id,ServerRelativeUrl")
        if str(answer.get("Id", "")).lower() == web_id.lower():
            return "/_api/web"
        with _still_there():
            result = self._client.post(f"/_api/site/openwebbyid('{web_id}')", {})
        relative = self._client.behind(quote(str(result["ServerRelativeUrl"]), safe="/"))
        return f"{relative.rstrip('/')}/_api/web"


@contextmanager
def _still_there() -> Iterator[None]:
    """Raises ``Failure`` (``token_expired``) if a list or web in the log no longer exists."""
    try:
        yield
    except Failure as failure:
        if failure.kind != "not_found":
            raise
        why = "a list or a web that had changed was deleted as a whole"
        raise Failure("token_expired", why, permanent=True) from failure


def _is_deleted(entry: Mapping[str, Any]) -> bool:
    return int(entry["ChangeType"]) in _DELETED
