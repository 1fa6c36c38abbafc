"""A fitted plan.yaml, with the origin of each figure beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pinchpoint.fit.course import Course
from pinchpoint.fit.figures import FIGURES, READS_PER_S, WRITES_PER_S, Figure, Figures
from pinchpoint.fit.mix import Mix
from pinchpoint.fit.production import Production

_MEASURE_S = 120
_SHORTEST_S = 1
"""Latency is seen by the second: a burst lasts at least one."""


def plan_text(production: Production, mix: Mix, day: Course | None) -> str:
    """The plan, commented."""
    figures = production.figures | (_at_peak(production.figures, day) | day.figures if day else {})
    return "\n".join(
        [
            "# Fitted to what a production server said of itself. After a run the figures at the end of this",
            "# file are compared with those of the run.",
            "",
            "name: fitted",
            "seed: 1",
            "",
            "scenarios:",
            "  production:",
            "    use: sql-mix",
            *(f"    {line}" for line in _load(production, day)),
            *(f"    {line}" for line in _params(mix)),
            "",
            f"phases: {{warm_up: 10s, measure: {_measure_s(day)}s}}",
            "",
            *_figures(figures),
            "",
        ]
    )


def _at_peak(figures: Figures, day: Course) -> Figures:
    """The rates of the busiest hour, which is what the load is."""
    where = f", x {plain(day.peak_ratio)} in the busiest hour ({day.source})"
    return {
        name: Figure(figures[name].value * day.peak_ratio, figures[name].origin + where)
        for name in (WRITES_PER_S, READS_PER_S)
    }


def _measure_s(day: Course | None) -> int:
    """Two bursts, where there are any."""
    every_s = day.bursts.every_s if day and day.bursts else 0.0
    return max(_MEASURE_S, math.ceil(2 * every_s))


def plain(value: float, digits: int = 4) -> str:
    """A number with so many digits, without an exponent."""
    return format(float(f"{value:.{digits}g}"), "f").rstrip("0").rstrip(".") or "0"


def _load(production: Production, day: Course | None) -> Iterator[str]:
    figures = production.figures
    rate = figures[READS_PER_S].value + figures[WRITES_PER_S].value
    yield f"# {plain(figures[WRITES_PER_S].value)}/s writes + {plain(figures[READS_PER_S].value)}/s reads"
    if day is None:
        yield f"# ({production.sources})."
        yield "# How it goes over the day is not known: a recording of sar or perfmon would tell."
        yield f"load: {{model: open, rate: {plain(rate)}/s}}"
        return
    peak = rate * day.peak_ratio
    yield f"# ({production.sources}),"
    yield f"# x {plain(day.peak_ratio)}: the busiest hour, {day.busiest}, beside then ({day.source}: I/Os)."
    if day.bursts is None:
        yield "# That hour is even: no two bursts above 1.5 times its mean."
        yield f"load: {{model: open, rate: {plain(peak)}/s}}"
        return
    bursts = day.bursts
    share = bursts.for_s / bursts.every_s
    base = peak / (1 - share + share * bursts.ratio)
    length, every = plain(bursts.for_s), plain(bursts.every_s)
    yield f"# In it {plain(bursts.ratio)} times as much for {length} s every {every} s."
    yield (
        f"load: {{model: burst, base: {plain(base)}/s, peak: {plain(base * bursts.ratio)}/s, "
        f"every: {every}s, for: {plain(max(_SHORTEST_S, bursts.for_s))}s}}"
    )


def _params(mix: Mix) -> Iterator[str]:
    for sentence in mix.lacking:
        yield f"# Not alike: {sentence}."
    yield "params:"
    yield "  operations:"
    for name, rate in mix.rates.items():
        yield f"    {name}: {plain(rate)}  # a second: {mix.why[name]}"
    for name, value in mix.params.items():
        yield f"  {name}: {value}  # {mix.why[name]}"


def _figures(figures: Figures) -> Iterator[str]:
    yield "# Production's own figures."
    yield "production:"
    for name in FIGURES:
        if name in figures:
            yield f"  {name}: {plain(figures[name].value)}  # {FIGURES[name]}; {figures[name].origin}"
