"""Recognises documents by their content, and detects their format and text encoding."""

from __future__ import annotations

import codecs
import re
import zlib
from dataclasses import dataclass
from typing import Literal

import charset_normalizer
import puremagic

from pinchpoint_infra.content.errors import CostlyError
from pinchpoint_infra.content.office import MEDIA_TYPES, OLE, OfficeForm, office_form

_SIGNATURES = (
    (0, b"\x89PNG\r\n\x1a\n", "PNG image"),
    (0, b"GIF87a", "GIF image"),
    (0, b"GIF89a", "GIF image"),
    (0, b"\xff\xd8\xff", "JPEG image"),
    (8, b"WEBP", "WebP image"),
    (0, b"\x00\x00\x01\x00", "icon"),
    (0, b"II*\x00", "TIFF image"),
    (0, b"MM\x00*", "TIFF image"),
    (0, b"\x7fELF", "ELF program"),
    (0, b"MZ", "Windows program"),
    (0, b"%PDF-", "PDF document"),
    (0, b"PK\x03\x04", "ZIP archive"),
    (0, b"PK\x05\x06", "ZIP archive"),
    (0, b"BZh", "bzip2 data"),
    (0, b"\xfd7zXZ\x00", "xz data"),
    (0, b"\x28\xb5\x2f\xfd", "zstd data"),
    (0, b"7z\xbc\xaf\x27\x1c", "7z archive"),
    (257, b"ustar", "tar archive"),
    (0, b"!<arch>\n", "ar archive"),
    (0, b"SQLite format 3\x00", "SQLite database"),
    (0, b"\xde\x12\x04\x95", "gettext catalogue"),
    (0, b"\x95\x04\x12\xde", "gettext catalogue"),
    (0, b"\x00asm", "WebAssembly module"),
    (0, b"wOFF", "web font"),
    (0, b"wOF2", "web font"),
    (0, b"\x00\x01\x00\x00\x00", "TrueType font"),
    (0, b"OTTO", "OpenType font"),
    (0, b"OggS", "Ogg media"),
    (0, b"\x1f\x9d", "compress data"),
)
_OLE = "OLE document"
_OLE_KINDS = {
    "EncryptedPackage": "encrypted Office document",
    "WordDocument": "Word document of before 2007 (.doc)",
    "PowerPoint Document": "PowerPoint presentation of before 2007 (.ppt)",
    "Workbook": "damaged or encrypted Excel workbook of before 2007 (.xls)",
}
"""A stream in an OLE file without a reader -> the kind of file."""
_BINARY = "binary data"
_LEAST_CONFIDENCE = 0.4
_LEAST_SIGNATURE_BYTES = 4
_HEAD_BYTES = 4096


def binary_kind(content: bytes) -> str:
    """Return the kind of content that is not text, such as ``PNG image``; ``binary data`` if unknown.

    Frequent kinds of files have names defined here, because the library only guesses among formats with the
    same signature (it takes a ZIP archive for a DOCX). The library names the other kinds if the signature is
    long enough to exclude chance.
    """
    if content.startswith(OLE):
        return next((kind for name, kind in _OLE_KINDS.items() if name.encode("utf-16-le") in content), _OLE)
    for offset, signature, kind in _SIGNATURES:
        if content.startswith(signature, offset):
            return kind
    try:
        matches = puremagic.magic_string(content[:_HEAD_BYTES])
    except puremagic.PureError:
        return _BINARY
    best = matches[0]
    known = (
        best.confidence >= _LEAST_CONFIDENCE and len(best.byte_match.strip(b"\0")) >= _LEAST_SIGNATURE_BYTES
    )
    return best.name if known and best.name else _BINARY


# Longer marks come first: the mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Control characters that occur in texts: bell, backspace, tab, line feed, vertical tab, form feed, carriage
# return, escape.
_CONTROLS = bytes(sorted(set(range(32)) - {7, 8, 9, 10, 11, 12, 13, 27})) + b"\x7f"
_CONTROLS_IN_TEXT_RATIO = 0.01
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?([A-Za-z0-9_.:-]+)""", re.IGNORECASE)
_DECLARED_WITHIN_BYTES = 2048
_SAMPLE_BYTES = 2**16
_MIXED = "pinchpoint.mixed"


def is_text(content: bytes) -> bool:
    """Return whether bytes are text in a supported encoding.

    Text with a byte order mark must be valid in its encoding. Text without a mark has no NUL and at most one
    control character in a hundred; compressed or compiled data has one in ten.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            text = _strict(content[len(mark) :], encoding)
            return text is not None and "\0" not in text
    if b"\0" in content:
        return False
    controls = len(content) - len(content.translate(None, _CONTROLS))
    return controls <= _CONTROLS_IN_TEXT_RATIO * len(content)


def has_mark(content: bytes) -> bool:
    """Whether the bytes begin with a byte order mark."""
    return content.startswith(tuple(mark for mark, _ in _MARKS))


def decode(content: bytes, *, markup: bool = False) -> tuple[str, bool]:
    """Return the text of bytes that ``is_text`` accepts, and whether the encoding was guessed. Never fails.

    The order is: a byte order mark; UTF-8; the encoding that the document declares (``markup``: HTML and
    XML); UTF-8 with a few invalid bytes, as in old files; the legacy encoding with the most plausible
    letters.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, "replace"), False
    text = _strict(content, "utf-8")
    if text is None and markup:
        text = _declared(content)
    if text is not None:
        return text, False
    for reading in (_mostly_utf8, _guessed):
        if (text := reading(content)) is not None:
            return text, True
    return content.decode("utf-8", _MIXED), True


def _strict(content: bytes, encoding: str) -> str | None:
    try:
        return content.decode(encoding)
    except (UnicodeError, LookupError):  # the document may also declare an unknown encoding
        return None


def _declared(content: bytes) -> str | None:
    match = _DECLARED.search(content, 0, _DECLARED_WITHIN_BYTES)
    if match is None:
        return None
    name = match[1].decode("ascii").lower()
    # Browsers read the first two encodings as the third, as the writers of the documents meant.
    text = _strict(content, "cp1252" if name in {"iso-8859-1", "us-ascii"} else name)
    return text if isinstance(text, str) else None


def _mostly_utf8(content: bytes) -> str | None:
    """Decode as UTF-8 if most non-ASCII bytes are valid UTF-8.

    Other bytes are decoded as Western European.
    """
    valid = content.decode("utf-8", "ignore")
    letters = len(valid.encode("utf-8"))
    stray = len(content) - letters
    beyond_ascii = len(valid) - len(valid.encode("ascii", "ignore"))
    return content.decode("utf-8", _MIXED) if beyond_ascii > stray else None


def _guessed(content: bytes) -> str | None:
    best = charset_normalizer.from_bytes(_around_first_letter(content)).best()
    return None if best is None else _strict(content, best.encoding)


def _around_first_letter(content: bytes) -> bytes:
    """Return a sample with non-ASCII characters. A guess from megabytes takes seconds and is no better."""
    if len(content) <= _SAMPLE_BYTES:
        return content
    first = re.search(rb"[\x80-\xff]", content)
    start = max(0, (first.start() if first else 0) - 1024)
    return content[start : start + _SAMPLE_BYTES]


def _western(error: UnicodeError) -> tuple[str, int]:
    """Decode bytes that are not UTF-8 as Windows' Western European, or else as Latin 1, which never fails."""
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101 -- registered for decoding alone
    stray = error.object[error.start : error.end]
    return _strict(stray, "cp1252") or stray.decode("latin-1"), error.end


codecs.register_error(_MIXED, _western)


Form = Literal["text", "html"] | OfficeForm

LARGEST_BYTES = 64 * 2**20
"""Largest size of a document in bytes, both stored and unpacked."""
TOO_LARGE = f"larger than {LARGEST_BYTES // 2**20} MiB"

_GZIP = b"\x1f\x8b"
_STEP_BYTES = 2**14
_MOST_MEMBERS = 20_000
"""Largest number of gzip members. Each costs 10 µs; tools that write several (bgzip, pigz) put KBs into
each."""
_PDF = b"%PDF-"
_HTML = re.compile(
    # Only one style of comments is removed, because a licence may be a comment of several lines.
    r"\s*+(?:<\?xml[^>]*+>\s*+)?(?:<!--(?:[^-]++|-(?!->))*-->\s*+)*"
    r"(?:<!doctype\s+html\b|<(?:html|head|body|title)[\s>])",
    re.IGNORECASE | re.DOTALL,
)
_HTML_WITHIN_BYTES = 2**15
_XML = b"<?xml"


class NotADocumentError(Exception):
    """The bytes are not a document; the message is the reason, such as ``PNG image``."""


class CostlyDocumentError(NotADocumentError):
    """Reading a document takes too much time or memory; the caller adds the name of the file."""


@dataclass(frozen=True, slots=True)
class Document:
    """The format of a document's bytes.

    Attributes:
        form: plain text (including source code, JSON, XML and scripts), HTML, PDF or a kind of Office
            document.
        gzipped: whether the bytes are compressed by gzip.
        plain: unpacked bytes.
    """

    form: Form
    gzipped: bool
    plain: bytes

    @property
    def content_type(self) -> str:
        """Return the media type of the stored bytes."""
        if self.gzipped:
            return "application/gzip"
        if self.form == "text" or self.form == "html":  # noqa: PLR1714 - by these mypy knows what is left
            return "text/html" if self.form == "html" else "text/plain"
        return MEDIA_TYPES[self.form]

    def text(self) -> tuple[str, bool]:
        """Return the whole text (the source of HTML), and whether the encoding was guessed.

        It is for plain text and HTML. Other formats are read by their own libraries.
        """
        return decode(self.plain, markup=self.form == "html" or self.plain.startswith(_XML))


def identify(content: bytes) -> Document:
    """Return the format of a document's bytes. The name and the extension of the file are ignored.

    Empty content is an empty plain text.

    Raises:
        NotADocumentError: the bytes are not a document.
    """
    if len(content) > LARGEST_BYTES:
        raise NotADocumentError(TOO_LARGE)
    if not content.startswith(_GZIP):
        return _plain(content, gzipped=False)
    plain = _unpacked(content)
    if plain.startswith(_GZIP):
        raise NotADocumentError("gzip of gzip data")
    try:
        return _plain(plain, gzipped=True)
    except CostlyDocumentError:
        raise
    except NotADocumentError as inner:
        kind = str(inner)
        article = "" if kind.endswith("data") else "an " if kind[0] in "AEIOUaeiou" else "a "
        raise NotADocumentError(f"gzip of {article}{kind}") from inner


def _plain(content: bytes, *, gzipped: bool) -> Document:
    if content.startswith(_PDF) or not is_text(content):  # a PDF may consist of ASCII characters only
        try:
            office = office_form(content)
        except CostlyError as error:
            raise CostlyDocumentError(f"{binary_kind(content)} {error}") from error
        if office is not None:
            return Document(office, gzipped, content)
        raise NotADocumentError(binary_kind(content))
    return Document("html" if _is_html(content) else "text", gzipped, content)


def _is_html(content: bytes) -> bool:
    start = content[:_HTML_WITHIN_BYTES]
    return _HTML.match(decode(start)[0] if has_mark(start) else start.decode("latin-1")) is not None


def _unpacked(content: bytes) -> bytes:
    """Return the concatenated content of all gzip members (RFC 1952, 2.2)."""
    parts: list[bytes] = []
    left_bytes, at = LARGEST_BYTES + 1, 0
    for _ in range(_MOST_MEMBERS):
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
        while not unpacker.eof:
            # Data is unpacked in steps, because the rest of a member's last step is copied for the next
            # member.
            step = content[at : at + _STEP_BYTES]
            if not step:
                raise NotADocumentError("truncated gzip")
            at += len(step)
            try:
                parts.append(unpacker.decompress(step, left_bytes))
            except zlib.error as error:
                raise NotADocumentError("damaged gzip") from error
            left_bytes -= len(parts[-1])
            if left_bytes <= 0:
                raise NotADocumentError(f"gzip that unpacks to more than {LARGEST_BYTES // 2**20} MiB")
        at -= len(unpacker.unused_data)
        if content[at : at + 1] in (b"", b"\0"):
            if content[at:].strip(b"\0"):  # padding is not part of the content
                raise NotADocumentError("damaged gzip")
            return b"".join(parts)
    raise NotADocumentError(f"gzip of more than {_MOST_MEMBERS:,} members")
