"""A probe as people read it in a terminal."""

from __future__ import annotations

import textwrap
from typing import Any

from rich.console import Console
from rich.table import Table

from pinchpoint.base import units
from pinchpoint.base.text import wrapped
from pinchpoint.probe import tables, words
from pinchpoint.probe.figures import figures
from pinchpoint.probe.record import Probe
from pinchpoint.probe.verdict import Verdict
from pinchpoint.report import tables as report_tables

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
_WORKLOADS = ("workload", "kind", "holds", "crossed", "class", "course")
_NARROWEST = 8
"""A heading has so many characters a line at least."""


def probe_text(probe: Probe, verdict: Verdict) -> str:
    """Summary, tables, the arithmetic per workload, warnings."""
    blocks = [f"{probe.suite} on {probe.where.label}:", wrapped(verdict.summary)]
    blocks.append(drawn(tables.cells(figures(probe), verdict), _CELLS))
    untried = sum(not (one.trials or one.failed) for one in figures(probe).values())
    if untried:
        said = f"{untried} of {len(probe.cells)} cells are not measured yet: --resume goes on with them."
        blocks.append(wrapped(said))
    blocks.append(drawn(tables.workloads(verdict, probe.options.line_s), _WORKLOADS))
    lines = [wrapped(f"{one.workload}: {one.cells[-1].why}", "  - ") for one in verdict.workloads]
    lines += [wrapped(cap.why, "  - ") for _, cap in verdict.caps]
    if lines:
        blocks.append("\n".join(["The arithmetic, at the most outstanding:", *lines]))
    if verdict.behaves_like:
        names = ", ".join(
            one.type + (" on credits" if one.at == "burst" else "") for one in verdict.behaves_like
        )
        blocks.append(wrapped(f"It behaves like: {names}."))
    distance = words.distance(verdict, probe.declared)
    if distance:
        blocks.append(wrapped(distance))
    found = figures(probe)
    notes = [f"{cell.name}: {why}" for cell, one in found.items() for why in one.failed]
    notes = [*verdict.host_cache, *dict.fromkeys([*probe.warnings, *notes])]
    if notes:
        blocks.append("\n".join(["Warnings:", *(wrapped(note, "  ! ") for note in notes)]))
    return "\n\n".join(blocks)


def drawn(table: report_tables.Table, keys: tuple[str, ...]) -> str:
    """The columns of those keys, without a frame; headings are as narrow as what stands below them."""
    columns = [column for column in table.columns if column.key in keys]
    rows = [[column.cell(row) for column in columns] for row in table.rows]
    made = Table(box=None, pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        words = column.title.split()
        width = max(_NARROWEST, *(len(text) for text in (*words, *(row[place] for row in rows))))
        title = "\n".join(textwrap.wrap(column.title, width))
        made.add_column(title, justify="right" if column.numeric else "left", no_wrap=True, min_width=width)
    for row in rows:
        made.add_row(*row)
    # As wide as it is: a terminal folds a line that is too long for it, and nothing is cut off.
    console = Console(width=10_000, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(made, highlight=False, markup=False)
    return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines())


def estimate_text(found: dict[str, Any]) -> str:
    """What it will take, before it begins."""
    parts = [f"{found['jobs']} measurement{'s' * (found['jobs'] != 1)}"]
    if found["seconds"]:
        parts.append(f"about {units.seconds(found['seconds'])} of timed ones")
    if found["pauses_s"]:
        parts.append(f"{units.seconds(found['pauses_s'])} of pauses")
    if found["untimed"]:
        size = units.bytes_(found["longest_bytes"])
        parts.append(f"{found['untimed']} that last until their work is done, up to {size} each")
    if found["bytes"]:
        parts.append(
            f"before them a file of {units.bytes_(found['bytes'])} is written, as fast as the disk takes it"
        )
    return "estimate: " + "; ".join(parts)
