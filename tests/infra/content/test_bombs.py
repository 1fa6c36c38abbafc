"""Documents that exhaust memory or time are refused by name, and the farm's processes go on."""

from __future__ import annotations

import gzip
import io
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest
from infra.services.serving import Service, serving

from pinchpoint_infra.content import processes
from pinchpoint_infra.content.document import NotADocumentError, identify
from pinchpoint_infra.content.extract import extract
from pinchpoint_infra.content.filling import ingest

MIB = 2**20
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_LINKS = "http://schemas.openxmlformats.org/package/2006/relationships"
CHAIN = "".join(f'<!ENTITY e{at} "&e{at - 1};">' for at in range(1, 60_000))
LAUGHS = "".join(f'<!ENTITY e{at} "{f"&e{at - 1};" * 10}">' for at in range(1, 12))


def zipped(parts: dict[str, bytes | Iterator[bytes]], stored: bool = False) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            with archive.open(name, "w", force_zip64=True) as part:
                for piece in (content,) if isinstance(content, bytes) else content:
                    part.write(piece)
    return file.getvalue()


def office(main: str, kind: str, content: bytes | Iterator[bytes], **more: bytes | Iterator[bytes]) -> bytes:
    types = (
        f'<Types xmlns="{_TYPES}"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
        f'ContentType="application/xml"/><Override PartName="/{main}" ContentType='
        f'"application/vnd.openxmlformats-officedocument.{kind}.main+xml"/></Types>'
    )
    links = (
        f'<Relationships xmlns="{_LINKS}"><Relationship Id="r1" Type="{_R}/officeDocument" '
        f'Target="{main}"/></Relationships>'
    )
    parts: dict[str, bytes | Iterator[bytes]] = {
        "[Content_Types].xml": types.encode(),
        "_rels/.rels": links.encode(),
        main: content,
    }
    return zipped(parts | more)


def docx(content: bytes | Iterator[bytes]) -> bytes:
    return office("word/document.xml", "wordprocessingml.document", content)


def words(body: str) -> bytes:
    return f"<w:document {_W}><w:body>{body}</w:body></w:document>".encode()


def pieces(begin: bytes, part: bytes, size_bytes: int, end: bytes = b"") -> Iterator[bytes]:
    yield begin
    block = part * (MIB // len(part))
    for _ in range(size_bytes // len(block)):
        yield block
    yield end


def xlsx(cells: str, shared: str = "") -> bytes:
    book = (
        f'<workbook {_S} xmlns:r="{_R}"><sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>'
    )
    links = (
        f'<Relationships xmlns="{_LINKS}"><Relationship Id="r1" Type="{_R}/worksheet" '
        f'Target="worksheets/sheet1.xml"/><Relationship Id="r2" Type="{_R}/sharedStrings" '
        f'Target="sharedStrings.xml"/></Relationships>'
    )
    sheet = f"<worksheet {_S}><sheetData>{cells}</sheetData></worksheet>"
    return office(
        "xl/workbook.xml",
        "spreadsheetml.sheet",
        book.encode(),
        **{
            "xl/_rels/workbook.xml.rels": links.encode(),
            "xl/worksheets/sheet1.xml": sheet.encode(),
            "xl/sharedStrings.xml": f"<sst {_S}><si><t>{shared}</t></si></sst>".encode(),
        },
    )


def pdf(*objects: bytes) -> bytes:
    content, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(content))
        content += b"%d 0 obj%s\nendobj\n" % (number, each)
    count = len(objects) + 1
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (count, len(content))
    return content + b"xref\n0 %d\n0000000000 65535 f \n" % count + table + trailer


def pages(count: int) -> bytes:
    kids = b" ".join([b"3 0 R"] * count)
    tree = b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, count)
    stream = b"BT /F1 9 Tf (a) Tj ET " * 20_000
    return pdf(
        b"<</Type/Catalog/Pages 2 0 R>>",
        tree,
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )


def lying() -> bytes:
    """Return a DOCX whose directory declares 100 bytes of text, although the text has 300 MiB."""
    content = bytearray(docx(pieces(b"<w:document>", b"<w:p/>", 200 * MIB)))
    at = content.rindex(b"PK\x01\x02")
    content[at + 24 : at + 28] = (100).to_bytes(4, "little")
    return bytes(content)


def far_apart() -> bytes:
    cell = '<row r="{0}"><c r="{1}{0}"><v>1</v></c></row>'
    return xlsx(cell.format(1, "A") + cell.format(1_048_576, "XFD"))


def repeated() -> bytes:
    """Return a workbook of 4 MB whose 200,000 cells share one text of 30,000 characters."""
    row = '<row r="{0}"><c r="A{0}" t="s"><v>0</v></c></row>'
    return xlsx("".join(row.format(number) for number in range(1, 200_000)), "x" * 30_000)


REFUSED: dict[str, Callable[[], bytes]] = {
    "far-apart.xlsx": far_apart,
    "repeated.xlsx": repeated,
    "packed-300-mib.docx": lambda: docx(pieces(b"<w:document>", b" ", 300 * MIB)),
    "packed-250-mib.docx": lambda: docx(
        pieces(words("")[:-24], b"<w:p/>", 250 * MIB, b"</w:body></w:document>")
    ),
    "lying.docx": lying,
    "entities.docx": lambda: docx(f'<!DOCTYPE a [<!ENTITY e0 "x">{CHAIN}]>'.encode() + words("&e59999;")),
    "deep.docx": lambda: docx(words("<w:p>" * 100_000)),
    "nested.zip": lambda: zipped({"a.zip": zipped({"b.zip": zipped({"c": bytes(MIB)})})}),
    "entries.zip": lambda: zipped({str(number): b"" for number in range(100_000)}, stored=True),
    "pages.pdf": lambda: pages(100_000),
    "empty-members.txt.gz": lambda: gzip.compress(b"", mtime=0) * 400_000,
    "bomb.txt.gz": lambda: gzip.compress(bytes(300 * MIB)),
    "line.txt": lambda: b"x" * (256 * MIB),
}
"""Name -> function that makes the document; none may get into the index."""

HARMLESS: dict[str, Callable[[], bytes]] = {
    "runs.docx": lambda: docx(words("<w:p><w:r><w:t>run</w:t></w:r></w:p>" * 200_000)),
    "deep.html": lambda: b"<html>" + b"<div>" * 100_000,
    "elements.html": lambda: b"<html>" + b"<a/>" * (2 * MIB),
    "formatting.html": lambda: b"<html>" + b"<b><p>" * 100_000,
    "attribute.html": lambda: b'<html><a title="' + b"x " * (10 * MIB) + b'">',
    "charset.html": lambda: b"<html><meta charset=utf-7>" + b"+AAA-\xff" * (MIB // 4),
    "utf-16.html": lambda: ("<html>" + "\ud7ff" * (4 * MIB)).encode("utf-16"),
    "laughs.xml": f'<!DOCTYPE a [<!ENTITY e0 "x">{LAUGHS}]><a>&e11;</a>'.encode,
    "long-line.txt": lambda: b"ab " * (5 * MIB),
    "long-word.txt": lambda: b"x" * (20 * MIB),
}
"""Documents that may be read or refused, but may end no process."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bombs")
    for name, made in {**REFUSED, **HARMLESS}.items():
        (folder / name).write_bytes(made())
    (folder / "good.txt").write_text("A good document about pumps")
    return folder


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("search")
    (folder / "index").mkdir()
    token, directory = "t" * 32, str(folder / "index")
    with serving(
        "pinchpoint_infra.services.search", folder, login=token, token=token, directory=directory
    ) as service:
        yield service


@pytest.mark.parametrize("name", [*REFUSED, *HARMLESS])
def test_the_search_tier_refuses_it_and_stays_up(name: str, corpus: Path, search: Service) -> None:
    """The search tier refuses the document with its name and the reason, and indexes the next document."""
    answer = search.post(f"/documents?source=s&url={quote(name)}", (corpus / name).read_bytes())
    assert answer.status in ((413, 415) if name in REFUSED else (200, 415)), answer.data
    if answer.status != 200:
        assert answer.json()["reason"]
    assert search.process.poll() is None
    assert psutil.Process(search.process.pid).memory_info().rss < 2**31
    page = b"<!doctype html><title>Good</title><p>pumps"
    assert search.post("/documents?source=s&url=good", page).status == 200
    assert search.get("/health").status == 200


def test_a_corpus_of_them_is_taken_in_without_them(corpus: Path, tmp_path: Path) -> None:
    """Ingest skips each such document that a quick check detects, with its reason, and keeps the good one."""
    found = ingest(corpus, None, None, tmp_path, lambda _: None)
    there = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert "good.txt" in there
    assert not there & {"nested.zip", "entries.zip", "empty-members.txt.gz", "bomb.txt.gz", "line.txt"}
    assert found["documents"] == len(there)
    assert found["documents"] + sum(found["skipped"].values()) == len(REFUSED) + len(HARMLESS) + 1
    assert "gzip of more than 20,000 members" in found["skipped"]
    assert not [each for each in psutil.Process().children() if each.name() == "pp-reader"]


def test_one_that_is_costly_to_open_is_skipped_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document that is slow to open is skipped, and the reason names its path."""
    (tmp_path / "corpus" / "a").mkdir(parents=True)
    (tmp_path / "corpus" / "a" / "b.pdf").write_bytes(pages(3))
    (tmp_path / "corpus" / "good.txt").write_text("good")
    tests = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{tests.parent}:{tests}")  # the child imports this module
    processes.close()
    processes.apart(slow, b"", 0)  # start the child now, so that its start is not part of the time limit
    monkeypatch.setattr("pinchpoint_infra.content.office._form", slow)
    monkeypatch.setattr("pinchpoint_infra.content.processes.WITHIN_S", 0.5)
    monkeypatch.setattr("pinchpoint_infra.content.processes._SLACK_S", 0.5)
    found = ingest(tmp_path / "corpus", None, None, tmp_path / "files", lambda _: None)
    assert found["documents"] == 1
    (reason,) = found["skipped"]
    assert reason.startswith("PDF document that takes more than 10 s of CPU time")
    assert reason.endswith(": a/b.pdf")
    processes.close()


def slow(_: bytes, for_s: float = 60) -> None:
    time.sleep(for_s)


def test_what_is_refused_says_what_it_needs() -> None:
    """A refusal states the kind of document, the limit, and the document's need."""
    document = identify(far_apart())
    with pytest.raises(NotADocumentError, match="XLSX document that needs more than 1,024 MiB of memory"):
        extract(document)
