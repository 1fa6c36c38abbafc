"""A probe as people read it in a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from pinchpoint.probe import tables
from pinchpoint.probe.figures import figures
from pinchpoint.probe.record import Probe
from pinchpoint.probe.verdict import Verdict
from pinchpoint.report import tables as report_tables
from pinchpoint.report import units
from pinchpoint.report.terminal import wrapped

_CELLS = (
    "workload",
    "outstanding",
    "iops",
    "bytes_per_s",
    "spread_ratio",
    "mean_s",
    "p99_s",
    "max_s",
    "kind",
)
_WORKLOADS = ("workload", "kind", "holds", "crossed", "course")
_WIDTH = 132


def probe_text(probe: Probe, verdict: Verdict) -> str:
    """Summary, tables, the arithmetic per workload, warnings."""
    blocks = [f"{probe.suite} on {probe.where.label}:", wrapped(verdict.summary)]
    blocks.append(drawn(tables.cells(figures(probe), verdict), _CELLS))
    blocks.append(drawn(tables.workloads(verdict, probe.options.line_s), _WORKLOADS))
    lines = [wrapped(f"{one.workload}: {one.cells[-1].why}", "  - ") for one in verdict.workloads]
    if lines:
        blocks.append("\n".join(["The arithmetic, at the most outstanding:", *lines]))
    if verdict.behaves_like:
        names = ", ".join(
            one.name + (" on credits" if one.at == "burst" else "") for one in verdict.behaves_like
        )
        blocks.append(wrapped(f"It behaves like: {names}."))
    if verdict.declared_used:
        used = ", ".join(
            f"{units.percent(ratio)} of its {'I/Os' if name == 'iops' else 'bytes'} per second"
            for name, ratio in verdict.declared_used.items()
        )
        declared = probe.declared.profile or "what is declared"
        blocks.append(wrapped(f"Of {declared} at most {used}."))
    found = figures(probe)
    notes = [f"{cell.name}: {why}" for cell, one in found.items() for why in one.failed]
    notes = [*verdict.host_cache, *dict.fromkeys([*probe.warnings, *notes])]
    if notes:
        blocks.append("\n".join(["Warnings:", *(wrapped(note, "  ! ") for note in notes)]))
    return "\n\n".join(blocks)


def drawn(table: report_tables.Table, keys: tuple[str, ...]) -> str:
    """The columns of those keys, without a frame."""
    columns = [column for column in table.columns if column.key in keys]
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column.title, justify="right" if column.numeric else "left", no_wrap=True)
    for row in table.rows:
        made.add_row(*(column.cell(row) for column in columns))
    console = Console(width=_WIDTH, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(made, highlight=False, markup=False)
    return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines())


def estimate_text(found: dict[str, Any]) -> str:
    """What it will take, before it begins."""
    parts = [f"{found['jobs']} measurements"]
    if found["seconds"]:
        parts.append(f"about {units.seconds(found['seconds'])} of timed ones")
    if found["untimed"]:
        size = units.bytes_(found["longest_bytes"])
        parts.append(f"{found['untimed']} that last until their work is done, up to {size} each")
    if found["bytes"]:
        parts.append(
            f"before them a file of {units.bytes_(found['bytes'])} is written, as fast as the disk takes it"
        )
    return "estimate: " + "; ".join(parts)
