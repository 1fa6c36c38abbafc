"""The page as Chromium prints it: nothing from the screen or from folded parts is lost."""

from __future__ import annotations

import subprocess

import pypdfium2
import pytest
from harness.report.example import saved_run, verdict
from support import require

from pinchpoint.report import registry
from pinchpoint.report.report import gather
from pinchpoint.report.timeline_chart import FIRST

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> pypdfium2.PdfDocument:
    """Return the example's page as a PDF, printed once."""
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
    """Return the text without white space and hyphens, as line breaks depend on the printer."""
    return "".join(text.split()).replace("-", "").replace("\ufffe", "")


def _on_paper(document: pypdfium2.PdfDocument) -> str:
    """Return the text within the sheets."""
    return _letters("".join(page.get_textpage().get_text_bounded() for page in document))


def test_every_table_and_every_query_is_on_paper(printed: pypdfium2.PdfDocument) -> None:
    """Whole tables and all queries are on paper, also those that are folded or wide."""
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


def test_the_first_sheet_is_the_first_screen(printed: pypdfium2.PdfDocument) -> None:
    """The first sheet has the verdict, the scenarios and every chart of the first screen."""
    first = _letters(printed[0].get_textpage().get_text_bounded())
    panels = {panel.name: panel for panel in gather(saved_run(), verdict()).panels}
    shown = [panels[name].title for name in FIRST if panels[name].series]
    assert len(shown) > 3
    assert [title for title in shown if _letters(title) not in first] == []
