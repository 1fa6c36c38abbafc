"""What stands in a document of the office: its parts, its words."""

from __future__ import annotations

import base64
import gzip
import html
import io
import re
import zipfile


def parts(document: bytes) -> dict[str, bytes]:
    """Name -> content of each file in it."""
    with zipfile.ZipFile(io.BytesIO(document)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def words(document: bytes) -> str:
    """All text of its XML, a line a part."""
    found = []
    for name, content in parts(document).items():
        if name.endswith(".xml"):
            found.append(html.unescape(re.sub(r"<[^>]+>", " ", content.decode())))
    return "\n".join(found)


def unpacked(page: str) -> list[str]:
    """What the charts of a page are made of, as JSON."""
    packed = re.findall(r'<script type="application/gzip">(.*?)</script>', page)
    return [gzip.decompress(base64.b64decode(one)).decode() for one in packed]
