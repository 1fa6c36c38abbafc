"""Builds the report of a run set: each run, the common results of each farm, and the spread between runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from pinchpoint.analysis.saved import saved_verdict
from pinchpoint.base import units, wording
from pinchpoint.comparison import saved, several_sides
from pinchpoint.data.timeaxis import day_and_time
from pinchpoint.report.brief import BOTTLENECK, DO, HEADROOM, NEXT, NOT_SHOWN, TESTED
from pinchpoint.report.charts import (
    LABELS,
    ON_TOP,
    PALETTE,
    Chart,
    Datasets,
    coloured,
    drawn,
    field,
    layer,
    layered,
)
from pinchpoint.report.document import Answer, PlainReport, Plot, ReportPart, TestCase, plot_lines
from pinchpoint.report.tables import Column, Row, Table, columns
from pinchpoint.run.run_set import RunSet
from pinchpoint_collectors.common.counts import counted


def document(run_set: RunSet) -> PlainReport:
    """Build the report from set.json, the verdicts of the runs, and the comparisons. Raises InputError."""
    runs: list[dict[str, Any]] = [
        {**run, "verdict": saved_verdict(run_set.directory / str(run["folder"]) / str(run["run"]))}
        for run in run_set.runs
    ]
    figures = [{**row, **one} for row in runs for one in _scenarios(row["verdict"])]
    compared = [_saved(path.parent) for path in sorted(run_set.directory.glob("*/comparison.json"))]
    plots = tuple(_plots(figures))
    return PlainReport(
        title=(f"Set of {run_set.plan}", "on", wording.listed([place.folder for place in run_set.places])),
        kind="Run set",
        summary=_headline(runs, run_set),
        parts=(
            ReportPart("runs", "Runs", tuple(_chart(plot) for plot in plots), (_runs(runs),)),
            ReportPart("figures", "Spread of the runs", tables=(_spread(figures),)),
            *(
                [ReportPart("compared", "Comparisons of the farms", tables=(_compared(compared),))]
                if compared
                else []
            ),
        ),
        content={
            "schema": "pinchpoint.set-report/1",
            "plan": run_set.plan,
            "state": run_set.state,
            "runs": [{**row, "verdict": {key: row["verdict"][key] for key in _KEPT}} for row in runs],
            "spread": [dict(row) for row in _spread(figures).rows],
            "comparisons": [one["summary"] for one in compared],
        },
        at=run_set.started,
        notes=tuple(_notes(run_set, runs)),
        answers=tuple(_answers(run_set, runs, compared)),
        checks=tuple(_checks(run_set, runs)),
        plots=plots,
    )


def _saved(directory: Path) -> dict[str, Any]:
    """Return the sides and the summary of a saved comparison."""
    if saved.schema_of(directory) == several_sides.SCHEMA:
        result = several_sides.load(directory)
        return {"sides": wording.listed(list(result.labels)), "summary": str(result.answer)}
    one = saved.load(directory)
    return {"sides": f"{one['base']['label']} and {one['other']['label']}", "summary": one["summary"]}


_KEPT = ("outcome", "summary", "headroom_ratio", "objectives")


def _scenarios(verdict: Row) -> Iterator[dict[str, Any]]:
    for name, one in verdict["scenarios"].items():
        p95 = one["response_p95_s"] if one.get("response_p95_s") is not None else one.get("service_p95_s")
        yield {
            "scenario": name,
            "throughput_per_s": one.get("throughput_per_s"),
            "p95_s": p95,
            "error_ratio": one.get("error_ratio"),
        }


def _headline(runs: Sequence[Row], run_set: RunSet) -> wording.Summary:
    """Return the bottlenecks that the runs of each farm found, the most frequent first."""
    lines = []
    for place in run_set.places:
        result = Counter(_named(row["verdict"]) for row in runs if row["folder"] == place.folder)
        of = counted(result.total(), "run")
        named = [f"{name} ({times} of {of})" for name, times in result.most_common()]
        lines.append(f"{place.folder}: {', '.join(named) or 'no run'}.")
    return wording.Summary.of(lines)


def _named(verdict: Row) -> str:
    limited = wording.limited_by(verdict)
    return f"{limited} is the bottleneck" if verdict["outcome"] == "bottleneck" else limited


def _answers(run_set: RunSet, runs: Sequence[Row], compared: Sequence[Row]) -> Iterator[Answer]:
    count = f"{len(runs)} of {run_set.repeat * len(run_set.places)} planned runs"
    tested = f"{run_set.plan} on {wording.listed([one.folder for one in run_set.places])}, {count}"
    yield Answer(TESTED, tested, f"Begun {day_and_time(run_set.started)}.")
    sure = Counter(str((row["verdict"].get("bottleneck") or {}).get("confidence") or "none") for row in runs)
    levels = ", ".join(f"{name} in {times} run{'s' * (times != 1)}" for name, times in sure.most_common())
    yield Answer(BOTTLENECK, str(_headline(runs, run_set)), f"Confidence: {levels}." if levels else "")
    rooms = [
        row["verdict"]["headroom_ratio"] for row in runs if row["verdict"].get("headroom_ratio") is not None
    ]
    ends = dict.fromkeys(units.percent(end) for end in (min(rooms), max(rooms))) if rooms else ["not known"]
    yield Answer(HEADROOM, " to ".join(ends))
    advice = Counter(str(one["what"]) for row in runs for one in (row["verdict"].get("advice") or ())[:1])
    yield Answer(DO, *_most_common(advice), " ".join(str(one["summary"]) for one in compared))
    following = Counter(
        wording.bottleneck_name(row["verdict"]["next"]) for row in runs if row["verdict"].get("next")
    )
    yield Answer(NEXT, *_most_common(following))
    yield Answer(NOT_SHOWN, _missing(run_set), " ".join(_notes(run_set, runs)))


def _most_common(value: Counter[str]) -> tuple[str, str]:
    """Return the most frequent value with its number of runs, and a sentence with the next two values."""
    first, *others = [f"{what} ({counted(times, 'run')})" for what, times in value.most_common(3)] or [
        "not known"
    ]
    return first, f"In other runs: {'; '.join(others)}." if others else ""


def _missing(run_set: RunSet) -> str:
    if run_set.repeat < _ENOUGH:
        return f"Fewer than {_ENOUGH} runs of each farm: the variation between runs is not known well."
    return "How another plan, or another day, would differ."


_ENOUGH = 5


def _notes(run_set: RunSet, runs: Sequence[Row]) -> Iterator[str]:
    if run_set.state != "finished":
        yield f"The set is in the state {run_set.state!r}: {counted(len(runs), 'run')} made."
    for row in runs:
        if row["verdict"]["outcome"] == "invalid":
            yield f"{row['folder']}/{row['run']} is not valid."


def _checks(run_set: RunSet, runs: Sequence[Row]) -> Iterator[TestCase]:
    whole = run_set.state == "finished"
    yield TestCase(
        "set", "all runs were made", "passed" if whole else "error", "" if whole else run_set.state
    )
    for row in runs:
        where, verdict = f"{row['folder']} round {row['round']}", row["verdict"]
        valid = verdict["outcome"] != "invalid"
        yield TestCase("runs", f"{where} is valid", "passed" if valid else "error", verdict["summary"])
        for one in verdict.get("objectives") or ():
            text = f"measured {units.of_metric(one['metric'], one['value'])}"
            of = wording.objective_of(one)
            name = f"{where}: {of} {wording.objective_name(one)}"
            # the objective is one of servers: its result contains the reason
            if one["met"] is None and one.get("figure"):
                text = str(one["result"])
            yield TestCase("objectives", name, "passed" if one["met"] else "failed", text)


def _runs(runs: Sequence[Row]) -> Table:
    rows = [
        {
            **row,
            "found": wording.limited_by(row["verdict"]),
            "confidence": (row["verdict"].get("bottleneck") or {}).get("confidence"),
            "headroom_ratio": row["verdict"].get("headroom_ratio"),
        }
        for row in runs
    ]
    return Table(
        "runs",
        "Runs",
        columns(
            "folder: farm",
            "round number",
            "run",
            "found: bottleneck",
            "confidence: confidence | -",
            Column("headroom_ratio", "headroom", wording.headroom, "not known", numeric=True),
            "status number: exit status",
        ),
        rows,
        empty="No run was made.",
    )


def _spread(figures: Sequence[Row]) -> Table:
    rows = []
    for folder, scenario in dict.fromkeys((row["folder"], row["scenario"]) for row in figures):
        own = [row for row in figures if (row["folder"], row["scenario"]) == (folder, scenario)]
        made: dict[str, Any] = {"folder": folder, "scenario": scenario, "runs": len(own)}
        for key in ("throughput_per_s", "p95_s", "error_ratio"):
            values = [row[key] for row in own if row[key] is not None]
            ends = (median(values), min(values), max(values)) if values else (None, None, None)
            made |= {key: ends[0], f"{key}_low": ends[1], f"{key}_high": ends[2]}
        rows.append(made)
    return Table(
        "spread",
        "Median, smallest and largest",
        columns(
            "folder: farm",
            "scenario",
            "runs number",
            "throughput_per_s: throughput",
            "throughput_per_s_low per_s: smallest",
            "throughput_per_s_high per_s: largest",
            "p95_s: p95",
            "p95_s_low s: smallest",
            "p95_s_high s: largest",
            "error_ratio: errors",
        ),
        rows,
        empty="No run has figures.",
    )


def _compared(compared: Sequence[Row]) -> Table:
    rows = list(compared)
    return Table(
        "comparisons",
        "Comparisons",
        columns("sides: farms", "summary: result"),
        rows,
        note="Each has its own report: `pinchpoint report` its folder.",
        empty="",
    )


def _plots(figures: Sequence[Row]) -> Iterator[Plot]:
    for scenario in dict.fromkeys(row["scenario"] for row in figures):
        lines = plot_lines(
            (row["folder"], row["round"], row["throughput_per_s"])
            for row in figures
            if row["scenario"] == scenario
        )
        if lines:
            yield Plot(
                f"rounds-{scenario}", f"Throughput of {scenario} in each round", "rate", "round", lines
            )


def _chart(plot: Plot) -> Chart:
    data = Datasets()
    names = [line.name for line in plot.lines]
    rows = data.named(
        [{"farm": line.name, "round": x, "value": y} for line in plot.lines for x, y in line.points]
    )
    encoding = {
        "x": field("round:O", axis={"title": "round", "labelAngle": 0}),
        "y": field("value:Q", axis={"title": None, "labelExpr": LABELS["rate"], "tickCount": 4}),
        "color": coloured("farm", names, PALETTE * len(names), legend=ON_TOP),
    }
    layers = [layer(rows, "line", encoding), layer(rows, "point", encoding, filled=True)]
    return drawn(plot.name, plot.title, layered(layers, 460, 150), data)
