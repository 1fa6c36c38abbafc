"""The site's change log, kept by triggers of the content database from the first request for it on."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from pinchpoint_infra.services.odata import Call, RefusalError, collection
from pinchpoint_infra.services.web_store import SITE_ID, WEB_ID, Store, list_id

_ADD, _UPDATE, _DELETE = 1, 2, 3  # SP.ChangeType
_SET_UP = (
    """CREATE TABLE IF NOT EXISTS changes (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, happened timestamptz NOT NULL DEFAULT now(),
        kind int NOT NULL, list_title text NOT NULL, item int)""",
    """CREATE OR REPLACE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, list_title, item)
        SELECT CASE TG_OP WHEN 'INSERT' THEN 1 WHEN 'UPDATE' THEN 2 ELSE 3 END,
            coalesce((SELECT title FROM lists WHERE id = it.list_id), ''), it.id
        FROM (SELECT coalesce(NEW.list_id, OLD.list_id) AS list_id, coalesce(NEW.id, OLD.id) AS id) AS it;
        RETURN NULL;
    END $$""",
    """CREATE OR REPLACE TRIGGER note_change AFTER INSERT OR UPDATE OR DELETE ON documents
    FOR EACH ROW EXECUTE FUNCTION note_change()""",
)
_LARGEST_PAGE = 2_000
_WANTED = {_ADD: "Add", _UPDATE: "Update", _DELETE: "DeleteObject"}


class ChangeLog:
    """The requests for change tokens and changes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def token(self) -> dict[str, str]:
        """The token of now."""
        await self._store.set_up("changes", [(statement, ()) for statement in _SET_UP])
        ((number,),) = await self._store.rows("SELECT coalesce(max(number), 0) FROM changes")
        return _token(number)

    async def changes(self, call: Call) -> Response:
        """What happened since a token."""
        query = call.body.get("query")
        if not isinstance(query, dict):
            raise RefusalError(
                400, "the body needs a query: {'query': {'ChangeTokenStart': ..., 'Item': true}}"
            )
        newest = _number((await self.token())["StringValue"])
        start = query.get("ChangeTokenStart") or {}
        since = _number(str(start.get("StringValue", ""))) if start else 0
        if since > newest:
            raise RefusalError(400, "the change token refers to a time before the start of the change log")
        limit = min(_LARGEST_PAGE, int(query.get("FetchLimit") or _LARGEST_PAGE))
        kinds = [kind for kind, name in _WANTED.items() if query.get(name)]
        rows = await self._store.rows(
            "SELECT number, happened, kind, list_title, item FROM changes"
            " WHERE number > %s AND kind = ANY (%s) ORDER BY number LIMIT %s",
            (since, kinds if query.get("Item") else [], limit),
        )
        return collection(call, [_change(*row) for row in rows])


def _change(number: int, happened: Any, kind: int, title: str, item: int) -> dict[str, Any]:
    return {
        "ChangeToken": _token(number),
        "ChangeType": kind,
        "SiteId": SITE_ID,
        "WebId": WEB_ID,
        "ListId": list_id(title),
        "ItemId": item,
        "Time": happened.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _token(number: int) -> dict[str, str]:
    """In SharePoint's form: version; scope (1: site collection); its id; ticks; the change's number."""
    return {"StringValue": f"1;1;{SITE_ID};0;{number}"}


def _number(token: str) -> int:
    parts = token.split(";")
    number = parts[-1]
    if len(parts) != 5 or parts[2] != SITE_ID or not (number.isascii() and number.isdecimal()):
        raise RefusalError(400, f"{token!a} is no change token of this site")
    return int(number[:18])
