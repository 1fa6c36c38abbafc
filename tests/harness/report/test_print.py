"""The page on paper, as Chromium prints it: nothing of the screen, or folded away on it, is lost."""

from __future__ import annotations

import subprocess

import pypdfium2
import pytest
from harness.report.example import saved_run, verdict
from support import require

from pinchpoint.report import registry
from pinchpoint.report.report import gather

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> pypdfium2.PdfDocument:
    """The example's page as a PDF, printed once."""
    folder = tmp_path_factory.mktemp("print")
    page = registry.write_reports(gather(saved_run(), verdict()), ["html"], folder)[0]
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    pdf = folder / "page.pdf"
    subprocess.run(
        [
            require("chromium", "chromium"),
            *arguments,
            "--virtual-time-budget=20000",
            "--no-pdf-header-footer",
            f"--print-to-pdf={pdf}",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return pypdfium2.PdfDocument(pdf.read_bytes())


def _letters(text: str) -> str:
    """Without white space and hyphens: where lines break is the printer's."""
    return "".join(text.split()).replace("-", "").replace("\ufffe", "")


def _on_paper(document: pypdfium2.PdfDocument) -> str:
    """What lies within the sheets."""
    return _letters("".join(page.get_textpage().get_text_bounded() for page in document))


def test_every_table_and_every_query_is_on_paper(printed: pypdfium2.PdfDocument) -> None:
    """Whole tables, also wide ones; what is folded away on the screen, too."""
    paper, report = _on_paper(printed), gather(saved_run(), verdict())
    shown = [table for table in report.tables.values() if table.rows]
    assert len(shown) > 10
    lost = [
        (table.name, cell)
        for table in shown
        for row in [[column.title for column in table.columns], *table.cells()]
        for cell in row
        if _letters(cell) not in paper
    ]
    assert lost == []
    queries = [fact.query for finding in report.findings for fact in finding.evidence]
    assert [query for query in queries if _letters(query) not in paper] == []


def test_no_picture_is_cut_in_two(printed: pypdfium2.PdfDocument) -> None:
    """The timeline's panels, one below the other, are one picture: all of their titles are on one sheet."""
    sheets = [_letters(page.get_textpage().get_text_bounded()) for page in printed]
    titles = [_letters(panel.title) for panel in gather(saved_run(), verdict()).panels if panel.series]
    assert len(titles) > 1
    assert any(all(title in sheet for title in titles) for sheet in sheets)
