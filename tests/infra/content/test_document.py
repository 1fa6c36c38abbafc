"""Detection, decoding and extraction of documents from constructed bytes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import struct
import sys
import tarfile
import time
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import pytest

from pinchpoint_infra.content import document
from pinchpoint_infra.content.document import NotADocumentError, identify
from pinchpoint_infra.content.extract import extract

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + bytes(13)
HTML = b"<!DOCTYPE html><html><head><title>Pumps</title></head><body><p>Hello</p></body></html>"
UMLAUTS = "Größere Pumpen fördern über längere Wege: schön, dass sie so zuverlässig läuft."
GREEK = "Η αντλία λειτουργεί αξιόπιστα και μεταφέρει νερό σε μεγάλη απόσταση κάθε ημέρα του χρόνου."  # noqa: RUF001 -- Greek is meant


def gzipped(content: bytes) -> bytes:
    """Return the bytes as gzip without a time, so that the result is always the same."""
    return gzip.compress(content, mtime=0)


def tar(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.txt", "text")
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (b"", "text"),
        (b"plain words\n", "text"),
        (b'{"json": [1, 2]}', "text"),
        (b"#!/bin/sh\nexec true\n", "text"),
        (b"<?xml version='1.0'?><pumps/>", "text"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "text"),
        (b"# A heading\n\n<p align=center>in Markdown</p>\n", "text"),
        (b"a stray \x01 control character in a long text: " + 200 * b"word ", "text"),
        (b"\x1b[1mbold\x1b[0m on a terminal", "text"),
        (UMLAUTS.encode("latin-1"), "text"),
        (UMLAUTS.encode("utf-16"), "text"),
        (UMLAUTS.encode("utf-32"), "text"),
        (HTML, "html"),
        (b"\xef\xbb\xbf  \n" + HTML, "html"),
        (HTML.decode().encode("utf-16"), "html"),
        (b"<?xml version='1.0'?>\n<!-- a note -->\n" + HTML, "html"),
        (b"<HTML><BODY>old</BODY></HTML>", "html"),
        (b"<title>alone</title>words", "html"),
    ],
)
def test_text_and_html_are_documents_also_gzipped(content: bytes, form: str) -> None:
    """Text and HTML are documents of their form, plain or gzipped, with the same plain bytes."""
    plain = identify(content)
    assert (plain.form, plain.gzipped, plain.plain) == (form, False, content)
    packed = identify(gzipped(content))
    assert (packed.form, packed.gzipped, packed.plain) == (form, True, content)


def test_a_licence_of_many_comments_is_read_in_no_time() -> None:
    """A licence of many comments is read once per comment, not in exponential time."""
    licence = b"<!-- a line of it -->\n" * 40
    begun_s = time.process_time()
    assert identify(licence + b"<project/>").form == "text"
    assert identify(licence + b"<!-- that never ends" + HTML).form == "text"
    assert identify(licence + HTML).form == "html"
    assert time.process_time() - begun_s < 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (PNG, "PNG image"),
        (b"GIF89a\x01\x00\x01\x00\x00\x00\x00", "GIF image"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00", "JPEG image"),
        (Path(sys.executable).resolve().read_bytes()[:4096], "ELF program"),
        (b"%PDF-1.4\n% ASCII all through\n%%EOF\n", "PDF document"),
        (tar("a.txt", b"text"), "tar archive"),
        (zipped(), "ZIP archive"),
        (bz2.compress(b"text"), "bzip2 data"),
        (lzma.compress(b"text"), "xz data"),
        (b"SQLite format 3\x00" + bytes(84), "SQLite database"),
        (bytes(100), "binary data"),
        (b"text with\x00a NUL", "binary data"),
        (bytes(range(1, 256)) * 4, "binary data"),
        ("no mark".encode("utf-16-le"), "binary data"),
        (gzipped(PNG), "gzip of a PNG image"),
        (gzipped(Path(sys.executable).resolve().read_bytes()[:4096]), "gzip of an ELF program"),
        (gzipped(tar("a.txt", b"text")), "gzip of a tar archive"),
        (gzipped(bytes(100)), "gzip of binary data"),
        (gzipped(gzipped(b"text")), "gzip of gzip data"),
        (gzipped(b"text" * 100)[:-12], "truncated gzip"),
        (gzipped(b"text" * 100)[:20] + b"\xff" * 20, "damaged gzip"),
        (b"\x1f\x8b", "truncated gzip"),
    ],
)
def test_anything_else_is_named_in_words(content: bytes, reason: str) -> None:
    """Content that is no document is refused, and the reason names its kind."""
    with pytest.raises(NotADocumentError) as refused:
        identify(content)
    assert str(refused.value) == reason


def test_random_bytes_are_never_text() -> None:
    """Random bytes, as in compressed or encrypted data, are never read as text."""
    for _ in range(200):
        with pytest.raises(NotADocumentError):
            identify(b"\x02" + os.urandom(300))


def test_gzip_bombs_are_refused_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gzip bomb is refused as soon as its output exceeds the largest size, in bounded memory."""
    monkeypatch.setattr(document, "LARGEST_BYTES", 2**20)
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(bytes(2**20)) for _ in range(200)) + packer.flush()
    tracemalloc.start()
    try:
        with pytest.raises(NotADocumentError, match=r"^gzip that unpacks to more than 1 MiB$"):
            identify(bomb)
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20  # of 200 MiB
    finally:
        tracemalloc.stop()
    with pytest.raises(NotADocumentError, match=r"^larger than 64 MiB$"):
        identify(bytes(2**20 + 1))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (UMLAUTS.encode(), UMLAUTS),
        (UMLAUTS.encode("utf-8-sig"), UMLAUTS),
        (UMLAUTS.encode("utf-16"), UMLAUTS),
        (b"\xfe\xff" + UMLAUTS.encode("utf-16-be"), UMLAUTS),
        (UMLAUTS.encode("utf-32"), UMLAUTS),
        (UMLAUTS.encode("latin-1"), UMLAUTS),
        (UMLAUTS.encode("cp1252"), UMLAUTS),
        (GREEK.encode("iso8859-7"), GREEK),
        (b"2.0 -- J\xc3\xb6rg, J\xc3\xbcrgen\n1.0 -- J\xf6rg\n", "2.0 -- Jörg, Jürgen\n1.0 -- Jörg\n"),
    ],
)
def test_text_is_decoded_as_it_was_written(content: bytes, text: str) -> None:
    """Text with a byte order mark, in UTF-8, and in legacy and mixed encodings is decoded correctly."""
    assert extract(identify(content)).visible == text
    assert extract(identify(gzipped(content))).visible == text


def test_declared_encodings_are_believed() -> None:
    """A declared encoding of HTML and XML is used."""
    page = '<html><head><meta charset="koi8-r"></head><body>насос</body></html>'
    assert "насос" in extract(identify(page.encode("koi8-r"))).visible
    xml = '<?xml version="1.0" encoding="iso-8859-5"?><a>насос</a>'
    assert "насос" in extract(identify(xml.encode("iso-8859-5"))).visible
    for unknown in ("no-such-charset", "rot13", "hex", "undefined", "idna", "punycode"):
        page = f'<html><head><meta charset="{unknown}"></head><body>caf\xe9teria words</body></html>'
        assert "words" in extract(identify(page.encode("latin-1"))).visible


def test_a_wrong_guess_loses_no_word() -> None:
    """If the encoding is uncertain, the text of each possible encoding is kept."""
    found = extract(identify(b"shared gr\xfc\xdfe"))
    for reading in ("grüße", "gr\ufffd\ufffde"):
        assert reading in found.visible + found.other


def test_html_is_read_as_people_see_it() -> None:
    """HTML gives its title, visible text, attributes and descriptions, without scripts and styles."""
    page = b"""<!doctype html><html><head><title>The &amp; title</title>
        <meta name="Description" content="a descr&iacute;ption"><style>p {color: red}</style>
        <script>var hidden = 1;</script></head>
        <body><p>First<p>caf&eacute; <b>W</b>ord<img alt="an im&aacute;ge"><a title="a link">x</a>
        <table><tr><td>one</td><td>two</td></tr></table></body></html>"""
    found = extract(identify(page))
    assert found.title == "The & title"
    for words in ("The & title", "descríption", "First", "café", "imáge", "a link", "one", "two"):
        assert words in found.visible
    assert "onetwo" not in found.visible
    assert "hidden" not in found.visible
    assert "red" not in found.visible
    assert "Word" in found.visible
    assert "Firstcafé" not in found.visible
    assert "hidden" in found.other  # the page's source


def test_markup_out_of_all_reason_takes_no_time() -> None:
    """HTML with 200,000 nested elements is read without the slow parser, a long flat page with it."""
    began_s = time.monotonic()
    deep = extract(identify(b"<html><title>t</title>" + b"<div>" * 200_000 + b"bottom"))
    assert "bottom" in deep.visible
    flat = extract(identify(b"<html><title>t</title>" + b"<p>caf&eacute;<br>" * 20_000))
    assert flat.visible.count("café") == 20_000
    assert time.monotonic() - began_s < 5
