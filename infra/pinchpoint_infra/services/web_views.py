"""A list by a view or a CAML query: ``getitems``, ``renderlistdata``, ``renderlistdataasstream``."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from pinchpoint_infra.services.caml import View, parse
from pinchpoint_infra.services.odata import LIGHT, Call, RefusalError
from pinchpoint_infra.services.odata_answer import collection, json_response, value
from pinchpoint_infra.services.web_fields import row_fields
from pinchpoint_infra.services.web_files import COLUMNS
from pinchpoint_infra.services.web_lists import Lists
from pinchpoint_infra.services.web_store import LARGEST_PAGE, Store

_DEFAULT_ROWS = 30  # a view's own in SharePoint
_PAGED = re.compile(r"(?:.*[?&])?(?:Paged=TRUE&)?p_ID=(\d{1,9})(?:&.*)?\Z", re.IGNORECASE)
_LIST_DATA = {None, 0, 2}
"""``RenderOptions`` that ask for the list's data alone."""


class Views:
    """The requests that name a view."""

    def __init__(self, store: Store, lists: Lists) -> None:
        self._store = store
        self._lists = lists

    async def items(self, call: Call) -> Response:
        """The items a CAML query chooses."""
        query = {name.lower(): each for name, each in call.member("query").items()}
        position = (query.get("listitemcollectionposition") or {}).get("PagingInfo") or ""
        view = parse(str(query.get("viewxml") or ""))
        title, rows, _ = await self._rows(call, view, str(position), LARGEST_PAGE)
        return collection(call, [self._lists.entity(call, title, *row) for row in rows])

    async def rendered(self, call: Call) -> Response:
        """A page of a view as JSON in a text."""
        called = call.arguments[1] if len(call.arguments) > 1 else ""  # the first one is the list
        given = next((each for name, each in call.body.items() if name.lower() == "viewxml"), called)
        return value(call, json.dumps(await self._page(call, str(given), "")), "RenderListData")

    async def streamed(self, call: Call) -> Response:
        """A page of a view as JSON."""
        asked = call.member("parameters")
        if asked.get("RenderOptions") not in _LIST_DATA:
            raise RefusalError(
                400, f"RenderOptions {asked['RenderOptions']!a}: only 0 and 2, the list's data, are"
            )
        paging = str(asked.get("Paging") or "")
        return json_response(await self._page(call, str(asked.get("ViewXml") or ""), paging), LIGHT)

    async def _page(self, call: Call, view_xml: str, paging: str) -> dict[str, Any]:
        view = parse(view_xml)
        _, rows, more = await self._rows(call, view, paging, _DEFAULT_ROWS)
        page: dict[str, Any] = {
            "Row": [view.shown(row_fields(*row)) for row in rows],
            "FirstRow": 1,
            "LastRow": len(rows),
            "RowLimit": view.limit or _DEFAULT_ROWS,
            "FolderPermissions": "0x1b03c4312ef",
            "FilterLink": "?",
            "ForceNoHierarchy": "1",
            "HierarchyHasIndention": "",
        }
        if more:
            page["NextHref"] = f"?Paged=TRUE&p_ID={quote(str(rows[-1][0]))}&PageFirstRow={len(rows) + 1}"
        return page

    async def _rows(
        self, call: Call, view: View, position: str, default: int
    ) -> tuple[str, list[tuple[Any, ...]], bool]:
        """The list's title, a page of it by that view, and whether there is one after it."""
        number, title, _ = await self._store.list_of(call)
        found = _PAGED.match(position) if position else None
        if position and found is None:
            raise RefusalError(400, f"{position!a} is no position of this site; hand back what it gave")
        if found and view.order != "id":
            raise RefusalError(400, "a view that is sorted has one page here; give it a larger RowLimit")
        limit = min(view.limit or default, LARGEST_PAGE)
        rows = await self._store.rows(
            f"SELECT {COLUMNS} FROM documents WHERE list_id = %s AND id > %s AND {view.where}"  # noqa: S608 - made of our own words
            f" ORDER BY {view.order} LIMIT %s",
            (number, int(found[1]) if found else 0, *view.values, limit + 1),
        )
        return title, rows[:limit], len(rows) > limit
