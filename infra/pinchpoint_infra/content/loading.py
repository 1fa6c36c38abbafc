"""Loading parts of a corpus: into the content database, into the files folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from pinchpoint_infra.content import database
from pinchpoint_infra.content.document import NotADocumentError
from pinchpoint_infra.content.errors import ContentError
from pinchpoint_infra.content.folder import Share
from pinchpoint_infra.content.looking import Source
from pinchpoint_infra.content.planned import Found, Planned


@dataclass(frozen=True, slots=True)
class Loaded:
    """What became of a part of the loading.

    Attributes:
        documents: how many are there now.
        size_bytes: theirs, as a reader gets them.
        stored_bytes: what they take.
        lost: reason -> how many went away since they were looked at.
    """

    documents: int
    size_bytes: int
    stored_bytes: int
    lost: Counter[str]


def load_rows(part: tuple[Source, str, list[Planned]]) -> Loaded:
    """Put some documents into the database. Raises ContentError."""
    source, database_url, rows = part
    lost: Counter[str] = Counter()
    sizes: list[tuple[int, int]] = []

    def contents() -> Iterator[tuple[Planned, bytes | None]]:
        for row in rows:
            content = None
            if row.copy_of is None:
                try:
                    content = source.content(row.source)
                except NotADocumentError as reason:
                    lost[str(reason)] += 1
                    continue
            sizes.append((row.size_bytes, 0) if content is None else (len(content), len(content)))
            yield row, content

    with told():
        database.load(database_url, contents())
    return Loaded(len(sizes), sum(size for size, _ in sizes), sum(stored for _, stored in sizes), lost)


def load_files(part: tuple[Source, Path, list[tuple[Found, bytes]]]) -> Loaded:
    """Put some documents into the folder, or further copies of what is there. Raises ContentError."""
    source, folder, files = part
    share, lost = Share(folder), Counter[str]()
    documents = size_bytes = stored_bytes = 0
    for found, path in files:
        size = found.size_bytes
        if path != found.path:
            if not share.has(found.path):
                continue  # it went away, and was counted then
            share.copy(found.path, path)
        else:
            try:
                content = source.content(path)
            except NotADocumentError as reason:
                lost[str(reason)] += 1
                continue
            share.add(path, content, found.modified_s)
            size = len(content)
            stored_bytes += size
        documents += 1
        size_bytes += size
    return Loaded(documents, size_bytes, stored_bytes, lost)


@contextmanager
def told() -> Iterator[None]:
    """What the database says is told as a sentence."""
    try:
        yield
    except psycopg.Error as error:
        raise ContentError(f"the content database did not take the corpus: {str(error).strip()}") from error
