"""The ``files`` tier's folder, and how it is filled."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from pinchpoint_infra.content.errors import ContentError

_NO_LINKS = {errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}
"""A file that has as many names as the file system allows, or a file system that allows one alone."""


class Share:
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
