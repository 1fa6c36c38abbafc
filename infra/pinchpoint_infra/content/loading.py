"""Loading parts of a corpus: into the content database, into the files folder."""

from __future__ import annotations

import errno
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from pinchpoint_infra.content import database
from pinchpoint_infra.content.document import NotADocumentError
from pinchpoint_infra.content.errors import ContentError
from pinchpoint_infra.content.survey import CorpusDocument, Planned, Source

_NO_LINKS = {errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}
"""A file that has all the names that the file system allows, or a file system that allows one alone."""


class ShareLoader:
    """Puts documents into a folder under their relative paths."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.fsencode(folder)
        self._made: set[bytes] = set()

    def add(self, path: bytes, content: bytes, modified_s: float) -> None:
        """Write one document; its time of change is kept. Raises ContentError."""
        try:
            where = self._place(path)
            with open(where, "xb") as file:  # noqa: PTH123 -- names are bytes
                file.write(content)
            os.utime(where, (modified_s, modified_s))
        except OSError as error:
            raise self._refused(path, error) from error

    def copy(self, of: bytes, path: bytes) -> None:
        """One more name for a document that is there; where that cannot be, its bytes once more."""
        try:
            first, where = self._folder + b"/" + of, self._place(path)
            try:
                os.link(first, where)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                shutil.copy2(first, where)
        except OSError as error:
            raise self._refused(path, error) from error

    def has(self, path: bytes) -> bool:
        """Whether it was put there."""
        return os.path.lexists(self._folder + b"/" + path)  # names are bytes

    def _place(self, path: bytes) -> bytes:
        where = self._folder + b"/" + path
        parent = os.path.dirname(where)  # noqa: PTH120 -- names are bytes
        if parent not in self._made:
            os.makedirs(parent, exist_ok=True)  # noqa: PTH103 -- names are bytes
            self._made.add(parent)
        return where

    @staticmethod
    def _refused(path: bytes, error: OSError) -> ContentError:
        where = path.decode("utf-8", "backslashreplace")
        return ContentError(f"the files folder did not take {where}: {error.strerror}")


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

    with database_errors():
        database.load(database_url, contents())
    return Loaded(len(sizes), sum(size for size, _ in sizes), sum(stored for _, stored in sizes), lost)


def load_files(part: tuple[Source, Path, list[tuple[CorpusDocument, bytes]]]) -> Loaded:
    """Put some documents into the folder, or further copies of what is there. Raises ContentError."""
    source, folder, files = part
    share, lost = ShareLoader(folder), Counter[str]()
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
def database_errors() -> Iterator[None]:
    """What the database says is raised as a sentence."""
    try:
        yield
    except psycopg.Error as error:
        raise ContentError(f"the content database did not take the corpus: {str(error).strip()}") from error
