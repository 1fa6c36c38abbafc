"""Fill a farm with content: the documents of a corpus, shared out between its two places."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from pinchpoint_infra.content.corpus import Entry, Folder
from pinchpoint_infra.content.database import Site, site
from pinchpoint_infra.content.errors import ContentError, CorpusError
from pinchpoint_infra.content.folder import Share
from pinchpoint_infra.content.generated import Generated

DOCUMENTATION = Path("/usr/share/doc")
"""The default corpus: nearly every Linux machine has thousands of documents there."""
DEFAULT_DOCUMENTS = 4_000
"""At most so many of it are taken unless more are asked for, so that a demonstration ends in minutes."""
_DEFAULT_LARGEST_BYTES = 2**20
_FILES_EVERY = 3
_PROGRESS_EVERY_S = 1.0

Source = Folder | Generated


def ingest(
    corpus: Path | None,
    limit: int | None,
    database_url: str | None,
    folder: Path | None,
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Put a corpus's documents into the content database and the files folder.

    Of the documents in path order every third goes to the folder, the others to the database; all go to the
    one that is given when only one is.

    Args:
        corpus: a folder; None: the machine's documentation, only where there is none a generated corpus.
        limit: at most so many documents; None: all of a corpus that is named, a sensible number of another.
        database_url: ``postgresql://`` URL of an empty database, or None.
        folder: an empty folder, or None.
        progress: takes a sentence now and then.

    Returns:
        corpus (path, or ``generated``), documents, bytes, sources (source -> documents), skipped
        (reason -> files), generated.

    Raises:
        ContentError: there is no such corpus, no document in it, or no place to put it.
    """
    if database_url is None and folder is None:
        raise ContentError("there is no place for content: name a database, a folder, or both")
    source, paths = _source(corpus, limit)
    folders = {path.partition(b"/")[0] for path in paths if b"/" in path}
    with ExitStack() as stack:
        database = stack.enter_context(_site(database_url, folders)) if database_url else None
        places = _Places(database, Share(folder) if folder else None, progress)
        for entry in source.documents(paths):
            places.add(entry)
        if not places.documents:
            raise CorpusError(_nothing(source))
    progress(places.said())
    return {
        "corpus": source.name,
        "documents": places.documents,
        "bytes": places.size_bytes,
        "sources": places.sources(),
        "skipped": dict(sorted(source.skipped.items())),
        "generated": isinstance(source, Generated),
    }


def _source(corpus: Path | None, limit: int | None) -> tuple[Source, list[bytes]]:
    """The corpus, and which of its files to take."""
    if corpus is not None:
        folder = Folder(corpus)
        paths = folder.files()
        return folder, paths if limit is None else folder.choose(paths, limit)
    limit = DEFAULT_DOCUMENTS if limit is None else limit
    if DOCUMENTATION.is_dir():
        folder = Folder(DOCUMENTATION, _DEFAULT_LARGEST_BYTES)
        if paths := folder.choose(folder.files(), limit):
            return folder, paths
    generated = Generated()
    return generated, generated.choose(generated.files(), limit)


@contextmanager
def _site(database_url: str, folders: set[bytes]) -> Iterator[Site]:
    try:
        with site(database_url, folders) as filled:
            yield filled
    except psycopg.Error as error:
        raise ContentError(f"the content database did not take the corpus: {str(error).strip()}") from error


class _Places:
    """Where documents go, and the count of them."""

    def __init__(self, database: Site | None, share: Share | None, progress: Callable[[str], None]) -> None:
        self._database = database
        self._share = share
        self._progress = progress
        self._said_s = time.monotonic()
        self.documents = 0
        self.size_bytes = 0

    def add(self, entry: Entry) -> None:
        """Put one document where it belongs."""
        self.documents += 1
        self.size_bytes += len(entry.content)
        if self._share and (self._database is None or self.documents % _FILES_EVERY == 0):
            self._share.add(entry)
        elif self._database:
            self._database.add(entry)
        if time.monotonic() - self._said_s > _PROGRESS_EVERY_S:
            self._said_s = time.monotonic()
            self._progress(self.said())

    def sources(self) -> dict[str, int]:
        """Source -> documents, of the places there are."""
        places = {"sharepoint": self._database, "files": self._share}
        return {name: place.count for name, place in places.items() if place is not None}

    def said(self) -> str:
        """How far it is."""
        return f"content: {self.documents:,} documents, {self.size_bytes / 1e6:,.1f} MB"


def _nothing(source: Source) -> str:
    reasons = "; ".join(f"{count:,} of them: {reason}" for reason, count in source.skipped.most_common(5))
    found = f"skipped: {reasons}" if reasons else "it is empty"
    return (
        f"corpus {source.name}: there is no document in it ({found}); "
        "name a folder with plain text, HTML, PDF or Office documents, gzipped or not"
    )
