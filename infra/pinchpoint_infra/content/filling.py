"""Fills a farm with the documents of a corpus, divided between the content database and a folder.

First every file is checked for being a document. Then the documents are loaded, with further copies up to the
requested number. Copies take no space: they are rows without bytes in the database, and hard links in the
folder. Several processes do both steps part by part. Each has one document in memory.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from pinchpoint_infra.content import database, processes, survey
from pinchpoint_infra.content.corpus import Folder
from pinchpoint_infra.content.document import NotADocumentError
from pinchpoint_infra.content.errors import ContentError, CorpusError
from pinchpoint_infra.content.generated import DOCUMENTS, MOST_DOCUMENTS, Generated
from pinchpoint_infra.content.processes import Workers, parts
from pinchpoint_infra.content.survey import Copies, CorpusDocument, Planned, Progress, Source

# The functions below load parts of a corpus into the content database and into the files folder.

_NO_LINKS = {errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}
"""Errors for a file with the largest number of links, and for a file system without hard links."""


class ShareLoader:
    """Puts documents into a folder under their relative paths."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.fsencode(folder)
        self._made: set[bytes] = set()

    def add(self, path: bytes, content: bytes, modified_s: float) -> None:
        """Write one document with its modification time. Raises ContentError."""
        try:
            where = self._place(path)
            with open(where, "xb") as file:  # noqa: PTH123 -- names are bytes
                file.write(content)
            os.utime(where, (modified_s, modified_s))
        except OSError as error:
            raise self._refused(path, error) from error

    def copy(self, of: bytes, path: bytes) -> None:
        """Add a hard link to an existing document; if that is not possible, copy its bytes."""
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
        """Return whether the folder has the document."""
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
    """The result of loading a part.

    Attributes:
        documents: number of loaded documents.
        size_bytes: size of the documents for a reader, in bytes.
        stored_bytes: space of the documents on the disk, in bytes.
        lost: reason -> number of files that disappeared after the check.
    """

    documents: int
    size_bytes: int
    stored_bytes: int
    lost: Counter[str]


def load_rows(part: tuple[Source, str, list[Planned]]) -> Loaded:
    """Load some documents into the database. Raises ContentError."""
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
    """Load some documents, or further copies of documents, into the folder. Raises ContentError."""
    source, folder, files = part
    share, lost = ShareLoader(folder), Counter[str]()
    documents = size_bytes = stored_bytes = 0
    for value, path in files:
        size = value.size_bytes
        if path != value.path:
            if not share.has(value.path):
                continue  # the file disappeared and was already counted as lost
            share.copy(value.path, path)
        else:
            try:
                content = source.content(path)
            except NotADocumentError as reason:
                lost[str(reason)] += 1
                continue
            share.add(path, content, value.modified_s)
            size = len(content)
            stored_bytes += size
        documents += 1
        size_bytes += size
    return Loaded(documents, size_bytes, stored_bytes, lost)


@contextmanager
def database_errors() -> Iterator[None]:
    """Convert errors of the database to ContentError."""
    try:
        yield
    except psycopg.Error as error:
        raise ContentError(f"the content database did not take the corpus: {str(error).strip()}") from error


DOCUMENTATION = Path("/usr/share/doc")
"""The default corpus. Nearly every Linux machine has thousands of documents in this folder."""
DEFAULT_DOCUMENTS = 4_000
"""Number of documents of the default corpus that are used by default, so that a demonstration takes
minutes."""
_DEFAULT_LARGEST_BYTES = 2**20
_FILES_EVERY = 3
_FILES_IN_A_PART, _COPIES_IN_A_PART = 500, 5_000  # each process has its own connection and transaction
_WORTH_PROCESSES = 2_000
"""Number of documents from which processes are used. Starting a process costs half a second of CPU time."""


def ingest(
    corpus: Path | None,
    documents: int | None,
    database_url: str | None,
    folder: Path | None,
    progress: Callable[[str], None],
    cores: Collection[int] | None = None,
) -> dict[str, Any]:
    """Put a corpus's documents into the content database and the files folder.

    In path order, every third document goes to the folder and the others to the database. If only one of both
    is given, it gets all documents. A copy goes to the same place as its document.

    Args:
        corpus: a folder; None: the documentation of this machine, or else a generated corpus.
        documents: number of documents, reached with further copies if necessary; None: all documents of a
            named corpus, a default number of another one.
        database_url: ``postgresql://`` URL of an empty database, or None.
        folder: an empty folder, or None.
        progress: receives a message from time to time.
        cores: cores for worker processes; None: the cores of this process.

    Returns:
        The keys corpus (path, or ``generated``), documents, bytes (total for a reader), copies (number of
        copies), stored_bytes (size without copies), sources (source -> documents), skipped (reason -> files),
        generated.

    Raises:
        ContentError: the corpus is missing or has no documents, or there is no place for them.
    """
    if database_url is None and folder is None:
        raise ContentError("there is no place for content: name a database, a folder, or both")
    with closing(processes), Workers(os.sched_getaffinity(0) if cores is None else cores) as workers:
        source, value = _checked(corpus, documents, workers, progress)
        if not value:
            raise CorpusError(_nothing(source))
        filling = _Filling(source, value, documents or len(value), database_url, folder, progress)
        filling.run(workers)
    return filling.result()


def _checked(
    corpus: Path | None, documents: int | None, workers: Workers, progress: Callable[[str], None]
) -> tuple[Source, list[CorpusDocument]]:
    """The corpus and its documents, in path order."""
    if corpus is not None:
        folder = Folder(corpus)
        return folder, survey.documents(folder, documents, workers, progress)
    if DOCUMENTATION.is_dir():
        folder = Folder(DOCUMENTATION, _DEFAULT_LARGEST_BYTES)
        if value := survey.documents(folder, documents or DEFAULT_DOCUMENTS, workers, progress):
            return folder, value
    generated = Generated(min(documents, MOST_DOCUMENTS) if documents else DOCUMENTS)
    return generated, survey.documents(generated, documents, workers, progress)


class _Filling:
    """The loading of the documents, and its progress."""

    def __init__(
        self,
        source: Source,
        documents: list[CorpusDocument],
        wanted: int,
        database_url: str | None,
        folder: Path | None,
        progress: Callable[[str], None],
    ) -> None:
        self._source = source
        self._found = documents
        self._database_url = database_url
        self._folder = folder
        self._copies = Copies(documents, wanted)
        self._numbers: dict[int, int] = {}  # position among the documents -> id in the database
        self._said = Progress(progress)
        self._progress = progress
        self._began_s = time.monotonic()
        self._done = Loaded(0, 0, 0, Counter())
        self._sources: dict[str, int] = {}

    def run(self, workers: Workers) -> None:
        """Load all documents, or undo the loading."""
        if self._database_url is None:
            self._fill_folder(workers)
            self._progress(self._words())
            return
        with database_errors():
            database.make(self._database_url)
        try:
            self._fill_database(self._database_url, workers)
            self._fill_folder(workers)
            self._progress(self._words())
        except BaseException:
            # the server may have caused the failure: the first error explains more
            with suppress(psycopg.Error):
                database.drop(self._database_url)
            raise

    def result(self) -> dict[str, Any]:
        skipped = self._source.skipped + self._done.lost
        return {
            "corpus": self._source.name,
            "documents": sum(self._sources.values()),
            "bytes": self._done.size_bytes,
            "copies": self._copies.number,
            "stored_bytes": self._done.stored_bytes,
            "sources": self._sources,
            "skipped": dict(sorted(skipped.items())),
            "generated": isinstance(self._source, Generated),
        }

    def _fill_database(self, url: str, workers: Workers) -> None:
        layout = database.Layout({each.path.partition(b"/")[0] for each in self._found if b"/" in each.path})
        many = self._many()
        for rows, size in (
            (self._rows(layout), _FILES_IN_A_PART),
            (self._copied_rows(layout), _COPIES_IN_A_PART),
        ):
            work = ((self._source, url, part) for part in parts(rows, size))
            for loaded in workers.each(load_rows, work, worth_it=many):
                self._note(loaded)
        self._progress("content: making the indexes of the content database")
        with database_errors():
            self._sources["sharepoint"] = database.complete(url, layout)

    def _fill_folder(self, workers: Workers) -> None:
        folder = self._folder
        if folder is None:
            return
        before = self._done.documents
        for files, size in (
            (self._files(), _FILES_IN_A_PART),
            (self._copied_files(), _COPIES_IN_A_PART),
        ):
            work = ((self._source, folder, part) for part in parts(files, size))
            for loaded in workers.each(load_files, work, worth_it=self._many()):
                self._note(loaded)
        self._sources["files"] = self._done.documents - before

    def _rows(self, layout: database.Layout) -> Iterator[Planned]:
        for position, value in enumerate(self._found):
            if not self._to_folder(position):
                self._numbers[position] = len(self._numbers) + 1
                yield self._row(layout, self._numbers[position], value.path, value, None)

    def _copied_rows(self, layout: database.Layout) -> Iterator[Planned]:
        number = len(self._numbers)
        for position, path in self._copies:
            if position in self._numbers:
                number += 1
                yield self._row(layout, number, path, self._found[position], self._numbers[position])

    @staticmethod
    def _row(
        layout: database.Layout, number: int, path: bytes, document: CorpusDocument, copy_of: int | None
    ) -> Planned:
        list_number, address = layout.place(path)
        return Planned(
            number,
            list_number,
            address,
            document.content_type,
            document.size_bytes,
            document.modified_s,
            document.path,
            copy_of,
        )

    def _files(self) -> Iterator[tuple[CorpusDocument, bytes]]:
        for position, value in enumerate(self._found):
            if self._to_folder(position):
                yield value, value.path

    def _copied_files(self) -> Iterator[tuple[CorpusDocument, bytes]]:
        for position, path in self._copies:
            if self._to_folder(position):
                yield self._found[position], path

    def _to_folder(self, position: int) -> bool:
        if self._folder is None or self._database_url is None:
            return self._folder is not None
        return (position + 1) % _FILES_EVERY == 0

    def _many(self) -> bool:
        """Return whether the work is large enough to start processes."""
        return len(self._found) > _WORTH_PROCESSES or self._copies.number > _WORTH_PROCESSES

    def _note(self, loaded: Loaded) -> None:
        done = self._done
        self._done = Loaded(
            done.documents + loaded.documents,
            done.size_bytes + loaded.size_bytes,
            done.stored_bytes + loaded.stored_bytes,
            done.lost + loaded.lost,
        )
        self._said.say_if_due(self._words)

    def _words(self) -> str:
        """Return the progress, its rate and the remaining time as text."""
        done, total = self._done.documents, len(self._found) + self._copies.number
        rate = done / max(1e-3, time.monotonic() - self._began_s)
        text = f"content: {done:,} of {total:,} documents, {self._done.size_bytes / 1e6:,.1f} MB"
        if self._copies.number:
            text += f" ({self._done.stored_bytes / 1e6:,.1f} MB stored)"
        left_s = (total - done) / max(1.0, rate)
        return text + f", {rate:,.0f} documents/s" + (f", about {left_s:.0f} s left" if left_s >= 1 else "")


def _nothing(source: Source) -> str:
    reasons = "; ".join(f"{count:,} of them: {reason}" for reason, count in source.skipped.most_common(5))
    value = f"skipped: {reasons}" if reasons else "it is empty"
    return (
        f"corpus {source.name}: there is no document in it ({value}); "
        "name a folder with plain text, HTML, PDF or Office documents, gzipped or not"
    )
