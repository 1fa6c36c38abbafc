"""The content database as the web tier's requests see it."""

from __future__ import annotations

import asyncio
import contextlib
import re
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any

from psycopg_pool import AsyncConnectionPool

from pinchpoint_infra.content.database import SITE

_CONNECTIONS = 16
_CONNECTION_WITHIN_S = 10.0
_SETTING_UP = 7_215_300_114_889_412_205  # any number, so that two front ends do not set up at once

_ITEMS = "5d0c0000-0000-4000-8000-"
_HEXADECIMAL = re.compile("[0-9a-f]{12}")
SITE_ID = str(uuid.uuid5(uuid.NAMESPACE_URL, SITE))
WEB_ID = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{SITE}/"))


def list_id(title: str) -> str:
    """The GUID of a list: the same one in every farm, for whatever names it also names its title."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{SITE}/{title}"))


def item_id(number: int) -> str:
    """The GUID of a document; its number can be read out of it again."""
    return f"{_ITEMS}{number:012x}"


def item_number(guid: str) -> int | None:
    """The document a GUID is of; None where it is of none."""
    given = guid.strip("{}").lower()
    last = given.removeprefix(_ITEMS)
    return int(last, 16) if given.startswith(_ITEMS) and _HEXADECIMAL.fullmatch(last) else None


class Store:
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
        """The rows of a query; raises ``psycopg.Error`` or ``PoolTimeout``."""
        async with self._pool.connection(within_s) as connection, connection.cursor(binary=binary) as cursor:
            await cursor.execute(query.encode(), values)
            return await cursor.fetchall()

    async def set_up(self, name: str, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        """Make, once, what only some requests need; statements that may find it made already."""
        if name in self._set_up:
            return
        async with (
            self._setting_up,
            self._pool.connection(_CONNECTION_WITHIN_S) as connection,
            connection.transaction(),
        ):
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SETTING_UP,))
            for statement, values in statements:
                await connection.execute(statement.encode(), values)
            self._set_up.add(name)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """The connections, as long as the block lasts."""
        await self._pool.open()
        try:
            yield
        finally:
            await self._pool.close()


def storable(text: str) -> str:
    """A text as the database can compare it: what no stored one holds becomes something else."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
