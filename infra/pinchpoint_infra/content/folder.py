"""The ``files`` tier's folder, and how it is filled."""

from __future__ import annotations

import os
from pathlib import Path

from pinchpoint_infra.content.corpus import Entry
from pinchpoint_infra.content.errors import ContentError


class Share:
    """Puts documents into a folder under their relative paths."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.fsencode(folder)
        self._made: set[bytes] = set()
        self.count = 0

    def add(self, entry: Entry) -> None:
        """Write one document; its time of change is kept. Raises ContentError."""
        try:
            self._write(entry)
        except OSError as error:
            where = entry.path.decode("utf-8", "backslashreplace")
            raise ContentError(f"the files folder did not take {where}: {error.strerror}") from error
        self.count += 1

    def _write(self, entry: Entry) -> None:
        path = self._folder + b"/" + entry.path
        parent = os.path.dirname(path)  # noqa: PTH120 -- names are bytes
        if parent not in self._made:
            os.makedirs(parent, exist_ok=True)  # noqa: PTH103 -- names are bytes
            self._made.add(parent)
        with open(path, "xb") as file:  # noqa: PTH123 -- names are bytes
            file.write(entry.content)
        os.utime(path, (entry.modified_s, entry.modified_s))
