"""Computes confidence intervals of figures within one run, from their values over time.

Neighbouring seconds are correlated (during a checkpoint, or while a queue drains), so whole blocks are
resampled. The 95 % interval of a plain bootstrap covers only 53 % at an autocorrelation of 0.8
(docs/dev-against-prod.md).
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
"""A longer run is reduced to at most this many steps, which is fine enough because blocks are longer than a
step."""
LEAST_STEPS = 20
"""Fewer steps give too few blocks to estimate how much blocks differ."""
RESAMPLES = 500
"""Number of resamples, which gives the standard error to 3 %."""
_LEAST_BLOCKS = 4
_LONGER = 2
_STRONGEST = 0.97  # a higher autocorrelation cannot be distinguished from a trend
_CHUNK = 50  # resamples per chunk, because a percentile needs the memory of one histogram per resample


class FigureCourse(Protocol):
    """A figure as a function of the steps of a run."""

    @property
    def value(self) -> float:
        """The figure over all steps."""

    @property
    def influence(self) -> Floats:
        """The contribution of each step to the figure's deviation, in any unit; shows autocorrelation."""

    def resampled(self, starts: Starts, length: int) -> Floats:
        """The figure of each resample: a row of ``starts`` is the first steps of its blocks of that length.

        A block that passes the last step of the run continues at the first step.
        """


@dataclass(frozen=True, slots=True, eq=False)
class RatioOfSums:
    """A sum divided by a sum: operations per second, seconds per write, documents per second of a crawl.

    Attributes:
        above: the numerator, one value per step.
        below: the denominator, one value per step.
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
        counts: operations by step (row) and duration (column).
        values: the duration of each column in seconds, ascending.
        percent: the percentile, 0 to 100.
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
    """The sum of the block of steps that begins at each step, along the first axis."""
    around = np.concatenate([np.zeros_like(steps[:1]), steps, steps[: length - 1]])
    reached = np.cumsum(around, axis=0)
    values: Floats = reached[length:] - reached[:-length]
    return values


def together(count: int) -> int:
    """The number of neighbouring steps that are added up to one, for a run of ``count`` steps."""
    return max(1, -(-count // MOST_STEPS))


def joined(steps: Floats) -> Floats:
    """A run's steps with neighbours added up, so that at most ``MOST_STEPS`` remain."""
    each = together(len(steps))
    return np.asarray(np.add.reduceat(steps, np.arange(0, len(steps), each)), dtype=np.float64)


def spread_of(course: FigureCourse) -> tuple[float, float] | None:
    """(variance of the logarithm of the figure within the run, its degrees of freedom).

    The variance comes from the circular block bootstrap. With k blocks the bootstrap underestimates the
    variance by one k-th, which is corrected, and has k - 1 degrees of freedom. None if the run is too short,
    or if a resample contains no work.
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
    whole = drawn * length / count  # the blocks of a resample are together a little longer than the run
    return float(np.log(values).var(ddof=1)) * whole * blocks / (blocks - 1), blocks - 1


def blocks_of(influence: Floats) -> int:
    """Steps per block, from first-order autocorrelation; at least √n and at most a quarter of all steps.

    With autocorrelation r between neighbouring steps, the error of the variance is smallest with blocks of
    1.1447 (a n)^(1/3) steps, a = 4 r² ÷ (1 - r²)² (Andrews 1991, for a first-order autoregression). Blocks
    twice as long give better intervals: at r = 0.8 and 120 steps, the coverage was measured as 92 % with
    single and 95 % with double length.
    """
    count = len(influence)
    near = _memory(influence)
    wanted = _LONGER * 1.1447 * (4 * near**2 / (1 - near**2) ** 2 * count) ** (1 / 3)
    length: int = min(max(math.ceil(wanted), block_length(count)), count // _LEAST_BLOCKS)
    return length


def _memory(influence: Floats) -> float:
    """Autocorrelation between neighbouring steps, from 0 to below 1, without the noise within steps.

    Noise within a step (the number of operations that were slow by chance) lowers the first and the second
    lag by the same factor. The ratio of the two lags is free of this noise, so it is used too if the first
    lag is significant.
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
    """The largest spread of a side's runs, so that the number of runs does not narrow the interval.

    None if one of the runs has no spread.
    """
    spreads = [spread_of(course) if course is not None else None for course in courses]
    known = [spread for spread in spreads if spread is not None]
    return max(known) if known and len(known) == len(spreads) else None


Key: TypeAlias = tuple[str, str | None, str | None, str | None, str]
"""(kind of thing, name of the source, scenario or tier, host, role, metric)."""

TOLERANCE = 1.05
"""A course whose value differs by more than 5 % from the verdict's figure covers another part of the run and
is not used."""

_PERCENTS = {"p50_s": 50.0, "p95_s": 95.0}
_US = 1e6

_Courses: TypeAlias = Iterator[tuple[Key, FigureCourse | None]]


def courses_of(run: StoredRun, inputs: Inputs, verdict: JsonObject) -> dict[Key, FigureCourse]:
    """The course of each mean and percentile of a run; maxima and counts have no course.

    Args:
        run: the stored run.
        inputs: the analysis inputs of the run.
        verdict: the verdict of the run.
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
    """Each figure in the tables of the verdict: (key, value)."""
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
    """The chosen operations that succeeded, without their stages."""
    whole = pc.invert(pc.match_substring(table["operation"], "/"))
    return table.filter(pc.and_(pc.and_(chosen, whole), pc.equal(table["outcome"], "ok")))


def _timed(table: pa.Table, kind: str, window: Window) -> tuple[Floats, Floats] | None:
    """(histogram per step of the window, duration of each column in seconds); None if nothing was timed.

    A column stands for the highest duration of its histogram counter, as in the rest of the project.
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
    """A source's documents and fetches between its first and last document: a crawl's work is fixed."""
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
    """Candidate courses for each disk; the caller keeps the first that matches the verdict's figure.

    Several candidates exist where hosts share a machine, or where I/O is counted in two ways.
    """
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
    """The sum of rates, over the steps in which all of them were measured."""
    known = [one for one in series if one is not None]
    if len(known) < 2:
        return None
    total = np.sum([one.steps() for one in known], axis=0)
    measured = np.isfinite(total)
    if not measured.any():
        return None
    return RatioOfSums(joined(np.where(measured, total, 0.0)), joined(measured.astype(np.float64)))
