"""Reads a corpus: the documents of a folder, in path order."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from pinchpoint_infra.content.document import LARGEST_BYTES, Document, NotADocumentError, identify
from pinchpoint_infra.content.errors import CorpusError


@dataclass(frozen=True, slots=True)
class CorpusEntry:
    """One document of a corpus.

    Attributes:
        path: path relative to the corpus, as bytes, because a file name need not be text.
        content: the stored bytes.
        document: kind and text of the content.
        modified_s: seconds since 1970.
    """

    path: bytes
    content: bytes
    document: Document
    modified_s: float


@dataclass
class Folder:
    """A folder as a corpus.

    Args:
        root: the folder; it may be a symbolic link itself, links below it are not followed.
        largest_bytes: a larger file is skipped.

    Attributes:
        skipped: reason -> number of files that are not documents.

    Raises:
        ContentError: the folder is missing, not a folder, or not readable.
    """

    root: Path
    largest_bytes: int = LARGEST_BYTES
    skipped: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        remedy = "name a folder of documents"
        try:
            with os.scandir(self.root):
                pass
        except FileNotFoundError as error:
            raise CorpusError(f"corpus {self.name}: there is no such folder; {remedy}") from error
        except NotADirectoryError as error:
            raise CorpusError(f"corpus {self.name}: this is a file, not a folder; {remedy}") from error
        except OSError as error:
            raise CorpusError(f"corpus {self.name}: cannot be read: {_words(error)}; {remedy}") from error

    @property
    def name(self) -> str:
        """Return the name of a document: its path in printable characters."""
        return os.fsencode(self.root).decode("utf-8", "backslashreplace")

    def files(self) -> list[bytes]:
        """Return the paths of all regular files in path order. Everything else is counted as skipped."""
        result: list[bytes] = []
        folders = [b""]
        root = os.fsencode(self.root)
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(os.path.join(root, folder)) as entries:  # noqa: PTH118 -- names are bytes
                    for entry in entries:
                        path = folder + b"/" + entry.name if folder else entry.name
                        if entry.is_symlink():
                            self.skipped["symbolic link"] += 1
                        elif entry.is_dir(follow_symlinks=False):
                            folders.append(path)
                        elif entry.is_file(follow_symlinks=False):
                            result.append(path)
                        else:
                            self.skipped["not a regular file"] += 1
            except OSError as error:
                self.skipped[f"folder not readable: {_words(error)}"] += 1
        return sorted(result)

    def entry(self, path: bytes) -> CorpusEntry:
        """Return the document in a file. Raises NotADocumentError with the reason."""
        content, modified_s = self._read(path)
        return CorpusEntry(path, content, identify(content), modified_s)

    def content(self, path: bytes) -> bytes:
        """Return the bytes of a file. Raises NotADocumentError if the file no longer exists."""
        return self._read(path)[0]

    @staticmethod
    def shuffled(paths: list[bytes]) -> list[bytes]:
        """Return the files in a random order that is the same for the same folder.

        With this order, the first documents are spread over the folder.
        """
        return sorted(paths, key=lambda path: hashlib.blake2b(path, digest_size=8).digest())

    def _read(self, path: bytes) -> tuple[bytes, float]:
        """Read a file without following a link, and without waiting for a pipe that has replaced the file."""
        where = os.path.join(os.fsencode(self.root), path)  # noqa: PTH118 -- names are bytes
        try:
            descriptor = os.open(where, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:  # noqa: PTH123 -- a descriptor
                result = os.fstat(descriptor)
                if not stat.S_ISREG(result.st_mode):
                    raise NotADocumentError("not a regular file")
                if result.st_size > self.largest_bytes:
                    raise NotADocumentError(f"larger than {self.largest_bytes // 2**20} MiB")
                return file.read(result.st_size), result.st_mtime
        except OSError as error:
            raise NotADocumentError(f"not readable: {_words(error)}") from error


def _words(error: OSError) -> str:
    if error.errno in {errno.EACCES, errno.EPERM}:
        return "permission denied"
    return (error.strerror or type(error).__name__).lower()
