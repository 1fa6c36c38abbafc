"""Text in all parts of PDF and Office documents is found; damaged documents are refused with a reason."""

from __future__ import annotations

import gzip
import io
import threading
import zipfile

import docx
import pptx
import pypdfium2
import pytest
import xlsxwriter
from infra.content.ole import MSG, XLS, with_stream

from pinchpoint_infra.content.document import Document, NotADocumentError, identify
from pinchpoint_infra.content.extract import extract


def a_docx() -> bytes:
    document = docx.Document()
    document.core_properties.title = "Pump manual"
    document.add_paragraph("Größere pumps")
    document.add_table(1, 2).cell(0, 1).text = "in a table"
    document.sections[0].header.paragraphs[0].text = "in the header"
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def an_xlsx() -> bytes:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"in_memory": True}) as book:
        sheet = book.add_worksheet("Readings")
        sheet.write(0, 0, "pressure")
        sheet.write(0, 1, 42.5)
    return file.getvalue()


def a_pptx() -> bytes:
    slides = pptx.Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[0])
    slide.shapes.title.text = "Pumps in pictures"
    slide.notes_slide.notes_text_frame.text = "said aloud"
    file = io.BytesIO()
    slides.save(file)
    return file.getvalue()


def a_pdf(words: str = "Hydraulic pumps") -> bytes:
    """Return a one-page PDF with one line; the project has no library that writes PDF."""
    stream = f"BT /F1 24 Tf 72 700 Td ({words}) Tj ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    content, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(content))
        content += b"%d 0 obj%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % len(content)
    return content + b"xref\n0 6\n0000000000 65535 f \n" + table + trailer


@pytest.mark.parametrize(
    ("content", "form", "title", "words"),
    [
        (a_docx(), "docx", "Pump manual", ["Größere pumps", "in a table", "in the header"]),
        (an_xlsx(), "xlsx", "Readings", ["pressure", "42.5"]),
        (a_pptx(), "pptx", "Pumps in pictures", ["Pumps in pictures", "said aloud"]),
        (a_pdf(), "pdf", "Hydraulic pumps", ["Hydraulic pumps"]),
        (XLS, "xls", "Readings", ["pressure", "42.5", "Größe"]),
        (MSG, "msg", "Pump order", ["Größere pumps, please.", "anna@example.org", "Carl", "note.txt"]),
    ],
)
def test_their_text_is_found_also_gzipped(content: bytes, form: str, title: str, words: list[str]) -> None:
    """Text in each part of a document is found, also gzipped; the form and media type are right."""
    document = identify(content)
    assert (document.form, document.gzipped) == (form, False)
    assert document.content_type.startswith("application/")
    found = extract(document)
    assert all(word in found.visible for word in words)
    assert found.title == title or form == "pptx"
    packed = identify(gzip.compress(content))
    assert (packed.form, packed.content_type) == (form, "application/gzip")
    assert extract(packed) == found


def test_pdfs_are_read_by_many_threads() -> None:
    """Many threads can read PDFs at once, although the library allows only one thread at a time."""
    found: list[str] = []
    contents = [a_pdf(f"page of number {number}") for number in range(40)]

    def work(part: list[bytes]) -> None:
        found.extend(extract(identify(content)).visible for content in part)

    threads = [threading.Thread(target=work, args=(contents[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(found) == sorted(f"page of number {number}" for number in range(40))


def test_what_cannot_be_opened_is_no_document() -> None:
    """Truncated, encrypted and old Office files and a ZIP bomb are refused; the reason names the kind."""
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "")
        archive.writestr("word/document.xml", bytes(300 * 2**20))
    for content, reason in (
        (a_pdf()[:60], "PDF document"),
        (a_docx()[:200], "ZIP archive"),
        (bomb.getvalue(), "ZIP archive"),
        (with_stream("WordDocument"), "Word document of before 2007 (.doc)"),
        (with_stream("PowerPoint Document"), "PowerPoint presentation of before 2007 (.ppt)"),
        (with_stream("EncryptedPackage"), "encrypted Office document"),
        (with_stream("Contents"), "OLE document"),
        (XLS[:900], "OLE document"),
    ):
        with pytest.raises(NotADocumentError) as refused:
            identify(content)
        assert str(refused.value) == reason


def test_what_is_damaged_inside_is_refused_when_it_is_read() -> None:
    """A document with a damaged part is identified, but refused when it is read."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("[Content_Types].xml", "<nothing")
        archive.writestr("word/document.xml", "<nothing")
    document = identify(file.getvalue())
    assert document == Document("docx", False, file.getvalue())
    with pytest.raises(NotADocumentError, match="damaged DOCX document"):
        extract(document)


def test_the_library_is_the_one_that_reads() -> None:
    """PDFium accepts the PDF that this test writes."""
    with pypdfium2.PdfDocument(a_pdf()) as document:
        assert len(document) == 1
