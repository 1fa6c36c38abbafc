"""The ``web`` tier: a SharePoint-style site, served out of the content database.

``python -m pinchpoint_infra.services.web CONFIG.json``: ``{"port": n, "token": text, "database_url": URL}``

Every request but ``/health`` needs ``Authorization: Bearer TOKEN``. Paths are taken in any case, also below
``/sites/corpus``; answers are JSON, light or verbose as the ``Accept`` header asks.

==========================================================  =================================================
``POST /_api/contextinfo``                                  the form digest clients ask for first
``/_api/web``, ``/_api/web/webs``, ``/_api/web/lists``      the site, its sub-sites (none), its libraries
``.../lists/getbytitle('T')/items?$top=&$skiptoken=``       the documents of one, by page; also ``$select``
``.../getfilebyserverrelativeurl('/path')/$value``          a document's bytes; ``...path(decodedurl=@p)`` too
==========================================================  =================================================
"""

from __future__ import annotations

import contextlib
import hmac
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, request_response

from pinchpoint_infra.content.database import SITE, address
from pinchpoint_infra.services.odata import Call, RefusalError, collection, entity, parse, refusal
from pinchpoint_infra.services.process import configuration, serve

_TITLE = "Corpus"
_DEFAULT_PAGE, _LARGEST_PAGE = 100, 5_000  # SharePoint's own
_NEXT_ID = re.compile(r"(?:.*p_ID=)?(\d{1,9})\Z")
_DIGEST_VALID_S = 1_800
_CONNECTIONS = 16
_CONNECTION_WITHIN_S, _HEALTH_WITHIN_S = 10.0, 1.0


class Site:
    """The requests, on one content database.

    Args:
        database_url: ``postgresql://`` URL of a database that ``ingest`` has filled.
        token: what a client must bear.
    """

    def __init__(self, database_url: str, token: str) -> None:
        self._token = token
        self._pool = AsyncConnectionPool(
            database_url,
            min_size=1,
            max_size=_CONNECTIONS,
            open=False,
            kwargs={"autocommit": True},
        )
        self._answers: Mapping[str, Callable[[Call], Awaitable[Response]]] = {
            "contextinfo": self._context,
            "web": self._web,
            "web/webs": self._webs,
            "web/lists": self._lists,
            "web/lists/getbytitle()": self._list,
            "web/lists/getbytitle()/items": self._items,
            "web/getfilebyserverrelativeurl()/$value": self._file,
            "web/getfilebyserverrelativepath()/$value": self._file,
        }

    def app(self) -> Starlette:
        """The application."""
        app = Starlette(routes=[Route("/health", self._health)], lifespan=self._life)
        app.router.default = request_response(self.answer)  # no pattern: a path may hold a line feed
        return app

    async def answer(self, request: Request) -> Response:
        """Any request of the API."""
        try:
            self._admit(request)
            call = parse(request, SITE)
            return await self._answers.get(call.steps, _nothing)(call)
        except RefusalError as error:
            return refusal(error)
        except (psycopg.OperationalError, PoolTimeout) as error:
            return refusal(RefusalError(503, f"the content database does not answer: {error}"))

    def _admit(self, request: Request) -> None:
        given = request.headers.get("authorization", "").encode("latin-1")
        if not hmac.compare_digest(given, f"Bearer {self._token}".encode()):
            raise RefusalError(401, "a bearer token is needed: Authorization: Bearer TOKEN")
        if request.method not in {"GET", "POST"}:
            raise RefusalError(405, f"{request.method}: the site is read only")

    async def _health(self, _: Request) -> Response:
        try:
            await self._rows("SELECT FROM lists", within_s=_HEALTH_WITHIN_S)
        except (psycopg.Error, PoolTimeout) as error:
            return JSONResponse({"ready": False, "reason": str(error)}, 503)
        return JSONResponse({"ready": True})

    async def _context(self, call: Call) -> Response:
        fields = {
            "FormDigestTimeoutSeconds": _DIGEST_VALID_S,
            "FormDigestValue": "0xPINCHPOINT",
            "LibraryVersion": "16.0.0.0",
            "SiteFullUrl": call.origin,
            "WebFullUrl": call.origin,
        }
        return entity(call, fields, "GetContextWebInformation")

    async def _web(self, call: Call) -> Response:
        return entity(
            call, {"Title": _TITLE, "Url": call.origin, "ServerRelativeUrl": "/", "WebTemplate": "STS"}
        )

    async def _webs(self, call: Call) -> Response:
        return collection(call, [])

    async def _lists(self, call: Call) -> Response:
        rows = await self._rows("SELECT title, documents FROM lists ORDER BY id")
        return collection(call, [_library(*row) for row in rows])

    async def _list(self, call: Call) -> Response:
        _, title, documents = await self._find_list(call.argument)
        return entity(call, _library(title, documents))

    async def _items(self, call: Call) -> Response:
        top = _page_size(call.query.get("$top", str(_DEFAULT_PAGE)))
        number, title, _ = await self._find_list(call.argument)
        rows = await self._rows(
            "SELECT id, path, size_bytes, modified FROM documents"
            " WHERE list_id = %s AND id > %s ORDER BY id LIMIT %s",
            (number, _after(call.query.get("$skiptoken", "0")), top + 1),
        )
        items = [_item(*row) for row in rows[:top]]
        following = _next_link(call, title, top, rows[top - 1][0]) if len(rows) > top else None
        return collection(call, items, following)

    async def _file(self, call: Call) -> Response:
        rows = await self._rows(
            "SELECT content_type, content FROM documents WHERE address = %s ORDER BY path = %s DESC LIMIT 1",
            (address(call.argument), _storable(call.argument)),
            binary=True,
        )
        if not rows:
            raise RefusalError(404, f"there is no file {call.argument!a}")
        ((content_type, content),) = rows
        return Response(content, headers={"Content-Type": content_type})

    async def _find_list(self, title: str) -> tuple[Any, ...]:
        rows = await self._rows("SELECT id, title, documents FROM lists ORDER BY id")
        for same in (lambda row: row[1] == title, lambda row: row[1].casefold() == title.casefold()):
            for row in filter(same, rows):
                return row
        raise RefusalError(404, f"there is no list {title!a}")

    async def _rows(
        self,
        query: str,
        values: tuple[Any, ...] = (),
        *,
        binary: bool = False,
        within_s: float = _CONNECTION_WITHIN_S,
    ) -> list[tuple[Any, ...]]:
        async with self._pool.connection(within_s) as connection, connection.cursor(binary=binary) as cursor:
            await cursor.execute(query.encode(), values)
            return await cursor.fetchall()

    @contextlib.asynccontextmanager
    async def _life(self, _: Starlette) -> AsyncIterator[None]:
        await self._pool.open()
        try:
            yield
        finally:
            await self._pool.close()


async def _nothing(call: Call) -> Response:
    raise RefusalError(404, f"there is no /_api/{call.steps}")


def _library(title: str, documents: int) -> dict[str, Any]:
    return {"Title": title, "ItemCount": documents, "Hidden": False, "BaseType": 1, "BaseTemplate": 101}


def _item(number: int, path: str, size_bytes: int, modified: Any) -> dict[str, Any]:
    name = path.rpartition("/")[2]
    return {
        "Id": number,
        "Title": name,
        "FileRef": path,
        "FileLeafRef": name,
        "FileDirRef": path.rpartition("/")[0],
        "FileSystemObjectType": 0,
        "File_x0020_Size": str(size_bytes),  # as SharePoint has it: text
        "Modified": modified.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _page_size(given: str) -> int:
    if not (given.isascii() and given.isdecimal() and len(given) < 10 and 1 <= int(given) <= _LARGEST_PAGE):
        raise RefusalError(400, f"$top: a whole number from 1 to {_LARGEST_PAGE} is needed")
    return int(given)


def _after(token: str) -> int:
    found = _NEXT_ID.match(token)
    if found is None:
        raise RefusalError(400, "$skiptoken: not one of this site's; follow odata.nextLink as it is")
    return int(found[1])


def _next_link(call: Call, title: str, top: int, last: int) -> str:
    name = quote(title.replace("'", "''"), safe="'")
    query = f"$skiptoken={quote(f'Paged=TRUE&p_ID={last}')}&$top={top}"
    if select := call.query.get("$select"):
        query += f"&$select={quote(select, safe=',')}"
    return f"{call.origin}/_api/web/lists/getbytitle('{name}')/items?{query}"


def _storable(path: str) -> str:
    """A path as the database can compare it: what no stored path holds, becomes something else."""
    return path.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def main() -> None:
    """Serve until SIGTERM."""
    config = configuration({"port", "token", "database_url"})
    serve(Site(config["database_url"], config["token"]).app(), "pp-web", config["port"])


if __name__ == "__main__":
    main()
