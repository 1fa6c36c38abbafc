"""Keeps the change log of the site by triggers of the content database, from its first request on."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from pinchpoint_infra.content.database import list_id
from pinchpoint_infra.services.odata import Call, RefusalError
from pinchpoint_infra.services.odata_answer import collection
from pinchpoint_infra.services.web_store import SITE_ID, WEB_ID, ContentStore

_ADD, _UPDATE, _DELETE = 1, 2, 3  # values of SP.ChangeType
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
_SITE_SCOPE, _LIST_SCOPE = 1, 3


class ChangeLog:
    """Handles the requests for change tokens and changes."""

    def __init__(self, store: ContentStore) -> None:
        self._store = store

    async def token(self) -> dict[str, str]:
        """Return the current change token of the site."""
        return {"StringValue": _token(await self._newest(), _SITE_SCOPE, SITE_ID)}

    async def changes(self, call: Call) -> Response:
        """Return the changes of the whole site since a token."""
        return await self._changes(call, None)

    async def list_changes(self, call: Call) -> Response:
        """Return the changes of one list since a token."""
        _, title, _ = await self._store.list_of(call)
        return await self._changes(call, title)

    async def _changes(self, call: Call, title: str | None) -> Response:
        query = call.member("query")
        newest = await self._newest()
        start = query.get("ChangeTokenStart") or {}
        since = _number(str(start.get("StringValue", "")), newest) if start else 0
        end = query.get("ChangeTokenEnd") or {}
        until = _number(str(end.get("StringValue", "")), newest) if end else newest
        limit = query.get("FetchLimit") or _LARGEST_PAGE
        if not str(limit).isdecimal():  # some clients send the number as text
            raise RefusalError(400, f"FetchLimit: a whole number from 1 to {_LARGEST_PAGE} is needed")
        kinds = [kind for kind, name in _WANTED.items() if query.get(name)]
        rows = await self._store.rows(
            "SELECT number, happened, kind, list_title, item FROM changes WHERE number > %s AND number <= %s"
            " AND kind = ANY (%s) AND (%s::text IS NULL OR list_title = %s) ORDER BY number LIMIT %s",
            (since, until, kinds if query.get("Item") else [], title, title, min(_LARGEST_PAGE, int(limit))),
        )
        return collection(call, [_change(*row) for row in rows])

    async def _newest(self) -> int:
        """Return the number of the last change. Changes are recorded from the first call on."""
        await self._store.set_up("changes", lambda: ((statement, ()) for statement in _SET_UP))
        ((number,),) = await self._store.rows("SELECT coalesce(max(number), 0) FROM changes")
        return int(number)


def _change(number: int, happened: Any, kind: int, title: str, item: int) -> dict[str, Any]:
    return {
        "ChangeToken": {"StringValue": _token(number, _SITE_SCOPE, SITE_ID)},
        "ChangeType": kind,
        "SiteId": SITE_ID,
        "WebId": WEB_ID,
        "ListId": list_id(title),
        "ItemId": item,
        "Time": happened.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _token(number: int, scope: int, of: str) -> str:
    """Return a token in SharePoint's form.

    Its parts are version, scope (1: site collection, 3: list), id of the scope, ticks, and number of the
    change.
    """
    return f"1;{scope};{of};0;{number}"


def _number(token: str, newest: int) -> int:
    """Return the number of the change in a token. All scopes have the same log. Raises ``RefusalError``."""
    parts = token.split(";")
    number = parts[-1]
    known = len(parts) == 5 and (parts[1] == str(_LIST_SCOPE) or parts[2] == SITE_ID)
    if not known or not (number.isascii() and number.isdecimal()):
        raise RefusalError(400, f"{token!a} is no change token of this site")
    if int(number[:18]) > newest:
        raise RefusalError(400, "the change token refers to a time before the start of the change log")
    return int(number[:18])
