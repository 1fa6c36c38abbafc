"""From a stored run to the courses of its verdict's figures, by whose figure it is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pinchpoint.comparison.course import Course, Mean, Percentile, joined, together
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.series import Floats, Series, Window
from pinchpoint.store import histogram
from pinchpoint.store.read import StoredRun

Key: TypeAlias = tuple[str, str | None, str | None, str | None, str]
"""About, whose it is (source, scenario or tier), host, role, metric."""

ALIKE = 1.05
"""A course further from the figure of the verdict is that of another stretch of the run, and is not used."""

_PERCENTS = {"p50_s": 50.0, "p95_s": 95.0}
_US = 1e6

_Found: TypeAlias = Iterator[tuple[Key, Course | None]]


def courses_of(run: StoredRun, inputs: Inputs, verdict: Mapping[str, Any]) -> dict[Key, Course]:
    """The course of every figure that has one: means and percentiles; a maximum or a count has none.

    Args:
        run: the run.
        inputs: what the analysis may see of it.
        verdict: what the analysis found in it.
    """
    if inputs.window.steps == 0:
        return {}
    figures = dict(_figures(verdict))
    found: dict[Key, Course] = {}
    for key, course in (*_scenarios(run, inputs), *_sources(run, verdict), *_disks(inputs), *_cpus(inputs)):
        if key not in found and course is not None and _alike(course.value, figures.get(key)):
            found[key] = course
    return found


def _alike(value: float, figure: float | None) -> bool:
    if not figure or figure < 0 or not math.isfinite(value) or value <= 0:
        return False
    return abs(math.log(value / figure)) <= math.log(ALIKE)


def _figures(verdict: Mapping[str, Any]) -> Iterator[tuple[Key, Any]]:
    """Every figure of the verdict's tables."""
    for name, row in (verdict.get("scenarios") or {}).items():
        yield from ((("scenario", name, None, None, metric), value) for metric, value in row.items())
    for row in verdict.get("crawl") or ():
        yield from ((("source", row["source"], None, None, metric), value) for metric, value in row.items())
    for row in verdict.get("disks") or ():
        yield from (
            (("disk", row["tier"], row["host"], row["role"], metric), value) for metric, value in row.items()
        )
    for row in verdict.get("cpus") or ():
        yield from ((("cpu", row["tier"], row["host"], None, metric), value) for metric, value in row.items())


def _scenarios(run: StoredRun, inputs: Inputs) -> _Found:
    window = inputs.window
    for name in inputs.traffic.scenarios:
        per_s = inputs.traffic.of(name).whole().ok().per_step(window)
        yield ("scenario", name, None, None, "throughput_per_s"), _per_second(per_s, window.step_s)
        table = _done(run.operations, pc.equal(run.operations["scenario"], name))
        for kind in ("response", "service"):
            timed = _timed(table, kind, window)
            if timed is not None:
                for ending, percent in _PERCENTS.items():
                    key = ("scenario", name, None, None, f"{kind}_{ending}")
                    yield key, Percentile(*timed, percent)


def _per_second(per_s: Floats, step_s: int) -> Mean:
    return Mean(joined(per_s * step_s), joined(np.full(len(per_s), float(step_s))))


def _done(table: pa.Table, chosen: Any) -> pa.Table:
    """The chosen operations that succeeded, their stages left out."""
    whole = pc.invert(pc.match_substring(table["operation"], "/"))
    return table.filter(pc.and_(pc.and_(chosen, whole), pc.equal(table["outcome"], "ok")))


def _timed(table: pa.Table, kind: str, window: Window) -> tuple[Floats, Floats] | None:
    """(a histogram per step of the window, what its columns stand for in seconds); None: nothing was timed.

    A value is the highest that its counter stands for, as everywhere.
    """
    step = window.step_of(table["time_s"].to_numpy())
    inside = (step >= 0) & (step < window.steps) & table[kind].is_valid().to_numpy()
    if not inside.any():
        return None
    ends, counters, counts = histogram.entries(table[kind].filter(pa.array(inside)).to_pylist())
    used, column = np.unique(counters, return_inverse=True)
    each = together(window.steps)
    line = np.repeat(step[inside] // each, np.diff(ends))
    lines = -(-window.steps // each)
    flat = np.bincount(line * len(used) + column, weights=counts, minlength=lines * len(used))
    lowest, width = histogram.values_us(used.astype(np.int64))
    return flat.reshape(lines, len(used)).astype(np.float64), np.asarray(
        (lowest + width - 1) / _US, dtype=np.float64
    )


def _sources(run: StoredRun, verdict: Mapping[str, Any]) -> _Found:
    """A source's documents and fetches from its first to its last one: a crawl's work is given."""
    table = run.operations
    for row in verdict.get("crawl") or ():
        name = row["source"]
        documents = _done(table, pc.equal(table["operation"], f"document:{name}"))
        if not documents.num_rows:
            continue
        times = documents["time_s"].to_numpy()
        step_s = int(pc.max(documents["interval_s"]).as_py())
        window = Window(int(times.min()), step_s, int(times.max() - times.min()) // step_s + 1)
        counts = np.bincount(window.step_of(times), documents["count"].to_numpy(), window.steps)
        yield ("source", name, None, None, "rate_per_s"), _per_second(counts / step_s, step_s)
        yield ("source", name, None, None, "repository_latency_s"), _fetches(table, name, window)


def _fetches(table: pa.Table, name: str, window: Window) -> Mean | None:
    chosen = pc.and_(pc.equal(table["operation"], f"document:{name}/fetch"), pc.equal(table["outcome"], "ok"))
    timed = _timed(table.filter(chosen), "service", window)
    return Mean(timed[0] @ timed[1], timed[0].sum(axis=1)) if timed else None


def _disks(inputs: Inputs) -> _Found:
    """Where several hosts are one machine, or I/O is counted in two ways, the one the verdict took fits."""
    for disk in inputs.disks:
        if disk.device is None:
            continue
        hosts = [disk.host, *(h.name for h in inputs.on_machine(disk.machine) if h.name != disk.host)]
        whose = "disk", disk.tier, disk.host, disk.role
        for host in hosts:
            series = partial(_series, inputs, host, disk.device)
            for prefix in ("data_", ""):
                yield (*whose, "write_latency_mean_s"), _mean(series(f"{prefix}write_latency_s"))
                both = series(f"{prefix}writes_per_s"), series("reads_per_s")
                yield (*whose, "iops_mean"), _sum(both)
            yield (*whose, "read_latency_mean_s"), _mean(series("read_latency_s"))


def _series(inputs: Inputs, host: str, device: str, metric: str) -> Series | None:
    return inputs.samples.series(host, f"disk.{metric}", device)


def _cpus(inputs: Inputs) -> _Found:
    for host in inputs.hosts:
        for instance in (f"tier:{host.tier}", ""):
            found = inputs.samples.series(host.name, "cpu.busy_ratio", instance)
            yield ("cpu", host.tier, host.name, None, "busy_mean_ratio"), _mean(found)


def _mean(series: Series | None) -> Mean | None:
    if series is None or not series.share.any():
        return None
    return Mean(joined(series.total), joined(series.share))


def _sum(series: Iterable[Series | None]) -> Mean | None:
    """Rates that are added, over the steps in which all of them were measured."""
    known = [one for one in series if one is not None]
    if len(known) < 2:
        return None
    total = np.sum([one.steps() for one in known], axis=0)
    measured = np.isfinite(total)
    if not measured.any():
        return None
    return Mean(joined(np.where(measured, total, 0.0)), joined(measured.astype(np.float64)))
