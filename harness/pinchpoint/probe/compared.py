"""A comparison of two probes: read, written to a directory, as text."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from pinchpoint.errors import InputError
from pinchpoint.probe.compare import CellChange, ProbeComparison, compare
from pinchpoint.probe.record import PROBE, load
from pinchpoint.probe.text import drawn
from pinchpoint.probe.words import KINDS, rate
from pinchpoint.report import units
from pinchpoint.report.tables import Column, Table, number
from pinchpoint.report.terminal import wrapped
from pinchpoint.store.write import write_json

COMPARISON = "comparison.json"


def are_probes(directories: Sequence[Path]) -> bool:
    """Whether all of these are probes. Raises InputError where only some are."""
    probes = [directory for directory in directories if (directory / PROBE).exists()]
    if probes and len(probes) < len(directories):
        rest = next(directory for directory in directories if directory not in probes)
        raise InputError(
            f"compare: {probes[0]} is a probe, {rest} is none: probes compare with probes, runs with runs"
        )
    return bool(probes)


def compared(base: Sequence[Path], other: Sequence[Path]) -> ProbeComparison:
    """One probe with another. Raises InputError."""
    if len(base) != 1 or len(other) != 1:
        raise InputError(
            f"compare: found {len(base)} and {len(other)} probes; a comparison of probes takes one on each "
            "side (its repetitions are in it)"
        )
    return compare(load(base[0]), load(other[0]))


def saved(found: ProbeComparison, parent: Path) -> Path:
    """Make a directory with comparison.json; its path. Raises InputError."""
    directory = parent / f"probe-comparison-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_json(directory / COMPARISON, found.to_json())
    except OSError as error:
        raise InputError(
            f"{directory}: cannot be written: {error.strerror}; give another with --out"
        ) from error
    return directory


def comparison_text(found: ProbeComparison) -> str:
    """Summary, cells, what moved, what else differs, warnings."""
    table = _table(found)
    blocks = [wrapped(found.summary), drawn(table, tuple(column.key for column in table.columns))]
    moved = [
        wrapped(f"{workload}: {_kind(base)}; now {_kind(other)}", "  - ")
        for workload, (base, other) in found.moved.items()
    ]
    if moved:
        blocks.append("\n".join(["What limits is another thing:", *moved]))
    if found.confounders:
        blocks.append("\n".join(["What else differs:", *(wrapped(one, "  - ") for one in found.confounders)]))
    blocks.append("\n".join(["Warnings:", *(wrapped(one, "  ! ") for one in found.warnings)]))
    return "\n\n".join(blocks)


def _table(found: ProbeComparison) -> Table:
    return Table(
        name="changes",
        title="Cell by cell",
        columns=(
            Column("cell", "cell"),
            number("base", found.labels[0]),
            number("other", found.labels[1]),
            number("ratio", "ratio", units.times),
            Column("ci95", "95 %", absent="too few repetitions"),
            number("latency_ratio", "latency", units.times),
            Column("call", "call"),
        ),
        rows=[_row(one) for one in found.changes],
    )


def _row(one: CellChange) -> dict[str, object]:
    base, other = (None if value is None else rate(one.metric, value) for value in (one.base, one.other))
    return {
        "cell": one.cell,
        "base": base,
        "other": other,
        "ratio": one.ratio,
        "ci95": f"{one.ci95[0]:.2f} to {one.ci95[1]:.2f}" if one.ci95 else None,
        "latency_ratio": one.latency_ratio,
        "call": one.call,
    }


def _kind(kind: str | None) -> str:
    return KINDS.get(kind, kind) if kind else "it did not tell"
