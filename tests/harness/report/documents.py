"""The content of an office document: its parts and its words."""

from __future__ import annotations

import base64
import gzip
import html
import io
import re
import zipfile


def parts(document: bytes) -> dict[str, bytes]:
    """Return the content of each file in the document by name."""
    with zipfile.ZipFile(io.BytesIO(document)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def words(document: bytes) -> str:
    """Return all text of the document's XML, one line per part."""
    found = []
    for name, content in parts(document).items():
        if name.endswith(".xml"):
            found.append(html.unescape(re.sub(r"<[^>]+>", " ", content.decode())))
    return "\n".join(found)


def unpacked(page: str) -> list[str]:
    """Return the JSON that a page's charts are drawn from."""
    packed = re.findall(r'<script type="application/gzip">(.*?)</script>', page)
    return [gzip.decompress(base64.b64decode(one)).decode() for one in packed]
