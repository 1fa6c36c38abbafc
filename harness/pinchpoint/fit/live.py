"""Takes two snapshots of a PostgreSQL server's statistics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from pinchpoint.base.errors import FarmUnavailable, InputError
from pinchpoint.base.redact import redacted_text
from pinchpoint.fit.snapshots import DATABASE, IO, STATEMENTS, WAL, Snapshot

SCHEMES = ("postgresql://", "postgres://")
_CONNECT_S = 5
_IO_SINCE = 160_000
_WAL_SINCE = 140_000
_EXTENSION = (
    "pg_stat_statements is not installed; needed: shared_preload_libraries = 'pg_stat_statements', a restart "
    "and CREATE EXTENSION pg_stat_statements in that database"
)
_PLACE = """SELECT pg_catalog.quote_ident(nspname) FROM pg_extension
    JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'pg_stat_statements'"""
"""The extension's schema: a view of that name elsewhere is another's."""
_EMPTY = "pg_stat_statements is empty; set pg_stat_statements.track = top (or all)"


def is_server(source: str) -> bool:
    """Whether a source is a server's URL, and not a file."""
    return source.startswith(SCHEMES)


def watched(url: str, over_s: float, say: Callable[[str], None]) -> list[Snapshot]:
    """The tables of a server, before and after ``over_s`` seconds of whatever load it has; reads only.

    Raises:
        FarmUnavailable: the server cannot be reached, or refuses the user.
        InputError: it has no statistics of statements, or keeps none.
    """
    shown = redacted_text(url)
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:  # it quotes parts of the url
        raise InputError(
            f"--from: {shown}: the url cannot be read; in a password write %25 for '%', %2F for '/', "
            "%40 for '@'"
        ) from error
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=_CONNECT_S) as connection:
            before = _snapshots(connection, shown)
            say(f"watching {shown} for {over_s:.0f} s")
            time.sleep(over_s)
            return before + _snapshots(connection, shown)
    except psycopg.errors.UndefinedTable as error:
        raise InputError(f"{shown}: {_EXTENSION}") from error
    except psycopg.errors.ObjectNotInPrerequisiteState as error:
        raise InputError(f"{shown}: {_EXTENSION}") from error
    except psycopg.Error as error:
        said = (error.diag.message_primary or str(error)).strip().partition("\n")[0]
        raise FarmUnavailable(
            f"{shown}: {redacted_text(said)}; correct the url, or export CSV files"
        ) from error


@contextmanager
def _read_only(connection: psycopg.Connection[tuple[object, ...]]) -> Iterator[None]:
    """A transaction in which names are the server's own, and which can write nothing.

    It leaves no setting behind: a pooler may hand the server's session to others.
    """
    with connection.transaction():
        connection.execute("SET TRANSACTION READ ONLY")
        connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
        yield


def _snapshots(connection: psycopg.Connection[tuple[object, ...]], source: str) -> list[Snapshot]:
    version = connection.info.server_version
    with _read_only(connection):
        place = connection.execute(_PLACE).fetchone()
    if place is None:
        raise InputError(f"{source}: {_EXTENSION}")
    kinds = [STATEMENTS, DATABASE]
    kinds += [kind for kind, since in ((WAL, _WAL_SINCE), (IO, _IO_SINCE)) if version >= since]
    found = []
    for kind in kinds:
        export = kind.export.replace("FROM pg_stat_statements", f"FROM {place[0]}.pg_stat_statements")
        with _read_only(connection), connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(export.encode()).fetchall()
        if kind is STATEMENTS and not rows:  # our own would be in it
            raise InputError(f"{source}: {_EMPTY}")
        texts = [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]
        found.append(Snapshot(kind, source, texts))
    return found
