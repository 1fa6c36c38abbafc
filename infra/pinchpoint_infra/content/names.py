"""File names as a SharePoint-style site has them: text, whatever the bytes were."""

from __future__ import annotations

import re

_BYTES = 0xF000  # private use; byte 0x80 is U+F080, as other systems map names they cannot spell
_AMBIGUOUS = re.compile("[\uf080-\uf0ff]")


def readable(name: bytes) -> str:
    """A name as text, different names as different texts.

    UTF-8 as what it says. Any other byte becomes a character of Unicode's private use area, which every
    database and every JSON reader takes; so do the bytes of such a character itself, lest two names meet.
    """
    text = name.decode("utf-8", "surrogateescape")
    text = _AMBIGUOUS.sub(lambda found: _private(found[0].encode("utf-8")), text)
    return re.sub("[\udc80-\udcff]", lambda found: chr(_BYTES + ord(found[0]) - 0xDC00), text)


def _private(stray: bytes) -> str:
    return "".join(chr(_BYTES + byte) for byte in stray)
