"""A document is what its content says: which bytes are a document, of which form, and what they say."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import Literal

from pinchpoint_infra.content.charset import decode, has_mark, is_text
from pinchpoint_infra.content.errors import CostlyError
from pinchpoint_infra.content.kinds import binary_kind
from pinchpoint_infra.content.office import MEDIA_TYPES, OfficeForm, office_form

Form = Literal["text", "html"] | OfficeForm

LARGEST_BYTES = 64 * 2**20
"""A document is no larger, neither as it is stored nor unpacked."""
TOO_LARGE = f"larger than {LARGEST_BYTES // 2**20} MiB"

_GZIP = b"\x1f\x8b"
_STEP_BYTES = 2**14
_MOST_MEMBERS = 20_000
"""Each costs 10 µs; tools that write several (bgzip, pigz) put at least some KB into one."""
_PDF = b"%PDF-"
_HTML = re.compile(
    # Comments are read in one way alone: a licence may stand in a comment a line.
    r"\s*+(?:<\?xml[^>]*+>\s*+)?(?:<!--(?:[^-]++|-(?!->))*-->\s*+)*"
    r"(?:<!doctype\s+html\b|<(?:html|head|body|title)[\s>])",
    re.IGNORECASE | re.DOTALL,
)
_HTML_WITHIN_BYTES = 2**15
_XML = b"<?xml"


class NotADocumentError(Exception):
    """These bytes are no document; the message is the reason in words, such as ``PNG image``."""


class CostlyDocumentError(NotADocumentError):
    """They are one that takes too much to be read; whoever reports it says which file it is."""


@dataclass(frozen=True, slots=True)
class Document:
    """What a document's bytes are.

    Attributes:
        form: plain text (source code, JSON, XML and scripts are), HTML, PDF or a kind of Office document.
        gzipped: whether the bytes are its gzip.
        plain: the bytes unpacked.
    """

    form: Form
    gzipped: bool
    plain: bytes

    @property
    def content_type(self) -> str:
        """The media type of the bytes as they are stored."""
        if self.gzipped:
            return "application/gzip"
        if self.form == "text" or self.form == "html":  # noqa: PLR1714 - by these mypy knows what is left
            return "text/html" if self.form == "html" else "text/plain"
        return MEDIA_TYPES[self.form]

    def text(self) -> tuple[str, bool]:
        """The whole text, of HTML its source; and whether its encoding had to be guessed.

        Of plain text and HTML: what the others say, their libraries tell.
        """
        return decode(self.plain, markup=self.form == "html" or self.plain.startswith(_XML))


def identify(content: bytes) -> Document:
    """Which document these bytes are; names and extensions have no say.

    Nothing at all is an empty plain text.

    Raises:
        NotADocumentError: they are none.
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
    if content.startswith(_PDF) or not is_text(content):  # a PDF may be written in ASCII alone
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
    """What is in all its members, one behind the other (RFC 1952, 2.2)."""
    parts: list[bytes] = []
    left_bytes, at = LARGEST_BYTES + 1, 0
    for _ in range(_MOST_MEMBERS):
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
        while not unpacker.eof:
            # A step at a time: what is left of a member's last step is copied for the next one.
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
            if content[at:].strip(b"\0"):  # padding is no part of it
                raise NotADocumentError("damaged gzip")
            return b"".join(parts)
    raise NotADocumentError(f"gzip of more than {_MOST_MEMBERS:,} members")
