"""The content database: the tables behind the SharePoint-style site, and how they are filled."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import psycopg

from pinchpoint_infra.content.corpus import Entry
from pinchpoint_infra.content.names import readable

SITE = "/sites/corpus"
"""Server-relative path of the site; a document's is ``/sites/corpus/LIST/PATH``."""
_ROOT_LIST = "Documents"
_LATEST_S = 253_402_300_799  # the end of the year 9999: a file system may hold more, a date may not

_TABLES = """
CREATE TABLE lists (
    id integer PRIMARY KEY,
    title text NOT NULL UNIQUE,
    documents integer NOT NULL
);
CREATE TABLE documents (
    id integer NOT NULL,
    list_id integer NOT NULL,
    address bytea NOT NULL,
    path text NOT NULL,
    content_type text NOT NULL,
    size_bytes bigint NOT NULL,
    modified timestamptz NOT NULL,
    content bytea STORAGE EXTERNAL NOT NULL
);
"""  # EXTERNAL: bytes are kept as they are; compressing them would cost CPU that no real file store spends
_INDEXES = """
ALTER TABLE documents ADD PRIMARY KEY (id);
CREATE INDEX ON documents (list_id, id);
CREATE INDEX ON documents (address);
ANALYZE;
"""  # after the loading: a quarter of the work
_COLUMNS = {
    "id": "int4",
    "list_id": "int4",
    "address": "bytea",
    "path": "text",
    "content_type": "text",
    "size_bytes": "int8",
    "modified": "timestamptz",
    "content": "bytea",
}


def address(path: str) -> bytes:
    """The key of a server-relative path whatever its case: a path may be longer than an index entry."""
    return hashlib.blake2b(path.casefold().encode("utf-8", "surrogatepass"), digest_size=16).digest()


class Site:
    """Puts documents into the content database, on a running COPY."""

    def __init__(self, copy: psycopg.Copy, root_list: str) -> None:
        self._copy = copy
        self._root_list = root_list
        self._lists: dict[str, int] = {}
        self._documents: dict[int, int] = {}
        self.count = 0

    def add(self, entry: Entry) -> None:
        """Add one document: a top-level folder is a list, files outside of any are in a list of their own."""
        folder, slash, rest = readable(entry.path).partition("/")
        title, name = (folder, rest) if slash else (self._root_list, folder)
        number = self._lists.setdefault(title, len(self._lists) + 1)
        self._documents[number] = self._documents.get(number, 0) + 1
        self.count += 1
        path = f"{SITE}/{title}/{name}"
        modified = datetime.fromtimestamp(min(max(0, entry.modified_s), _LATEST_S), UTC)
        self._copy.write_row(
            (
                self.count,
                number,
                address(path),
                path,
                entry.document.content_type,
                len(entry.content),
                modified,
                entry.content,
            )
        )

    def lists(self) -> list[tuple[int, str, int]]:
        """Id, title and number of documents of every list."""
        return [(number, title, self._documents[number]) for title, number in self._lists.items()]


@contextmanager
def site(database_url: str, folders: set[bytes]) -> Iterator[Site]:
    """Make the tables in an empty database and fill them: all of it, or nothing.

    Args:
        database_url: ``postgresql://...``.
        folders: the corpus's top-level folders, whose names the list of root files must not have.
    """
    taken = {readable(folder).casefold() for folder in folders}
    root_list = _ROOT_LIST
    while root_list.casefold() in taken:
        root_list += " (root)"
    with psycopg.connect(database_url) as connection:
        connection.execute(_TABLES)
        with connection.cursor() as cursor:
            columns = ", ".join(_COLUMNS)
            with cursor.copy(f"COPY documents ({columns}) FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(list(_COLUMNS.values()))
                filled = Site(copy, root_list)
                yield filled
            cursor.executemany("INSERT INTO lists VALUES (%s, %s, %s)", filled.lists())
        connection.execute(_INDEXES)
