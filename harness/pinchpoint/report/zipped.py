"""Documents of the office are archives: the same bytes each time, with the run's time in them."""

from __future__ import annotations

import io
import re
import zipfile
from datetime import datetime

_BEGIN = (1980, 1, 1, 0, 0, 0)
_STAMP = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*(<)")


def rewritten(document: bytes, at: datetime) -> bytes:
    """The archive, and those in it, without the time at which they were made."""
    written = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(document)) as given,
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as made,
    ):
        for name in given.namelist():
            content = given.read(name)
            if name.endswith(".xlsx"):
                content = rewritten(content, at)
            elif name == "docProps/core.xml":
                stamp = f"{at:%Y-%m-%dT%H:%M:%SZ}".encode()
                content = _STAMP.sub(rb"\g<1>" + stamp + rb"\g<2>", content)
            made.writestr(zipfile.ZipInfo(name, _BEGIN), content, zipfile.ZIP_DEFLATED)
    return written.getvalue()
