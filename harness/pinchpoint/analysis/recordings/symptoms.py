"""Finds symptoms in a recording: times in which rates of finished work fell or latencies rose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pinchpoint.analysis.recordings.measures import (
    Measure,
    RecordedResource,
    Rows,
    Steps,
    Stretch,
    figure,
    inside,
    measure,
    server_of,
)
from pinchpoint.analysis.thresholds import SUSTAINED, Threshold
from pinchpoint.base import units
from pinchpoint.data.inputs import Host, Inputs
from pinchpoint.data.series import Key, Window

_WORK = (
    "commit",
    "transaction",
    "batch",
    "statement",
    "command",
    "request",
    "operation",
    "query",
    "document",
)
_MANY = {"batch": "batches", "query": "queries"}
_FINISHED = tuple(f"{of}.{_MANY.get(one, f'{one}s')}_per_s" for of in ("db", "search") for one in _WORK)
_TIMED = tuple(f"{of}.{one}_latency_s" for of in ("db", "search") for one in ("response", *_WORK))
_AT_WORK = ("db.sessions_active", "search.in_progress")
_CONNECTED = ("db.connections",)
"""Connections show waiting work only if the rate fell at once, because a pool keeps idle connections."""
_LEAST_AT_WORK = 2.0
"""Fewest active sessions that show waiting work: a single session may be the recorder's own."""

COLLAPSED = Threshold(0.5, "design", "finished work fell to half of its usual rate, or less")
LOST = Threshold(1 - COLLAPSED.value, COLLAPSED.source, COLLAPSED.says)
SLOWER = Threshold(1.5, "design", "latency rose to one and a half times its usual value, or more")
FEWER = Threshold(0.8, "design", "finished work fell to four fifths of its usual rate, or less")
_CAUGHT_UP = 2.0
"""A rate above this multiple of the usual one counts as this multiple: work caught up later hides no
collapse."""
_MEDIAN, _UPPER_QUARTILE = 0.5, 0.75
_DEVIATIONS = 3.0
"""Fewer than one in 700 counts of independent events lie this many standard deviations below the mean."""


@dataclass(frozen=True, slots=True)
class Symptom:
    """A rate or a latency of finished work ÷ its usual value."""

    ratio: float
    words: str


def symptoms_during(inputs: Inputs, stretches: Sequence[Stretch]) -> Iterator[Symptom]:
    """Lower rates and higher latencies of finished work in these times than in the rest of the recording."""
    during = _inside(inputs.window, stretches)
    for key, rows in _series(inputs, _FINISHED):
        ratio = _against_rest(rows, during)
        if ratio is not None and ratio <= FEWER.value:
            words = f"{_name(key)} fell to {units.percent(ratio)} of their usual rate"
            yield Symptom(ratio, words)
    for key, rows in _series(inputs, _TIMED):
        ratio = _against_rest(rows, during)
        if ratio is not None and ratio >= SLOWER.value:
            yield Symptom(ratio, f"{_name(key)} rose to {units.times(ratio)} its usual value")


def collapses(inputs: Inputs, host: Host) -> Iterator[RecordedResource]:
    """Finished work that collapsed for part of the recording; the cause was not measured.

    A smaller load looks the same. Work waited if latency rose, or if the usual number of sessions stayed
    active. Without such a sign, a rate that declines slowly means a smaller load.
    """
    for key, rows in _series(inputs, _FINISHED, host.name):
        result = next(_collapsed(inputs, key, rows), None)
        if result is None:
            continue
        one, witness = result
        yield RecordedResource(
            kind="external",
            tier=host.tier,
            host=host.name,
            name=f"something that {_server(key)} waits for and that was not recorded",
            metric=key.metric,
            measures=(replace(one, metric=key.metric),),
            has_room=False,
            doubt=""
            if witness
            else "the load may have been smaller: neither latency nor sessions were recorded",
            recorded=False,
            remedy="record latency, or the sessions that are at work, beside the rate of finished work",
        )
        return


def work(inputs: Inputs, host: Host) -> Iterator[RecordedResource]:
    """An entry about the missing measurements, if nothing shows whether work waited."""
    if host != inputs.hosts[0] or any(True for _ in _series(inputs, (*_FINISHED, *_TIMED, *_AT_WORK))):
        return
    yield RecordedResource(
        kind="external",
        tier=host.tier,
        host=host.name,
        name="locks, connections and calls to other systems",
        metric=_FINISHED[0],
        missing="finished work was not recorded: whether work waited for locks or for others does not show",
        remedy="record the rate of finished work, its latency, or the sessions that wait",
        recorded=False,
    )


def _collapsed(inputs: Inputs, key: Key, rows: Rows) -> Iterator[tuple[Measure, str]]:
    """(the lost share of the usual rate, the sign that work waited, or "") of each collapse.

    The usual rate is the median; if work waited for longer than half of the time, the upper quartile.
    """
    for part in (_MEDIAN, _UPPER_QUARTILE):
        usual = float(np.nanquantile(rows.values, part))
        if usual <= 0:
            continue
        capped = replace(rows, values=np.minimum(rows.values, _CAUGHT_UP * usual))
        share = 1 - capped.values / usual
        lost = replace(rows, values=share, weight=rows.covered_s, metric="db.lost_ratio")
        one = measure(inputs, lost, LOST, "attribution", f"{_name(key)}, of their usual rate lost:")
        if one is None or not one.at_limit or one.over_s > part * one.measured_s + SUSTAINED.value:
            continue  # 30 s are allowed for the edges of the means
        if not _beyond_chance(capped, usual, _inside(inputs.window, one.stretches)):
            continue
        at_once = part == _MEDIAN and _at_once(inputs.window, rows, one.stretches, usual)
        at_work = (*_AT_WORK, *(_CONNECTED if at_once else ()))
        witness = next(_witnesses(inputs, key, one.stretches, at_work), "")
        if witness or at_once:
            yield one, witness


def _at_once(window: Window, rows: Rows, stretches: Sequence[Stretch], usual: float) -> bool:
    """Whether the rate was nearly usual within a minute, or two readings, of the time with a low rate."""
    near_s = max(2 * rows.reading_s, 2 * SUSTAINED.value)
    low = _inside(window, stretches)
    wide = [Stretch(each.from_s - near_s, each.to_s + near_s) for each in stretches]
    beside = rows.values[_inside(window, wide) & ~low & np.isfinite(rows.values)]
    return bool(beside.size) and float(np.median(beside)) >= FEWER.value * usual


def _beyond_chance(rows: Rows, usual: float, during: Steps) -> bool:
    """Whether chance hardly explains the low number of requests (Poisson: three deviations)."""
    expected = usual * float(rows.covered_s[during].sum())
    finished = float(np.nansum(rows.values[during] * rows.covered_s[during]))
    return bool(expected - finished > _DEVIATIONS * np.sqrt(expected))


def _witnesses(
    inputs: Inputs, key: Key, stretches: Sequence[Stretch], at_work: Sequence[str]
) -> Iterator[str]:
    for symptom in symptoms_during(inputs, stretches):
        if symptom.ratio > 1:
            yield symptom.words
    during = _inside(inputs.window, stretches)
    for metric in at_work:
        rows = figure(inputs, key.host, metric, server_of(key))
        ratio = _against_rest(rows, during) if rows is not None else None
        if rows is None or ratio is None or ratio < 1:
            continue
        if float(np.nanmedian(rows.values[during])) >= _LEAST_AT_WORK:
            yield f"{metric} stayed"


def _series(inputs: Inputs, metrics: Sequence[str], host: str | None = None) -> Iterator[tuple[Key, Rows]]:
    """(key, values) of each series of these metrics, of one host or of all hosts."""
    for metric in metrics:
        for key in inputs.samples.keys(metric):
            rows = figure(inputs, *key) if host in {None, key.host} else None
            if rows is not None:
                yield key, rows


def _inside(window: Window, stretches: Sequence[Stretch]) -> Steps:
    return inside(window, [each for each in stretches if each.seconds >= SUSTAINED.value])


def _against_rest(rows: Rows, during: Steps) -> float | None:
    """The median in these steps ÷ the median in all others; None if one part is shorter than 30 seconds.

    If the median of the others is 0, the result is infinite.
    """
    there = np.isfinite(rows.values)
    if min(rows.covered_s[there & during].sum(), rows.covered_s[there & ~during].sum()) < SUSTAINED.value:
        return None
    within, rest = (float(np.median(rows.values[there & which])) for which in (during, ~during))
    return within / rest if rest > 0 else np.inf if within > 0 else None


def _name(key: Key) -> str:
    words = key.metric.partition(".")[2].removesuffix("_per_s").removesuffix("_s").replace("_", " ")
    return f"{words} of {_server(key)}"


def _server(key: Key) -> str:
    """The host, preceded by the name of the database server if several run on the host."""
    return " on ".join(filter(None, (server_of(key).removesuffix("/"), key.host)))
