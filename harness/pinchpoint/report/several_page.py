"""Builds the page and the terminal text of a comparison of several sides, with tables and charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from pinchpoint.base import units, wording
from pinchpoint.base.groups import by_key
from pinchpoint.base.text import titled, wrapped
from pinchpoint.comparison.costs import UNIT_OF_COST
from pinchpoint.comparison.several_sides import SidesComparison, SidesFigure, WorkloadLimit, too_few
from pinchpoint.data.timeline import Axis
from pinchpoint.probe import words
from pinchpoint.report.brief import NOT_SHOWN
from pinchpoint.report.charts import (
    LABELS,
    ON_TOP,
    PALETTE,
    SECONDS,
    Chart,
    Datasets,
    Spec,
    beside_names,
    coloured,
    decades,
    drawn,
    drawn_names,
    field,
    label_px,
    layer,
    layered,
    line_and_points,
    over_depth,
)
from pinchpoint.report.comparison_tables import fact_value, fact_words, figure_name
from pinchpoint.report.document import Answer, PlainReport, Plot, ReportPart, plot_lines
from pinchpoint.report.tables import Column, Table, columns, grid, number

_WIDTH, _HEIGHT = 460, 200
_MOST_PAIRS = 240
"""Largest number of pairs in the table. report.json has all pairs."""
_MOST_BARS = 16
_MOST_TRIALS = 8
"""Largest number of measurements whose repetitions are drawn, each in a chart of its own."""
_FEWEST_TRIALS = 3
_MOST_CURVES = 8
_ORDER_COLOURS = (*PALETTE, "#8c564b", "#17becf", "#9aa3ad", "#2f4b7c")


def document(comparison: SidesComparison) -> PlainReport:
    """Build the report of several sides."""
    parts = (
        *_run_parts(comparison),
        *_figure_parts(comparison),
        *_limit_parts(comparison),
        *_rest(comparison),
    )
    return PlainReport(
        title=(", ".join(comparison.labels), "", ""),
        kind=f"{len(comparison.sides)} {'storage probes' if comparison.of == 'probes' else 'sides'}",
        summary=comparison.answer,
        parts=parts,
        content=comparison.to_json(),
        notes=comparison.warnings,
        answers=tuple(_answers(comparison)),
        plots=tuple(_plots(comparison)),
    )


def text(comparison: SidesComparison) -> str:
    """Return the comparison as text: summary, sides, judged figures, warnings."""
    blocks = [
        wrapped(str(comparison.answer)),
        "\n".join(grid(_sides(comparison), less=("runs", "following", "confidence"))),
    ]
    blocks.append("\n".join(grid(_matrix(comparison, judged=True))))
    if any(one.kind or one.holds_to or one.crossed_at for one in comparison.limits):
        blocks.append(
            "\n".join(grid(_limits(comparison), less=("load_class", "most", "within", "crossed_at")))
        )
    blocks.append(titled("Warnings:", comparison.warnings, "  ! "))
    return "\n\n".join(filter(None, blocks))


def _answers(comparison: SidesComparison) -> Iterator[Answer]:
    yield Answer(
        NOT_SHOWN,
        f"Holm's correction is over all pairs of sides and all judged figures; within "
        f"{units.percent(comparison.margin_ratio)} two sides count as the same.",
    )


def _run_parts(comparison: SidesComparison) -> Iterator[ReportPart]:
    yield ReportPart("sides", "Sides", tables=(_sides(comparison),))


def _figure_parts(comparison: SidesComparison) -> Iterator[ReportPart]:
    """Yield a table and a chart for each judged figure of runs.

    Probes have many figures and get one table.
    """
    judged = [one for one in comparison.figures if one.judged]
    if comparison.of == "probes":
        bars = (_bars_of(comparison, "bytes_per_s"), _bars_of(comparison, "iops"))
        charts = tuple(chart for chart in (*bars, *_trials(comparison), *_curves(comparison)) if chart)
        tables = (_matrix(comparison, judged=True), *_prices(comparison))
        yield ReportPart("figures", "Measurements", charts, tables)
        return
    yield ReportPart(
        "figures",
        "Judged figures",
        tuple(_dots(comparison, one, at) for at, one in enumerate(judged) if any(one.medians)),
        tuple(_of_figure(comparison, one, at) for at, one in enumerate(judged)),
    )


def _limit_parts(comparison: SidesComparison) -> Iterator[ReportPart]:
    if comparison.limits:
        yield ReportPart("limits", "Limits", tables=(_limits(comparison),))


def _rest(comparison: SidesComparison) -> Iterator[ReportPart]:
    if any(not one.judged for one in comparison.figures):
        yield ReportPart("all", "Other figures", tables=(_matrix(comparison, judged=False),))
    if (pairs := _pairs(comparison)).rows:
        yield ReportPart("pairs", "Every pair", tables=(pairs,))
    yield ReportPart("differences", "Differences between the sides", tables=(_differences(comparison),))


def _name(figure: SidesFigure) -> str:
    if figure.about == "cell":
        return figure.name
    return figure_name(asdict(figure))


def _shown(metric: str, value: float | None) -> str:
    if value is None:
        return units.NOT_MEASURED
    if metric == "iops":
        return units.per_second(value)
    return units.of_metric(f"_{metric}" if metric == "bytes_per_s" else metric, value)


def _sides(comparison: SidesComparison) -> Table:
    probes = comparison.of == "probes"
    of_runs = "confidence: confidence | -", "following: next bottleneck | not known"
    shown = columns(
        "label: side",
        f"found: {'limited by' if probes else 'bottleneck'}",
        *(["declared: declared | nothing"] if probes else of_runs),
        f"runs number: {comparison.of}",
    )
    rows = [
        {**{key: value or None for key, value in asdict(one).items()}, "runs": len(one.runs)}
        for one in comparison.sides
    ]
    return Table("sides", "Sides", shown, rows)


def _of_figure(comparison: SidesComparison, figure: SidesFigure, at: int) -> Table:
    """Build the table of a figure: a row per side with its runs and its rank."""
    rows = []
    for place, side in enumerate(comparison.sides):
        known = [value for value in figure.values[place] if value is not None]
        to_best = None if figure.leader is None else figure.between(figure.leader, place)
        ends = f" ({units.interval(to_best.ci95)})" if to_best and to_best.ci95 else ""
        rows.append(
            {
                "side": side.label,
                "median": _shown(figure.metric, figure.medians[place]),
                "low": _shown(figure.metric, min(known)) if known else None,
                "high": _shown(figure.metric, max(known)) if known else None,
                "ratio": f"{units.times(to_best.ratio)}{ends}" if to_best and to_best.ratio else None,
                "standing": _standing(comparison, figure, place),
            }
        )
    better = {"higher": "Higher is better.", "lower": "Lower is better."}.get(figure.better or "", "")
    return Table(
        f"figure-{at + 1}",
        wording.capitalised(_name(figure)),
        columns(
            "side",
            "median number",
            "low number: smallest",
            "high number: largest",
            "ratio number: ÷ best | -",
            "standing: result | -",
        ),
        rows,
        note=better,
    )


def _standing(comparison: SidesComparison, figure: SidesFigure, place: int) -> str | None:
    """Return the rank of a side: ``best``, ``not distinguishable from B``, ``worse than B``.

    If the figure has no best side, the text names the sides that differ.
    """
    if figure.medians[place] is None:
        return None
    if figure.leader is None:
        others = [
            comparison.labels[at]
            for at in range(len(comparison.sides))
            if at != place and (pair := figure.between(place, at)) and pair.call == "changed"
        ]
        return f"different from {wording.listed(others)}" if others else None
    leader = comparison.labels[figure.leader]
    why = _too_few(comparison, figure)
    few = f" ({why})" if why else ""
    if place == figure.leader:
        tied, same = (
            wording.listed(
                [
                    comparison.labels[at]
                    for at, how in enumerate(figure.standing)
                    if at != place and how == is_
                ]
            )
            for is_ in ("tied", "equivalent")
        )
        parts = [
            f"not distinguishable from {tied}{few}" if tied else "",
            f"the same as {same}" if same else "",
        ]
        return "; ".join(["best median", *filter(None, parts)]) if tied or same else "best"
    return {
        "worse": f"worse than {leader}",
        "equivalent": f"the same as {leader}",
        "tied": f"not distinguishable from {leader}{few}",
    }.get(str(figure.standing[place]))


def _too_few(comparison: SidesComparison, *figures: SidesFigure) -> str:
    return too_few(figures, "repetition" if comparison.of == "probes" else "run")


def _matrix(comparison: SidesComparison, *, judged: bool) -> Table:
    """Build the table with a row per figure and a column per side."""
    rows = []
    tied = []
    for one in comparison.figures:
        if one.judged != judged or not any(value is not None for value in one.medians):
            continue
        row: dict[str, Any] = {"figure": _name(one) + (", mean latency" if one.metric == "mean_s" else "")}
        row |= {f"side{at}": _shown(one.metric, value) for at, value in enumerate(one.medians)}
        best = None
        if judged and one.leader is not None and None not in one.medians:
            best = comparison.labels[one.leader]
            if "best" not in one.standing:
                best = "not distinguishable"
                tied.append(one)
        rows.append({**row, "best": best})
    few = _too_few(comparison, *tied)
    return Table(
        "judged" if judged else "figures",
        "Judged figures" if judged else "Figures that were not judged",
        columns(
            f"figure: {'measurement' if comparison.of == 'probes' else 'figure'}",
            *(number(f"side{at}", label) for at, label in enumerate(comparison.labels)),
            *(["best: best | -"] if judged else []),
        ),
        rows,
        note="Medians of each side's repetitions. Not distinguishable: the best median is not clearly better "
        f"than every other side's{few and f': {few}'}."
        if judged
        else "Medians of each side.",
        empty="No figure was measured on two sides.",
    )


def _prices(comparison: SidesComparison) -> Iterator[Table]:
    """Yield the table of throughput per price of each side's disk. Without prices there is no table."""
    priced = [at for at, side in enumerate(comparison.sides) if side.per_month]
    if not priced:
        return
    rows: list[dict[str, Any]] = []
    for workload in dict.fromkeys(one.workload for one in comparison.limits):
        row: dict[str, Any] = {"workload": workload}
        for one in comparison.limits:
            month = comparison.sides[one.side].per_month
            if one.workload == workload and month:
                share = UNIT_OF_COST / month
                row[f"side{one.side}"] = _rates(
                    one.most_iops * share if one.most_iops is not None else None,
                    one.most_bytes_per_s * share if one.most_bytes_per_s is not None else None,
                )
        rows.append(row)
    paid = wording.listed(
        [
            f"{side.label} {side.per_month:,.2f} {side.currency}"
            for side in (comparison.sides[at] for at in priced)
        ]
    )
    currencies = dict.fromkeys(comparison.sides[at].currency for at in priced)
    several = " The currencies differ: compare within one." if len(currencies) > 1 else ""
    yield Table(
        "prices",
        f"Highest throughput for {UNIT_OF_COST:g} {' or '.join(currencies)} a month",
        columns(
            "workload",
            *(number(f"side{at}", side.label, absent="no price") for at, side in enumerate(comparison.sides)),
        ),
        rows,
        note=f"By the prices of each farm.yaml, a month: {paid}.{several}",
    )


def _pairs(comparison: SidesComparison) -> Table:
    rows = [
        {
            **asdict(pair),
            "figure": _name(one),
            "base": comparison.labels[pair.sides[0]],
            "other": comparison.labels[pair.sides[1]],
        }
        for one in comparison.figures
        if one.judged
        for pair in one.pairs
    ]
    left = f" {len(rows) - _MOST_PAIRS} more are in report.json." if len(rows) > _MOST_PAIRS else ""
    return Table(
        "pairs",
        "Every pair of sides",
        columns(
            "figure",
            "base: first",
            "other: second",
            "ratio times: second ÷ first | no ratio",
            "ci95 interval: 95 % interval | none",
            "p: p, corrected | -",
            "call: second is",
        ),
        rows[:_MOST_PAIRS],
        note=f"Holm's correction over all of these.{left}",
        empty="",
    )


def _limits(comparison: SidesComparison) -> Table:
    line = units.seconds(comparison.line_s) if comparison.line_s is not None else ""
    rows = [
        {
            **asdict(one),
            "side": comparison.labels[one.side],
            "kind": words.SHORT.get(one.kind, one.kind) if one.kind else None,
            "holds": "none" if one.holds_to is None and one.crossed_at else one.holds_to,
            "within": _rates(one.within_iops, one.within_bytes_per_s),
            "most": _rates(one.most_iops, one.most_bytes_per_s),
            "share": _share(one),
        }
        for one in sorted(comparison.limits, key=lambda one: (_first(comparison, one.workload), one.side))
    ]
    return Table(
        "limits",
        "What limits each workload on each side",
        columns(
            "workload",
            "side",
            "kind: limited by | not known",
            f"holds number: max. queue depth under {line} | no latency",
            "load_class: load class | -",
            f"crossed_at number: over {line} from | never",
            f"within number: throughput under {line} | none",
            "most number: maximum",
            "share ratio: share of it | -",
        ),
        rows,
        note=f"{line}: mean latency. The throughput under it is the highest of all measured queue depths "
        "whose mean latency is lower.",
    )


def _first(comparison: SidesComparison, workload: str) -> int:
    return [one.workload for one in comparison.limits].index(workload)


def _rates(iops: float | None, bytes_per_s: float | None) -> str | None:
    known = [units.per_second(iops)] if iops is not None else []
    known += [units.of_metric("_bytes_per_s", bytes_per_s)] if bytes_per_s is not None else []
    return ", ".join(known) or None


def _share(limit: WorkloadLimit) -> float | None:
    within, most = (
        (limit.within_iops, limit.most_iops)
        if limit.most_iops
        else (limit.within_bytes_per_s, limit.most_bytes_per_s)
    )
    return within / most if within is not None and most else None


def _differences(comparison: SidesComparison) -> Table:
    rows = [
        {
            **asdict(one),
            "side": comparison.labels[one.side],
            "what": fact_words(one.what),
            "where": " ".join(filter(None, (one.tier, one.role and f"{one.role} disk"))) or None,
            "first": fact_value(one.what, one.first),
            "other": fact_value(one.what, one.other),
        }
        for one in comparison.differences
    ]
    return Table(
        "differences",
        f"Differences from {comparison.labels[0]}",
        columns(
            "side",
            "what",
            "where: where | -",
            Column("first", comparison.labels[0], absent="not set"),
            "other: this side | not set",
            "studied",
        ),
        rows,
        note="Other differences than the studied ones weaken what is said of a side.",
        empty="The records show no difference.",
    )


# ---- charts ---------------------------------------------------------------------------------------


def _axis(metric: str) -> Axis:
    if metric.endswith("_per_s") or metric in ("iops", "iops_mean"):
        return "rate"
    return "latency" if metric.endswith("_s") else "ratio" if metric.endswith("_ratio") else "rate"


def _labels(metric: str) -> str:
    if metric.endswith("bytes_per_s"):
        return "format(datum.value, '~s') + 'B/s'"
    if metric.endswith(("_ratio", "_per_s", "_s")) or metric == "iops":
        return LABELS[_axis(metric)]
    return "format(datum.value, '~s')"


def _colour(labels: Sequence[str]) -> Spec:
    legend = {**ON_TOP, "columns": 3, "columnPadding": 40, "labelLimit": 0}
    return coloured("side", labels, _ORDER_COLOURS, sort=labels, legend=legend)


def _dots(comparison: SidesComparison, figure: SidesFigure, at: int) -> Chart:
    """Draw the runs of each side as points and their median as a bar."""
    data = Datasets()
    names = drawn_names(comparison.labels)
    middles = [
        {
            "side": label,
            "value": value,
            "high": max(each for each in values if each is not None),
            "text": _shown(figure.metric, value),
        }
        for label, value, values in zip(names, figure.medians, figure.values, strict=True)
        if value is not None
    ]
    runs = [
        {"side": label, "value": value}
        for label, values in zip(names, figure.values, strict=True)
        for value in values
        if value is not None
    ]
    axis = {"title": None, "labelLimit": 0, "minExtent": label_px(names)}
    values = {"title": None, "labelExpr": _labels(figure.metric), "tickCount": 5}
    encoding = {"x": field("value:Q", axis=values), "y": field("side:N", sort=names, axis=axis)}
    medians = data.named(middles)
    beyond = {"x": field("high:Q", axis=values), "text": field("text:N"), "color": {"value": "#444"}}
    layers = [
        layer(medians, "bar", encoding, color=PALETTE[0], opacity=0.75),
        layer(data.named(runs), "point", encoding, color="#222", size=22, filled=True),
        layer(medians, "text", encoding | beyond, align="left", dx=8, fontSize=10),
    ]
    rows = layered(layers, _WIDTH, 26 * len(comparison.sides))
    return drawn(f"figure-{at + 1}", wording.capitalised(_name(figure)), rows, data)


def _trials(comparison: SidesComparison) -> Iterator[Chart]:
    """Draw each repetition of each measurement, one line per side.

    Nothing is drawn with too few repetitions or too many measurements.
    """
    shown = [
        one
        for one in comparison.figures
        if one.judged and max(map(len, one.values), default=0) >= _FEWEST_TRIALS and any(one.medians)
    ]
    if len(shown) > _MOST_TRIALS:
        return
    for at, one in enumerate(shown, 1):
        data = Datasets()
        rows = [
            {"side": label, "trial": number, "value": value}
            for label, values in zip(drawn_names(comparison.labels), one.values, strict=True)
            for number, value in enumerate(values, 1)
            if value is not None
        ]
        places = list(range(1, max(map(len, one.values)) + 1))
        encoding = {
            "x": field(
                "trial:Q",
                scale={"domain": [places[0], places[-1]], "nice": False},
                axis={"title": "repetition", "values": places, "format": "d"},
            ),
            "y": field(
                "value:Q",
                scale={"zero": True},
                axis={"title": None, "labelExpr": _labels(one.metric), "tickCount": 5},
            ),
            "color": _colour(drawn_names(comparison.labels)),
        }
        lines = layered(line_and_points(data.named(rows), encoding), _WIDTH, _HEIGHT)
        yield drawn(f"repetitions-{at}", f"{one.name}: each repetition", lines, data)


def _bars_of(comparison: SidesComparison, metric: str) -> Chart | None:
    """Draw the highest throughput of each workload on each side, in bytes or I/Os.

    Returns None if no workload has a value.
    """
    best: dict[str, dict[int, float]] = {}
    for one in comparison.limits:
        value = getattr(one, f"most_{metric}")
        if value:
            best.setdefault(one.workload, {})[one.side] = value
    shown = list(best)[:_MOST_BARS]
    if not shown:
        return None
    data, names = Datasets(), drawn_names(comparison.labels)
    rows = [
        {
            "workload": name,
            "side": names[side],
            "value": value,
            "text": _shown(metric, value),
        }
        for name in shown
        for side, value in best[name].items()
    ]
    values = [value for name in shown for value in best[name].values()]
    low, *_, high = decades(values)
    ticks = {"labelExpr": _labels(metric), "values": decades(values), "labelOverlap": True}
    shared = {
        "x": field("value:Q", scale={"type": "log", "domain": [low, high]}, axis={"title": None, **ticks}),
        "y": beside_names("workload", shown),
        "yOffset": field("side:N", sort=drawn_names(comparison.labels)),
    }
    best_rates = data.named(rows)
    points = {**shared, "color": _colour(drawn_names(comparison.labels))}
    labels = {**shared, "text": field("text:N"), "color": {"value": "#444"}}
    layers = [
        layer(best_rates, "point", points, filled=True, size=60),
        layer(best_rates, "text", labels, align="left", dx=8, fontSize=10),
    ]
    height = max(16 * len(comparison.sides) * len(shown), 60)
    what = "throughput" if metric == "bytes_per_s" else "IOPS"
    title = f"Highest {what} of each workload (logarithmic)"
    return drawn(what.lower(), title, layered(layers, _WIDTH, height), data)


_RATES_OF = ("iops", "bytes_per_s")


def _by_workload(comparison: SidesComparison, *metrics: str) -> dict[str, list[SidesFigure]]:
    figures = by_key(
        (one.workload, one)
        for one in comparison.figures
        if one.metric in metrics and one.workload and one.outstanding and any(one.medians)
    )
    return {name: cells for name, cells in figures.items() if len(cells) > 1}


def _curves(comparison: SidesComparison) -> Iterator[Chart]:
    """Draw rate and mean latency over queue depth: a chart per workload, a line per side."""
    rates, times = _by_workload(comparison, *_RATES_OF), _by_workload(comparison, "mean_s")
    for at, workload in enumerate([name for name in rates if name in times][:_MOST_CURVES], 1):
        data = Datasets()
        metric = rates[workload][0].metric
        what = "IOPS" if metric == "iops" else "throughput"
        labels = "format(datum.value, ',~s')" if metric == "iops" else _labels(metric)
        colour, size = _colour(drawn_names(comparison.labels)), (_WIDTH, _HEIGHT)
        counts, seconds = _by_depth(comparison, rates[workload]), _by_depth(comparison, times[workload])
        both = [
            over_depth(data, counts, "value", colour, title=what, labels=labels, size=size),
            over_depth(
                data, seconds, "value", colour,
                title="mean latency", labels=SECONDS, size=size, line_s=comparison.line_s,
            ),
        ]  # fmt: skip
        title = f"{workload}: {what} and latency by queue depth; red: {units.seconds(comparison.line_s)}"
        yield drawn(f"outstanding-{at}", title, {"vconcat": both}, data)


def _by_depth(comparison: SidesComparison, cells: Sequence[SidesFigure]) -> list[dict[str, Any]]:
    return [
        {"side": label, "outstanding": one.outstanding, "value": value}
        for one in cells
        for label, value in zip(drawn_names(comparison.labels), one.medians, strict=True)
        if value
    ]


def _plots(comparison: SidesComparison) -> Iterator[Plot]:
    """Yield the charts as numbers, for documents that draw their own charts."""
    if comparison.of == "runs":
        for at, one in enumerate(each for each in comparison.figures if each.judged):
            bars = plot_lines(
                (label, 0, value) for label, value in zip(comparison.labels, one.medians, strict=True)
            )
            if bars and _labels(one.metric) in LABELS.values():
                yield Plot(
                    f"figure-{at + 1}",
                    wording.capitalised(_name(one)),
                    _axis(one.metric),
                    "",
                    bars,
                    bars=True,
                )
        return
    kinds: tuple[tuple[str, str, Axis], ...] = (
        ("iops", "I/Os per second by queue depth", "rate"),
        ("mean_s", "mean latency by queue depth", "latency"),
    )
    for metric, title, axis in kinds:
        for at, (workload, cells) in enumerate(
            list(_by_workload(comparison, metric).items())[:_MOST_CURVES], 1
        ):
            lines = plot_lines(
                (label, one.outstanding, one.medians[place] or None)
                for place, label in enumerate(comparison.labels)
                for one in sorted(cells, key=lambda one: one.outstanding or 0)
            )
            if lines:
                yield Plot(f"{metric}-{at}", f"{workload}: {title}", axis, "queue depth", lines)
