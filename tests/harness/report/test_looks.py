"""The appearance of pages and slides: compared with stored pictures, and no text outside its place.

After an intended change, run with ``PINCHPOINT_LOOKS=keep`` and look at the pictures in ``looks/``.
"""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pypdfium2 as pdfium
from harness.report.example import saved_run, verdict
from harness.report.test_documents import NAMES, hostile
from PIL import Image
from pptx import Presentation
from support import require

from pinchpoint.report import pdf, pptx
from pinchpoint.report.report import gather

KEPT = Path(__file__).with_name("looks")
BLOCK = 12
"""Side of a compared block in pixels; letters may be placed slightly differently."""
FAR = 24.0
"""Largest accepted difference, of 255, of the worst block but one in a hundred."""


def _seen(document: bytes, number: int) -> Image.Image:
    with pdfium.PdfDocument(document) as opened:
        drawn: Image.Image = opened[number].render(scale=0.75).to_pil()
        return drawn.convert("L")


def _far(one: Image.Image, other: Image.Image) -> float:
    """Return the difference of two pictures in their most different blocks, of 255."""
    assert one.size == other.size
    small = [
        np.asarray(each.resize((each.width // BLOCK, each.height // BLOCK), Image.Resampling.BOX), float)
        for each in (one, other)
    ]
    return float(np.percentile(np.abs(small[0] - small[1]), 99))


def _compare(document: bytes, name: str, pages: int) -> None:
    for number in range(pages):
        path, seen = KEPT / f"{name}-{number + 1}.png", _seen(document, number)
        if os.environ.get("PINCHPOINT_LOOKS") == "keep":
            KEPT.mkdir(exist_ok=True)
            seen.save(path, optimize=True)
        assert _far(seen, Image.open(path)) < FAR, path


def test_two_pages_look_as_they_are_kept() -> None:
    """Page one with its charts, and the appendix's first page, equal the stored pictures."""
    _compare(pdf.write(gather(saved_run(), verdict())), "page", 2)


def _slides(deck: bytes, folder: Path) -> bytes:
    """Return a presentation's slides as LibreOffice prints them."""
    office = require("soffice", "libreoffice-impress-nogui")
    (folder / "deck.pptx").write_bytes(deck)
    asked = [f"-env:UserInstallation={(folder / 'profile').as_uri()}", "--headless", "--convert-to", "pdf"]
    done = subprocess.run(
        [office, *asked, "--outdir", folder, folder / "deck.pptx"],
        capture_output=True,
        timeout=150,
        check=True,
    )
    assert (folder / "deck.pdf").exists(), done.stderr
    return (folder / "deck.pdf").read_bytes()


def _boxes(deck: bytes) -> Iterator[list[tuple[float, float, float, float]]]:
    """Yield left, top, right and bottom of each slide's shapes in points."""
    for slide in Presentation(io.BytesIO(deck)).slides:
        yield [
            (one.left.pt, one.top.pt, one.left.pt + one.width.pt, one.top.pt + one.height.pt)
            for one in slide.shapes
        ]


def _outside(deck: bytes, printed: bytes) -> list[str]:
    """Return the text that lies outside of every shape."""
    lost = []
    with pdfium.PdfDocument(printed) as document:
        for number, (page, boxes) in enumerate(zip(document, _boxes(deck), strict=True), 1):
            text, height = page.get_textpage(), page.get_height()
            for at in range(text.count_rects()):
                left, bottom, right, top = text.get_rect(at)
                inside = any(
                    box[0] - 2 <= left
                    and right <= box[2] + 2
                    and box[1] - 2 <= height - top
                    and height - bottom <= box[3] + 2
                    for box in boxes
                )
                said = text.get_text_bounded(left, bottom, right, top).strip()
                if said and not inside:
                    lost.append(f"slide {number}: {said}")
    return lost


def test_five_slides_look_as_they_are_kept(tmp_path: Path) -> None:
    """Five slides equal the stored pictures: verdict, objectives, evidence, load, and advice."""
    deck = pptx.write(gather(saved_run(), verdict()))
    printed = _slides(deck, tmp_path)
    assert _outside(deck, printed) == []
    _compare(printed, "slide", 5)


def test_no_text_runs_out_of_a_slide(tmp_path: Path) -> None:
    """300 letters without a space in names, warnings and objectives stay inside their shapes."""
    deck = pptx.write(hostile(*NAMES))
    assert _outside(deck, _slides(deck, tmp_path)) == []


def test_a_text_that_is_too_long_would_be_seen(tmp_path: Path) -> None:
    """A slide with unmeasured text fails the check, so the check works."""
    opened = Presentation(io.BytesIO(pptx.write(gather(saved_run(), verdict()))))
    opened.slides[4].shapes[-1].text_frame.paragraphs[0].runs[0].text = "too long " * 400
    written = io.BytesIO()
    opened.save(written)
    assert _outside(written.getvalue(), _slides(written.getvalue(), tmp_path)) != []


def test_charts_are_native_and_say_what_they_show() -> None:
    """Slide charts are native, have at most 300 points a series, and have alternative text."""
    slides = Presentation(io.BytesIO(pptx.write(gather(saved_run(measure_s=900), verdict())))).slides
    assert len(slides) == 5
    shapes = [shape for slide in slides for shape in slide.shapes]
    charts = [shape for shape in shapes if shape.has_chart]
    assert len(charts) == 3
    for shape in charts:
        assert max(len(list(series.values)) for series in shape.chart.plots[0].series) <= 300
    framed = [shape for shape in shapes if shape.has_chart or shape.has_table]
    assert all(shape._element._nvXxPr.cNvPr.get("descr") for shape in framed)
    assert [slide.shapes.title.text_frame.text for slide in slides][-1] == "What to do, and what limits next"
