"""Formats a trend for a terminal: a line with a sparkline per figure, then the changes as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pinchpoint.base import units
from pinchpoint.base.text import fitted, titled
from pinchpoint.data.timeaxis import day_and_time
from pinchpoint.trend.history import Entry, FigureKey
from pinchpoint.trend.trend import FigureTrend, LevelChange, Trend

BARS = "▁▂▃▄▅▆▇█"
NOTHING = "No trend: no run of this plan is complete, valid and has operations."
LONGEST = 40
"""Largest number of runs in a sparkline; the latest runs are shown."""


def trend_text(trend: Trend) -> str:
    """Return the trend as text: figures, changes of level, outliers and warnings."""
    blocks = [f"{trend.plan}:", "\n".join(_table(trend.lines)) if trend.lines else NOTHING]
    changed = titled("Changes of level:", (each for line in trend.lines for each in _sentences(line)))
    if not changed and any(line.why_not is None for line in trend.lines):
        changed = "No change of level was found."
    blocks += [
        changed,
        titled("Outliers:", lone_words(trend), "  ! "),
        titled("Not counted:", trend.left_out, "  ! "),
        titled("Warnings:", trend.warnings, "  ! "),
    ]
    return "\n\n".join(filter(None, blocks))


def sparkline(values: Sequence[float]) -> str:
    """Return the last values as bars, scaled from the lowest to the highest of them."""
    shown = values[-LONGEST:]
    low, high = min(shown), max(shown)
    if high == low:
        return BARS[3] * len(shown)
    return "".join(BARS[round((value - low) / (high - low) * (len(BARS) - 1))] for value in shown)


def figure(key: FigureKey) -> str:
    """Return the name of a figure: ``p95 response time of orders on dev``."""
    names = {
        "throughput_per_s": "throughput",
        "response_p95_s": "p95 response time",
        "service_p95_s": "p95 service time",
        "rate_per_s": "crawl rate",
        "repository_latency_s": "repository latency",
    }
    return f"{names[key.metric]} of {key.about} on {key.farm}"


def _table(lines: Sequence[FigureTrend]) -> Iterator[str]:
    rows = [("figure", "runs", "level now", "course", "")]
    for line in lines:
        values = [entry.value for entry in line.entries]
        state = _state(line)
        level = units.of_metric(line.key.metric, line.level)
        rows.append((figure(line.key), str(len(values)), level, sparkline(values), state))
    return fitted(rows, [])


def _state(line: FigureTrend) -> str:
    if line.worse:
        return "worse"
    return line.why_not or (line.changes[-1].call if line.changes else "steady")


def _sentences(line: FigureTrend) -> Iterator[str]:
    yield from (_sentence(line, change) for change in line.changes)
    if line.drift:
        yield f"{_sentence(line, line.drift)}, in several steps"
    if line.zero_since:
        yield f"{figure(line.key)}: {zero_words(line.zero_since)}: worse"


def lone_words(trend: Trend) -> Iterator[str]:
    """Yield each outlier: ``throughput of orders on dev: 20/s in run-8 (2026-...), a single run``."""
    for line in trend.lines:
        for one in line.lone:
            value = units.of_metric(line.key.metric, one.value)
            yield f"{figure(line.key)}: {value} in {one.run} ({day_and_time(one.started)}), a single run"


def zero_words(since: Entry) -> str:
    """Return since when a figure is zero: ``0 since run-8 (2026-...)``."""
    return f"0 since {since.run} ({day_and_time(since.started)})"


def _sentence(line: FigureTrend, change: LevelChange) -> str:
    """Return a change of level as a sentence.

    Example: ``throughput of orders on dev: 200/s up to run-7, 160/s since run-8 (...): worse``.
    """
    before, after = (
        units.of_metric(line.key.metric, value) for value in (change.before_value, change.after_value)
    )
    span = f", {units.percent(change.ci95[0])} to {units.percent(change.ci95[1])}" if change.ci95 else ""
    return (
        f"{figure(line.key)}: {before} up to {change.after}, {after} since {change.first} "
        f"({day_and_time(change.started)}; {units.percent(change.ratio)} of the level before{span}): "
        f"{change.call}"
    )
