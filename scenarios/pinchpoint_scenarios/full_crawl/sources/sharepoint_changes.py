"""What changed in a site collection, by its change log (``/_api/site/getchanges``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ..failures import Failure
from ..odata import page
from .contract import Changes, Item

if TYPE_CHECKING:
    from ..sharepoint_client import SharePointClient
    from .sharepoint import SharePointSource

ITEM_FIELDS = "Id,FileRef,FileSystemObjectType,Modified,HasUniqueRoleAssignments"
"""What is asked of a list's item."""

_DELETED = frozenset({3, 5})  # SP.ChangeType: DeleteObject, MoveAway
_ASKED = (
    "Item", "List", "Web", "Add", "Update", "SystemUpdate", "DeleteObject", "Rename", "Move", "Restore",
    "RoleAssignmentAdd", "RoleAssignmentDelete",
)  # fmt: skip
_PAGE = 1_000
_ITEMS_AT_ONCE = 40  # each is one more condition in a URL


class ChangeLog:
    """The change log of the site collection a client belongs to.

    Args:
        client: a session's.
        source: the same session's: makes items of what the server says of them.
    """

    def __init__(self, client: SharePointClient, source: SharePointSource) -> None:
        self._client = client
        self._source = source

    def token(self) -> str:
        """The token of now."""
        answer = self._client.get("/_api/site?$select=CurrentChangeToken")
        try:
            return str(answer["CurrentChangeToken"]["StringValue"])
        except (KeyError, TypeError) as error:
            raise Failure("bad_answer", "the site has no CurrentChangeToken", permanent=True) from error

    def changes(self, since: str) -> Changes:
        """See ``Source``.

        Of a list or web that was deleted the log does not say what was in it: then the token has expired. So
        it has where one that changed is gone by now, which a later page of the log may say.
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
            }:  # so a server answers a token it does not know any more
                raise Failure("token_expired", str(failure), permanent=True) from failure
            raise
        return page(answer, "/_api/site/getchanges")[0]

    @staticmethod
    def _newest(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """The last entry of each thing that changed: what came before it does not matter any more."""
        last = {(entry.get("WebId"), entry.get("ListId"), entry.get("ItemId")): entry for entry in entries}
        for entry in last.values():
            if "ItemId" not in entry and _is_deleted(entry):
                raise Failure("token_expired", "a list or a web was deleted as a whole", permanent=True)
        return list(last.values())

    def _places(self, entries: Iterable[Mapping[str, Any]]) -> Iterator[Item]:
        """Lists and webs that were added or changed, to be enumerated."""
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
        """The items of libraries that were added or changed, as they are now.

        One that is gone since is not among them; nor are those of other lists, as tasks: they are no files.
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
                target = f"{where}/items?$select={ITEM_FIELDS}&$top={len(some)}&$filter={chosen}"
                with _still_there():
                    answer = self._client.get(target)
                found, _ = page(answer, target)
                yield from self._source.documents(api, list_id, target, found)

    def _library(self, api: str, list_id: str) -> Item | None:
        """A list that was changed, or holds what was; None where it is no library, or hidden."""
        with _still_there():
            found = self._client.get(f"{api}/lists(guid'{list_id}')?$select=Id,Title,Hidden,BaseType")
        return self._source.library(api, found)

    def _api(self, web_id: str) -> str:
        """The path of a web's API. The site's own web needs no question."""
        answer = self._client.get("/_api/web?$select=Id,ServerRelativeUrl")
        if str(answer.get("Id", "")).lower() == web_id.lower():
            return "/_api/web"
        with _still_there():
            found = self._client.post(f"/_api/site/openwebbyid('{web_id}')", {})
        relative = self._client.behind(quote(str(found["ServerRelativeUrl"]), safe="/"))
        return f"{relative.rstrip('/')}/_api/web"


@contextmanager
def _still_there() -> Iterator[None]:
    """Around asking for a list or web that the log names: one that is gone makes the token an expired one."""
    try:
        yield
    except Failure as failure:
        if failure.kind != "not_found":
            raise
        why = "a list or a web that had changed was deleted as a whole"
        raise Failure("token_expired", why, permanent=True) from failure


def _is_deleted(entry: Mapping[str, Any]) -> bool:
    return int(entry["ChangeType"]) in _DELETED
