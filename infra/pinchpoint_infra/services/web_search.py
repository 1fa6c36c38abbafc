"""``search/query`` and ``search/postquery``: documents by their names, people by theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from pinchpoint_infra.services.odata import Call, RefusalError, entity
from pinchpoint_infra.services.web_people import People
from pinchpoint_infra.services.web_store import Store, storable

_PEOPLE = "b09a7990-05ea-4af9-81ef-edfab16c4e31"  # SharePoint's own result source of people
_DEFAULT_ROWS, _LARGEST_ROWS = 10, 500  # SharePoint's own


class Search:
    """The requests of a searcher. The search tier answers full text; here names alone are looked through."""

    def __init__(self, store: Store, people: People) -> None:
        self._store = store
        self._people = people

    async def query(self, call: Call) -> Response:
        """Rows for ``querytext``."""
        asked = _asked(call)
        words = str(asked.get("querytext", "")).strip("'")
        if not words:
            raise RefusalError(400, "querytext: words to search for are needed")
        rows, first = _number(asked, "rowlimit", _DEFAULT_ROWS), _number(asked, "startrow", 0)
        if str(asked.get("sourceid", "")).strip("'{}").lower() == _PEOPLE:
            found = (await self._people.found("" if words == "*" else words, first + rows))[first:]
            total = first + len(found)
        else:
            found, total = await self._documents(call.origin, words, rows, first)
        return entity(
            call, _answer(found, total), "postquery" if call.steps.endswith("postquery") else "query"
        )

    async def _documents(
        self, site: str, words: str, limit: int, skip: int
    ) -> tuple[list[dict[str, Any]], int]:
        patterns = [
            "%" + word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
            for word in storable(words).lower().split()
            if word != "*"
        ]
        found = await self._store.rows(
            "SELECT path, size_bytes, modified, count(*) OVER () FROM documents"
            " WHERE lower(path) LIKE ALL (%s::text[]) ORDER BY id LIMIT %s OFFSET %s",
            (patterns, limit, skip),
        )
        rows = [
            {
                "Title": path.rpartition("/")[2],
                "Path": site + quote(path),
                "Size": str(size_bytes),
                "LastModifiedTime": modified.strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
            for path, size_bytes, modified, _ in found
        ]
        return rows, (found[0][3] if found else 0)


def _asked(call: Call) -> Mapping[str, Any]:
    """What is asked for, by name in lower case, whether it came in the query or in the body."""
    body = call.body.get("request", call.body)
    if not isinstance(body, Mapping):
        raise RefusalError(400, "request: an object is needed")
    called = {"querytext": call.argument} if call.arguments else {}  # query(querytext='...')
    return {**{name.lower(): value for name, value in body.items()}, **call.query, **called}


def _number(asked: Mapping[str, Any], name: str, default: int) -> int:
    given = str(asked.get(name, default))
    if not (given.isascii() and given.isdecimal() and len(given) < 6):
        raise RefusalError(400, f"{name}: a whole number is needed")
    return min(_LARGEST_ROWS, int(given)) if name == "rowlimit" else int(given)


def _answer(found: list[dict[str, Any]], total: int) -> dict[str, Any]:
    rows = [
        {"Cells": [{"Key": key, "Value": value, "ValueType": "Edm.String"} for key, value in row.items()]}
        for row in found
    ]
    results = {"RowCount": len(rows), "TotalRows": total, "TotalRowsIncludingDuplicates": total}
    return {
        "ElapsedTime": 0,
        "PrimaryQueryResult": {"RelevantResults": {**results, "Table": {"Rows": rows}}},
        "SecondaryQueryResults": [],
        "SpellingSuggestion": "",
    }
