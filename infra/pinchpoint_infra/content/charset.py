"""From bytes to text: which bytes are text at all, and in which encoding."""

from __future__ import annotations

import codecs
import re

import charset_normalizer

# The longer marks first: UTF-32's begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What occurs in texts: bell, backspace, tab, line feed, vertical tab, form feed, carriage return, escape.
_CONTROLS = bytes(sorted(set(range(32)) - {7, 8, 9, 10, 11, 12, 13, 27})) + b"\x7f"
_CONTROLS_IN_TEXT_RATIO = 0.01
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?([A-Za-z0-9_.:-]+)""", re.IGNORECASE)
_DECLARED_WITHIN_BYTES = 2048
_SAMPLE_BYTES = 2**16
_MIXED = "pinchpoint.mixed"


def is_text(content: bytes) -> bool:
    """Whether these bytes are text in any encoding known here.

    With a byte order mark, what its encoding reads. Without, no NUL and at most one control character in a
    hundred: texts hold a stray one now and then, compressed or compiled data one in ten.
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
    """Whether a byte order mark leads."""
    return content.startswith(tuple(mark for mark, _ in _MARKS))


def decode(content: bytes, *, markup: bool = False) -> tuple[str, bool]:
    """The text of bytes that ``is_text`` accepts, and whether the encoding had to be guessed; never fails.

    In this order: a byte order mark; UTF-8; what the document itself declares (``markup``: HTML and XML do);
    UTF-8 with a few stray bytes, as files have that grew over decades; the legacy encoding whose letters
    make the most sense.
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
    except (UnicodeError, LookupError):  # or an encoding nobody knows, as a document may declare
        return None


def _declared(content: bytes) -> str | None:
    found = _DECLARED.search(content, 0, _DECLARED_WITHIN_BYTES)
    if found is None:
        return None
    name = found[1].decode("ascii").lower()
    # Browsers read the first two as the third, and so do their writers.
    text = _strict(content, "cp1252" if name in {"iso-8859-1", "us-ascii"} else name)
    return text if isinstance(text, str) else None


def _mostly_utf8(content: bytes) -> str | None:
    """UTF-8 where most of what is not ASCII is valid UTF-8; its other bytes are read as Western European."""
    valid = content.decode("utf-8", "ignore")
    letters = len(valid.encode("utf-8"))
    stray = len(content) - letters
    beyond_ascii = len(valid) - len(valid.encode("ascii", "ignore"))
    return content.decode("utf-8", _MIXED) if beyond_ascii > stray else None


def _guessed(content: bytes) -> str | None:
    best = charset_normalizer.from_bytes(_around_first_letter(content)).best()
    return None if best is None else _strict(content, best.encoding)


def _around_first_letter(content: bytes) -> bytes:
    """A sample that holds what is not ASCII: guessing on megabytes takes seconds and knows no more."""
    if len(content) <= _SAMPLE_BYTES:
        return content
    first = re.search(rb"[\x80-\xff]", content)
    start = max(0, (first.start() if first else 0) - 1024)
    return content[start : start + _SAMPLE_BYTES]


def _western(error: UnicodeError) -> tuple[str, int]:
    """Bytes that are no UTF-8, as Windows' Western European, else as Latin 1, which knows every byte."""
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101 -- registered for decoding alone
    stray = error.object[error.start : error.end]
    return _strict(stray, "cp1252") or stray.decode("latin-1"), error.end


codecs.register_error(_MIXED, _western)
