"""Builds the report of published figures: what the mean values of several farms prove."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from pinchpoint.analysis.published_means import Published
from pinchpoint.base import wording
from pinchpoint.base.objects import JsonObject
from pinchpoint.data.timeline import Axis
from pinchpoint.published.judge import PublishedFindings, judge_report, resource
from pinchpoint.published.record import PublishedReport
from pinchpoint.published.text import OUTCOMES
from pinchpoint.report.brief import BOTTLENECK, DECIDED, DO, NOT_SHOWN, TESTED
from pinchpoint.report.charts import (
    LABELS,
    ON_TOP,
    SHOW,
    Chart,
    Datasets,
    coloured,
    drawn,
    field,
    label_px,
    layer,
    layered,
)
from pinchpoint.report.document import Answer, PlainReport, Plot, ReportPart, plot_lines
from pinchpoint.report.tables import Table, columns

_MOST_DOUBTS = 3
"""Largest number of doubts on the first page. All doubts are among the warnings."""
_FIGURES: tuple[tuple[str, str, Axis], ...] = (
    ("rate_per_s", "Crawl rate by source", "rate"),
    ("latency_s", "Repository latency by source", "latency"),
)


def document(report: PublishedReport) -> PlainReport:
    """Build the report."""
    result = judge_report(report)
    names = list(report.farms)
    sources = [
        {"source": row["source"], "farm": farm, **figures}
        for row in result.sources
        for farm, figures in row["farms"].items()
        if figures is not None
    ]
    disks = [
        {"farm": farm, **one.model_dump(), "type": one.profile}
        for farm, figures in report.farms.items()
        for one in figures.disks
    ]
    cpus = [
        {"farm": farm, **one.model_dump()} for farm, figures in report.farms.items() for one in figures.cpus
    ]
    charts, plots = [], []
    for key, title, axis in _FIGURES:
        if rows := [row for row in sources if row[key] is not None]:
            charts.append(_bars(f"sources-{key}", title, axis, key, rows, names))
            bars = plot_lines((f"{row['source']}, {row['farm']}", 0, row[key]) for row in rows)
            plots.append(Plot(f"sources-{key}", title, axis, "", bars, bars=True))
    return PlainReport(
        title=(report.title, "", ""),
        kind="Published figures",
        summary=wording.Summary.of([f"{name}: {_farm_words(one)}." for name, one in result.farms.items()]),
        parts=(
            ReportPart(
                "farms", "What each farm's means prove", tables=(_farms(result), _conclusions(result))
            ),
            ReportPart("crawl", "Crawl", tuple(charts), (_sources(sources),)),
            ReportPart("tiers", "Tiers", tables=(_disks(disks), _cpus(cpus))),
            ReportPart("doubts", "Where the report contradicts itself", tables=(_doubts(result),)),
        ),
        content=result.to_json(),
        reasons=tuple(f"Also different: {one}." for one in result.differ),
        answers=tuple(_answers(result)),
        plots=tuple(plots),
    )


def _answers(findings: PublishedFindings) -> Iterator[Answer]:
    yield Answer(
        TESTED, findings.title, f"Farms: {wording.listed(list(findings.farms))}. When is not published."
    )
    yield Answer(DECIDED, "Not decided", "Published figures have no objectives.")
    named = [f"{name}: {_candidates(one)}" for name, one in findings.farms.items()]
    lines = [
        f"The report concludes: {one.says}; its figures {'' if one.supported else 'do not '}support that."
        for one in findings.conclusions
    ]
    yield Answer(BOTTLENECK, " ".join(f"{each}." for each in named), " ".join(lines))
    decide = [f"{name}: {one.experiment}" for name, one in findings.farms.items() if one.experiment]
    if decide:
        yield Answer(DO, "Measure the candidates over time, at several load levels.", " ".join(decide))
    yield Answer(
        NOT_SHOWN,
        "These are means: no sample, no interval, no change over time.",
        " ".join(f"{one}." for one in findings.doubts[:_MOST_DOUBTS]),
    )


def _farm_words(published: Published) -> str:
    sure = f" (confidence: {published.confidence})" if published.confidence else ""
    named = wording.listed([resource(each) for each in published.candidates])
    return f"{OUTCOMES[published.outcome]}{sure}" + (f". Candidates: {named}" if named else "")


def _candidates(published: Published) -> str:
    """Return the candidates as text; "none shown" without candidates."""
    named = wording.listed([resource(each) for each in published.candidates])
    return named if published.outcome == "bottleneck" else f"{named}?" if named else "none shown"


def _farms(findings: PublishedFindings) -> Table:
    rows = [
        {**asdict(each), "farm": name, "what": resource(each)}
        for name, one in findings.farms.items()
        for each in one.candidates
    ]
    return Table(
        "candidates",
        "Candidates",
        columns(
            "farm",
            "what: resource",
            "hosts",
            "measured: published in full",
            "why",
        ),
        rows,
        empty="No resource is suspected.",
    )


def _conclusions(findings: PublishedFindings) -> Table:
    return Table(
        "conclusions",
        "The report's own conclusions",
        columns(
            "farm",
            "says: conclusion",
            "supported",
            "because",
            "needs: what to measure | -",
        ),
        [asdict(one) for one in findings.conclusions],
        empty="The report concludes nothing.",
    )


def _sources(rows: Sequence[JsonObject]) -> Table:
    return Table(
        "sources",
        "Sources",
        columns(
            "source",
            "farm",
            "count number: documents | not published",
            "failed: all failed",
            "duration_s: duration | not published",
            "rate_per_s: rate | not published",
            "counted_per_s: documents ÷ duration | not published",
            "latency_s: repository latency | not published",
        ),
        rows,
        empty="No source is published.",
    )


def _disks(rows: Sequence[JsonObject]) -> Table:
    return Table(
        "disks",
        "Disks",
        columns(
            "farm",
            "tier",
            "host",
            "role",
            "latency_s: latency, mean | not published",
            "latency_max_s: latency, max | not published",
            "iops per_s: IOPS, mean | not published",
            "iops_max per_s: IOPS, max | not published",
            "type: type | not published",
        ),
        rows,
        empty="No disk is published.",
    )


def _cpus(rows: Sequence[JsonObject]) -> Table:
    return Table(
        "cpus",
        "CPU",
        columns(
            "farm",
            "tier",
            "host",
            "busy_ratio: busy, mean | not published",
        ),
        rows,
        empty="No CPU is published.",
    )


def _doubts(findings: PublishedFindings) -> Table:
    return Table(
        "doubts",
        "Figures and statements that contradict each other",
        columns("number text: no.", "what: contradiction"),
        [{"number": number, "what": one} for number, one in enumerate(findings.doubts, 1)],
        empty="The report's figures agree with each other.",
    )


def _bars(
    name: str, title: str, axis: Axis, key: str, rows: Sequence[JsonObject], farms: Sequence[str]
) -> Chart:
    """Draw a bar for each source and farm."""
    data = Datasets()
    shown = data.named([{**row, "value": row[key], "shown": SHOW[axis](row[key])} for row in rows])
    wide = min(label_px(row["source"] for row in rows), 260)
    bars = {
        "x": field("value:Q", axis={"title": None, "labelExpr": LABELS[axis], "tickCount": 5}),
        "y": field("source:N", sort=None, axis={"title": None, "labelLimit": wide, "minExtent": wide}),
        "yOffset": field("farm:N"),
        "color": coloured("farm", farms, legend=ON_TOP),
    }
    words = {**bars, "text": field("shown:N"), "color": {"value": "#444"}}
    layers = [layer(shown, "bar", bars), layer(shown, "text", words, align="left", dx=4, fontSize=10)]
    return drawn(name, title, layered(layers, 460, 36 * len({row["source"] for row in rows})), data)
