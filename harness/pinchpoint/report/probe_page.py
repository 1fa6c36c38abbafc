"""Builds the pages of a storage probe and of two compared probes, with their charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pinchpoint.base import units
from pinchpoint.base.groups import by_key
from pinchpoint.data.timeaxis import day_and_time
from pinchpoint.data.timeline import Axis
from pinchpoint.probe import compare, words
from pinchpoint.probe.compare import ProbeComparison
from pinchpoint.probe.figures import Figures, figures
from pinchpoint.probe.record import Probe
from pinchpoint.probe.verdict import ProbeVerdict, probe_content
from pinchpoint.report import probe as tables
from pinchpoint.report.brief import DO, HEADROOM, NEXT, NOT_SHOWN
from pinchpoint.report.charts import (
    PALETTE,
    SECONDS,
    Chart,
    Datasets,
    Spec,
    beside_names,
    coloured,
    drawn,
    end,
    field,
    layer,
    layered,
    over_depth,
)
from pinchpoint.report.document import Answer, PlainReport, Plot, PlotLine, ReportPart, TestCase, plot_lines
from pinchpoint.report.ratio_chart import ratio_chart
from pinchpoint.report.tables import Table
from pinchpoint_scenarios.storage_probe import Cell

FiguresByCell = Mapping[Cell, Figures]
_WIDTH = 700
_HEIGHT = 240
_MOST_BARS = 48
MARGIN = {"left": 40, "top": 5, "right": 40, "bottom": 5}
"""Padding of charts in pixels, because letters in a browser can be up to a quarter wider than in the
layout."""
_AS_JUDGED = {"declared": True, "margin_ratio": compare.MARGIN}
_NOT_REPORTED = "not measured"
_MOST_RATIOS = 64
"""Largest number of cells in the chart of ratios. The table has all cells."""


def document(probe: Probe, verdict: ProbeVerdict) -> PlainReport:
    """Build the report of a probe."""
    result = figures(probe)
    drawn = [throughput(result), *over_outstanding(result, probe.options.line_s), repetitions(probe)]
    return PlainReport(
        title=(probe.suite, "on", probe.where.label),
        kind="Storage probe",
        summary=verdict.answer,
        parts=(
            ReportPart(
                "limits",
                "Limits",
                tables=(
                    tables.workloads(verdict, probe.options.line_s),
                    *_filled(tables.against_catalogue(probe, result)),
                    tables.behaves_like(verdict),
                ),
            ),
            ReportPart("charts", "Charts", tuple(chart for chart in drawn if chart is not None)),
            ReportPart(
                "figures",
                "Figures",
                tables=(*_filled(tables.grid_of_patterns(result)), tables.cells(result, verdict)),
            ),
        ),
        content=probe_content(probe, verdict),
        at=probe.started,
        notes=tuple(words.notes(probe, verdict)),
        reasons=tuple(cap.why for _, cap in verdict.caps),
        facts=_facts(probe),
        answers=tuple(_answers(probe, verdict)),
        checks=tuple(_checks(probe, verdict, result)),
        plots=tuple(_plots(result)),
    )


def _answers(probe: Probe, verdict: ProbeVerdict) -> Iterator[Answer]:
    answer = words.distance(verdict, probe.declared)
    yield Answer(HEADROOM, answer or "The probe loads the disk to its limit; what it can do is not declared.")
    first, *then = words.what_to_do(verdict, probe)
    yield Answer(DO, first, " ".join(then))
    yield Answer(NEXT, "It depends on the application.")
    yield Answer(
        NOT_SHOWN,
        "What the disk does under another load, or on another day.",
        words.emulated(probe.where) or "",
    )


def _filled(table: Table) -> tuple[Table, ...]:
    """Return the table in a tuple; an empty tuple if the table has no rows."""
    return (table,) if table.rows else ()


def _checks(probe: Probe, verdict: ProbeVerdict, value: FiguresByCell) -> Iterator[TestCase]:
    """Yield the checks of a probe: each workload is measured, and the disk is what farm.yaml declares."""
    for workload in dict.fromkeys(cell.workload for cell in value):
        own = [one for cell, one in value.items() if cell.workload == workload]
        failed = [why for one in own for why in one.failed]
        state: Any = "error" if failed else "passed" if all(one.trials for one in own) else "skipped"
        answer = f"{workload} is not measured yet" if state == "skipped" else "; ".join(failed)
        yield TestCase("workloads", f"{workload} is measured", state, answer)
    if probe.declared.words:
        against = verdict.contradicted or ""
        yield TestCase("declared", "the disk is what is declared", "failed" if against else "passed", against)


def _plots(found: FiguresByCell) -> Iterator[Plot]:
    """Yield IOPS and latency over queue depth, one line per workload."""
    kinds: tuple[tuple[str, str, Axis], ...] = (
        ("iops", "I/Os per second by queue depth", "rate"),
        ("mean_s", "Mean latency by queue depth", "latency"),
    )
    for key, title, axis in kinds:
        points = [_point(cell.workload, cell, one) for cell, one in found.items()]
        lines = plot_lines((point["name"], point["outstanding"], point[key]) for point in points)
        if lines:
            ordered = tuple(PlotLine(line.name, tuple(sorted(line.points))) for line in lines)
            yield Plot(key, title, axis, "queue depth", ordered)


def compared_document(comparison: ProbeComparison) -> PlainReport:
    """Build the report of two compared probes."""
    chart = ratios(comparison)
    return PlainReport(
        title=(comparison.labels[0], "and", comparison.labels[1]),
        kind="Two storage probes",
        summary=comparison.answer,
        parts=(
            *((ReportPart("charts", "Ratios, second ÷ first", (chart,)),) if chart else ()),
            ReportPart("figures", "Figures", tables=(tables.changes(comparison), tables.moved(comparison))),
        ),
        content=comparison.to_json(),
        notes=(*(f"also different: {one}" for one in comparison.confounders), *comparison.warnings),
    )


def _facts(probe: Probe) -> tuple[tuple[str, Any], ...]:
    """Return the facts that are needed to repeat the probe."""
    where, options = probe.where, probe.options
    missing = _NOT_REPORTED if probe.imports else None
    each = units.seconds(options.time_per_cell_s) if options.time_per_cell_s else None
    facts = (
        ("Folder", where.folder),
        ("Machine", where.host),
        ("Device", where.device or missing or "none: memory or a network share"),
        ("File system", where.file_system or missing or "not known"),
        ("Model", where.model or missing or "not known"),
        ("Emulated", where.emulated),
        ("Declared", probe.declared.words or "nothing"),
        ("Machine type", where.machine),
        ("Price", probe.declared.price and probe.declared.price.words),
        ("Read-ahead", where.read_ahead_bytes and units.bytes_(where.read_ahead_bytes)),
        ("Threads", options.threads if options.threads > 1 else None),
        ("Repetitions", options.repeat),
        ("Time per cell", each or missing or "until its work is done"),
        ("File", _NOT_REPORTED if options.size_bytes is None else units.bytes_(options.size_bytes)),
        *(("Imported from", one["file"]) for one in probe.imports),
        ("Started", day_and_time(probe.started)),
        ("Ended", day_and_time(probe.ended) or "not yet"),
    )
    return (*((name, value) for name, value in facts if value), *probe.versions.items())


def throughput(value: FiguresByCell) -> Chart | None:
    """Draw bytes per second of each cell; the whiskers show the lowest and the highest repetition.

    With many cells, only the best cell of each workload is drawn.
    """
    means = {cell: one.bytes_per_s for cell, one in value.items() if one.bytes_per_s and one.bytes_per_s.mean}
    cells = list(means)
    if len(cells) > _MOST_BARS:
        workloads = by_key((cell.workload, cell) for cell in cells)
        cells = [max(each, key=lambda cell: means[cell].mean) for each in workloads.values()]
    if not cells:
        return None
    rows = [
        {
            "name": cell.name,
            "mean": means[cell].mean,
            "low": means[cell].low,
            "high": means[cell].high,
            "shown": units.of_metric("_bytes_per_s", means[cell].mean),
        }
        for cell in cells
    ]
    data = Datasets()
    named, y = data.named(rows), beside_names("name", [cell.name for cell in cells])
    mean = field("mean:Q", axis={"title": "bytes per second", "format": "~s", "tickCount": 6})
    layers = [
        layer(named, "bar", {"x": mean, "y": y}, color=PALETTE[0]),
        layer(named, "rule", {"x": field("low:Q"), "x2": end("high"), "y": y}, color="#333"),
        layer(
            named,
            "text",
            {"x": field("high:Q"), "text": field("shown:N"), "y": y},
            align="left",
            dx=6,
            fontSize=10,
        ),
    ]
    return _drawn("throughput", "Throughput by workload", layered(layers, _WIDTH - 200, 18 * len(rows)), data)


def over_outstanding(value: FiguresByCell, line_s: float) -> list[Chart]:
    """Draw IOPS and mean latency over queue depth, with at most eight workloads in a chart."""
    workloads = by_key(
        (cell.workload, cell)
        for cell, one in value.items()
        if cell.outstanding and one.iops and one.iops.mean and one.mean_s
    )
    several = [name for name, cells in workloads.items() if len(cells) > 1]
    groups = [several[at : at + len(PALETTE)] for at in range(0, len(several), len(PALETTE))]
    return [
        _rate_and_latency(value, {name: workloads[name] for name in group}, line_s, place)
        for place, group in enumerate(groups, 1)
    ]


def repetitions(probe: Probe) -> Chart | None:
    """Draw the deepest cell of each workload over its repetitions, or over seconds if there is only one."""
    workloads = by_key((cell.workload, cell) for cell in probe.cells)
    deepest = {name: max(cells, key=lambda cell: cell.outstanding or 0) for name, cells in workloads.items()}
    single = probe.options.repeat == 1
    rows = [
        row
        for cell in list(deepest.values())[: len(PALETTE)]
        for row in _over_time(probe, cell, single=single)
    ]
    places = sorted({row["at"] for row in rows})
    if len(places) < 2:
        return None
    data = Datasets()
    axis = {"title": "seconds"} if single else {"title": "repetition", "values": places, "format": "d"}
    named = data.named(rows)
    encoding = {
        "x": field("at:Q", axis=axis),
        "y": field("share:Q", axis={"title": "share of its mean", "format": ".0%"}, scale={"zero": True}),
        "color": _colour([cell.workload for cell in deepest.values()]),
    }
    layers = [layer(named, "line", encoding)]
    if not single:
        layers.append(layer(named, "point", encoding, filled=True, size=30))
    return _drawn(
        "repetitions",
        "Throughput of each repetition, as a share of the mean"
        if not single
        else "Throughput over time, as a share of the mean",
        layered(layers, _WIDTH, _HEIGHT),
        data,
    )


def _over_time(probe: Probe, cell: Cell, *, single: bool) -> list[dict[str, Any]]:
    done = [one for one in probe.cells[cell] if one.failed is None]
    if single:
        series = done[0].series if done else None
        values = (
            [] if series is None else [(at * series.step_s, rate) for at, rate in enumerate(series.iops, 1)]
        )
    else:
        values = [(float(one.number), one.figure) for one in done if one.figure is not None]
    mean = sum(value for _, value in values) / len(values) if values else 0.0
    return [{"at": at, "name": cell.workload, "share": value / mean} for at, value in values if mean]


def _rate_and_latency(
    value: FiguresByCell, workloads: Mapping[str, Sequence[Cell]], line_s: float, place: int
) -> Chart:
    rows = [_point(name, cell, value[cell]) for name, cells in workloads.items() for cell in cells]
    data, colour, size = Datasets(), _colour(list(workloads)), (_WIDTH, _HEIGHT)
    counts = "format(datum.value, ',~s')"
    both = [
        over_depth(data, rows, "iops", colour, title="IOPS", labels=counts, size=size),
        over_depth(
            data, rows, "mean_s", colour, title="mean latency", labels=SECONDS, size=size, line_s=line_s
        ),
    ]
    title = f"IOPS and latency by queue depth; red: {units.seconds(line_s)}"
    return _drawn(f"outstanding-{place}", title, {"vconcat": both}, data)


def _colour(names: Sequence[str]) -> Spec:
    shown = list(names)[: len(PALETTE)]
    return coloured("name", shown, sort=shown, legend={"title": None, "labelLimit": 220})


def _point(name: str, cell: Cell, one: Figures) -> dict[str, Any]:
    return {
        "name": name,
        "outstanding": cell.outstanding,
        "iops": one.iops.mean if one.iops else None,
        "mean_s": one.mean_s,
    }


def _drawn(name: str, title: str, chart: Spec, data: Datasets) -> Chart:
    return drawn(name, title, {**chart, "padding": MARGIN}, data)


def ratios(comparison: ProbeComparison) -> Chart | None:
    """Draw the ratio of each cell. With too few repetitions a ratio has no interval."""
    rows = [
        {**asdict(one), "name": one.cell, "ci95": one.ci95 or (one.ratio,) * 2, **_AS_JUDGED}
        for one in comparison.changes
        if one.ratio
    ]
    return ratio_chart(*comparison.labels, rows) if len(rows) <= _MOST_RATIOS else None
