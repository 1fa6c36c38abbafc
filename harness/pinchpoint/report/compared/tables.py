"""The tables of a comparison: what was done, and the figures of both sides with their ratio."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pinchpoint.base import units, wording
from pinchpoint.report.tables import Column, Row, Table, number

RATIO = "ratio"
SIDE = "side"
_NO_RATIO = "no ratio"
_INTERVAL = "_ci95"

DECLARED: Mapping[str, str] = {
    "command": "They were named by --metric.",
    "plan": "They were declared in the plan, before anything ran.",
    "default": "Nobody named any (compare: in plan.yaml, --metric), so plan and factor decided.",
}
COVERS: Mapping[str, str] = {
    "between_runs": "between runs",
    "within_run": "within a run",
}
HOW: Mapping[str, str] = {
    "reached": "all it can do",
    "at_least": "at least, its end was not reached",
    "unknown": "not measured",
}
KEPT: Mapping[bool | None, str] = {True: "yes", False: "no", None: "no rate was offered"}


@dataclass(frozen=True, slots=True)
class Figure(Column):
    """A figure of both sides: in the row of the ratio it is a number of times."""

    def cell(self, row: Row) -> str:
        """The figure, or the ratio."""
        value = row.get(self.key)
        if row.get(SIDE) != RATIO:
            return self.absent if value is None else self.show(value)
        if value is None:
            return _NO_RATIO
        ends = row.get(f"{self.key}{_INTERVAL}")
        return units.times(value) + (f" ({units.interval(ends)})" if ends else "")


@dataclass(frozen=True, slots=True)
class OfMetric(Column):
    """A figure whose unit is that of the row's metric."""

    def cell(self, row: Row) -> str:
        """The figure with its unit."""
        return units.of_metric(row["metric"], row[self.key])


def _figure(metric: str, title: str) -> Figure:
    return Figure(metric, title, lambda value: units.of_metric(metric, value), numeric=True)


def work(content: Row) -> Table:
    """What was done, before any rate is looked at."""
    rows = [
        {
            "name": row["name"],
            "about": row["about"],
            SIDE: content[side]["label"],
            **{key: row[side][key] for key in ("count", "failures", "dropped")},
            # Said once, in the first row of the two.
            "unlike": row["unlike"] if side == "base" else "",
        }
        for row in content["work"]
        for side in ("base", "other")
    ]
    return Table(
        "work",
        "Work done",
        (
            Column("name", "what"),
            Column("about", "is a"),
            Column(SIDE, "side"),
            number("count", "done", _whole),
            number("failures", "failed", _whole),
            number("dropped", "not started in time", _whole, absent="-"),
            Column("unlike", "in what it differs", absent="the same"),
        ),
        rows,
        note="Medians over the runs. A source is counted over one whole crawl, a scenario over the measure "
        "phase: how many operations it did is a result, not a task, so only failures and operations that "
        "could not start make its work differ.",
        empty="No work was recorded.",
    )


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def sources(content: Row) -> Table:
    """Crawl sources."""
    return _beside(
        "sources",
        "Crawl sources",
        content,
        "source",
        (Column("source", "source"),),
        {
            "count": "documents",
            "failures": "failures",
            "duration_s": "duration",
            "rate_per_s": "rate",
            "repository_latency_s": "repository latency",
        },
        note="Rate = documents ÷ duration. Repository latency: from request to last byte.",
        empty="No crawl on either side.",
    )


def disks(content: Row) -> Table:
    """Disks by role."""
    return _beside(
        "disks",
        "Disks",
        content,
        "disk",
        (Column("tier", "tier"), Column("host", "host"), Column("role", "role")),
        {
            "write_latency_mean_s": "write latency, mean",
            "write_latency_max_s": "max",
            "read_latency_mean_s": "read latency",
            "iops_mean": "IOPS, mean",
            "iops_max": "max",
            "io_per_operation": "I/O per operation",
        },
        note="Over the measure phase, latency weighted by the number of operations. I/O per operation is "
        "told of plans with one scenario: of several nobody knows whose I/O it is.",
        empty="No disk with a role was measured.",
    )


def cpus(content: Row) -> Table:
    """CPU by tier."""
    return _beside(
        "cpus",
        "CPU",
        content,
        "cpu",
        (Column("tier", "tier"), Column("host", "host")),
        {"busy_mean_ratio": "busy, mean", "busy_max_ratio": "max"},
        note="Of the cores the tier may use, where its processes were watched; else of the whole machine.",
        empty="No CPU was measured.",
    )


def judged(content: Row) -> Table:
    """The figures that were declared, and what may be said of each."""
    by_name = {row["name"]: row for row in content["changes"]}
    labels = content["base"]["label"], content["other"]["label"]
    rows = [_judged(by_name[name]) for name in content["metrics"]]
    said = any(row["why_no_interval"] for row in rows)
    return Table(
        "judged",
        "The figures that were to be judged",
        (
            Column("name", "figure"),
            Column("call", "so it is"),  # early: a page may be too narrow for the rest
            OfMetric("base", labels[0], numeric=True),
            OfMetric("other", labels[1], numeric=True),
            number("ratio", "ratio", units.times, absent=_NO_RATIO),
            number("ci95", "95 % interval", units.interval, absent="none"),
            Column("covers", "of chance", absent="-"),
            number("margin_ratio", "the same within", _within),
            number("floor_ratio", "A/A", units.times, absent="not known"),
            number("p", "p, corrected", lambda p: f"{p:.2g}" if p >= 0.0001 else "< .0001", absent="-"),
            *([Column("why_no_interval", "why no more", absent="")] if said else []),
        ),
        rows,
        note=f"{DECLARED[content['metrics_by']]} Medians of the runs, ratio other ÷ base. Between runs: "
        "Welch's interval on logarithms of run values; within one: circular block bootstrap. p: of a ratio "
        "that lies within what counts as the same, after Holm's correction over these figures. Everything "
        "else on this page has intervals too, uncorrected, and is not called.",
        empty="No figure was measured on both sides.",
    )


def _judged(row: Row) -> Row:
    return {**row, "covers": COVERS.get(row["interval"])}


def _within(margin: float) -> str:
    """``0.952 to 1.05``: within it two sides count as the same."""
    return units.interval((1 / margin, margin))


def bursts(content: Row) -> Table:
    """Bursts: the median burst of each run."""
    return _beside(
        "bursts",
        "Bursts",
        content,
        "burst",
        (Column("scenario", "scenario"),),
        {
            "done": "done in a burst",
            "p50_s": "p50",
            "p99_s": "p99",
            "backlog": "waiting at its end",
            "recovery_s": "time to recover",
        },
        note="Of each run the median burst; medians over the runs.",
        empty="",
    )


def capacity(content: Row) -> Table:
    """What each side can do at most, apart from how it does what is asked of it."""
    rows = [
        {
            "scenario": row["scenario"],
            SIDE: content[side]["label"],
            "value": row[side],
            "how": HOW[row[f"{side}_how"]],
            "kept": KEPT[row["kept_up"][place]],
            "ratio": row["ratio"] if side == "other" else None,
            "why": (row["why"] or "") if side == "other" and row["ratio"] is None else "",
        }
        for row in content["capacity"]
        for place, side in enumerate(("base", "other"))
    ]
    return Table(
        "capacity",
        "Capacity",
        (
            Column("scenario", "scenario"),
            Column(SIDE, "side"),
            number("value", "most that was done", units.per_second),
            Column("how", "which is"),
            Column("kept", "kept up with what was offered"),
            number("ratio", "ratio", units.times, absent=""),
            Column("why", "why no ratio"),
        ),
        rows,
        note="A load with a rate shows its capacity only where it does not keep up, one of users where what "
        "gives way is used up.",
        empty="No scenario was run.",
    )


def scenarios(content: Row) -> Table:
    """Scenarios: throughput and latency."""
    kinds = {
        row["scenario"]: row["metric"].partition("_")[0]
        for row in content["changes"]
        if row["about"] == "scenario" and row["metric"].endswith("_p95_s")
    }
    plain = [
        {**row, "metric": row["metric"].removeprefix("response_").removeprefix("service_"), "time": kind}
        for row in content["changes"]
        if row["about"] == "scenario"
        for kind in [kinds[row["scenario"]]]
    ]
    return _beside(
        "scenarios",
        "Scenarios",
        {**content, "changes": plain},
        "scenario",
        (Column("scenario", "scenario"), Column("time", "latency is")),
        {"throughput_per_s": "throughput", "p50_s": "p50", "p95_s": "p95"},
        note="Over the measure phase. Response time counts from the intended start, service time from the "
        "actual one; response time is shown where both sides have it.",
        empty="No scenario was run.",
    )


def _beside(
    name: str,
    title: str,
    content: Row,
    about: str,
    keys: Sequence[Column],
    metrics: Mapping[str, str],
    *,
    note: str,
    empty: str,
) -> Table:
    """Three rows a thing: base, other, their ratio.

    ``content`` is comparison.json's, ``about`` says which of its changes; ``keys`` tell one thing from
    another, ``metrics`` are figures with what people read above them.
    """
    rows = [row for row in content["changes"] if row["about"] == about]
    labels = content["base"]["label"], content["other"]["label"]
    columns = (*keys, Column(SIDE, "side"), *(_figure(metric, words_) for metric, words_ in metrics.items()))
    names = [column.key for column in keys]
    reasons = _reasons(rows, metrics)
    said = f"{note} Where there is no ratio: {'; '.join(reasons)}." if reasons else note
    return Table(name, title, columns, list(_triples(rows, names, labels)), note=said, empty=empty)


def _triples(rows: Iterable[Row], names: Sequence[str], labels: tuple[str, str]) -> Iterator[Row]:
    things: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows:
        things.setdefault(tuple(row[name] for name in names), {})[row["metric"]] = row
    for thing, figures in things.items():
        fixed = dict(zip(names, thing, strict=True))
        for key, label in (("base", labels[0]), ("other", labels[1]), (RATIO, RATIO)):
            row = {**fixed, SIDE: label, **{metric: row[key] for metric, row in figures.items()}}
            if key == RATIO:
                row |= {f"{name}{_INTERVAL}": one["ci95"] for name, one in figures.items() if one["ci95"]}
            yield row


def _reasons(rows: Iterable[Row], metrics: Mapping[str, str]) -> list[str]:
    """Why ratios are missing, each reason once, with the figures it holds for."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        if row["why"]:
            name = metrics[row["metric"]]
            found.setdefault(row["why"], {})[name] = None
    return [f"{wording.listed(list(names))}: {why}" for why, names in found.items()]
