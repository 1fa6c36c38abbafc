"""Confidence intervals of figures within one run, from their course over time.

Neighbouring seconds resemble each other (a checkpoint lasts, a queue drains), so that they are resampled in
blocks: a plain bootstrap's 95 % interval covers 53 % at autocorrelation .8 (docs/dev-against-prod.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinchpoint.base.objects import JsonObject
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.resample import block_length
from pinchpoint.data.series import Floats, Series, Window
from pinchpoint.store import histogram
from pinchpoint.store.read import StoredRun

Starts = npt.NDArray[np.int64]

MOST_STEPS = 1000
"""Longer runs are added up to this many steps: blocks are longer than that in any case."""
LEAST_STEPS = 20
"""Fewer steps give too few blocks to estimate how much blocks differ."""
RESAMPLES = 500
"""The standard error of this many is known to 3 %."""
_LEAST_BLOCKS = 4
_LONGER = 2
_STRONGEST = 0.97  # autocorrelation beyond it cannot be distinguished from a trend
_CHUNK = 50  # resamples at a time: a percentile needs a histogram of each


class FigureCourse(Protocol):
    """A figure as a function of a run's steps."""

    @property
    def value(self) -> float:
        """Of all steps."""

    @property
    def influence(self) -> Floats:
        """The contribution of each step to the deviation, in any unit: it shows autocorrelation of steps."""

    def resampled(self, starts: Starts, length: int) -> Floats:
        """The figure of each resample: a line of ``starts`` holds where its blocks of that length begin.

        A block goes on at the run's begin where it reaches its end.
        """


@dataclass(frozen=True, slots=True, eq=False)
class RatioOfSums:
    """A sum over a sum: operations per second, seconds per write, documents per second of a crawl.

    Attributes:
        above: what is counted in each step.
        below: what it is divided by.
    """

    above: Floats
    below: Floats

    @property
    def value(self) -> float:
        return float(self.above.sum() / self.below.sum())

    @property
    def influence(self) -> Floats:
        return self.above - self.value * self.below

    def resampled(self, starts: Starts, length: int) -> Floats:
        above, below = (_blocks(each, length)[starts].sum(axis=1) for each in (self.above, self.below))
        values: Floats = np.divide(above, below, out=np.full(len(starts), np.nan), where=below > 0)
        return values


@dataclass(frozen=True, slots=True, eq=False)
class Percentile:
    """A percentile of all operations of a run, from one histogram per step.

    Attributes:
        counts: a line per step, a column per value: how many operations took so long.
        values: what the columns stand for, from short to long.
        percent: 0 to 100.
    """

    counts: Floats
    values: Floats
    percent: float

    @property
    def value(self) -> float:
        return float(self._of(self.counts.sum(axis=0)[None, :])[0])

    @property
    def influence(self) -> Floats:
        above = self.counts[:, self.values > self.value].sum(axis=1)
        return np.asarray(above - (1 - self.percent / 100) * self.counts.sum(axis=1), dtype=np.float64)

    def resampled(self, starts: Starts, length: int) -> Floats:
        blocks = _blocks(self.counts, length)
        parts = [starts[first : first + _CHUNK] for first in range(0, len(starts), _CHUNK)]
        return np.concatenate([self._of(blocks[part].sum(axis=1)) for part in parts])

    def _of(self, counts: Floats) -> Floats:
        reached = np.cumsum(counts, axis=1)
        wanted = np.maximum(1.0, np.floor(reached[:, -1:] * self.percent / 100 + 0.5))
        at = np.minimum((reached < wanted).sum(axis=1), len(self.values) - 1)
        return np.where(reached[:, -1] > 0, self.values[at], np.nan)


def _blocks(steps: Floats, length: int) -> Floats:
    """The sum of the block that begins at each step, along the first axis."""
    around = np.concatenate([np.zeros_like(steps[:1]), steps, steps[: length - 1]])
    reached = np.cumsum(around, axis=0)
    values: Floats = reached[length:] - reached[:-length]
    return values


def together(count: int) -> int:
    """This many neighbouring steps of a run of ``count`` are added up to one."""
    return max(1, -(-count // MOST_STEPS))


def joined(steps: Floats) -> Floats:
    """A run's steps, neighbours added up, at most ``MOST_STEPS`` of them."""
    each = together(len(steps))
    return np.asarray(np.add.reduceat(steps, np.arange(0, len(steps), each)), dtype=np.float64)


def spread_of(course: FigureCourse) -> tuple[float, float] | None:
    """(variance of the figure's logarithm by chance within the run, its degrees of freedom).

    By the circular block bootstrap. Its variance is that of k blocks: it misses one k-th, which is made up
    for, and has k - 1 degrees of freedom. None if the run is too short, or did nothing for most of it.
    """
    influence = course.influence
    count = len(influence)
    if count < LEAST_STEPS or course.value <= 0:
        return None
    length = blocks_of(influence)
    drawn = -(-count // length)
    starts = np.random.default_rng(1).integers(0, count, (RESAMPLES, drawn))
    values = course.resampled(starts, length)
    if not (np.isfinite(values) & (values > 0)).all():
        return None
    blocks = count / length
    whole = drawn * length / count  # a resample is a little longer than the run
    return float(np.log(values).var(ddof=1)) * whole * blocks / (blocks - 1), blocks - 1


def blocks_of(influence: Floats) -> int:
    """Steps per block: what first-order autocorrelation asks for, at least √n, at most a quarter of all.

    With autocorrelation r from one step to the next, the variance errs least with blocks of
    1.1447 (a n)^(1/3), a = 4 r² ÷ (1 - r²)² (Andrews 1991, of a first-order autoregression). Intervals are
    right more often with twice that: measured at r = .8, 120 steps, 92 % of them once, 95 % twice.
    """
    count = len(influence)
    near = _memory(influence)
    wanted = _LONGER * 1.1447 * (4 * near**2 / (1 - near**2) ** 2 * count) ** (1 / 3)
    length: int = min(max(math.ceil(wanted), block_length(count)), count // _LEAST_BLOCKS)
    return length


def _memory(influence: Floats) -> float:
    """Autocorrelation from one step to the next, 0 to below 1, of what lasts.

    Chance within a step (how many operations happened to be slow) hides it from the first lag; but it decays
    from the first to the second as it does, so that their ratio is analysed as well where the first is none
    of chance.
    """
    count = len(influence)
    centred = influence - influence.mean()
    square = float(centred @ centred)
    if square == 0:
        return 0.0
    first, second = (float(centred[lag:] @ centred[:-lag]) / square for lag in (1, 2))
    lasting = second / first if first > 2 / math.sqrt(count) else 0.0
    return min(max(first, lasting, 0.0), _STRONGEST)


def widest(courses: Sequence[FigureCourse | None]) -> tuple[float, float] | None:
    """The spread of a side's runs: of several the widest, so that their number does not narrow it.

    None if one of them has none.
    """
    spreads = [spread_of(course) if course is not None else None for course in courses]
    known = [spread for spread in spreads if spread is not None]
    return max(known) if known and len(known) == len(spreads) else None


Key: TypeAlias = tuple[str, str | None, str | None, str | None, str]
"""About, whose it is (source, scenario or tier), host, role, metric."""

TOLERANCE = 1.05
"""A course further from the figure of the verdict is that of another stretch of the run, and is not used."""

_PERCENTS = {"p50_s": 50.0, "p95_s": 95.0}
_US = 1e6

_Courses: TypeAlias = Iterator[tuple[Key, FigureCourse | None]]


def courses_of(run: StoredRun, inputs: Inputs, verdict: JsonObject) -> dict[Key, FigureCourse]:
    """The course of every figure that has one: means and percentiles; a maximum or a count has none.

    Args:
        run: the run.
        inputs: what the analysis may see of it.
        verdict: what the analysis found in it.
    """
    if inputs.window.steps == 0:
        return {}
    figures = dict(_figures(verdict))
    courses: dict[Key, FigureCourse] = {}
    for key, course in (*_scenarios(run, inputs), *_sources(run, verdict), *_disks(inputs), *_cpus(inputs)):
        if key not in courses and course is not None and _within_tolerance(course.value, figures.get(key)):
            courses[key] = course
    return courses


def _within_tolerance(value: float, figure: float | None) -> bool:
    if not figure or figure < 0 or not math.isfinite(value) or value <= 0:
        return False
    return abs(math.log(value / figure)) <= math.log(TOLERANCE)


def _figures(verdict: JsonObject) -> Iterator[tuple[Key, Any]]:
    """Every figure of the verdict's tables."""
    tables = ((("scenario", name, None, None), row) for name, row in (verdict.get("scenarios") or {}).items())
    others = (
        ((about, row[whose], row.get("host"), row.get("role")), row)
        for table, about, whose in (
            ("crawl", "source", "source"),
            ("disks", "disk", "tier"),
            ("cpus", "cpu", "tier"),
        )
        for row in verdict.get(table) or ()
    )
    for key, row in (*tables, *others):
        yield from (((*key, metric), value) for metric, value in row.items())


def _scenarios(run: StoredRun, inputs: Inputs) -> _Courses:
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


def _per_second(per_s: Floats, step_s: int) -> RatioOfSums:
    return RatioOfSums(joined(per_s * step_s), joined(np.full(len(per_s), float(step_s))))


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


def _sources(run: StoredRun, verdict: JsonObject) -> _Courses:
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


def _fetches(table: pa.Table, name: str, window: Window) -> RatioOfSums | None:
    chosen = pc.and_(pc.equal(table["operation"], f"document:{name}/fetch"), pc.equal(table["outcome"], "ok"))
    timed = _timed(table.filter(chosen), "service", window)
    return RatioOfSums(timed[0] @ timed[1], timed[0].sum(axis=1)) if timed else None


def _disks(inputs: Inputs) -> _Courses:
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


def _cpus(inputs: Inputs) -> _Courses:
    for host in inputs.hosts:
        for instance in (f"tier:{host.tier}", ""):
            result = inputs.samples.series(host.name, "cpu.busy_ratio", instance)
            yield ("cpu", host.tier, host.name, None, "busy_mean_ratio"), _mean(result)


def _mean(series: Series | None) -> RatioOfSums | None:
    if series is None or not series.share.any():
        return None
    return RatioOfSums(joined(series.total), joined(series.share))


def _sum(series: Iterable[Series | None]) -> RatioOfSums | None:
    """Rates that are added, over the steps in which all of them were measured."""
    known = [one for one in series if one is not None]
    if len(known) < 2:
        return None
    total = np.sum([one.steps() for one in known], axis=0)
    measured = np.isfinite(total)
    if not measured.any():
        return None
    return RatioOfSums(joined(np.where(measured, total, 0.0)), joined(measured.astype(np.float64)))
