"""Opens a file of another tool: detects its format and encoding, and reads its samples."""

from __future__ import annotations

import codecs
import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from pinchpoint.base.errors import InputError
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports import registry
from pinchpoint_collectors.imports.perfmon import registry_names
from pinchpoint_collectors.imports.record import BinaryFormat, FileFacts, Format, Settings
from pinchpoint_collectors.record import Sample
from pinchpoint_scenarios.storage_probe.results import RESULTS, ResultKind, recognised

_HEAD_BYTES = 1024 * 1024
_HEAD = 8192
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_MARKS = tuple(mark for mark, _ in _BOMS)
_MOST_BYTES = 128 * 1024 * 1024
_MOST_RESULT_BYTES = 24 * 1024 * 1024
"""Largest size of a storage tool's result: parsed XML may need 35 times its size in memory."""
_WESTERN = "cp1252"
_BINARY = {
    ".blg": "no binary log of Windows Vista or later, or its beginning is damaged; convert it to text on "
    "Windows: relog LOG.blg -f csv -o LOG.csv",
    ".etl": "a binary trace; only a log of counters can be imported",
    ".gz": "a compressed file; unpack it",
    ".zip": "a compressed file; unpack it",
    ".xlsx": "a workbook; save the sheet as CSV",
}


@dataclass(frozen=True, slots=True)
class RecordingFile:
    """A file to import.

    Attributes:
        path: path as the user gave it.
        format: format of the file.
        encoding: encoding of the text; empty for a binary file.
        is_guessed: whether the encoding is a guess: the most frequent encoding of such files.
        size_bytes: size of the file.
        sha256: SHA-256 of the content. It prevents a second import of the same file into one run.
    """

    path: Path
    format: Format | BinaryFormat
    encoding: str
    is_guessed: bool
    size_bytes: int
    sha256: str

    def samples(self, settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield the samples of the file. Raises InputError or ForeignFileError."""
        try:
            if isinstance(self.format, BinaryFormat):
                with self.path.open("rb") as content:
                    yield from self.format.read(content, settings, facts)
                return
            # Wrong letters of an unknown code page are harmless: numbers and paths are ASCII.
            with self.path.open(encoding=self.encoding, errors="replace", newline="") as file:
                yield from self.format.read(_lines(file), settings, facts)
        except (OSError, UnicodeError) as error:
            raise InputError(f"{self.path}: cannot be read: {error}") from error

    def said(self, error: ForeignFileError) -> InputError:
        """Return an InputError that adds the file name and the line to an error."""
        place = f"{self.path}:{error.line}" if error.line else str(self.path)
        return InputError(f"{place}: {error}")


def _lines(file: TextIO) -> Iterator[str]:
    """Yield the lines of a file with their line ends. Raises ForeignFileError if a line is too long."""
    for number in itertools.count(1):
        line = file.readline(_MOST_BYTES + 1)
        if len(line) > _MOST_BYTES:
            raise ForeignFileError(
                f"a line of more than {_MOST_BYTES:,} characters; export it again with fewer figures", number
            )
        if not line:
            return
        yield line


def open_source(path: Path, kind: str | None, said: str | None = None) -> RecordingFile:
    """Detect the format and the encoding of a file.

    Args:
        path: path of the file.
        kind: the value of ``--kind``; None: detected.
        said: value of ``--encoding``; None: detected.

    Raises:
        InputError: the file is not readable, its format is unknown, or the kind or the encoding does not
            exist.
    """
    head, size, digest = _begin(path)
    binary = next((each for each in registry.BINARY.values() if each.begins(head)), None)
    if kind in registry.BINARY and binary is None:
        raise InputError(f"{path}: it is {_BINARY['.blg']}")
    if binary is not None and kind in (None, binary.name):
        return RecordingFile(path, binary, "", is_guessed=False, size_bytes=size, sha256=digest)
    encoding = _named(said) if said else _encoding(path, head)
    text = head.decode(encoding, errors="replace")[:_HEAD]
    try:
        format_ = registry.format_named(kind) if kind else registry.recognised(text)
    except ForeignFileError as error:
        raise InputError(f"--kind: {error}" if kind else f"{path}: {error}") from error
    return RecordingFile(path, format_, encoding, encoding == _WESTERN and not said, size, digest)


def _begin(path: Path) -> tuple[bytes, int, str]:
    """Return the first bytes, the size and the SHA-256 of a file. Raises InputError."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(f"{path}: is no plain file; write what comes out of it into one")
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
            size = file.seek(0, 2)
            file.seek(0)
            return head, size, hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def result_kind(path: Path, kind: str | None, text: str | None = None) -> ResultKind | None:
    """Return the kind of a storage tool's result; None for another kind of file. Raises InputError."""
    if kind is not None:
        return RESULTS.get(kind)
    head, _, _ = _begin(path)
    if b"\0" in head and _utf16_without_mark(head[:512]) is None and not head.startswith(_MARKS):
        return None  # the file is not text: ``open_source`` reports its kind
    encoding = _named(text) if text else _encoding(path, head)
    return recognised(head.decode(encoding, errors="replace")[:_HEAD])


def read_text(path: Path, text: str | None = None) -> tuple[str, str]:
    """Return the whole text of a file and the SHA-256 of its bytes. Raises InputError."""
    head, size, digest = _begin(path)
    if size > _MOST_RESULT_BYTES:
        raise InputError(
            f"{path}: has {size:,} bytes; allowed: {_MOST_RESULT_BYTES:,} for a result of a storage tool. "
            "Import a part of it, or export it again with fewer figures"
        )
    encoding = _named(text) if text else _encoding(path, head)
    try:
        return path.read_bytes().decode(encoding, errors="replace"), digest
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _named(encoding: str) -> str:
    try:
        "any".encode(encoding)
    except (LookupError, ValueError) as error:
        raise InputError(
            f"--encoding: no encoding {encoding!r} is known; allowed: a code page's name as Python has it, "
            "such as cp932 (Japanese Windows), cp1250, cp850, utf-16"
        ) from error
    return encoding


def _encoding(path: Path, head: bytes) -> str:
    """Detect the encoding of a file: by its byte order mark, else UTF-8 if valid, else Windows-1252."""
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return encoding
    unmarked = _utf16_without_mark(head[:512])
    if unmarked is not None:
        return unmarked
    if b"\0" in head:
        what = _BINARY.get(path.suffix.lower(), "no text; export what recorded it as CSV or JSON")
        if path.name.startswith("sa") and path.name[2:].isdecimal():
            what = "sar's daily file in its binary form; convert it to text: sadf -j FILE -- -A > FILE.json"
        raise InputError(f"{path}: it is {what}")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return _WESTERN
    return "utf-8"


def _utf16_without_mark(begin: bytes) -> str | None:
    """Return the UTF-16 encoding of text without a byte order mark; None if the text is not UTF-16.

    Mostly ASCII text in UTF-16 has a 0 in every second byte and in no other byte.
    """
    zeros = begin[0::2].count(0), begin[1::2].count(0)
    if min(zeros) > 0 or max(zeros) <= len(begin) // 4:
        return None
    return "utf-16-le" if zeros[1] else "utf-16-be"


def read_names(path: Path) -> dict[str, frozenset[int]]:
    """Read the list of counter names of a Windows installation (``--names``). Raises InputError."""
    try:
        head = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        return registry_names(head.decode(_encoding(path, head), errors="replace").splitlines())
    except ForeignFileError as error:
        raise InputError(f"{path}:{error.line}: {error}") from error
