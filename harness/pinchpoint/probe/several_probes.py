"""Compares several probes cell by cell, and each workload's rate below the latency line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Literal

from pinchpoint.analysis.resources.disk.types import limits_words
from pinchpoint.base import units
from pinchpoint.base.errors import InputError
from pinchpoint.comparison.several_sides import (
    OneSide,
    PairCall,
    SideDifference,
    SidesComparison,
    SidesFigure,
    WorkloadLimit,
    check_number,
    ranked,
)
from pinchpoint.comparison.statistics import ENOUGH, SAME, call_of
from pinchpoint.probe import words
from pinchpoint.probe.compare import MARGIN, bytes_words, corrected, estimate, matching, unsettled, values_of
from pinchpoint.probe.figures import Figures, figures, highest
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import Probe, Trial, load
from pinchpoint.probe.verdict import ProbeVerdict
from pinchpoint_scenarios.storage_probe import Cell

_LARGE_BYTES = 256 * 2**10


def read_probes(directories: Sequence[Path]) -> list[Probe]:
    """Read the probes in directories. Raises InputError."""
    return [load(directory) for directory in directories]


def compare_probes(probes: Sequence[Probe], directories: Sequence[Path]) -> SidesComparison:
    """Compare several probes. Raises InputError if no two of them share a cell."""
    check_number(probes)
    cells = _cells(probes)
    if not any(sum(one is not None for one in side) > 1 for side in cells.values()):
        raise InputError(
            "compare: these probes have no measurement with the same block size, share of reads, order and "
            "queue depth; compare probes of the same suite"
        )
    verdicts = [judge(probe) for probe in probes]
    result = [figures(probe) for probe in probes]
    made = [
        *_judged(probes, cells),
        *(one for cell, sides in cells.items() for one in [_latency(cell, sides, result)] if one is not None),
    ]
    sides = tuple(
        _side(label, directory, verdict, probe)
        for label, directory, verdict, probe in zip(
            _labels(probes, directories), directories, verdicts, probes, strict=True
        )
    )
    return SidesComparison(
        of="probes",
        sides=sides,
        figures=tuple(made),
        differences=tuple(_differences(probes)),
        limits=tuple(_limits(probes, result, verdicts)),
        line_s=probes[0].options.line_s,
        margin_ratio=SAME,
        warnings=tuple(dict.fromkeys(_warnings(probes, verdicts, sides))),
    )


def _side(label: str, directory: Path, verdict: ProbeVerdict, probe: Probe) -> OneSide:
    price = probe.declared.price
    return OneSide(
        label,
        (str(directory),),
        _limit(verdict),
        declared=probe.declared.words,
        per_month=price.per_month if price else None,
        currency=price.currency if price else "",
    )


def _cells(probes: Sequence[Probe]) -> dict[Cell, list[Cell | None]]:
    """A cell of the first probe that has it -> the corresponding cell of each probe, or None."""
    cells: dict[Cell, list[Cell | None]] = {}
    for place, probe in enumerate(probes):
        for other in range(place + 1, len(probes)):
            for ours, theirs in matching(probe, probes[other]).items():
                row = next((row for row in cells.values() if row[place] == ours), None)
                if row is None:
                    row = cells.setdefault(ours, [None] * len(probes))
                    row[place] = ours
                row[other] = theirs
    # Probes of a bisected suite have different queue depths, so sort them within their workload.
    workloads = list(dict.fromkeys(cell.workload for cell in cells))
    return dict(
        sorted(cells.items(), key=lambda one: (workloads.index(one[0].workload), one[0].outstanding or 0))
    )


def _judged(probes: Sequence[Probe], cells: Mapping[Cell, Sequence[Cell | None]]) -> list[SidesFigure]:
    """The throughput of each cell on each side, with the call of each pair, Holm-corrected."""
    trials = {
        cell: [probe.cells[own] if own else [] for probe, own in zip(probes, sides, strict=True)]
        for cell, sides in cells.items()
    }
    values = {cell: [values_of(each) for each in sides] for cell, sides in trials.items()}
    estimates = {
        (cell, pair): estimate(*(values[cell][at] for at in pair))
        for cell in cells
        for pair in combinations(range(len(probes)), 2)
        if all(values[cell][at] for at in pair)
    }
    p = corrected(estimates)
    made = []
    for cell, sides in trials.items():
        calls = []
        for (of, pair), one in estimates.items():
            if of == cell:
                first, second = (median(values[cell][at]) for at in pair)
                call = call_of(one, p[cell, pair], same=MARGIN, better="higher") if one else "inconclusive"
                calls.append(
                    PairCall(pair, second / first, one.ci95 if one else None, p.get((cell, pair)), call)
                )
        metric = _metric(cell, sides)
        made.append(
            ranked(
                SidesFigure(
                    name=cell.name,
                    about="cell",
                    metric=metric,
                    better="higher",
                    judged=True,
                    values=tuple(tuple(getattr(one, metric) for one in side) for side in sides),
                    pairs=tuple(calls),
                    workload=cell.workload,
                    outstanding=cell.outstanding,
                )
            )
        )
    return made


def _metric(cell: Cell, trials: Sequence[Sequence[Trial]]) -> Literal["iops", "bytes_per_s"]:
    """``bytes_per_s`` for large I/O, which is usually quoted in bytes, or if the tool reports no I/Os."""
    done = [one for side in trials for one in side if one.failed is None]
    large = (cell.block_bytes or 0) >= _LARGE_BYTES and all(one.bytes_per_s is not None for one in done)
    return "bytes_per_s" if large or not any(one.iops is not None for one in done) else "iops"


def _latency(
    cell: Cell, sides: Sequence[Cell | None], value: Sequence[Mapping[Cell, Figures]]
) -> SidesFigure | None:
    means = [value[at][own].mean_s if own else None for at, own in enumerate(sides)]
    if not any(means):
        return None
    return SidesFigure(
        name=cell.name,
        about="cell",
        metric="mean_s",
        better="lower",
        judged=False,
        values=tuple((mean,) for mean in means),
        workload=cell.workload,
        outstanding=cell.outstanding,
    )


def _limits(
    probes: Sequence[Probe], value: Sequence[Mapping[Cell, Figures]], verdicts: Sequence[ProbeVerdict]
) -> Iterator[WorkloadLimit]:
    for place, (probe, measured, verdict) in enumerate(zip(probes, value, verdicts, strict=True)):
        for one in verdict.workloads:
            own = {cell: each for cell, each in measured.items() if cell.workload == one.workload}
            within = [
                each
                for each in own.values()
                if each.mean_s is not None and each.mean_s < probe.options.line_s
            ]
            yield WorkloadLimit(
                side=place,
                workload=one.workload,
                kind=one.kind,
                holds_to=one.line_holds_to,
                crossed_at=one.line_crossed_at,
                within_iops=highest(within, "iops"),
                most_iops=highest(own.values(), "iops"),
                within_bytes_per_s=highest(within, "bytes_per_s"),
                most_bytes_per_s=highest(own.values(), "bytes_per_s"),
                load_class=one.load_class,
            )


def _limit(verdict: ProbeVerdict) -> str:
    """The limits of a probe in words, with the number of workloads at each, and its caps."""
    counted = {kind: len(workloads) for kind, workloads in verdict.kinds.items()}
    if not counted:
        return "no limit found"
    total, caps = len(verdict.workloads), verdict.caps.limits
    known = limits_words(caps.iops, caps.bytes_per_s) if caps else ""
    return "; ".join(
        words.SHORT.get(kind, kind)
        + (f" of {known}" if known and kind == "disk_cap" else "")
        + (f" ({count} of {total} workloads)" if total > 1 else "")
        for kind, count in counted.items()
    )


def _labels(probes: Sequence[Probe], directories: Sequence[Path]) -> list[str]:
    """The names of the sides: farms if only the farm differs, else disks, else directories."""
    farms = [probe.where.farm for probe in probes]
    if (
        len({probe.where.disk for probe in probes}) == 1
        and None not in farms
        and len(set(farms)) == len(farms)
    ):
        return [str(farm) for farm in farms]
    names = [probe.where.label for probe in probes]
    made = [
        directory.name if names.count(name) > 1 else name
        for name, directory in zip(names, directories, strict=True)
    ]
    return [
        f"{name} ({made[:at].count(name) + 1})" if made.count(name) > 1 else name
        for at, name in enumerate(made)
    ]


def _differences(probes: Sequence[Probe]) -> Iterator[SideDifference]:
    def facts(probe: Probe) -> dict[str, object]:
        return {
            "suite": probe.suite,
            "declared": probe.declared.words or None,
            "machine": probe.where.host,
            "file system": probe.where.file_system,
            "time per cell": units.seconds(probe.options.time_per_cell_s)
            if probe.options.time_per_cell_s
            else None,
            "size of the file": bytes_words(probe.options.size_bytes),
            "repetitions": probe.options.repeat,
            "threads": probe.options.threads,
            "read-ahead": bytes_words(probe.where.read_ahead_bytes),
            **probe.versions,
        }

    first = facts(probes[0])
    for place, probe in enumerate(probes[1:], 1):
        own = facts(probe)
        for name in dict.fromkeys([*first, *own]):
            unknown = name == "read-ahead" and None in (first.get(name), own.get(name))
            if first.get(name) != own.get(name) and not unknown:
                yield SideDifference(
                    place, "probe", name, None, None, (), first.get(name), own.get(name), name == "declared"
                )


def _warnings(
    probes: Sequence[Probe], verdicts: Sequence[ProbeVerdict], sides: Sequence[OneSide]
) -> Iterator[str]:
    for probe, verdict, side in zip(probes, verdicts, sides, strict=True):
        if probe.state != "finished":
            yield f"{side.label}: the probe is not finished"
        yield from unsettled(side.label, verdict)
        yield from (f"{side.label}: a cache on the host is suspected: {why}" for why in verdict.host_cache)
        if verdict.contradicted:
            yield f"{side.label}: {verdict.contradicted}"
        yield from (f"{side.label}: {warning}" for warning in dict.fromkeys(probe.warnings))
    built = [side.label for probe, side in zip(probes, sides, strict=True) if probe.where.emulated]
    if built:
        yield f"emulated disks, whose limits are those that farm.yaml gives them: {', '.join(built)}"
    if min(probe.options.repeat for probe in probes) < ENOUGH:
        yield (
            f"fewer than {ENOUGH} repetitions on a side: no difference to it can be confirmed; measure with "
            f"--repeat {ENOUGH}"
        )
    yield "the intervals cover repetitions within one probe, not differences from day to day"
