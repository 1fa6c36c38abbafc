"""Recognises PDF and Office documents, and extracts their text with libraries for each format.

The libraries run in separate processes, which load them for the first such document.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, Literal

from pinchpoint_infra.content.errors import CostlyError
from pinchpoint_infra.content.processes import apart

OfficeForm = Literal["pdf", "docx", "xlsx", "pptx", "xls", "msg"]

MEDIA_TYPES: dict[OfficeForm, str] = {
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "xls": "application/vnd.ms-excel",
    "msg": "application/vnd.ms-outlook",
}

_PDF, _ZIP, OLE = b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_MAIN_PARTS: dict[str, OfficeForm] = {
    "word/document.xml": "docx",
    "xl/workbook.xml": "xlsx",
    "ppt/presentation.xml": "pptx",
}
_STREAMS: dict[str, OfficeForm] = {
    "Workbook": "xls",
    "Book": "xls",
    "__properties_version1.0": "msg",
}
"""Name of a stream at the top of an OLE file -> kind of document."""
_LARGEST_UNPACKED_BYTES = 256 * 2**20
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_LARGEST_TEXT = 64 * 2**20
"""Largest length of a text in characters. The cells of a workbook may repeat a text that is stored once."""


class UnreadableError(Exception):
    """A document is encrypted, damaged, or unpacks to too much."""


def office_form(content: bytes) -> OfficeForm | None:
    """Return the format of the document; None if it is in none of these formats.

    Raises:
        CostlyError: opening the document takes too much time or memory.
    """
    return apart(_form, content) if content.startswith((_PDF, _ZIP, OLE)) else None


def _form(content: bytes) -> OfficeForm | None:
    try:
        if content.startswith(_PDF):
            with _pdf(content):
                return "pdf"
        return _ole_form(content) if content.startswith(OLE) else _packed_form(content)
    except UnreadableError:
        return None


def read(form: OfficeForm, content: bytes) -> tuple[str, str]:
    """Return the title and the text of a document.

    Raises:
        UnreadableError: a part of the document is damaged.
        CostlyError: extracting the text takes too much time or memory.
    """
    return apart(_read, form, content)


def _read(form: OfficeForm, content: bytes) -> tuple[str, str]:
    try:
        title, lines = _READERS[form](content)
    except (UnreadableError, MemoryError):
        raise
    except Exception as error:  # the libraries raise errors of any type on damaged files
        raise UnreadableError(f"{type(error).__name__}: {error}") from error
    text = "\n".join(line for line in lines if line.strip())
    if len(text) > _LARGEST_TEXT:
        raise CostlyError(f"whose text has more than {_LARGEST_TEXT // 2**20} Mi characters")
    return title.strip(), text


def _packed_form(content: bytes) -> OfficeForm | None:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise UnreadableError(str(error)) from error
    names = {member.filename for member in members}
    # Python's reader stops at the declared size of a member, so the sum of the sizes is the upper limit.
    if (
        "[Content_Types].xml" not in names
        or sum(each.file_size for each in members) > _LARGEST_UNPACKED_BYTES
    ):
        return None
    return next((form for part, form in _MAIN_PARTS.items() if part in names), None)


def _ole_form(content: bytes) -> OfficeForm | None:
    import olefile  # type: ignore[import-untyped] # noqa: PLC0415 - see the module's docstring; it has no types

    try:
        with olefile.OleFileIO(io.BytesIO(content)) as file:
            return next((form for stream, form in _STREAMS.items() if file.exists(stream)), None)
    except Exception as error:  # the library raises errors of any type on damaged files
        raise UnreadableError(f"{type(error).__name__}: {error}") from error


def _pdf(content: bytes) -> Any:
    import pypdfium2  # noqa: PLC0415 - see the module's docstring

    try:
        return pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        raise UnreadableError(str(error)) from error


def _read_pdf(content: bytes) -> tuple[str, list[str]]:
    with _pdf(content) as document:
        title = str(document.get_metadata_value("Title") or "")
        lines = []
        for number in range(len(document)):
            page = document[number]
            text = page.get_textpage()
            lines.append(text.get_text_bounded().replace("\r\n", "\n"))
            text.close()
            page.close()
    return title, lines


def _read_docx(content: bytes) -> tuple[str, list[str]]:
    import docx  # noqa: PLC0415 - see the module's docstring

    document = docx.Document(io.BytesIO(content))
    around = (each for section in document.sections for each in (section.header, section.footer))
    parts = [document.element.body]
    # the class has no public name
    parts += [each._element for each in around if not each.is_linked_to_previous]
    return document.core_properties.title, [line for part in parts for line in _paragraphs(part)]


def _paragraphs(part: Any) -> Iterator[str]:
    """Yield one line per paragraph, including paragraphs in tables and text boxes."""
    text = f"{_WORD}t"
    for paragraph in part.iter(f"{_WORD}p"):
        nodes = paragraph.iter(text, f"{_WORD}tab", f"{_WORD}br")
        yield "".join((node.text or "") if node.tag == text else " " for node in nodes)


def _read_msg(content: bytes) -> tuple[str, list[str]]:
    """Return the texts in the window of a message, and the names of its attachments."""
    from oxmsg import Message  # noqa: PLC0415 - see the module's docstring

    message = Message.load(content)
    people = [f"{each.name} {each.email_address}" for each in message.recipients]
    names = [each.file_name or "" for each in message.attachments]
    lines = [message.subject or "", message.sender or "", *people, message.body or "", *names]
    return message.subject or "", lines


def _read_xlsx(content: bytes) -> tuple[str, list[str]]:
    from python_calamine import CalamineWorkbook  # noqa: PLC0415 - see the module's docstring

    book = CalamineWorkbook.from_filelike(io.BytesIO(content))
    lines = []
    for name in book.sheet_names:
        rows = book.get_sheet_by_name(name).to_python()
        lines += [name, *("\t".join(str(cell) for cell in row if cell != "") for row in rows)]
    return "", lines


def _read_pptx(content: bytes) -> tuple[str, list[str]]:
    import pptx  # noqa: PLC0415 - see the module's docstring

    slides = pptx.Presentation(io.BytesIO(content))
    lines: list[str] = []
    for slide in slides.slides:
        for shape in slide.shapes:
            lines += _shape_lines(shape)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            lines.append(slide.notes_slide.notes_text_frame.text)
    return slides.core_properties.title, lines


def _shape_lines(shape: Any) -> Iterator[str]:
    if shape.has_text_frame:
        yield shape.text_frame.text
    if getattr(shape, "has_table", False):
        for row in shape.table.rows:
            yield "\t".join(cell.text for cell in row.cells)
    for inner in getattr(shape, "shapes", ()):  # a group
        yield from _shape_lines(inner)


_READERS: dict[OfficeForm, Callable[[bytes], tuple[str, list[str]]]] = {
    "pdf": _read_pdf,
    "docx": _read_docx,
    "xlsx": _read_xlsx,
    "pptx": _read_pptx,
    "xls": _read_xlsx,
    "msg": _read_msg,
}
