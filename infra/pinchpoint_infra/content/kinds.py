"""Words for content that is no document: what kind of thing it is."""

from __future__ import annotations

import puremagic

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
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "OLE document"),
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
_BINARY = "binary data"
_LEAST_CONFIDENCE = 0.4
_LEAST_SIGNATURE_BYTES = 4
_HEAD_BYTES = 4096


def binary_kind(content: bytes) -> str:
    """What content that is no text is, in words: ``PNG image``; ``binary data`` where nobody knows.

    The kinds a documentation folder or a file share is full of have names of ours: the library's guesses
    among formats with a common signature (a ZIP archive is a DOCX to it). It names the rest, where the match
    is longer than chance allows.
    """
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
