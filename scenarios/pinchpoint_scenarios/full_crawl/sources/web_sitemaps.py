"""Sitemaps (sitemaps.org): an index of others, or addresses with their last change; also packed."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from xml.parsers import expat

from ..failures import Failure
from ..http import LARGEST_BYTES
from ..unpacking import UnpackError, unpacked

_GZIP = b"\x1f\x8b"
_BEGINNINGS = (b"<", b"\xff\xfe", b"\xfe\xff")  # the latter two: of UTF-16
_PLACES = {"url": False, "sitemap": True}
_MOST_ENTRIES, _MOST_ELEMENTS, _LARGEST_ELEMENT_BYTES = 100_000, 1_000_000, 4 * 2**20
"""The protocol allows 50,000 entries. These are read in the generator's own time, in about a second."""
_DEEPEST = 100
_STEP_BYTES = 2**20
"""What a handler refuses ends the parser at the end of a step."""


@dataclass(frozen=True, slots=True)
class SitemapEntry:
    """One entry of a sitemap.

    Attributes:
        url: as it stands there.
        is_sitemap: whether it is another sitemap.
        version: when it was changed last; "" where that is not said.
    """

    url: str
    is_sitemap: bool
    version: str


def entries(content: bytes, where: str) -> list[SitemapEntry]:
    """What a sitemap names; text with an address a line is one, too. Raises ``Failure`` where it is none."""
    plain = _unpacked(content, where) if content.startswith(_GZIP) else content
    if plain.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(_BEGINNINGS):
        found = _read(plain.lstrip(), where)
    else:
        found = _lines(plain, where)
    kept = list(islice(found, _MOST_ENTRIES + 1))
    if len(kept) > _MOST_ENTRIES:
        raise _no_sitemap(where, f"it has more than {_MOST_ENTRIES:,} entries")
    return kept


def _lines(plain: bytes, where: str) -> Iterator[SitemapEntry]:
    for number, line in enumerate(io.TextIOWrapper(io.BytesIO(plain), "utf-8-sig", "replace")):
        if number >= _MOST_ELEMENTS:
            raise _no_sitemap(where, f"it has more than {_MOST_ELEMENTS:,} lines")
        if (url := line.strip()).startswith("http"):
            yield SitemapEntry(url, False, "")


def _read(plain: bytes, where: str) -> Iterator[SitemapEntry]:
    # Only a document type defines entities. A chain of 60,000 crashes expat before 2.7. Every encoding it
    # reads keeps these letters as ASCII, in UTF-16 beside a zero byte.
    if b"<!DOCTYPE" in plain.replace(b"\0", b""):
        raise _no_sitemap(where, "it has a DOCTYPE")
    reader = _SitemapReader()
    try:
        for at in range(0, len(plain), _STEP_BYTES):
            reader.feed(plain[at : at + _STEP_BYTES])
            yield from reader.taken()
        reader.feed(b"", last=True)
    except (expat.ExpatError, LookupError, ValueError) as error:  # the latter two: of its encoding, its depth
        raise _no_sitemap(where, str(error)) from error
    yield from reader.taken()


class _SitemapReader:
    """Makes entries of elements as the parser meets them: no tree is built."""

    def __init__(self) -> None:
        parser = expat.ParserCreate(namespace_separator="}")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        self._parser = parser
        self._entries: list[SitemapEntry] = []
        self._depth = self._elements = self._fed_bytes = 0
        self._place, self._at = "", 0  # the element that is an entry, and how deep it lies
        self._said: dict[str, str] = {}
        self._field = ""
        self._text: list[str] | None = None  # of an element right in it, up to that one's first own

    def feed(self, step: bytes, *, last: bool = False) -> None:
        """Read on."""
        self._parser.Parse(step, last)
        self._fed_bytes += len(step)
        if self._fed_bytes - self._parser.CurrentByteIndex > _LARGEST_ELEMENT_BYTES:
            # The parser reads the begin of one again with every step.
            raise ValueError(f"it has a tag larger than {_LARGEST_ELEMENT_BYTES // 2**20} MiB")

    def taken(self) -> list[SitemapEntry]:
        """The entries that have ended since."""
        taken, self._entries = self._entries, []
        return taken

    def _start(self, name: str, _: dict[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        if self._elements > _MOST_ELEMENTS:
            raise ValueError(f"it has more than {_MOST_ELEMENTS:,} elements")
        if self._depth > _DEEPEST:
            raise ValueError(f"its elements lie more than {_DEEPEST} deep in each other")
        if self._place:
            self._keep()
            if self._depth == self._at + 1:
                self._field, self._text = _local(name), []
        elif _local(name) in _PLACES:
            self._place, self._at, self._said = _local(name), self._depth, {}

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _end(self, _: str) -> None:
        self._keep()
        if self._place and self._depth == self._at:
            if url := self._said.get("loc"):
                self._entries.append(SitemapEntry(url, _PLACES[self._place], self._said.get("lastmod", "")))
            self._place = ""
        self._depth -= 1

    def _keep(self) -> None:
        if self._text is not None:
            self._said[self._field] = "".join(self._text).strip()
            self._text = None


def _local(name: str) -> str:
    return name.rpartition("}")[2].lower()


def _unpacked(content: bytes, where: str) -> bytes:
    try:
        return unpacked(content, LARGEST_BYTES)
    except UnpackError as error:
        raise Failure("bad_answer", f"{where} cannot be unpacked: {error}", permanent=True) from error


def _no_sitemap(where: str, why: str) -> Failure:
    return Failure("bad_answer", f"{where} is no sitemap: {why}", permanent=True)
