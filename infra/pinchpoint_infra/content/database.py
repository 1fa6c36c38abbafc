"""Creates and fills the content database: the tables of the SharePoint-style site.

A document has its own bytes, or refers to another document with the same bytes (``content_of``). A copy is a
row without bytes, so 100,000 documents take the space of the distinct documents only.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache

import psycopg

from pinchpoint_infra.content.survey import Planned

_BYTES = 0xF000  # private use area; byte 0x80 is U+F080, as other systems map undecodable names
_AMBIGUOUS = re.compile("[\uf080-\uf0ff]")


def readable(name: bytes) -> str:
    """Return a file name as text. Different names become different texts.

    Decode UTF-8. Every other byte becomes a character of Unicode's private use area, which all databases and
    JSON readers accept. The bytes of such a character are mapped, too, so that two names never become the
    same.
    """
    text = name.decode("utf-8", "surrogateescape")
    text = _AMBIGUOUS.sub(lambda found: _private(found[0].encode("utf-8")), text)
    return re.sub("[\udc80-\udcff]", lambda found: chr(_BYTES + ord(found[0]) - 0xDC00), text)


def _private(stray: bytes) -> str:
    return "".join(chr(_BYTES + byte) for byte in stray)


SITE = "/sites/corpus"
"""Server-relative path of the site. The path of a document is ``/sites/corpus/LIST/PATH``."""
ROOT_LIST = "Documents"
"""Title of the list of files outside of folders. If a folder has the same name, the title is extended."""
_LATEST_S = 253_402_300_799  # the end of the year 9999: a file system may have later times, a date cannot

_TABLES = """
CREATE TABLE lists (
    id integer PRIMARY KEY,
    title text NOT NULL UNIQUE,
    documents integer NOT NULL,
    guid uuid NOT NULL UNIQUE,
    key bytea NOT NULL
);
CREATE TABLE folders (
    id integer PRIMARY KEY,
    address bytea NOT NULL,
    parent bytea NOT NULL,
    path text NOT NULL
);
CREATE TABLE documents (
    id integer NOT NULL,
    list_id integer NOT NULL,
    address bytea NOT NULL,
    folder bytea NOT NULL,
    path text NOT NULL,
    content_type text NOT NULL,
    size_bytes bigint NOT NULL,
    modified timestamptz NOT NULL,
    content_of integer,
    content bytea STORAGE EXTERNAL,
    CHECK (content IS NOT NULL OR content_of IS NOT NULL)
);
"""  # EXTERNAL: bytes stay uncompressed; no real file store spends CPU time on compressing them
_INDEXES = """
ALTER TABLE documents ADD PRIMARY KEY (id);
DELETE FROM documents AS copy WHERE content_of IS NOT NULL
    AND NOT EXISTS (SELECT FROM documents AS first WHERE first.id = copy.content_of);
CREATE INDEX ON documents (list_id, id);
CREATE INDEX ON documents (address);
CREATE INDEX ON documents (folder, id);
CREATE INDEX ON documents (content_of) WHERE content_of IS NOT NULL;
ALTER TABLE documents ADD FOREIGN KEY (content_of) REFERENCES documents;
CREATE INDEX ON lists (key);
CREATE INDEX ON folders (address);
CREATE INDEX ON folders (parent, id);
"""  # indexes after loading need a quarter of the time; the source of a copy may have been deleted meanwhile
_STATISTICS = "ANALYZE"
_COLUMNS = {
    "id": "int4",
    "list_id": "int4",
    "address": "bytea",
    "folder": "bytea",
    "path": "text",
    "content_type": "text",
    "size_bytes": "int8",
    "modified": "timestamptz",
    "content_of": "int4",
    "content": "bytea",
}


def address(path: str) -> bytes:
    """Return the key of a server-relative path in any letter case.

    A path may be too long for an index entry.
    """
    return hashlib.blake2b(path.casefold().encode("utf-8", "surrogatepass"), digest_size=16).digest()


@lru_cache(4_096)
def list_id(title: str) -> str:
    """Return the GUID of a list.

    It is the same in every farm, because scripts use it as well as the title.
    """
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{SITE}/{title}"))


class Layout:
    """Lists and folders of the site. They are collected while documents are planned.

    Args:
        folders: top-level folders of the corpus. The list of root files must have another name.
    """

    def __init__(self, folders: Iterable[bytes]) -> None:
        taken = {readable(folder).casefold() for folder in folders}
        self.root_list = ROOT_LIST
        while self.root_list.casefold() in taken:
            self.root_list += " (root)"
        self._lists: dict[str, list[int]] = {}
        self._folders: dict[str, int] = {SITE: 1}

    def place(self, path: bytes) -> tuple[int, str]:
        """Return the list of a document in the corpus, and its server-relative path.

        A top-level folder is a list; files outside of any are in a list of their own.
        """
        head, slash, rest = readable(path).partition("/")
        title, name = (head, rest) if slash else (self.root_list, head)
        result = self._lists.setdefault(title, [len(self._lists) + 1, 0])
        result[1] += 1
        place = f"{SITE}/{title}/{name}"
        folder = place.rpartition("/")[0]
        while folder not in self._folders:
            self._folders[folder] = len(self._folders) + 1
            folder = folder.rpartition("/")[0]
        return result[0], place

    def lists(self) -> list[tuple[int, str, int, str, bytes]]:
        """Return the rows of the table of lists."""
        return [
            (number, title, documents, list_id(title), address(title))
            for title, (number, documents) in self._lists.items()
        ]

    def folders(self) -> list[tuple[int, bytes, bytes, str]]:
        """Return the rows of the table of folders. The folder of the site has no parent."""
        return [
            (number, address(path), b"" if path == SITE else address(path.rpartition("/")[0]), path)
            for path, number in self._folders.items()
        ]


def make(database_url: str) -> None:
    """Create the tables in an empty database."""
    with psycopg.connect(database_url) as connection:
        connection.execute(_TABLES)


def load(database_url: str, documents: Iterable[tuple[Planned, bytes | None]]) -> None:
    """Add all documents or none, over a connection of its own.

    Args:
        database_url: ``postgresql://`` URL of a database with the tables.
        documents: each document with its bytes (None for a copy).
    """
    columns = ", ".join(_COLUMNS)
    with (
        psycopg.connect(database_url) as connection,
        connection.cursor() as cursor,
        cursor.copy(f"COPY documents ({columns}) FROM STDIN (FORMAT binary)") as copy,
    ):
        copy.set_types(list(_COLUMNS.values()))
        for planned, content in documents:
            copy.write_row(
                (
                    planned.number,
                    planned.list_number,
                    address(planned.address),
                    address(planned.address.rpartition("/")[0]),
                    planned.address,
                    planned.content_type,
                    planned.size_bytes if content is None else len(content),
                    datetime.fromtimestamp(min(max(0, planned.modified_s), _LATEST_S), UTC),
                    planned.copy_of,
                    content,
                )
            )


def complete(database_url: str, layout: Layout) -> int:
    """Add lists, folders and indexes after all documents. Return the number of documents."""
    with psycopg.connect(database_url) as connection:
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO lists VALUES (%s, %s, %s, %s, %s)", layout.lists())
            with cursor.copy("COPY folders FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["int4", "bytea", "bytea", "text"])
                for folder in layout.folders():
                    copy.write_row(folder)
        connection.execute(_INDEXES)
        # A file that was deleted while loading is not part of its list.
        connection.execute(
            "UPDATE lists SET documents = found.number FROM (SELECT lists.id, count(documents.id) AS number"
            " FROM lists LEFT JOIN documents ON list_id = lists.id GROUP BY lists.id) AS found"
            " WHERE found.id = lists.id AND found.number <> lists.documents"
        )
        connection.execute(_STATISTICS)
        row = connection.execute("SELECT count(*) FROM documents").fetchone()
    return int(row[0]) if row else 0


def drop(database_url: str) -> None:
    """Undo a failed filling by removing its rows."""
    with psycopg.connect(database_url) as connection:
        connection.execute("DROP TABLE IF EXISTS lists, folders, documents")
