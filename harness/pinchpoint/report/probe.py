"""Builds the tables and the terminal text of a storage probe and of two compared probes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from itertools import zip_longest
from typing import Any

from pinchpoint.base import units
from pinchpoint.base.groups import by_key
from pinchpoint.base.text import aligned, titled, wrapped
from pinchpoint.base.wording import listed
from pinchpoint.probe import words
from pinchpoint.probe.caps import rate as rate_words
from pinchpoint.probe.compare import CellChange, ProbeComparison
from pinchpoint.probe.figures import Figures, TrialMean, figures, highest
from pinchpoint.probe.in_run import probes_of
from pinchpoint.probe.record import DeclaredDisk, Probe
from pinchpoint.probe.verdict import ProbeVerdict
from pinchpoint.report.tables import Column, Table, columns, number, right_of
from pinchpoint.store.read import StoredRun
from pinchpoint_collectors.common.counts import counted
from pinchpoint_infra.catalogue import UnknownProfile, profile
from pinchpoint_scenarios.storage_probe import Cell

_RATES = columns(
    "iops per_s: I/Os per second",
    "bytes_per_s: bytes per second",
)
_LATENCIES = columns(
    "mean_s: mean latency",
    "p50_s: p50",
    "p95_s: p95",
    "p99_s: p99",
    "p999_s: p99.9",
    "max_s: max",
)
_FAILED = "failed: not measured |"


def probes(run: StoredRun) -> Table:
    """Build the table of probes that ran as scenarios: one row per cell and scenario."""
    shown = columns(
        "scenario",
        "disk",
        "cell",
        "trials number: repetitions",
        *_RATES,
        *_LATENCIES,
        _FAILED,
    )
    result = [
        {
            **_row(cell, one, None),
            "scenario": scenario,
            "disk": probe.where.disk or probe.where.folder,
            "cell": cell.name,
            "trials": one.trials,
        }
        for scenario, probe in probes_of(run)
        for cell, one in figures(probe).items()
        if one.trials or one.failed
    ]
    return Table(
        "probes",
        "Storage probes in this run",
        shown,
        [{column.key: row[column.key] for column in shown} for row in result],
        note="Measured while the other scenarios ran: what the disk had left, not its limit. Percentiles are "
        "over all repetitions. The folder probe-SCENARIO of the run has the verdict.",
        empty="",  # most runs have no probe
    )


def cells(found: Mapping[Cell, Figures], verdict: ProbeVerdict) -> Table:
    """Build the table of measured cells: one row per cell with its figures and its limit."""
    kinds = {one.cell: one.kind for workload in verdict.workloads for one in workload.cells}
    tried = {cell: one for cell, one in found.items() if one.trials or one.failed}
    rows = [_row(cell, one, kinds.get(cell.name)) for cell, one in tried.items()]
    missing = len(found) - len(tried)
    left = (
        f" Not measured yet: {missing} of {counted(len(found), 'cell')}. Continue with --resume."
        if missing
        else ""
    )
    return Table(
        name="cells",
        title="Measurements",
        columns=columns(
            "workload",
            "outstanding number: queue depth | -",
            *_RATES,
            number(
                "spread_ratio", "spread", lambda value: f"± {units.percent(value)}", absent="one repetition"
            ),
            *_LATENCIES,
            "kind: limited by | not known",
            _FAILED,
        ),
        rows=rows,
        note="Means over the repetitions; spread: half of the difference between the highest and the lowest. "
        f"Percentiles are over all repetitions. Queue depth: outstanding I/Os.{left}",
    )


_PATTERN = re.compile(r"(SEQ\S+|RND\S+|Seq|512K|4K) (read|write|mix)")
"""Name of a CrystalDiskMark workload: the pattern and the operation."""


def grid_of_patterns(found: Mapping[Cell, Figures]) -> Table:
    """Build the grid of CrystalDiskMark: a row per pattern. The table is empty for other suites."""
    rows: dict[str, dict[str, Any]] = {}
    for cell, one in found.items():
        match = _PATTERN.fullmatch(cell.workload)
        if match is None or cell.outstanding is None or not one.trials:
            continue
        row = rows.setdefault(f"{match[1]} Q{cell.outstanding}T1", {})
        row |= {
            match[2]: one.bytes_per_s.mean if one.bytes_per_s else None,
            f"{match[2]}_iops": one.iops.mean if one.iops else None,
            f"{match[2]}_s": one.mean_s,
        }
    ways = [way for way in ("read", "write", "mix") if any(way in row for row in rows.values())]
    shown = columns(
        "pattern",
        *(f"{way} bytes_per_s" for way in ways),
        *(f"{way}_iops per_s: {way} IOPS" for way in ways),
        *(f"{way}_s: {way} latency" for way in ways),
    )
    return Table(
        "grid",
        "The grid of CrystalDiskMark",
        shown,
        [{"pattern": pattern, **row} for pattern, row in rows.items()],
        note="Means over the repetitions. Q: outstanding I/Os, T: threads.",
        empty="",
    )


def against_catalogue(probe: Probe, found: Mapping[Cell, Figures]) -> Table:
    """Build the table of the highest write and read as a share of each limit of the disk and of its machine.

    The table is empty if no limit is known.
    """
    done = {
        f"{way}_{kind}": highest(found.values(), f"{way}_{kind}")
        for way in ("write", "read")
        for kind in ("iops", "bytes_per_s")
    }
    rows = []
    for whose, iops, bytes_per_s in _limits_of(probe.declared, probe.where.machine):
        row: dict[str, Any] = {"whose": whose, "iops": iops, "bytes_per_s": bytes_per_s}
        for way in ("write", "read"):
            of_iops, of_bytes = done[f"{way}_iops"], done[f"{way}_bytes_per_s"]
            row[f"{way}_iops"] = of_iops / iops if of_iops is not None and iops else None
            row[f"{way}_bytes"] = of_bytes / bytes_per_s if of_bytes is not None and bytes_per_s else None
        rows.append(row)
    most = "; ".join(
        f"{way}s {units.per_second(iops)} and {units.of_metric('_bytes_per_s', in_bytes)}"
        for way in ("write", "read")
        if (iops := done[f"{way}_iops"]) is not None and (in_bytes := done[f"{way}_bytes_per_s"]) is not None
    )
    return Table(
        "catalogue",
        "What was measured beside what is allowed",
        columns(
            "whose: limit of",
            "iops whole: IOPS | not known",
            "bytes_per_s: bytes per second | not known",
            "write_iops ratio: writes: IOPS | -",
            "write_bytes ratio: writes: bytes | -",
            "read_iops ratio: reads: IOPS | -",
            "read_bytes ratio: reads: bytes | -",
        ),
        rows,
        note=f"The highest of all measurements, as a share of each limit: {most or 'nothing was measured'}. "
        "Reads above a limit that writes keep may come from a cache on the host.",
        empty="",
    )


def _limits_of(
    declared: DeclaredDisk, machine: str | None
) -> Iterator[tuple[str, float | None, float | None]]:
    """Yield (owner, IOPS, bytes per second) of each known limit."""
    for limits, how in ((declared.limits, ""), (declared.burst, ", on credits")):
        if limits is not None:
            yield f"the disk ({declared.profile or 'declared'}){how}", limits.iops, limits.bytes_per_s
    try:
        entry = profile(machine) if machine else None
    except UnknownProfile:  # another version of the catalogue wrote the probe
        return
    if entry is not None:
        yield f"the machine ({entry.name}), past the host's cache", entry.iops, entry.bytes_per_s
        if entry.burst:
            yield (
                f"the machine ({entry.name}), on credits",
                entry.burst.iops or None,
                entry.burst.bytes_per_s or None,
            )


def workloads(verdict: ProbeVerdict, line_s: float) -> Table:
    """Build the table of workloads: the limit, and the queue depth up to which latency is good."""
    rows = [
        {
            "workload": one.workload,
            "kind": words.SHORT.get(one.kind, one.kind) if one.kind else None,
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
        columns=columns(
            "workload",
            "kind: limited by | not known",
            "why: at the highest queue depth",
            number("holds", f"max. queue depth under {line}", _up_to, absent="no latency"),
            f"crossed number: over {line} from | never",
            "class: load class | -",
            "course: over time | too few repetitions",
            "outliers: 10 x slower | -",
            "varied",
        ),
        rows=rows,
        note=f"{line}: mean latency. Queue depth: outstanding I/Os. Load classes: up to 8 very light, around "
        "128 relatively heavy, 256 heavy, 1,024 very heavy (from a published series of storage tests).",
    )


def behaves_like(verdict: ProbeVerdict) -> Table:
    """Build the table of catalogue types that have the limits found."""
    return Table(
        name="same_limits",
        title="Disk types with the same limits",
        columns=columns(
            "type",
            "at: at its",
            "words: figures",
            "source",
        ),
        rows=[{**one.to_json(), "type": one.type} for one in verdict.behaves_like],
        empty="None in the catalogue: no limit was found, or no disk type has these limits.",
    )


def _up_to(outstanding: float | None) -> str:
    """Return the queue depth as text; "none" if even the smallest queue depth is over the line."""
    return f"{outstanding:,.0f}" if outstanding else "none"


def _row(cell: Cell, one: Figures, kind: str | None) -> dict[str, Any]:
    main: TrialMean | None = one.iops or one.bytes_per_s
    return {
        "workload": cell.workload,
        "outstanding": cell.outstanding,
        "iops": one.iops.mean if one.iops else None,
        "bytes_per_s": one.bytes_per_s.mean if one.bytes_per_s else None,
        "spread_ratio": main.spread_ratio if main and one.trials > 1 else None,
        **{column.key: getattr(one, column.key) for column in _LATENCIES},
        "kind": words.SHORT.get(kind, kind) if kind else None,
        "failed": "; ".join(one.failed) or None,
    }


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
"""Smallest line width of a heading, in characters."""


_NAMED = 3
"""Largest number of workloads that are named in front of a common sentence; above it, only their number is
given."""


def probe_text(probe: Probe, verdict: ProbeVerdict) -> str:
    """Return a probe as text: summary, tables, the reason for each limit, warnings."""
    result = figures(probe)
    blocks = [f"{probe.suite} on {probe.where.label}:", wrapped(verdict.summary)]
    blocks.append(wrapped(f"What to do: {' '.join(words.what_to_do(verdict, probe))}"))
    blocks.append(_drawn(cells(result, verdict), _CELLS))
    untried = sum(not (one.trials or one.failed) for one in result.values())
    if untried:
        text = f"Not measured yet: {untried} of {counted(len(probe.cells), 'cell')}. Continue with --resume."
        blocks.append(wrapped(text))
    blocks.append(_drawn(workloads(verdict, probe.options.line_s), _WORKLOADS))
    why = [*_each_once(verdict), *(cap.why for _, cap in verdict.caps)]
    blocks.append(titled("How each limit was found, at the highest queue depth:", why))
    if verdict.behaves_like:
        names = ", ".join(
            one.type + (" on credits" if one.at == "burst" else "") for one in verdict.behaves_like
        )
        blocks.append(wrapped(f"Disk types with the same limits: {names}."))
    distance = words.distance(verdict, probe.declared)
    if distance:
        blocks.append(wrapped(distance))
    notes = [f"{cell.name}: {why}" for cell, one in result.items() for why in one.failed]
    blocks.append(titled("Warnings:", [*words.notes(probe, verdict), *notes], "  ! "))
    return "\n\n".join(filter(None, blocks))


def _each_once(verdict: ProbeVerdict) -> list[str]:
    """Return sentences on how the limit of each workload was found. Equal sentences are merged."""
    of = by_key((one.cells[-1].why, one.workload) for one in verdict.workloads)
    return [
        f"{listed(names) if len(names) <= _NAMED else f'{len(names)} workloads'}: {why}"
        for why, names in of.items()
    ]


def comparison_text(comparison: ProbeComparison) -> str:
    """Return two compared probes as text: summary, cells, changed limits, other differences, warnings."""
    one, two = comparison.labels
    moved = [
        f"{workload}: {_kind(base)} ({one}); {_kind(other)} ({two})"
        for workload, (base, other) in comparison.moved.items()
    ]
    blocks = [
        wrapped(str(comparison.answer)),
        _drawn(changes(comparison)),
        titled("Another kind of limit on each side:", moved),
        titled("Other differences:", comparison.confounders),
        titled("Warnings:", comparison.warnings, "  ! "),
    ]
    return "\n\n".join(filter(None, blocks))


def _drawn(table: Table, keys: Collection[str] = ()) -> str:
    """Return a table as text with the given columns (none: all). Headings are as narrow as their cells."""
    columns = [column for column in table.columns if not keys or column.key in keys]
    rows = [[column.cell(row) for column in columns] for row in table.rows]
    heads = []
    for at, column in enumerate(columns):
        texts = (*column.title.split(), *(row[at] for row in rows))
        lines = textwrap.wrap(column.title, max(_NARROWEST, *map(len, texts)))
        pad = str.rjust if column.numeric else str.ljust
        heads.append([pad(line, _NARROWEST) for line in reversed(lines)])
    # The text may be wider than the terminal, which then folds the lines. Nothing is cut off.
    head = [*zip_longest(*heads, fillvalue="")][::-1]
    return "\n".join(aligned([*head, *rows], right_of(columns)))


def moved(comparison: ProbeComparison) -> Table:
    """Build the table of workloads whose kind of limit changed."""
    return Table(
        name="moved",
        title="Changed limits",
        columns=columns(
            "workload",
            Column("base", comparison.labels[0]),
            Column("other", comparison.labels[1]),
        ),
        rows=[
            {"workload": workload, "base": _kind(base), "other": _kind(other)}
            for workload, (base, other) in comparison.moved.items()
        ],
        empty="Each workload has the same kind of limit on both sides.",
    )


def changes(comparison: ProbeComparison) -> Table:
    """Build the table of both sides' figures for each cell."""
    return Table(
        name="changes",
        title="Each cell",
        columns=columns(
            "cell",
            number("base", comparison.labels[0]),
            number("other", comparison.labels[1]),
            "ratio times",
            "ci95: 95 % interval | too few repetitions",
            "latency_ratio times: latency ratio",
            "call: change",
        ),
        rows=[_change(one) for one in comparison.changes],
    )


def _change(change: CellChange) -> dict[str, object]:
    base, other = (
        None if value is None else rate_words(change.metric, value) for value in (change.base, change.other)
    )
    ci95 = f"{change.ci95[0]:.2f} to {change.ci95[1]:.2f}" if change.ci95 else None
    return {**asdict(change), "base": base, "other": other, "ci95": ci95}


def _kind(kind: str | None) -> str:
    return words.KINDS.get(kind, kind) if kind else "not known"
