"""Writes the PPTX format: five slides with native PowerPoint charts and tables."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pinchpoint.base import units
from pinchpoint.base.text import one_line
from pinchpoint.report import fit
from pinchpoint.report.brief import (
    BOTTLENECK,
    DECIDED,
    DO,
    HEADROOM,
    NEXT,
    NOT_SHOWN,
    Brief,
    Gathered,
    brief_of,
)
from pinchpoint.report.charts import PALETTE
from pinchpoint.report.comparison import ComparisonReport
from pinchpoint.report.cover import PLAIN, Cover
from pinchpoint.report.document import Answer, Plot
from pinchpoint.report.libraries import library
from pinchpoint.report.report import Report
from pinchpoint_collectors.common.counts import counted

_WIDTH, _HEIGHT = 960.0, 540.0
"""Size of a slide in points; the aspect ratio is 16 to 9."""
_EDGE, _TOP, _GAP = 36.0, 96.0, 14.0
_INSET = 4.0
_FONT = "Arial"
_BOLD = 1.12
"""Width of bold letters ÷ width of regular letters."""
_INK, _QUIET = "1B1F24", "5B6570"
_BADGE = {"go": "1B6E3C", "no-go": "A3211B", "not decided": "5B6570"}
_SIZES = (18, 16, 15, 14, 13, 12, 11, 10)
_SHORTER = (400, 300, 200, 120, 80, 50)
"""Largest numbers of letters in a cell. They are tried in order if a table is too tall at the smallest font
size."""
_TITLE = 90
"""Largest number of letters in a title. A longer answer is placed below the title."""
_MOST_POINTS = 300
_MOST_LINES = 8
_FEW = 30
"""Number of points up to which a line gets markers. A longer line has gaps where nothing was measured."""
_FORMAT = {"rate": "#,##0.##", "latency": "0.####", "ratio": "0%"}
_UNIT = {"rate": "per second", "latency": "seconds", "ratio": "share"}

_BEGIN = (1980, 1, 1, 0, 0, 0)
_STAMP = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*(<)")

Box = tuple[float, float, float, float]
"""Left, top, width, height in points."""
_WIDE, _TALL = _WIDTH - 2 * _EDGE, _HEIGHT - _TOP - _EDGE
_PAGE: Box = (_EDGE, _TOP, _WIDE, _TALL)
"""The area of a slide below its title."""


def write(report: Gathered, cover: Cover = PLAIN) -> bytes:
    """Return the presentation. The same input gives the same bytes."""
    brief = brief_of(report)
    deck = _Deck(brief, cover)
    _first(deck, brief, cover)
    _objectives(deck, brief)
    shown = _evidence(deck, brief, _wanted(report))
    _sides(deck, brief, report, shown)
    _next(deck, brief, report)
    return deck.saved()


def _first(deck: _Deck, brief: Brief, cover: Cover) -> None:
    """Add the first slide: the answers to the questions."""
    deck.slide(cover.title or brief.title, logo=cover)
    rows = [[each.question, each.said] for each in brief.answers]
    deck.table(None, rows, _PAGE, badge=brief.decision)


def _objectives(deck: _Deck, brief: Brief) -> None:
    deck.slide(_titled(brief, DECIDED, "Objectives"))
    rows = [[f"{one.group}: {one.name}", one.state, one.message] for one in brief.checks]
    if rows:
        deck.table(["check", "result", "found"], rows, _PAGE)
    else:
        deck.text(["No objective was set, so there is nothing to pass or to fail."], _PAGE)


def _titled(brief: Brief, question: str, title: str) -> str:
    result = brief.answer(question)
    short = result is not None and len(result.text) <= _TITLE
    return f"{title}: {result.text.rstrip('.')}" if result is not None and short else title


def _evidence(deck: _Deck, brief: Brief, wanted: Sequence[str]) -> str:
    """Add a slide with the facts of the bottleneck beside one chart.

    Returns the name of the chart; "" without a chart.
    """
    deck.slide(_titled(brief, BOTTLENECK, "Bottleneck"))
    result = brief.answer(BOTTLENECK)
    answer = [] if result is None else [result.said] if len(result.text) > _TITLE else [result.more]
    facts = [one for one in answer if one]
    facts += [f"• {fact}" for fact in brief.evidence]
    facts = facts or ["No measurement supports one resource."]
    plots = {plot.name: plot for plot in brief.plots}
    shown = next((plots[name] for name in wanted if name in plots), next(iter(plots.values()), None))
    half = (_WIDE - _GAP) / 2
    deck.text(facts, (_EDGE, _TOP, half if shown else _WIDE, _TALL))
    if shown:
        deck.chart(shown, (_EDGE + half + _GAP, _TOP, half, _TALL))
    return shown.name if shown else ""


def _wanted(report: Gathered) -> Sequence[str]:
    """Return the names of the panels that show this kind of bottleneck, the most useful first."""
    blame: Any = {}
    if isinstance(report, Report):
        blame = report.verdict.get("bottleneck") or {}
    elif isinstance(report, ComparisonReport):
        blame = report.content["bottleneck"]["base"] or {}
    kind = str(blame.get("kind") or "")
    if kind in ("disk_cap", "disk_device", "disk_burst_exhausted"):
        return ("disk_iops", "disk_write_latency")
    if kind.startswith("disk"):
        return ("disk_write_latency", "disk_iops")
    return ("cpu", "latency") if kind.startswith("cpu") else ("latency", "throughput")


def _sides(deck: _Deck, brief: Brief, report: Gathered, shown: str) -> None:
    """Add a slide with both sides, the load levels, or the run over time.

    The chart ``shown`` is not repeated.
    """
    plots = {plot.name: plot for plot in brief.plots if plot.name != shown}
    if isinstance(report, ComparisonReport):
        title, names = f"{report.sides[0].label} against {report.sides[1].label}", ("ratios", "throughput")
    elif "levels-throughput" in plots or "levels-p95" in plots:
        title, names = "Load levels", ("levels-throughput", "levels-p95")
    else:
        title, names = "Load over time", ("throughput", "latency")
    result = [plots[name] for name in (*names, "cpu") if name in plots][:2]
    deck.slide(title if result else "Figures")
    result = result or list(plots.values())[:2]
    width = (_WIDE - _GAP * (len(result) - 1)) / max(len(result), 1)
    for at, plot in enumerate(result):
        deck.chart(plot, (_EDGE + at * (width + _GAP), _TOP, width, _TALL))
    if not result and brief.main is not None:
        heads = [column.title for column in brief.main.columns][:6]
        rows = [cells[:6] for cells in brief.main.cells()]
        deck.table(heads, rows, _PAGE)


def _next(deck: _Deck, brief: Brief, report: Gathered) -> None:
    deck.slide("What to do, and what limits next")
    rows: list[list[str]] = []
    if isinstance(report, Report):
        table = report.tables["advice"]
        at = [[column.key for column in table.columns].index(key) for key in ("what", "gain", "limit_next")]
        rows = [[cells[one] for one in at] for cells in table.cells()[:4]]
    upper = _TALL * 0.55 if rows else 0.0
    if rows:
        deck.table(["what to do", "gain", "then limits"], rows, (_EDGE, _TOP, _WIDE, upper - _GAP))
    asked = (HEADROOM, NEXT, NOT_SHOWN) if rows else (DO, HEADROOM, NEXT, NOT_SHOWN)
    answers: list[Answer] = [one for one in map(brief.answer, asked) if one is not None]
    lines = [f"{one.question}: {one.said}" for one in answers]
    deck.text(lines, (_EDGE, _TOP + upper, _WIDE, _TALL - upper))


class _Deck:
    """Wrapper around python-pptx. All lengths are in points."""

    def __init__(self, brief: Brief, cover: Cover) -> None:
        self._at: datetime = brief.made_at
        library("pptx", "--format pptx")
        import pptx  # noqa: PLC0415 -- see libraries
        import pptx.chart.data  # noqa: PLC0415 -- likewise
        import pptx.dml.color  # noqa: PLC0415 -- likewise
        import pptx.enum.chart  # noqa: PLC0415 -- likewise
        import pptx.enum.text  # noqa: PLC0415 -- likewise
        import pptx.util  # noqa: PLC0415 -- likewise

        self._lib: Any = pptx
        self._deck: Any = pptx.Presentation()
        self._deck.slide_width, self._deck.slide_height = self._pt(_WIDTH), self._pt(_HEIGHT)
        about = self._deck.core_properties
        about.title, about.subject = one_line(cover.title or brief.title)[:255], brief.kind
        about.author = about.last_modified_by = "Pinchpoint"
        about.created = about.modified = self._at
        self._slide: Any = None

    def _pt(self, points: float) -> Any:
        return self._lib.util.Pt(points)

    def _colour(self, name: str) -> Any:
        return self._lib.dml.color.RGBColor.from_string(name.lstrip("#").upper())

    def saved(self) -> bytes:
        """Return the presentation file as bytes."""
        written = io.BytesIO()
        self._deck.save(written)
        return _rewritten(written.getvalue(), self._at)

    def slide(self, title: str, logo: Cover = PLAIN) -> None:
        """Add a slide with a title. Screen readers read the title first."""
        self._slide = self._deck.slides.add_slide(self._deck.slide_layouts[5])
        room = _WIDE - (150 if logo.logo else 0)
        frame = self._slide.shapes.title
        frame.left, frame.top, frame.width, frame.height = map(self._pt, (_EDGE, 20, room, 64))
        size, kept = fit.fitted(
            [one_line(title)], (room - 2 * _INSET, 64 - 2 * _INSET), (28, 24, 20, 18, 16, 14)
        )
        self._fill(frame.text_frame, kept, size, bold=True)
        if logo.logo is not None:
            picture = io.BytesIO(logo.logo.png())
            shape = self._slide.shapes.add_picture(picture, self._pt(_WIDTH - _EDGE - 140), self._pt(24))
            scale = min(self._pt(140) / shape.width, self._pt(56) / shape.height)
            shape.width, shape.height = int(shape.width * scale), int(shape.height * scale)
            shape.left = self._pt(_WIDTH - _EDGE) - shape.width
            self._says(shape, "Logo")

    @staticmethod
    def _says(shape: Any, text: str) -> None:
        """Set the text that a screen reader reads in place of a picture."""
        shape._element._nvXxPr.cNvPr.set("descr", one_line(text))

    def text(self, texts: Sequence[str], box: Box) -> None:
        """Add paragraphs that fit into a box."""
        shape = self._slide.shapes.add_textbox(*map(self._pt, box))
        inner = (box[2] - 2 * _INSET, box[3] - 2 * _INSET)
        size, kept = fit.fitted([one_line(text) for text in texts], inner, _SIZES, gap_pt=6)
        self._fill(shape.text_frame, kept, size, gap_pt=6)

    def _fill(self, frame: Any, texts: Sequence[str], size: float, gap_pt: float = 0, **look: Any) -> None:
        frame.word_wrap = True
        frame.margin_left = frame.margin_right = frame.margin_top = frame.margin_bottom = self._pt(_INSET)
        frame.vertical_anchor = self._lib.enum.text.MSO_ANCHOR.TOP
        for at, text in enumerate(texts):
            paragraph = frame.paragraphs[0] if at == 0 else frame.add_paragraph()
            paragraph.alignment = self._lib.enum.text.PP_ALIGN.LEFT
            paragraph.space_after = self._pt(gap_pt)
            self._run(paragraph, text, size, **look)

    def _run(self, paragraph: Any, text: str, size: float, *, bold: bool = False, colour: str = _INK) -> None:
        run = paragraph.add_run()
        run.text, run.font.size, run.font.bold, run.font.name = text, self._pt(size), bold, _FONT
        run.font.color.rgb = self._colour(colour)

    def table(
        self, heads: Sequence[str] | None, rows: Sequence[Sequence[str]], box: Box, badge: str | None = None
    ) -> None:
        """Add a table that fits into a box. If rows have no room, their number is shown."""
        cells = [[one_line(cell) for cell in row] for row in ([list(heads)] if heads else []) + [*rows]]
        widths, size, cells = _laid_out(cells, box)
        shape = self._slide.shapes.add_table(len(cells), len(cells[0]), *map(self._pt, box))
        self._says(shape, "Table: " + ", ".join(heads or ("questions and answers",)))
        table = shape.table
        table.first_row, table.horz_banding, table.first_col = bool(heads), False, not heads
        for at, width in enumerate(widths):
            table.columns[at].width = self._pt(width)
        for y, row in enumerate(cells):
            table.rows[y].height = self._pt(_row_height(row, widths, size))
            for x, cell in enumerate(row):
                place = table.cell(y, x)
                place.fill.background()
                strong = (heads is not None and y == 0) or (heads is None and x == 0)
                colour = _QUIET if strong else _INK
                if badge and row[0] == DECIDED and x == 1:
                    colour, strong = _BADGE[badge], True
                self._fill(place.text_frame, [cell], size, bold=strong, colour=colour)
                place.margin_left = place.margin_right = self._pt(_INSET)
                place.margin_top = place.margin_bottom = self._pt(_INSET / 2)
        shape.height = self._pt(_table_height(cells, widths, size))

    def chart(self, plot: Plot, box: Box) -> None:
        """Add an editable chart with a description for screen readers."""
        kinds, chart_data = self._lib.enum.chart.XL_CHART_TYPE, self._lib.chart.data
        lines = plot.lines[:_MOST_LINES]
        xs = sorted({x for line in lines for x, _ in line.points})
        if plot.bars:
            data = chart_data.CategoryChartData(number_format="0.00")
            data.categories = [one_line(line.name) for line in lines]
            data.add_series(plot.title, [line.points[0][1] for line in lines])
            kind = kinds.BAR_CLUSTERED
        elif len(xs) <= _FEW:
            data = chart_data.XyChartData(number_format="General")
            for line in lines:
                series = data.add_series(one_line(line.name))
                for x, y in line.points:
                    series.add_data_point(x, y)
            kind = kinds.XY_SCATTER_LINES
        else:
            every = -(-len(xs) // _MOST_POINTS)
            kept = xs[::every]
            data = chart_data.CategoryChartData(number_format="General")
            data.categories = [_moment(plot, x) for x in kept]
            for line in lines:
                values = dict(line.points)
                data.add_series(one_line(line.name), [values.get(x) for x in kept])
            kind = kinds.LINE
        frame = self._slide.shapes.add_chart(kind, *map(self._pt, box), data)
        more = len(plot.lines) - len(lines)
        left = f" In the workbook: {counted(more, 'more line')}." if more else ""
        self._says(frame, f"Chart: {plot.title}, {', '.join(line.name for line in lines)}.{left}")
        self._style(frame.chart, plot, len(xs))

    def _style(self, chart: Any, plot: Plot, count: int) -> None:
        chart.font.size, chart.font.name = self._pt(11), _FONT
        chart.has_title = True
        title = chart.chart_title.text_frame
        title.text = one_line(plot.title)
        title.paragraphs[0].runs[0].font.size, title.paragraphs[0].runs[0].font.bold = self._pt(14), True
        chart.has_legend = not plot.bars and len(plot.lines) > 0
        if chart.has_legend:
            chart.legend.position = self._lib.enum.chart.XL_LEGEND_POSITION.BOTTOM
            chart.legend.include_in_layout = False
        x, y = chart.category_axis, chart.value_axis
        x.has_major_gridlines = False
        y.major_gridlines.format.line.color.rgb = self._colour("D5D9DE")
        if plot.logarithmic:
            y.minimum_scale, y.maximum_scale = plot.decades
            y.crosses = self._lib.enum.chart.XL_AXIS_CROSSES.MINIMUM
            base = y._element.makeelement(f"{{{_CHART}}}logBase", {"val": "10"})
            y._element.find(f"{{{_CHART}}}scaling").insert(0, base)
        else:
            y.minimum_scale = 0
        highest = max((value for line in plot.lines for _, value in line.points), default=0.0)
        if plot.axis == "ratio" and not plot.bars and 0.5 < highest <= 1:
            y.maximum_scale = 1
        if plot.bars:
            x.reverse_order = True
            chart.plots[0].series[0].format.fill.solid()
            chart.plots[0].series[0].format.fill.fore_color.rgb = self._colour(PALETTE[0])
            return
        y.tick_labels.number_format, y.tick_labels.number_format_is_linked = _FORMAT[plot.axis], False
        y.has_title, x.has_title = True, True
        times = plot.start_s is not None and count > _FEW  # with few points the axis shows seconds
        for axis, words in ((y, _UNIT[plot.axis]), (x, "time (UTC)" if times else plot.x)):
            axis.axis_title.text_frame.text = words
            axis.axis_title.text_frame.paragraphs[0].runs[0].font.size = self._pt(11)
        for at, series in enumerate(chart.plots[0].series):
            series.smooth = False
            series.format.line.width = self._pt(1.75)
            series.format.line.color.rgb = self._colour(PALETTE[at % len(PALETTE)])
        if count > _FEW:
            skip = x._element.makeelement(f"{{{_CHART}}}tickLblSkip", {"val": str(max(1, count // 5))})
            marks = x._element.makeelement(f"{{{_CHART}}}tickMarkSkip", {"val": str(max(1, count // 5))})
            before = x._element.find(f"{{{_CHART}}}noMultiLvlLbl")
            for each in (skip, marks):
                before.addprevious(each)


_CHART = "http://schemas.openxmlformats.org/drawingml/2006/chart"


def _moment(plot: Plot, x: float) -> str:
    """Return the label of a point on the time axis."""
    if plot.start_s is None:
        return units.seconds(x) if x >= 0 else f"{x:.0f} s"
    return f"{datetime.fromtimestamp(plot.start_s + x, UTC):%H:%M:%S}"


def _laid_out(cells: list[list[str]], box: Box) -> tuple[list[float], float, list[list[str]]]:
    """Return column widths, font size and rows of a table that fits into a box.

    Long cells are shortened first. Then rows are left out, and their number is shown.
    """
    tries = [(size, cells) for size in _SIZES]
    tries += [
        (_SIZES[-1], [[fit.shortened(cell, most) for cell in row] for row in cells]) for most in _SHORTER
    ]
    for size, rows in tries:
        # The first row and the first column are bold, and bold letters are wider.
        widths = fit.widths([*zip(*rows, strict=True)], size, box[2], edge_pt=2 * _INSET + 6, wider=_BOLD)
        if _table_height(rows, widths, size) <= box[3]:
            return widths, size, rows
    kept = [*rows, [""] * len(rows[0])]
    while _table_height(kept, widths, size) > box[3]:
        del kept[-2]
        kept[-1][0] = f"and {len(rows) - len(kept) + 1} more"
    return widths, size, kept


def _table_height(rows: Sequence[Sequence[str]], widths: Sequence[float], size: float) -> float:
    return sum(_row_height(row, widths, size) for row in rows)


def _row_height(row: Sequence[str], widths: Sequence[float], size: float) -> float:
    tallest = max(
        fit.lines(cell, size, width - 2 * _INSET - 2) for cell, width in zip(row, widths, strict=True)
    )
    return tallest * size * fit.LINE + 2 * _INSET


def _rewritten(document: bytes, at: datetime) -> bytes:
    """Return the ZIP archive with fixed timestamps, also in the workbooks inside it."""
    written = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(document)) as given,
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as made,
    ):
        for name in given.namelist():
            content = given.read(name)
            if name.endswith(".xlsx"):
                content = _rewritten(content, at)
            elif name == "docProps/core.xml":
                stamp = f"{at:%Y-%m-%dT%H:%M:%SZ}".encode()
                content = _STAMP.sub(rb"\g<1>" + stamp + rb"\g<2>", content)
            made.writestr(zipfile.ZipInfo(name, _BEGIN), content, zipfile.ZIP_DEFLATED)
    return written.getvalue()
