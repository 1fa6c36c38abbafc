"""Computes the measures of a resource in a recording: a figure, and the times in which it was at its limit.

A figure is at its limit if its mean over 30 seconds is at the limit, and not because of a spike of a few
seconds alone. So rows of 1, 5 and 10 seconds give the same answer. Readings longer than 15 seconds are judged
one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from pinchpoint.analysis.thresholds import ROOM, SUSTAINED, Threshold
from pinchpoint.analysis.verdict import Fact, Kind
from pinchpoint.base import units
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.series import Floats, Key, Series, Window

STANDS_OUT = Threshold(
    0.5,
    "design",
    "a reading of more than 30 s that stands out may contain 30 s at the limit: half of it",
)
_LEAST_COVERED = 0.5
"""A mean over 30 seconds needs readings for this share of them; shorter gaps do not end a stretch."""
_GAP = 0.75
"""Gaps up to this share of a reading's length do not end a stretch of longer readings."""

_LASTING = 0.25
"""If a mean over 30 s is at the limit, at least this share of the time must be at the limit itself."""
_SERVER = re.compile(r"[\w#$]+/")
_THROUGHOUT = 0.9
"""Least share of a short recording: the first and the last reading cover less than a whole one."""
_ROUNDING = 1e-9
"""Tolerance of comparisons with a limit: means of equal values differ in their last digits."""

_RESOURCE_OF = {"cpu_thread": "thread", "disk_cap": "disk", "external": "dependency"}
"""Kind of limit -> name of the resource, if the two names differ."""

What = Literal["utilisation", "saturation", "errors", "attribution"]
Steps = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which a figure was at its limit, in UTC seconds."""

    from_s: float
    to_s: float

    @property
    def seconds(self) -> float:
        """The length of the stretch in seconds."""
        return self.to_s - self.from_s


@dataclass(frozen=True, slots=True)
class Rows:
    """A figure over the steps of the window.

    Attributes:
        values: one value per step, in the base unit of the metric; NaN without a reading.
        covered_s: one value per step: seconds that the readings of the step cover.
        weight: one value per step: number of operations behind the value, or seconds.
        metric: metric of the series.
        instance: instance of the series.
    """

    values: Floats
    covered_s: Floats
    weight: Floats
    metric: str
    instance: str

    @classmethod
    def of(cls, series: Series | None, key: Key, values: Floats | None = None) -> Rows | None:
        """The rows of a series, or of values calculated from it; None if nothing was measured."""
        if series is None or not series.measured:
            return None
        own = series.steps() if values is None else values
        there = np.isfinite(own) & (series.covered_s > 0)
        if not there.any():
            return None
        weight = series.share if series.weighted and values is None else series.covered_s
        covered_s = np.where(there, series.covered_s, 0.0)
        return cls(np.where(there, own, np.nan), covered_s, weight, key.metric, key.instance)

    @property
    def mean(self) -> float:
        """The mean value, weighted by operations or by time."""
        there = np.isfinite(self.values) & (self.weight > 0)
        if not there.any():
            return float(np.nanmean(self.values))
        return float(np.average(self.values[there], weights=self.weight[there]))

    @property
    def p95(self) -> float:
        """The value that is not exceeded for 95 % of the time."""
        there = np.isfinite(self.values)
        order = np.argsort(self.values[there])
        reached = np.cumsum(self.covered_s[there][order])
        at = min(int(np.searchsorted(reached, 0.95 * reached[-1])), len(order) - 1)
        return float(self.values[there][order][at])

    @property
    def most(self) -> float:
        """The largest value of all steps."""
        return float(np.nanmax(self.values))

    @property
    def reading_s(self) -> float:
        """The median length of a reading in seconds."""
        return float(np.median(self.covered_s[self.covered_s > 0]))


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure that measures the utilisation, saturation, errors or attribution of a resource.

    Attributes:
        what: the aspect that the figure measures, such as ``utilisation``.
        metric: metric of the figure's series.
        instance: instance of the figure's series.
        value: mean over the recording, in base units.
        limit: the threshold that the figure is compared with.
        words: the figures in words.
        stretches: times in which the figure was at its limit, the longest first.
        highest: largest mean over 30 seconds, in base units.
        has_room: whether the figure, as a share, was below 75 % throughout and no long reading stands out.
        over_s: total time at the limit, in seconds.
        least_s: least time at the limit that counts, in seconds.
        measured_s: total time with readings, in seconds.
    """

    what: What
    metric: str
    instance: str
    value: float
    limit: Threshold
    words: str
    stretches: tuple[Stretch, ...]
    highest: float
    has_room: bool
    over_s: float
    measured_s: float
    least_s: float

    @property
    def at_limit(self) -> bool:
        """Whether the figure was at its limit for 30 seconds or longer, or throughout a shorter recording."""
        return bool(self.stretches) and self.stretches[0].seconds >= self.least_s


@dataclass(frozen=True, slots=True)
class RecordedResource:
    """One resource of one host, with its measures in a recording.

    Attributes:
        kind: the kind of limit of the resource (docs/reading-a-verdict.md).
        name: the resource in words, such as ``CPU of APP3``.
        metric: the metric that would show the resource best.
        measures: the resource's measures, the deciding one first; empty if nothing was measured.
        has_room: whether the measures show that the resource did not limit; None if unknown.
        missing: the measurement of the resource that is missing, and why; "" if none is missing.
        doubt: why work may not have waited for the resource although it is at its limit; "" without doubt.
        remedy: the measurement or action that would decide; "" if none is needed.
        context: further measured facts.
        recorded: whether the resource itself was recorded; False for work that waited for an unknown
            resource.
    """

    kind: Kind
    tier: str
    host: str
    name: str
    metric: str
    instance: str = ""
    role: str | None = None
    measures: tuple[Measure, ...] = ()
    has_room: bool | None = None
    missing: str = ""
    doubt: str = ""
    remedy: str = ""
    context: tuple[Fact, ...] = ()
    recorded: bool = True

    @property
    def resource(self) -> str:
        """The type of the resource, such as ``cpu``, ``thread``, ``disk``, ``lock`` or ``dependency``."""
        return _RESOURCE_OF.get(self.kind, self.kind)

    @property
    def saturated(self) -> tuple[Measure, ...]:
        """The measures that were at their limits for 30 seconds or longer."""
        return tuple(one for one in self.measures if one.at_limit)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The times in which the resource was saturated, by the deciding measure; the longest first."""
        return self.saturated[0].stretches if self.saturated else ()

    @property
    def over_s(self) -> float:
        """The total time for which the resource was saturated, in seconds."""
        return self.saturated[0].over_s if self.saturated else 0.0

    def facts(self) -> tuple[Fact, ...]:
        """The measures as evidence, the deciding measure first."""
        ordered = (*self.saturated, *(one for one in self.measures if not one.at_limit))
        result = [self._fact(one, deciding=at == 0) for at, one in enumerate(ordered)]
        if not result:
            result = [Fact(self.missing, self.metric, None, self.host, self.instance, "E1")]
        return (*result, *self.context)

    def _fact(self, one: Measure, *, deciding: bool) -> Fact:
        evidence = "context"
        if one.at_limit:
            evidence = "E1" if deciding else "E4"
        words = f"{one.words}; {_how_long(one)}"
        limit = one.limit
        return Fact(
            words,
            one.metric,
            one.value,
            self.host,
            one.instance,
            evidence,
            limit.value,
            limit.source,
            limit.says,
        )


def measure(
    inputs: Inputs,
    rows: Rows | None,
    limit: Threshold,
    what: What,
    noun: str,
    *,
    above: bool = False,
    only: Steps | None = None,
    share: Floats | None = None,
) -> Measure | None:
    """The measure of a figure against its limit; None if the figure was not measured.

    Args:
        inputs: the recording.
        rows: the values of the figure.
        limit: the figure is at its limit from this value on; with ``above`` only beyond this value.
        what: the aspect that the figure measures.
        noun: words before the figures, such as ``busy``.
        above: whether only values beyond ``limit`` are at the limit.
        only: one value per step: whether the figure counts in the step; None: in all steps.
        share: one value per step: share of the step for which the figure can have lasted; None or NaN: all of
            it.
    """
    if rows is None:
        return None
    lasted_s = rows.covered_s if share is None else rows.covered_s * np.nan_to_num(share, nan=1.0)
    beyond = _beyond(rows.values, limit.value, above=above)
    smooth, at_limit = _judged(rows, inputs.window, limit.value, beyond, lasted_s, above=above)
    if only is not None:
        at_limit = at_limit & only
    mean, p95, most = (units.of_metric(rows.metric, each) for each in (rows.mean, rows.p95, rows.most))
    bounded = what != "saturation"
    stretches = _stretches(inputs.window, rows.covered_s, at_limit, beyond, bounded=bounded)
    return Measure(
        what=what,
        metric=rows.metric,
        instance=rows.instance,
        value=rows.mean,
        limit=limit,
        words=f"{noun} {mean} all the time"
        if mean == p95 == most
        else f"{noun} {mean} on average, p95 {p95}, at most {most}",
        stretches=stretches,
        highest=float(np.nanmax(smooth)),
        has_room=float(np.nanmax(smooth)) < ROOM.value and not _hides_more(rows, limit.value),
        over_s=float(rows.covered_s[inside(inputs.window, stretches)].sum()),
        measured_s=float(rows.covered_s.sum()),
        least_s=sustained_s(inputs.window),
    )


def sustained_s(window: Window) -> float:
    """The least time at the limit that counts: 30 seconds, or nearly all of a shorter recording."""
    return min(SUSTAINED.value, _THROUGHOUT * window.seconds)


def _hides_more(rows: Rows, limit: float) -> bool:
    """Whether a long reading may contain 30 s at the limit: half of the limit, and twice the median."""
    usual = float(np.nanmedian(rows.values))
    return rows.reading_s > SUSTAINED.value / 2 and rows.most >= max(STANDS_OUT.value * limit, 2 * usual)


def figure(inputs: Inputs, host: str, metric: str, instance: str = "") -> Rows | None:
    """The values of a host's series; None if nothing was read."""
    key = Key(host, metric, instance)
    return Rows.of(inputs.samples.series(*key), key)


def servers(inputs: Inputs, host: str, *metrics: str) -> list[str]:
    """The prefixes of instance names of a host's database servers that have one of these metrics.

    The prefix of a single or default server is "", and of a named SQL Server beside others ``NAME/``.
    """
    keys = (key for metric in metrics for key in inputs.samples.keys(metric) if key.host == host)
    return sorted({server_of(key) for key in keys})


def server_of(key: Key) -> str:
    """The prefix of a series' instance that names the database server; "" without a name."""
    named = _SERVER.match(key.instance) if key.metric.startswith("db.") else None
    return named[0] if named else ""


def named(server: str) -> str:
    """A database server's name in words, to follow a noun: `` NAME``; "" for a single or default server."""
    return f" {server[:-1]}" if server else ""


def database(server: str, host: str) -> str:
    """A database server of a host, in words."""
    return f"the database{f' server{named(server)}' if server else ''} on {host}"


def sessions_waiting(
    inputs: Inputs, host: str, kinds: Sequence[str], server: str | None = None
) -> Rows | None:
    """Sessions with one of these kinds of waits, of one database server or, if None, of all servers."""
    keys = [
        key
        for key in inputs.samples.keys("db.sessions_waiting")
        if key.host == host
        and server in {None, server_of(key)}
        and key.instance.removeprefix(server_of(key)).startswith(tuple(kinds))
    ]
    if not keys:
        return None
    total = np.nansum([inputs.samples.steps(*key) for key in keys], axis=0)
    return Rows.of(inputs.samples.series(*keys[0]), keys[0], total)


def context(inputs: Inputs, host: str, metric: str, instance: str, words: str) -> Fact | None:
    """A further figure as a fact; None if the figure was not measured or always 0."""
    rows = figure(inputs, host, metric, instance)
    if rows is None or rows.most <= 0:
        return None
    mean, most = units.of_metric(metric, rows.mean), units.of_metric(metric, rows.most)
    return Fact(f"{words}: {mean} on average, at most {most}", metric, rows.mean, host, instance)


def contexts(
    inputs: Inputs, host: str, figures: Iterable[tuple[str, str]], instance: str = ""
) -> tuple[Fact, ...]:
    """Further figures as facts, of every database server that reports them.

    ``figures``: (metric, words) of each figure.
    """
    result = (
        context(inputs, host, metric, f"{server}{instance}", f"{words}{named(server)}")
        for metric, words in figures
        for server in servers(inputs, host, metric)
    )
    return tuple(fact for fact in result if fact)


def common(these: Sequence[Stretch], those: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """The times that are in both sequences, the longest first."""
    result = [
        Stretch(max(one.from_s, other.from_s), min(one.to_s, other.to_s))
        for one in these
        for other in those
        if min(one.to_s, other.to_s) > max(one.from_s, other.from_s)
    ]
    return tuple(sorted(result, key=lambda each: -each.seconds))


def inside(window: Window, stretches: Sequence[Stretch]) -> Steps:
    """Per step, whether the step lies in one of these times."""
    middle = window.first_s + (np.arange(window.steps) + 0.5) * window.step_s
    steps = np.zeros(window.steps, dtype=bool)
    for each in stretches:
        steps |= (middle >= each.from_s) & (middle <= each.to_s)
    return steps


def overlap_s(these: Sequence[Stretch], those: Sequence[Stretch]) -> float:
    """The time for which two resources were saturated at once, in seconds."""
    return sum(each.seconds for each in common(these, those))


def _judged(
    rows: Rows,
    window: Window,
    limit: float,
    beyond: Steps,
    lasted_s: Floats,
    *,
    above: bool,
) -> tuple[Floats, Steps]:
    """Per step, (the mean over 30 seconds around the step, whether the step is in 30 seconds at the limit).

    A mean alone does not suffice, because a spike of a second or a long reading can lift it: the readings
    themselves must be at the limit for a quarter of the time.
    """
    there = rows.covered_s > 0
    sustained = sustained_s(window)
    steps = int(sustained // window.step_s)
    if rows.reading_s > SUSTAINED.value / 2 or steps < 2:
        smooth, steps = rows.values, 1
    else:
        weight = np.where(there, rows.weight, 0.0)
        total = np.where(there, np.nan_to_num(rows.values) * weight, 0.0)
        sums, weights, covered = (_running(each, steps) for each in (total, weight, rows.covered_s))
        enough = (covered >= _LEAST_COVERED * sustained) & (weights > 0)
        smooth = np.divide(sums, weights, out=np.full(len(sums), np.nan), where=enough)
        if not np.isfinite(smooth).any():
            return rows.values, np.zeros(len(there), dtype=bool)
    lasting = _running(np.where(beyond, lasted_s, 0.0), steps)
    over = _beyond(smooth, limit, above=above) & (lasting >= _LASTING * _running(rows.covered_s, steps))
    return smooth, (_running(over.astype(float), steps) > 0) & there


def _beyond(values: Floats, limit: float, *, above: bool) -> Steps:
    with np.errstate(invalid="ignore"):
        beyond = values > limit * (1 + _ROUNDING) if above else values >= limit * (1 - _ROUNDING)
    return np.asarray(beyond)


def _running(values: Floats, steps: int) -> Floats:
    """The sum over this number of steps around each step."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    at = np.arange(len(values))
    first = np.maximum(at - steps // 2, 0)
    last = np.minimum(at - steps // 2 + steps, len(values))
    result: Floats = total[last] - total[first]
    return np.where(np.abs(result) < 1e-9, 0.0, result)


def _stretches(
    window: Window, covered_s: Floats, over: Steps, beyond: Steps, *, bounded: bool
) -> tuple[Stretch, ...]:
    """The times in which the mean was at the limit without a break; the longest first.

    A stretch lasts from the first to the last reading that was itself at the limit, because the mean is at
    the limit some seconds before and after these readings. The length of a stretch is known to within a
    reading. If the length may be 30 seconds, the mean decides. A figure without a highest value (latency,
    waits) is excepted, because a spike of seconds lifts the mean of one reading.
    """
    runs: list[list[int]] = []
    result: list[Stretch] = []
    for at in np.flatnonzero(covered_s > 0):
        if not over[at]:
            runs.append([])
        elif runs and runs[-1] and _adjacent(window, covered_s, runs[-1][-1], int(at)):
            runs[-1].append(int(at))
        else:
            runs.append([int(at)])
    for run in filter(None, runs):
        themselves = [at for at in run if beyond[at]] or run
        whole, trimmed = (_between(window, covered_s, each[0], each[-1]) for each in (run, themselves))
        reading_s = max(float(covered_s[themselves[0]]), float(window.step_s))
        known = (
            not bounded or trimmed.seconds >= SUSTAINED.value or trimmed.seconds + reading_s < SUSTAINED.value
        )
        result.append(trimmed if known else whole)
    return tuple(sorted(result, key=lambda each: -each.seconds))


def _adjacent(window: Window, covered_s: Floats, last: int, at: int) -> bool:
    """Whether at most a short gap lies between two readings."""
    gap_s = _between(window, covered_s, at, at).from_s - _between(window, covered_s, last, last).to_s
    longest_s = (1 - _LEAST_COVERED) * SUSTAINED.value
    return gap_s <= max(_GAP * max(float(covered_s[at]), window.step_s), longest_s)


def _between(window: Window, covered_s: Floats, first: int, last: int) -> Stretch:
    """The time from the start of one reading to the end of another.

    A reading longer than a step is stored in the step of its middle; a shorter reading fills its step.
    """
    middles = (window.first_s + (at + 0.5) * window.step_s for at in (first, last))
    halves = (max(float(covered_s[at]), float(window.step_s)) / 2 for at in (first, last))
    (begin, end), (before, after) = middles, halves
    return Stretch(begin - before, end + after)


def _how_long(one: Measure) -> str:
    if not one.stretches:
        return "never at its limit"
    over, measured, longest = map(units.span, (one.over_s, one.measured_s, one.stretches[0].seconds))
    if over == measured == longest:
        return f"at its limit for all {measured}"
    return f"at its limit for {over} of {measured}" + (f", {longest} in a row" if longest != over else "")
