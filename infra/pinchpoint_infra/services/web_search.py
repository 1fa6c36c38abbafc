"""``search/query`` and ``search/postquery``: documents by their names, people by theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from pinchpoint_infra.content.database import SITE
from pinchpoint_infra.services.odata import Call, RefusalError
from pinchpoint_infra.services.odata_answer import entity
from pinchpoint_infra.services.odata_filter import NAME
from pinchpoint_infra.services.web_files import utc
from pinchpoint_infra.services.web_people import People, Person
from pinchpoint_infra.services.web_store import Store, item_id, storable

_PEOPLE = "b09a7990-05ea-4af9-81ef-edfab16c4e31"  # SharePoint's own result source of people
_DEFAULT_ROWS, _LARGEST_ROWS = 10, 500  # SharePoint's own
_TERM = re.compile(
    r'(?P<not>-|NOT\s+)?(?:(?P<property>\w+)\s*[:=]\s*)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))'
)
_TEXTS = {
    "title": NAME, "filename": NAME, "path": "path", "url": "path",
    "filetype": "regexp_replace(path, '^.*[.]', '')", "fileextension": "regexp_replace(path, '^.*[.]', '')",
}  # fmt: skip
"""Property of the query language -> what of a document it is compared with."""
_WHOLE, _ADDRESSES = {"filetype", "fileextension"}, {"path", "url"}
_ORIGIN = re.compile("^https?://[^/]*")
_ALWAYS = {"isdocument": {"1", "true"}, "contentclass": {"sts_listitem_documentlibrary"}}
"""What is so of every document, and the values that say it."""
_NOT_HERE = {"OR", "NEAR", "ONEAR", "XRANK", "WORDS"}


class Search:
    """The requests of a searcher. The search tier answers full text; here names alone are looked through."""

    def __init__(self, store: Store, people: People) -> None:
        self._store = store
        self._people = people

    async def query(self, call: Call) -> Response:
        """Rows for ``querytext``."""
        asked = _asked(call)
        words = str(asked.get("querytext", "")).strip("'")
        if not words.strip():
            raise RefusalError(400, "querytext: words to search for are needed")
        rows, first = _number(asked, "rowlimit", _DEFAULT_ROWS), _number(asked, "startrow", 0)
        if str(asked.get("sourceid", "")).strip("'{}").lower() == _PEOPLE:
            people, total = await self._people.found(words.replace("*", " "), rows, first)
            found = [_person(each) for each in people]
        else:
            found, total = await self._documents(call.origin, words, rows, first)
        wrapper = "postquery" if call.steps.endswith("postquery") else "query"
        return entity(call, _answer(found, total, _selected(asked)), wrapper)

    async def _documents(
        self, site: str, words: str, limit: int, skip: int
    ) -> tuple[list[dict[str, str]], int]:
        terms = list(_terms(words))
        where = " AND ".join(sql for sql, _ in terms) or "true"
        found = await self._store.rows(
            f"SELECT id, path, size_bytes, modified, count(*) OVER () FROM documents WHERE {where}"  # noqa: S608 - made of our own words
            " ORDER BY id LIMIT %s OFFSET %s",
            (*(value for _, value in terms), limit, skip),
        )
        rows = [
            {
                "Title": path.rpartition("/")[2],
                "Path": site + quote(path),
                "Size": str(size_bytes),
                "LastModifiedTime": utc(modified),
                "DocId": str(number),
                "UniqueId": f"{{{item_id(number)}}}",
                "FileType": path.rpartition("/")[2].rpartition(".")[2],
                "FileExtension": path.rpartition("/")[2].rpartition(".")[2],
                "ParentLink": site + quote(path.rpartition("/")[0]),
                "SPWebUrl": site + SITE,
                "SiteName": site + SITE,
                "IsDocument": "true",
            }
            for number, path, size_bytes, modified, _ in found
        ]
        return rows, (found[0][-1] if found else 0)


def _terms(words: str) -> Iterator[tuple[str, str | bool]]:
    """Conditions, each with its value: every word is in the path, a property's where that property says."""
    for found in _TERM.finditer(storable(words)):
        name, phrase, word = (found["property"] or "path").lower(), found["phrase"], found["word"]
        if word in _NOT_HERE and not found["property"]:
            raise RefusalError(400, f"querytext: {word} is not supported here: every word is to be found")
        text = (word if phrase is None else phrase).lower().strip("*")
        if not text or (word == "AND" and not found["property"]):
            continue
        text = _ORIGIN.sub("", text) if name in _ADDRESSES else text
        value: str | bool = text
        if name in _ALWAYS:
            sql, value = "%s::boolean", text in _ALWAYS[name]
        elif name not in _TEXTS:
            allowed = ", ".join(sorted({*_TEXTS, *_ALWAYS}))
            raise RefusalError(400, f"querytext: {found['property']}: no such property here; {allowed} are")
        elif name in _WHOLE:
            sql = f"lower({_TEXTS[name]}) = %s"
        else:
            sql = f"strpos(lower({_TEXTS[name]}), %s) > 0"
        yield (f"NOT {sql}" if found["not"] else sql), value


def _person(person: Person) -> dict[str, str]:
    return {
        "Title": person.name,
        "PreferredName": person.name,
        "AccountName": person.account,
        "WorkEmail": person.mail,
        "Department": person.department,
        "JobTitle": person.title,
    }


def _asked(call: Call) -> Mapping[str, Any]:
    """What is asked for, by name in lower case, whether it came in the query or in the body."""
    body = call.body
    body = body.get("request", body.get("query", body))
    if not isinstance(body, Mapping):
        raise RefusalError(400, "request: an object is needed")
    called = {"querytext": call.argument} if call.arguments else {}  # query(querytext='...')
    return {**{name.lower(): each for name, each in body.items()}, **call.query, **called}


def _selected(asked: Mapping[str, Any]) -> Sequence[str]:
    """The properties of a row that are asked for; all of them where none are named."""
    given = asked.get("selectproperties") or ()
    if isinstance(given, Mapping):
        given = given.get("results") or ()
    return given.strip("'").split(",") if isinstance(given, str) else [str(each) for each in given]


def _number(asked: Mapping[str, Any], name: str, default: int) -> int:
    given = str(asked.get(name, default))
    if not (given.isascii() and given.isdecimal() and len(given) < 6):
        raise RefusalError(400, f"{name}: a whole number is needed")
    return min(_LARGEST_ROWS, int(given)) if name == "rowlimit" else int(given)


def _answer(found: Sequence[Mapping[str, str]], total: int, selected: Sequence[str]) -> dict[str, Any]:
    wanted = {name.strip().lower() for name in selected}
    rows = [
        {
            "Cells": [
                {"Key": key, "Value": text, "ValueType": "Edm.String"}
                for key, text in row.items()
                if not wanted or key.lower() in wanted
            ]
        }
        for row in found
    ]
    results = {"RowCount": len(rows), "TotalRows": total, "TotalRowsIncludingDuplicates": total}
    return {
        "ElapsedTime": 0,
        "PrimaryQueryResult": {"RelevantResults": {**results, "Table": {"Rows": rows}}},
        "SecondaryQueryResults": [],
        "SpellingSuggestion": "",
    }
