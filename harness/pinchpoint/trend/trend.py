"""Finds changes of level in a figure's history: the run, the ratio with its interval, better or worse.

The test is the same as for changes of level within a run (``data.changes``); its values are runs here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pinchpoint.comparison.statistics import welch
from pinchpoint.data.changes import find_levels
from pinchpoint.data.series import Floats
from pinchpoint.trend.history import Entry, FigureKey, Histories
from pinchpoint_collectors.common.counts import counted

SCHEMA = "pinchpoint.trend/1"

LEAST_RUNS = 8
"""The lowest number of runs: with fewer than four before and four after, no change is significant."""
LEAST_SIDE = 3
MATTERS = 0.05
"""The smallest change that counts, as a ratio; the same as in a comparison."""
_MEDIAN_OF_TWO = 0.6745 * math.sqrt(2)  # median difference of two normal values, in standard deviations
FAR = 5.0
"""A run further than this number of standard deviations from the run before and the run after is an
outlier."""

Call = Literal["better", "worse", "inconclusive"]


@dataclass(frozen=True, slots=True)
class LevelChange:
    """One change of level.

    Attributes:
        at: index of the first run of the new level.
        after: name of the last run of the old level.
        first: name of the first run of the new level.
        started: start of the first run of the new level, ISO text in UTC.
        before_value, after_value: medians of the old and the new level.
        ratio: new level ÷ old level (geometric means).
        ci95: 95 % confidence interval of ``ratio`` (Welch's, on logarithms of run values); None with fewer
            than two runs on a side.
        call: ``better`` or ``worse`` if the interval lies beyond 5 %, else ``inconclusive``.
    """

    at: int
    after: str
    first: str
    started: str
    before_value: float
    after_value: float
    ratio: float
    ci95: tuple[float, float] | None
    call: Call


@dataclass(frozen=True, slots=True)
class FigureTrend:
    """The history of one figure.

    Attributes:
        entries: values of the runs, oldest first.
        changes: changes of level, oldest first.
        level: median of the runs since the last change.
        why_not: reason why there are too few runs to find a change; None if there are enough.
        zero_since: first of the newest runs with the value 0, for a figure where higher is better; None if
            the newest run is above 0.
        drift: change from the level after the last conclusive change (or from the first level) to the last
            level, if at least two inconclusive changes lie between; else None.
        lone: outliers: runs far from the run before and the run after, which do not count as a level.
    """

    key: FigureKey
    entries: tuple[Entry, ...]
    changes: tuple[LevelChange, ...]
    level: float
    why_not: str | None
    zero_since: Entry | None = None
    drift: LevelChange | None = None
    lone: tuple[Entry, ...] = ()

    @property
    def worse(self) -> bool:
        """Whether the figure is worse now than before the last conclusive change, or has fallen to 0.

        An inconclusive change does not cancel an earlier one; several together may form a conclusive drift.
        """
        called = [one.call for one in (*self.changes, self.drift) if one and one.call != "inconclusive"]
        return self.zero_since is not None or called[-1:] == ["worse"]


@dataclass(frozen=True, slots=True)
class Trend:
    """The histories of a plan's figures.

    Attributes:
        plan: name of the plan.
        lines: histories, one per farm, scenario or source, and figure.
        left_out: runs that are not counted, each with the reason.
        warnings: sentences about runs that are less comparable.
    """

    plan: str
    lines: tuple[FigureTrend, ...]
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def worse(self) -> tuple[FigureTrend, ...]:
        """The figures that are worse now than before."""
        return tuple(line for line in self.lines if line.worse)

    def to_json(self) -> dict[str, Any]:
        """The trend as JSON types."""
        content = {"schema": SCHEMA, **asdict(self)}
        result: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
        return result


def find_trend(histories: Histories) -> Trend:
    """The changes of level in each series."""
    lines = tuple(
        _line(key, entries, histories.zero_since.get(key)) for key, entries in histories.series.items()
    )
    return Trend(histories.plan, lines, histories.left_out, histories.warnings)


def _line(key: FigureKey, entries: tuple[Entry, ...], zero_since: Entry | None) -> FigureTrend:
    values = np.array([entry.value for entry in entries])
    lone, levels = _lone(values)
    cuts = find_levels(levels, least=LEAST_RUNS, smallest=MATTERS, edge=LEAST_SIDE)
    ends = [0, *cuts, len(values)]
    changes = tuple(
        _between(key, entries, levels, (begin, cut), (cut, end))
        for begin, cut, end in zip(ends, cuts, ends[2:], strict=False)
    )
    few = len(values) < LEAST_RUNS
    return FigureTrend(
        key=key,
        entries=entries,
        changes=changes,
        level=median(levels[ends[-2] :].tolist()),
        why_not=f"{counted(len(values), 'run')}, at least {LEAST_RUNS} are needed" if few else None,
        zero_since=zero_since if key.better == "higher" else None,
        drift=_drift(key, entries, levels, ends, changes),
        lone=tuple(entry for entry, alone in zip(entries, lone, strict=True) if alone),
    )


def _lone(values: Floats) -> tuple[npt.NDArray[np.bool_], Floats]:
    """(whether each value is an outlier, the values with outliers replaced by the mean of their neighbours).

    The threshold uses the median difference between neighbours, which a change of level hardly affects.
    """
    if len(values) < LEAST_RUNS:
        return np.zeros(len(values), dtype=bool), values
    logs = np.log(values)
    usual = float(np.median(np.abs(np.diff(logs)))) / _MEDIAN_OF_TWO
    # The first and the last value are compared with the two nearest values on their one side.
    before, after = np.append(logs[2], logs[:-1]), np.append(logs[1:], logs[-3])
    away = logs - before, logs - after
    same_way = away[0] * away[1] > 0
    lone = same_way & (np.minimum(*map(np.abs, away)) > max(FAR * usual, math.log1p(2 * MATTERS)))
    return lone, np.where(lone, np.exp((before + after) / 2), values)


def _drift(
    key: FigureKey,
    entries: Sequence[Entry],
    values: Floats,
    ends: Sequence[int],
    changes: Sequence[LevelChange],
) -> LevelChange | None:
    """The change from the last conclusive level to the last level, if at least two changes lie between."""
    called = [place + 1 for place, one in enumerate(changes) if one.call != "inconclusive"]
    since = max(called, default=0)
    if len(changes) - since < 2:
        return None
    return _between(key, entries, values, (ends[since], ends[since + 1]), (ends[-2], ends[-1]))


def _between(
    key: FigureKey, entries: Sequence[Entry], values: Floats, old: tuple[int, int], new: tuple[int, int]
) -> LevelChange:
    """The change between two levels; each level is (first run, end of runs)."""
    before, after = (values[slice(*each)].tolist() for each in (old, new))
    result = welch(before, after)
    ci95 = result.ci95 if result else None
    cut = new[0]
    return LevelChange(
        at=cut,
        after=entries[cut - 1].run,
        first=entries[cut].run,
        started=entries[cut].started,
        before_value=median(before),
        after_value=median(after),
        ratio=math.exp(float(np.log(after).mean() - np.log(before).mean())),
        ci95=ci95,
        call=_call(key, ci95),
    )


def _call(key: FigureKey, ci95: tuple[float, float] | None) -> Call:
    if ci95 is None or (ci95[0] <= 1 + MATTERS and ci95[1] >= 1 - MATTERS):
        return "inconclusive"
    rose = ci95[0] > 1
    return "better" if rose == (key.better == "higher") else "worse"
