"""Office documents and pipeline files: their content, with any names that a farm may have."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pypdfium2 as pdfium
import pytest
from harness.report.documents import parts, words
from harness.report.example import saved_run, verdict
from PIL import Image

from pinchpoint.base.errors import InputError
from pinchpoint.report import html, junit, markdown, pdf, pptx, registry, xlsx
from pinchpoint.report.brief import QUESTIONS, brief_of
from pinchpoint.report.cover import Cover, cover_of
from pinchpoint.report.report import Report, gather

NAMES = (
    "<script>alert(1)</script>",
    '=cmd("/c calc")',
    "\u05d0\u05d1\u202e\u05d2",
    "a\x00b\udce9",
    "\u6570\u636e\u5e93 \U0001f600 \u0639\u0631\u0628 \U000f1234",
    "n" * 300,
)
"""Names that a farm may have and that must be shown as text."""


def hostile(*names: str) -> Report:
    """Return a run with that title and that name for scenarios, sources and warnings."""
    run, content = saved_run(), verdict()
    run.manifest["name"] = names[-1]
    run.manifest["warnings"] += [f"{name} was skipped" for name in names]
    crawl = [{**content["crawl"][0], "source": name} for name in names]
    objectives = [{**content["objectives"][0], "scenario": name, "met": False} for name in names]
    return gather(run, verdict(crawl=crawl, objectives=objectives, summary=f"{names[-1]} is the bottleneck."))


@pytest.fixture(scope="module")
def example() -> Report:
    """Return the example's report, gathered once."""
    return gather(saved_run(), verdict())


@pytest.mark.parametrize("form", list(registry.FORMATS))
def test_a_document_is_the_same_each_time(form: str, example: Report) -> None:
    """A document is byte for byte the same each time; its dates and ids are the run's."""
    assert registry.FORMATS[form](example) == registry.FORMATS[form](example)


def test_every_format_takes_every_name(tmp_path: Path) -> None:
    """Every format accepts markup, formulas, right-to-left text, empty names and 300 letters."""
    report, cover = hostile(*NAMES), Cover(title=NAMES[0])
    for path in registry.write_reports(report, registry.FORMATS, tmp_path, cover):
        assert path.stat().st_size > 500, path
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert NAMES[0] not in page
    assert NAMES[0] in words((tmp_path / "report.pptx").read_bytes())


def test_a_letter_without_a_font_does_not_stop_a_pdf() -> None:
    """A letter without a font (cuneiform) is a question mark in a PDF, and the document says so."""
    with pdfium.PdfDocument(pdf.write(hostile("\U00012000 tablet"))) as document:
        pages = [page.get_textpage().get_text_bounded() for page in document]
    assert "? tablet" in pages[0]
    assert any("no font of this machine" in page for page in pages[:3])


KEPT = {name: {**one, "writes": None} for name, one in verdict()["scenarios"].items()}
"""The scenarios of the example without lost writes."""


def cases(report: Report) -> Mapping[str, Xml.Element]:
    suite = Xml.fromstring(junit.write(report))[0]  # noqa: S314 -- our own
    return {str(case.get("name")): case for case in suite.iter("testcase")}


def test_objectives_guards_and_the_verdict_are_test_cases() -> None:
    """Objectives, guards and the verdict are test cases: met, missed, not measured, stopped, no data."""
    run = saved_run()
    rules = [
        {"metric": "error_ratio", "above": 0.05, "for_s": 30.0},
        {"metric": "disk.write_latency_s", "role": "log", "above": 0.5, "for_s": 60.0},
        {"metric": "cpu.busy_ratio", "above": 0.9, "for_s": 5.0},
    ]
    run.manifest["plan"]["stop_when"] = rules
    ended, missing = "stop_when: error_ratio of orders was above 5 % for 30 s", "stop_when[1]: not measured"
    run.events.append({"event": "guard", "stop_rule": 0, "why": ended})
    run.events.append({"event": "warning", "stop_rule": 1, "sentence": missing})
    given = verdict()["objectives"][0]
    objectives: list[Any] = [{**given, "met": met, "scenario": str(met)} for met in (True, False, None)]
    report = gather(run, verdict(objectives=objectives, scenarios=KEPT))
    found = cases(report)
    said = {name: [child.tag for child in case if child.tag != "system-out"] for name, case in found.items()}
    states = list(said.values())
    assert states == [[], [], ["failure"], ["failure"], ["failure"], ["skipped"], []], said
    suite = Xml.fromstring(junit.write(report))[0]  # noqa: S314 -- likewise
    assert [suite.get(key) for key in ("tests", "failures", "errors", "skipped")] == ["7", "3", "0", "1"]


def test_a_run_of_an_older_version_does_not_say_which_rule_ended_it() -> None:
    """For an older run without the guard's name, its guards are skipped and one failure is reported."""
    run = saved_run()
    run.manifest["plan"]["stop_when"] = [{"metric": "cpu.busy_ratio", "above": 0.9, "for_s": 5.0}]
    run.events.append({"event": "guard", "why": "stop_when: cpu.busy_ratio was above 90 % for 5 s"})
    found = cases(gather(run, verdict(objectives=[], scenarios=KEPT)))
    tags = {name: [child.tag for child in case if child.tag != "system-out"] for name, case in found.items()}
    assert tags["cpu.busy_ratio not above 90 % for 5 s"] == ["skipped"]
    assert tags["no stop rule ended the run"] == ["failure"]


@pytest.mark.parametrize(
    ("changed", "state", "decision"),
    [
        ({"outcome": "invalid"}, "finished", "not decided"),
        ({"objectives": []}, "finished", "not decided"),
        ({"objectives": [True]}, "finished", "go"),
        ({"objectives": [True, False]}, "finished", "no-go"),
        ({"objectives": [True]}, "interrupted", "not decided"),
    ],
)
def test_go_or_no_go(changed: dict[str, Any], state: str, decision: str) -> None:
    """The answer is "go" only where a complete, valid run measured and met every objective."""
    run, given = saved_run(), verdict()["objectives"][0]
    run.manifest["state"] = state
    if "objectives" in changed:
        changed = {"objectives": [{**given, "met": met} for met in changed["objectives"]]}
    assert brief_of(gather(run, verdict(**{"scenarios": KEPT, **changed}))).decision == decision


def test_page_one_answers_in_the_order_of_its_questions(example: Report) -> None:
    """Page one answers a manager's seven questions in their order."""
    brief = brief_of(example)
    assert tuple(one.question for one in brief.answers) == QUESTIONS
    assert all(one.text for one in brief.answers)


def test_numbers_of_a_sheet_are_numbers_and_no_text_is_a_formula() -> None:
    """Numbers in a sheet are numeric in base units, text is never a formula, and charts are native."""
    made = parts(xlsx.write(hostile(*NAMES)))
    sheets = [content.decode() for name, content in made.items() if name.startswith("xl/worksheets/sheet")]
    assert not any("<f>" in sheet for sheet in sheets)
    assert sum("<v>" in sheet for sheet in sheets) == len(sheets)
    panels = [panel for panel in gather(saved_run(), verdict()).panels if panel.series]
    assert sum(name.startswith("xl/charts/chart") for name in made) >= len(panels)
    assert re.search(r"<c:f>[^<]*Throughput", words_of_charts(made))


def test_rows_of_a_sheet_are_as_tall_as_their_text() -> None:
    """Sheet rows are as high as their text, because other programs than Excel do not adjust them."""
    sheet = parts(xlsx.write(hostile("word " * 60)))["xl/worksheets/sheet1.xml"].decode()
    tallest = max(float(height) for height in re.findall(r' ht="([0-9.]+)"', sheet))
    assert tallest >= 4 * 15


def test_latency_is_drawn_by_powers_of_ten_in_every_format(example: Report) -> None:
    """Latency charts have a logarithmic axis in every format, as on the page."""
    for made in (parts(pptx.write(example)), parts(xlsx.write(example))):
        charts = [content.decode() for name, content in made.items() if "/charts/chart" in name]
        shown = [chart for chart in charts if "Latency, p50 and p95" in chart]
        assert shown
        assert all('<c:logBase val="10"/>' in chart for chart in shown)


def test_a_name_does_not_turn_the_text_beside_it() -> None:
    """A control character that reverses text is a question mark on the page and in Markdown."""
    report = hostile("\u202eevil")
    page, text = html.write(report), markdown.write(report).partition("```json")[0]
    for said in (page, text):
        assert "?evil" in said
        assert "\u202e" not in said
    assert "\u05d0\u05d1\u200e was skipped" in html.write(hostile("\u05d0\u05d1"))


def words_of_charts(made: Mapping[str, bytes]) -> str:
    return "".join(content.decode() for name, content in made.items() if "/charts/chart" in name)


def png() -> bytes:
    """Return a small picture."""
    written = io.BytesIO()
    Image.new("RGB", (40, 20), "navy").save(written, format="PNG")
    return written.getvalue()


PNG = png()
SPOILT = PNG[:60] + bytes([PNG[60] ^ 1]) + PNG[61:]
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><rect width="40" height="20"/></svg>'


@pytest.mark.parametrize("data", [PNG, SVG], ids=["png", "svg"])
def test_a_title_and_a_logo_stand_in_every_document_that_has_a_place_for_them(
    data: bytes, example: Report, tmp_path: Path
) -> None:
    """The title is in every document; the logo is on the page, in the workbook and on the slides."""
    (tmp_path / "logo").write_bytes(data)
    cover = cover_of("Before we go live", tmp_path / "logo")
    made = {name: write(example, cover) for name, write in registry.FORMATS.items()}
    for name in ("html", "md", "json", "junit"):
        assert "Before we go live" in str(made[name])
    for name in ("xlsx", "pptx"):
        document = made[name]
        assert isinstance(document, bytes)
        assert "Before we go live" in words(document)
        assert any("/media/" in part for part in parts(document))
    assert "data:image/" in str(made["html"])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "cannot be read"),
        (b"GIF89a", "neither a PNG nor an SVG"),
        (PNG[:40], "damaged PNG"),
        (SPOILT, "damaged PNG"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><rect", "damaged SVG"),
        (SVG.replace(b"<rect", b"<image href='/etc/passwd'/><rect"), "refers to another file"),
        (PNG + bytes(2_000_000), "has 2,000,0"),
    ],
)
def test_a_logo_that_is_none_is_refused(data: bytes | None, said: str, tmp_path: Path) -> None:
    """A file that is no logo is refused with its name, what was found, and what is allowed."""
    path = tmp_path / "logo"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InputError, match=said):
        cover_of(None, path)
    with pytest.raises(InputError, match="--title: is empty"):
        cover_of(" ", None)


def test_a_document_needs_its_extra(example: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library, the message says which extra to install."""
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(InputError, match=r"pip install 'pinchpoint\[documents\]'"):
        xlsx.write(example)


def test_a_pdf_is_tagged_and_answers_on_its_first_page(example: Report) -> None:
    """A PDF is tagged for screen readers, and its first page has the answers."""
    with pdfium.PdfDocument(pdf.write(example)) as document:
        assert pdfium.raw.FPDFCatalog_IsTagged(document.raw)
        pages = [page.get_textpage().get_text_bounded() for page in document]
    assert [question for question in QUESTIONS if question not in " ".join(pages[0].split())] == []
    assert "Evidence" in pages[0]
    assert pages[1].startswith("Appendix")
