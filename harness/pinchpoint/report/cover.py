"""Reads the title and the logo that the user gives for the cover of a document."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pinchpoint.base.errors import InputError
from pinchpoint.report.libraries import library

_MOST_BYTES = 2_000_000
_PNG = b"\x89PNG\r\n\x1a\n"
_ELSEWHERE = re.compile(rb"""(?:href\s*=\s*["']|url\(\s*["']?|@import)\s*(?!#|data:)""", re.IGNORECASE)
_ALLOWED = f"allowed: a PNG or SVG picture of at most {_MOST_BYTES:,} bytes"


@dataclass(frozen=True, slots=True)
class Logo:
    """A logo: the bytes of a picture and their format."""

    data: bytes
    kind: Literal["png", "svg"]

    @property
    def uri(self) -> str:
        """Return the picture as a data URI for an HTML page."""
        kind = "svg+xml" if self.kind == "svg" else "png"
        return f"data:image/{kind};base64,{base64.b64encode(self.data).decode()}"

    def png(self) -> bytes:
        """Return the picture as PNG for slides and sheets."""
        import vl_convert  # noqa: PLC0415 -- charts' library, which takes a while

        return self.data if self.kind == "png" else vl_convert.svg_to_png(self.data.decode(), scale=4)


@dataclass(frozen=True, slots=True)
class Cover:
    """The user's title, which replaces the title of the report, and a logo. None: not given."""

    title: str | None = None
    logo: Logo | None = None


PLAIN = Cover()


def cover_of(title: str | None, logo: Path | None) -> Cover:
    """Return the cover for the options ``--title`` and ``--logo``. Raises InputError."""
    if title is not None and not title.strip():
        raise InputError(
            "--title: is empty; give the words that are to stand above the report, or leave it out"
        )
    return Cover(title, None if logo is None else _read(logo))


def _read(path: Path) -> Logo:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"--logo: {path}: cannot be read: {error.strerror}; {_ALLOWED}") from error
    if len(data) > _MOST_BYTES:
        raise InputError(f"--logo: {path}: has {len(data):,} bytes; {_ALLOWED}")
    if data.startswith(_PNG):
        return Logo(_whole_png(path, data), "png")
    if re.match(rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*|<!DOCTYPE[^>]*>\s*)*<svg[\s>]", data, re.DOTALL):
        return Logo(_whole_svg(path, data), "svg")
    raise InputError(f"--logo: {path}: is neither a PNG nor an SVG picture; {_ALLOWED}")


def _whole_png(path: Path, data: bytes) -> bytes:
    """Return the PNG re-encoded, so that every format can read it. Raises InputError if it is damaged."""
    Image = library("PIL.Image", "--logo with a PNG picture")  # noqa: N806 -- a module

    written = io.BytesIO()
    try:
        Image.open(io.BytesIO(data), formats=["PNG"]).verify()  # checks the checksums, which loading ignores
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            picture.convert("RGBA").save(written, format="PNG")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"--logo: {path}: is a damaged PNG picture; {_ALLOWED}") from error
    return written.getvalue()


def _whole_svg(path: Path, data: bytes) -> bytes:
    """Return the SVG if it is valid and refers to no other file. Otherwise raises InputError."""
    import vl_convert  # noqa: PLC0415 -- as above

    if _ELSEWHERE.search(data):
        raise InputError(f"--logo: {path}: refers to another file or address; put that into the picture")
    try:
        vl_convert.svg_to_png(data.decode("utf-8"))
    except (ValueError, RuntimeError) as error:
        raise InputError(
            f"--logo: {path}: is a damaged SVG picture: {str(error).splitlines()[0]}; {_ALLOWED}"
        ) from error
    return data
