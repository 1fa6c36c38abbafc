"""Measures of a resource in a recording: when a figure was at its limit, and what it came to.

A figure is at its limit if its mean over 30 seconds is, and not by a spike of a few seconds alone, so that
rows of 1, 5 and 10 seconds give the same answer; where readings are longer than half of that, each reading is
judged alone.
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
"""A mean over 30 seconds needs readings for half of them; a stretch includes gaps as long as that."""
_GAP = 0.75
"""Gaps up to this share of a reading do not interrupt a period of longer readings."""

_LASTING = 0.25
"""If the mean of 30 s reached a limit, at least this share of the readings must have reached it."""
_SERVER = re.compile(r"[\w#$]+/")
_THROUGHOUT = 0.9
"""The first and the last reading of a recording cover less than a whole one."""
_ROUNDING = 1e-9
"""Means of equal values differ in their last digits."""

_RESOURCE_OF = {"cpu_thread": "thread", "disk_cap": "disk", "external": "dependency"}
"""Kinds of limits that are not called as their resource."""

What = Literal["utilisation", "saturation", "errors", "attribution"]
Steps = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which a figure was at its limit, UTC seconds."""

    from_s: float
    to_s: float

    @property
    def seconds(self) -> float:
        """The length of the period."""
        return self.to_s - self.from_s


@dataclass(frozen=True, slots=True)
class Rows:
    """A figure over the steps of the window.

    Attributes:
        values: one per step; NaN where nothing was read.
        covered_s: the seconds that the readings of each step cover.
        weight: the operations behind each value, or the seconds.
        metric: the series they are of.
        instance: likewise.
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
        """Weighted by operations or by time."""
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
        """The largest value of a step."""
        return float(np.nanmax(self.values))

    @property
    def reading_s(self) -> float:
        """How long a reading is, the median."""
        return float(np.median(self.covered_s[self.covered_s > 0]))


@dataclass(frozen=True, slots=True)
class Measure:
    """One of a resource's four questions, answered by one figure.

    Attributes:
        what: which of the four.
        metric: the series it is of.
        instance: likewise.
        value: its mean over the recording, base units.
        limit: what it is compared with.
        words: the figures in words.
        stretches: when it was at its limit, the longest first.
        highest: the largest mean over 30 seconds.
        has_room: of a share: below 75 % throughout, and no long reading stands out.
        over_s: how long it was at its limit altogether.
        least_s: how long it must be at its limit to count.
        measured_s: how long it was measured.
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
        """Whether it was at its limit for 30 seconds or longer, or throughout a shorter recording."""
        return bool(self.stretches) and self.stretches[0].seconds >= self.least_s


@dataclass(frozen=True, slots=True)
class RecordedResource:
    """One resource of one host, with all that a recording says about it.

    Attributes:
        kind: the kind of limit it would be (docs/reading-a-verdict.md).
        name: in words: ``CPU of APP3``.
        metric: the series that would show it best.
        measures: what was measured, the deciding one first; empty: nothing was.
        has_room: whether the measures show that it did not limit; None if they cannot.
        missing: what was not measured of it, and why; "" where nothing is missing.
        doubt: why work may not have waited for it although it is at its limit; "" without doubt.
        remedy: what to do so that it can be judged; "" if that is known already.
        context: further figures.
        recorded: whether it is known; else something that was not recorded must have been waited for.
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
        """``cpu``, ``thread``, ``memory``, ``disk``, ``network``, ``lock``, ``pool`` or ``dependency``."""
        return _RESOURCE_OF.get(self.kind, self.kind)

    @property
    def saturated(self) -> tuple[Measure, ...]:
        """The measures that were at their limits for 30 seconds or longer."""
        return tuple(one for one in self.measures if one.at_limit)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """When it was saturated: of the deciding measure, the longest first."""
        return self.saturated[0].stretches if self.saturated else ()

    @property
    def over_s(self) -> float:
        """How long it was saturated."""
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
    """A figure against its limit; None if it was not measured.

    Args:
        inputs: the recording.
        rows: the figure.
        limit: it is at its limit from this value on; ``above``: only beyond it.
        what: which question it answers.
        noun: what stands before the figures in words: ``busy``.
        above: see ``limit``.
        only: steps in which it counts.
        share: for what share of each step its value can have lasted; all of it where None or not finite.
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
    """How long a figure must be at its limit: 30 seconds; nearly throughout a recording that is shorter."""
    return min(SUSTAINED.value, _THROUGHOUT * window.seconds)


def _hides_more(rows: Rows, limit: float) -> bool:
    """Whether a long reading may contain 30 seconds at the limit: it is half of that, and twice as usual."""
    usual = float(np.nanmedian(rows.values))
    return rows.reading_s > SUSTAINED.value / 2 and rows.most >= max(STANDS_OUT.value * limit, 2 * usual)


def figure(inputs: Inputs, host: str, metric: str, instance: str = "") -> Rows | None:
    """A series of a host; None if nothing was read."""
    key = Key(host, metric, instance)
    return Rows.of(inputs.samples.series(*key), key)


def servers(inputs: Inputs, host: str, *metrics: str) -> list[str]:
    """The prefixes of instance names of a host's database servers that have one of these metrics.

    Of the only one, or the default one, that is nothing; of a named SQL Server beside others ``NAME/``.
    """
    keys = (key for metric in metrics for key in inputs.samples.keys(metric) if key.host == host)
    return sorted({server_of(key) for key in keys})


def server_of(key: Key) -> str:
    """The beginning of its instance that names its database server; "" where none is named."""
    named = _SERVER.match(key.instance) if key.metric.startswith("db.") else None
    return named[0] if named else ""


def named(server: str) -> str:
    """A database server behind a noun, in words: `` NAME``; "" of the only one, or the default one."""
    return f" {server[:-1]}" if server else ""


def database(server: str, host: str) -> str:
    """A database server of a host, in words."""
    return f"the database{f' server{named(server)}' if server else ''} on {host}"


def sessions_waiting(
    inputs: Inputs, host: str, kinds: Sequence[str], server: str | None = None
) -> Rows | None:
    """Sessions that waited for one of these kinds of things, of a database server or (None) of all there."""
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
    """A further figure in words, where it was measured and is not 0 throughout."""
    rows = figure(inputs, host, metric, instance)
    if rows is None or rows.most <= 0:
        return None
    mean, most = units.of_metric(metric, rows.mean), units.of_metric(metric, rows.most)
    return Fact(f"{words}: {mean} on average, at most {most}", metric, rows.mean, host, instance)


def contexts(
    inputs: Inputs, host: str, figures: Iterable[tuple[str, str]], instance: str = ""
) -> tuple[Fact, ...]:
    """Likewise several: metric and words of each, of every database server that reports it."""
    result = (
        context(inputs, host, metric, f"{server}{instance}", f"{words}{named(server)}")
        for metric, words in figures
        for server in servers(inputs, host, metric)
    )
    return tuple(fact for fact in result if fact)


def common(these: Sequence[Stretch], those: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """The times that are in both, the longest first."""
    result = [
        Stretch(max(one.from_s, other.from_s), min(one.to_s, other.to_s))
        for one in these
        for other in those
        if min(one.to_s, other.to_s) > max(one.from_s, other.from_s)
    ]
    return tuple(sorted(result, key=lambda each: -each.seconds))


def inside(window: Window, stretches: Sequence[Stretch]) -> Steps:
    """The steps in one of these times."""
    middle = window.first_s + (np.arange(window.steps) + 0.5) * window.step_s
    steps = np.zeros(window.steps, dtype=bool)
    for each in stretches:
        steps |= (middle >= each.from_s) & (middle <= each.to_s)
    return steps


def overlap_s(these: Sequence[Stretch], those: Sequence[Stretch]) -> float:
    """How long two resources were saturated at the same time."""
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
    """(the mean over 30 seconds around each step, whether the step belongs to one that is at the limit).

    A mean does not show for how long: a spike of a second can lift it, and a long reading as well.
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
    """The sum over this many steps around each."""
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

    Each is from the first to the last reading that was at the limit itself: a mean is at the limit some
    seconds before and after these. That is known to within a reading: where 30 seconds are, the mean decides,
    but of what has no highest value (latency, what waits): a spike of seconds lifts the mean of one reading.
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
    """Whether no more than a short gap lies between two readings."""
    gap_s = _between(window, covered_s, at, at).from_s - _between(window, covered_s, last, last).to_s
    longest_s = (1 - _LEAST_COVERED) * SUSTAINED.value
    return gap_s <= max(_GAP * max(float(covered_s[at]), window.step_s), longest_s)


def _between(window: Window, covered_s: Floats, first: int, last: int) -> Stretch:
    """From the begin of one reading to the end of another.

    A reading longer than a step lies in the step of its middle; shorter ones fill their step.
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
