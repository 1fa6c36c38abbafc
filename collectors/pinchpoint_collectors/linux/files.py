"""Reads the small files in /proc and /sys of one machine, local or remote."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple, Protocol

from pinchpoint_collectors.errors import CollectorError


class ExistingPath(NamedTuple):
    """A path that exists.

    Attributes:
        real: path without symbolic links.
        is_device: whether the path is the file of a block device.
        number: ``major:minor`` of that device, or of the device that contains the path; None if unknown.
    """

    real: str
    is_device: bool
    number: str | None


class Facts(Protocol):
    """The contents of a machine's small files by path."""

    def fact(self, path: str) -> str | None:
        """Return the stripped text of a file; None if it is missing, empty or refused."""
        ...


class HostFiles(Facts, Protocol):
    """Requests the files of a machine during its inspection."""

    def names(self, folder: str) -> list[str]:
        """Return the sorted names in a folder; none if it is missing."""
        ...

    def real(self, path: str) -> str | None:
        """Return the path without symbolic links; None if it is missing."""
        ...

    def find(self, path: str) -> ExistingPath:
        """Return facts about a path and its mount. Raises ``CollectorError`` if it does not exist."""
        ...


class LocalFiles:
    """The files of this machine."""

    def fact(self, path: str) -> str | None:
        return read_fact(path)

    def names(self, folder: str) -> list[str]:
        return sorted(entry.name for entry in Path(folder).iterdir()) if Path(folder).is_dir() else []

    def real(self, path: str) -> str | None:
        # Path.exists raises if a parent folder is not searchable.
        return os.path.realpath(path) if os.path.exists(path) else None  # noqa: PTH110 - as said

    def find(self, path: str) -> ExistingPath:
        try:
            result = os.stat(path)  # noqa: PTH116 - the result is a number pair, not a path
        except OSError as error:
            raise CollectorError(
                f"disk {path!r}: {error.strerror}; give a path or device that is there"
            ) from error
        is_device = stat.S_ISBLK(result.st_mode)
        number = result.st_rdev if is_device else result.st_dev
        return ExistingPath(os.path.realpath(path), is_device, f"{os.major(number)}:{os.minor(number)}")


HERE = LocalFiles()


def read_text(path: str) -> str:
    """Return the text of the whole file. Raises ``OSError``.

    System calls are used directly, because up to hundreds of these files are read each second, and ``open``
    with its buffer and text layer takes twice the kernel's time.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
    finally:
        os.close(descriptor)
    return b"".join(parts).decode("utf-8", "replace")


class ReopenedFile:
    """A file in /proc that is read repeatedly.

    It stays open, because opening takes a third of a reading's time.

    Args:
        path: path of the file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None

    def read(self) -> str:
        """Return the current text of the whole file. Raises ``OSError``."""
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        text = b""
        while part := os.pread(self._descriptor, 1 << 16, len(text)):
            text += part
        return text.decode("utf-8", "replace")

    def close(self) -> None:
        """Close the descriptor. A second call does nothing. ``read`` opens the file again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def read_fact(path: str) -> str | None:
    """Return the stripped text of an optional file; None if it is missing, empty or refused."""
    try:
        return read_text(path).strip() or None
    except OSError:  # missing, or (EINVAL) a device without an answer: both mean "not known"
        return None
