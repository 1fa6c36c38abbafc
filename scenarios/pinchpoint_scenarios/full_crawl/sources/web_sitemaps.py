"""Sitemaps (sitemaps.org): an index of others, or addresses with their last change; also packed."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as Xml

from ..failures import Failure
from ..http import LARGEST_BYTES

_GZIP = b"\x1f\x8b"
_PLACES = {"url": False, "sitemap": True}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a sitemap.

    Attributes:
        url: as it stands there.
        is_sitemap: whether it is another sitemap.
        version: when it was changed last; "" where that is not said.
    """

    url: str
    is_sitemap: bool
    version: str


def entries(content: bytes, where: str) -> list[Entry]:
    """What a sitemap names; text with an address a line is one, too. Raises ``Failure`` where it is none."""
    plain = _unpacked(content, where) if content.startswith(_GZIP) else content
    if not plain.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        lines = plain.decode("utf-8-sig", "replace").splitlines()
        return [Entry(line.strip(), False, "") for line in lines if line.strip().startswith("http")]
    # Only a document type defines entities. A chain of 60,000 crashes expat before 2.7. Every encoding it
    # reads keeps these letters as ASCII, in UTF-16 beside a zero byte.
    if b"<!DOCTYPE" in plain.replace(b"\0", b""):
        raise Failure("bad_answer", f"{where} is no sitemap: it has a DOCTYPE", permanent=True)
    try:
        return list(_read(plain))
    except (Xml.ParseError, LookupError, ValueError) as error:  # the latter two: of its encoding
        raise Failure("bad_answer", f"{where} is no sitemap: {error}", permanent=True) from error


def _read(plain: bytes) -> Iterator[Entry]:
    for _, node in Xml.iterparse(io.BytesIO(plain.lstrip())):  # noqa: S314 - no DOCTYPE, so no entities
        name = _local(node)
        if name not in _PLACES:
            continue
        said = {_local(child): (child.text or "").strip() for child in node}
        if said.get("loc"):
            yield Entry(said["loc"], _PLACES[name], said.get("lastmod", ""))
        node.clear()


def _local(node: Xml.Element) -> str:
    return node.tag.rpartition("}")[2].lower()


def _unpacked(content: bytes, where: str) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            plain = file.read(LARGEST_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Failure("bad_answer", f"{where} cannot be unpacked: {error}", permanent=True) from error
    if len(plain) > LARGEST_BYTES:
        raise Failure("bad_answer", f"{where} unpacks to too much", permanent=True)
    return plain
