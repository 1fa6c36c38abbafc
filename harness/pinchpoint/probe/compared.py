"""A comparison of two probes: read, written to a directory, as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic_core import from_json

from pinchpoint.base import units
from pinchpoint.base.errors import InputError
from pinchpoint.base.text import wrapped
from pinchpoint.probe import record
from pinchpoint.probe.caps import rate
from pinchpoint.probe.compare import SCHEMA, CellChange, ProbeComparison, compare
from pinchpoint.probe.record import PROBE
from pinchpoint.probe.text import drawn
from pinchpoint.probe.words import KINDS
from pinchpoint.report.tables import Column, Table, number
from pinchpoint.store import document
from pinchpoint.store.schema import REPORT
from pinchpoint.store.write import free_path, write_json

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


def are_of_a_probe(directory: Path) -> bool:
    """Whether a directory holds a probe, or a comparison of probes."""
    return (directory / PROBE).exists() or _schema(directory / COMPARISON) == SCHEMA


def compared(base: Sequence[Path], other: Sequence[Path]) -> ProbeComparison:
    """One probe with another. Raises InputError."""
    if len(base) != 1 or len(other) != 1:
        raise InputError(
            f"compare: found {len(base)} and {len(other)} probes; a comparison of probes takes one on each "
            "side (its repetitions are in it)"
        )
    return compare(record.load(base[0]), record.load(other[0]))


def saved(found: ProbeComparison, parent: Path) -> Path:
    """Make a directory with comparison.json and report.html; its path. Raises InputError."""
    # Charts take a second to import, and whoever compares runs needs none of these.
    from pinchpoint.probe.compared_page import compared_page  # noqa: PLC0415

    directory = free_path(parent, "probe-comparison")
    try:
        directory.mkdir(parents=True)
        write_json(directory / COMPARISON, found.to_json())
        (directory / REPORT).write_text(compared_page(found), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{directory}: cannot be written: {error.strerror}; give another with --out"
        ) from error
    return directory


def load(directory: Path) -> ProbeComparison:
    """A comparison's directory, read back. Raises InputError."""
    path, remedy = directory / COMPARISON, "`pinchpoint compare PROBE --with PROBE` makes it anew"
    try:
        found: ProbeComparison = document.read_record(path, ProbeComparison, SCHEMA, remedy)
    except FileNotFoundError as error:
        raise InputError(f"{path}: is missing; {remedy}") from error
    return found


def comparison_text(found: ProbeComparison) -> str:
    """Summary, cells, what moved, what else differs, warnings."""
    cells = table(found)
    blocks = [wrapped(found.summary), drawn(cells, tuple(column.key for column in cells.columns))]
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


def moved_table(found: ProbeComparison) -> Table:
    """Workloads that something else limits now."""
    return Table(
        name="moved",
        title="What limits is another thing",
        columns=(
            Column("workload", "workload"),
            Column("base", found.labels[0]),
            Column("other", found.labels[1]),
        ),
        rows=[
            {"workload": workload, "base": _kind(base), "other": _kind(other)}
            for workload, (base, other) in found.moved.items()
        ],
        empty="The same thing limits each workload on both sides.",
    )


def table(found: ProbeComparison) -> Table:
    """Cell by cell."""
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


def _schema(path: Path) -> object:
    """What a file says it is; None where it is not there, or no JSON: whoever reads it says so."""
    try:
        found = from_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found.get("schema") if isinstance(found, dict) else None
