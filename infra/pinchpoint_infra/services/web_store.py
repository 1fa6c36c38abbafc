"""Runs the queries of the web tier on the content database."""

from __future__ import annotations

import asyncio
import contextlib
import re
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

from psycopg_pool import AsyncConnectionPool

from pinchpoint_infra.content.database import SITE, address
from pinchpoint_infra.services.odata import Call, RefusalError
from pinchpoint_infra.services.odata_filter import Condition, Fields, condition, order

_CONNECTIONS = 16
_CONNECTION_WITHIN_S = 10.0
# number of a lock, so that two web servers do not create tables at the same time
_SETTING_UP = 7_215_300_114_889_412_205

DEFAULT_PAGE, LARGEST_PAGE = 100, 5_000  # names used by SharePoint
_LARGEST_SKIP = 10**9 - 1
_ITEMS = "5d0c0000-0000-4000-8000-"
_HEXADECIMAL = re.compile("[0-9a-f]{12}")
SITE_ID = str(uuid.uuid5(uuid.NAMESPACE_URL, SITE))
WEB_ID = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{SITE}/"))


def item_id(number: int) -> str:
    """Return the GUID of a document, from which its number can be recovered."""
    return f"{_ITEMS}{number:012x}"


def item_number(guid: str) -> int | None:
    """Return the number of the document with a GUID; None if there is no such document."""
    given = guid.strip("{}").lower()
    last = given.removeprefix(_ITEMS)
    return int(last, 16) if given.startswith(_ITEMS) and _HEXADECIMAL.fullmatch(last) else None


class ContentStore:
    """Connections to the content database.

    Args:
        database_url: ``postgresql://`` URL of a database that ``ingest`` has filled.
    """

    def __init__(self, database_url: str) -> None:
        self._pool = AsyncConnectionPool(
            database_url, min_size=1, max_size=_CONNECTIONS, open=False, kwargs={"autocommit": True}
        )
        self._set_up: set[str] = set()
        self._setting_up = asyncio.Lock()

    async def rows(
        self,
        query: str,
        values: Sequence[Any] = (),
        *,
        binary: bool = False,
        within_s: float = _CONNECTION_WITHIN_S,
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Raises ``psycopg.Error`` or ``PoolTimeout``."""
        async with self._pool.connection(within_s) as connection, connection.cursor(binary=binary) as cursor:
            await cursor.execute(query.encode(), values)
            return await cursor.fetchall()

    async def page(
        self, call: Call, table: str, fields: Fields, within: Condition = ("true", [])
    ) -> tuple[list[tuple[Any, ...]], int | None]:
        """Return a page selected by ``$filter``, ``$orderby``, ``$top`` and ``$skip``.

        Args:
            call: request.
            table: ``SELECT ... FROM ...`` without a condition, with a column ``id``.
            fields: fields for filters and sorting.
            within: condition for the rows before the filter.

        Returns:
            The rows, and the ``$skip`` of the next page; None: no next page.
        """
        call.refuse_options("$filter", "$orderby", "$top", "$skip", "$expand")
        top = call.number("$top", LARGEST_PAGE, 1, LARGEST_PAGE)
        skip = call.number("$skip", 0, 0, _LARGEST_SKIP)
        chosen, values = condition(call.query.get("$filter", ""), fields)
        rows = await self.rows(
            f"{table} WHERE {within[0]} AND {chosen}"
            f" ORDER BY {order(call.query.get('$orderby', ''), fields)} LIMIT %s OFFSET %s",
            (*within[1], *values, top + 1, skip),
        )
        return rows[:top], skip + top if len(rows) > top else None

    async def list_of(self, call: Call) -> tuple[int, str, int]:
        """Return id, title and number of documents of the requested list. Raises ``RefusalError``.

        The request names the list by its GUID, its title, or (``getlist``) its server-relative address.
        """
        given = call.argument
        if call.steps.startswith(("web/lists()", "web/lists/getbyid()")):
            result = "guid::text = %s"
            values: tuple[bytes | str, ...] = (given.strip("{}").lower(),)
        else:
            if call.steps.startswith("web/getlist()"):
                site, _, given = given.rstrip("/").rpartition("/")
                if site.casefold() != SITE:
                    raise RefusalError(
                        404, f"there is no list {call.argument!a}; those there are lie in {SITE}"
                    )
            result, values = "key = %s ORDER BY title = %s DESC", (address(given), storable(given))
        rows = await self.rows(f"SELECT id, title, documents FROM lists WHERE {result} LIMIT 1", values)  # noqa: S608 - made of our own words
        if not rows:
            raise RefusalError(404, f"there is no list {given!a}")
        number, title, documents = rows[0]
        return number, title, documents

    async def set_up(self, name: str, statements: Callable[[], Iterable[tuple[str, Sequence[Any]]]]) -> None:
        """Create once what only some requests need. The statements accept that it exists."""
        if name in self._set_up:
            return
        async with (
            self._setting_up,
            self._pool.connection(_CONNECTION_WITHIN_S) as connection,
            connection.transaction(),
        ):
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SETTING_UP,))
            for statement, values in statements():
                await connection.execute(statement.encode(), values)
            self._set_up.add(name)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Open the connections for the length of the context."""
        await self._pool.open()
        try:
            yield
        finally:
            await self._pool.close()


def storable(text: str) -> str:
    """Return a text that the database can compare: characters that it cannot store are replaced."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
