"""A probe's tables, for terminal and page: raw values in base units, written by the report's columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pinchpoint.base import units
from pinchpoint.probe import words
from pinchpoint.probe.figures import Figures, Mean
from pinchpoint.probe.verdict import Verdict
from pinchpoint.report.tables import Column, Table, duration, number
from pinchpoint_scenarios.storage_probe import Cell

_KINDS = {
    "disk_cap": "cap",
    "disk_device": "device",
    "disk_concurrency": "too little at once",
    "disk_latency": "latency",
}


def cells(found: Mapping[Cell, Figures], verdict: Verdict) -> Table:
    """One row per cell that was tried: its figures, and what it tells."""
    kinds = {one.cell: one.kind for workload in verdict.workloads for one in workload.cells}
    tried = {cell: one for cell, one in found.items() if one.trials or one.failed}
    rows = [_row(cell, one, kinds.get(cell.name)) for cell, one in tried.items()]
    missing = len(found) - len(tried)
    left = f" {missing} of {len(found)} cells are not measured yet: --resume goes on." if missing else ""
    return Table(
        name="cells",
        title="What was measured",
        columns=(
            Column("workload", "workload"),
            number("outstanding", "outstanding", absent="not told"),
            number("iops", "I/Os per second", units.per_second),
            number("bytes_per_s", "bytes per second", lambda value: units.of_metric("_bytes_per_s", value)),
            number(
                "spread_ratio", "spread", lambda value: f"± {units.percent(value)}", absent="one repetition"
            ),
            duration("mean_s", "mean latency"),
            duration("p50_s", "p50"),
            duration("p95_s", "p95"),
            duration("p99_s", "p99"),
            duration("p999_s", "p99.9"),
            duration("max_s", "longest"),
            Column("kind", "limited by", absent="does not tell"),
            Column("failed", "not measured", absent=""),
        ),
        rows=rows,
        note="Means over the repetitions; the spread is half of what lies between lowest and highest. "
        f"Percentiles are of all I/Os of all repetitions together.{left}",
    )


def workloads(verdict: Verdict, line_s: float) -> Table:
    """One row per workload: what limits it, and where the latency line is crossed."""
    rows = [
        {
            "workload": one.workload,
            "kind": _KINDS.get(one.kind, one.kind) if one.kind else None,
            "why": one.cells[-1].why,
            "varied": one.varied,
            "holds": 0 if one.line_holds_to is None and one.line_crossed_at else one.line_holds_to,
            "crossed": one.line_crossed_at,
            "class": one.load_class,
            "course": words.moved(one.course),
            "outliers": f"{one.outliers.count} of {one.outliers.of} steps" if one.outliers else None,
        }
        for one in verdict.workloads
    ]
    line = units.seconds(line_s)
    return Table(
        name="workloads",
        title="What limits each workload",
        columns=(
            Column("workload", "workload"),
            Column("kind", "limited by", absent="does not tell"),
            Column("why", "at the most outstanding"),
            number("holds", f"{line} hold up to", _up_to, absent="no latency told"),
            number("crossed", "crossed at", absent="never"),
            Column("class", "such a load is", absent="not told"),
            Column("course", "over time", absent="too few repetitions"),
            Column("outliers", "ten times slower", absent="no course"),
            Column("varied", "varied"),
        ),
        rows=rows,
        note=f"The line is {line} of mean latency; I/Os outstanding. Names of loads: up to 8 very light, "
        "around 128 relatively heavy, 256 heavy, 1,024 very heavy (a published series of storage tests).",
    )


def alike(verdict: Verdict) -> Table:
    """Types of the catalogue with the caps that were found."""
    return Table(
        name="alike",
        title="It behaves like",
        columns=(
            Column("type", "type"),
            Column("at", "stands at its"),
            Column("words", "figures"),
            Column("source", "source"),
        ),
        rows=[{**one.to_json(), "type": one.type} for one in verdict.behaves_like],
        empty="No type of the catalogue: no cap was found, or none has such caps.",
    )


def _up_to(outstanding: float | None) -> str:
    """0: not even the fewest."""
    return f"{outstanding:,.0f}" if outstanding else "none"


def _row(cell: Cell, one: Figures, kind: str | None) -> dict[str, Any]:
    main: Mean | None = one.iops or one.bytes_per_s
    return {
        "workload": cell.workload,
        "outstanding": cell.outstanding,
        "iops": one.iops.mean if one.iops else None,
        "bytes_per_s": one.bytes_per_s.mean if one.bytes_per_s else None,
        "spread_ratio": main.spread_ratio if main and one.trials > 1 else None,
        "mean_s": one.mean_s,
        "p50_s": one.p50_s,
        "p95_s": one.p95_s,
        "p99_s": one.p99_s,
        "p999_s": one.p999_s,
        "max_s": one.max_s,
        "kind": _KINDS.get(kind, kind) if kind else None,
        "failed": "; ".join(one.failed) or None,
    }
