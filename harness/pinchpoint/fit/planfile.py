"""Writes the fitted plan file, with the origin of each figure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pinchpoint.fit.figures import Collected, Figures, ProductionFigure, plain
from pinchpoint.fit.mix import Mix
from pinchpoint.fit.production import Production
from pinchpoint.fit.rates import BURST, FittedBursts, LoadCourse
from pinchpoint.fit.stores.fitted import FittedRecords, Part
from pinchpoint.plan.production import (
    DATA_READ_BYTES,
    DATA_WRITE_BYTES,
    FIGURES,
    LOG_BYTES_PER_WRITE,
    LOG_WAIT_S,
    LOG_WRITE_BYTES,
    PAGE_READS_PER_OPERATION,
    READS_PER_S,
    RECORD_DURABLE_RATIO,
    RECORD_EXPIRING_RATIO,
    RECORD_INSERT_RATIO,
    RECORD_LOG_BYTES_PER_WRITE,
    TEMP_BYTES_PER_OPERATION,
    WRITES_PER_S,
)

_WIDTH = 108


@dataclass(frozen=True, slots=True)
class PlanSection:
    """The part of the plan for one server.

    Attributes:
        scenarios: scenario name -> its lines, including comments.
        figures: the figures of the production server, at the time that the load reproduces.
        remedies: figure that may be missing -> the source that would report it.
        day: the course of the server's load; None if not known.
    """

    scenarios: Mapping[str, Sequence[str]]
    figures: Figures
    remedies: Mapping[str, str]
    day: LoadCourse | None


def indented(lines: Iterable[str]) -> list[str]:
    """The lines, indented by two spaces."""
    return [f"  {line}" for line in lines]


def said(word: str, sentences: Iterable[str]) -> Iterator[str]:
    """Sentences as comments, wrapped; ``word`` stands before each sentence."""
    for sentence in sentences:
        yield from textwrap.wrap(
            f"{word}{sentence}.",
            _WIDTH,
            initial_indent="# ",
            subsequent_indent="#   ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def shortcomings(collected: Collected, lacking: Iterable[str]) -> Iterator[str]:
    """Comments about sources that differ and about work that the scenario cannot reproduce."""
    yield from said("Two sources differ: ", collected.disagreements)
    yield from said("Not reproduced: ", lacking)


MEASURE_S = 120
_LONG_S = 600.0
_SHORTEST_S = 1.0
"""Shortest burst in seconds, because latency is recorded per second."""


def measure_s(days: Iterable[LoadCourse | None]) -> int:
    """Seconds to measure: at least two whole periods, so that the run has the mean load, or one whole day."""
    known = [(day.bursts.every_s, day.whole_day) for day in days if day and day.bursts]
    if not known:
        return MEASURE_S
    every_s, whole_day = max(known)
    fewest = 1 if whole_day else 3 if every_s <= _LONG_S else 2
    return math.ceil(max(fewest, math.ceil(MEASURE_S / every_s)) * every_s)


def load_lines(rate_per_s: float, day: LoadCourse | None) -> Iterator[str]:
    """The lines of the load, with comments that explain its values.

    Args:
        rate_per_s: mean operations per second in the busy time.
        day: the course of the load; None if not known.
    """
    if day is None:
        yield "# The load over the day is not known; a recording of sar or perfmon shows it."
        yield f"load: {{model: open, rate: {plain(rate_per_s)}/s}}"
        return
    if day.hours and len(day.hours) > 1:
        yield f"# Hours of the day beside the time that was counted ({day.source}: {day.what}):"
        # Six hours to a line.
        shown = [f"{hour:02}h x {plain(ratio, 3)}" for hour, ratio in day.hours.items()]
        for start in range(0, len(shown), 6):
            yield f"#   {', '.join(shown[start : start + 6])}"
    if day.bursts is None:
        yield f"# The busy time is even: no two bursts {BURST} times what is between them."
        yield f"load: {{model: open, rate: {plain(rate_per_s)}/s}}"
        return
    yield from _burst(rate_per_s, day.bursts)


def _burst(rate_per_s: float, bursts: FittedBursts) -> Iterator[str]:
    base, peak = rate_per_s * bursts.base_ratio, rate_per_s * bursts.peak_ratio
    for_s = max(_SHORTEST_S, bursts.for_s)
    # A shorter burst becomes a longer, lower one with the same number of operations.
    peak = base + (peak - base) * (bursts.for_s - bursts.ramp_s) / (for_s - bursts.ramp_s)
    seen = f"seen every {plain(bursts.readings_s, 3)} s"
    rises = f"rising in {plain(bursts.ramp_s, 3)} s" if bursts.ramp_s else "at once"
    times = (
        f"{plain(bursts.peak_ratio / bursts.base_ratio, 3)} times as much" if bursts.base_ratio else "Bursts"
    )
    yield f"# {times} for {plain(bursts.for_s, 3)} s every {plain(bursts.every_s, 3)} s, {rises} ({seen})."
    uneven = f", ramp: {plain(bursts.ramp_s)}s" if bursts.ramp_s else ""
    uneven += f", jitter: {plain(100 * bursts.jitter_ratio, 2)}%" if bursts.jitter_ratio else ""
    yield (
        f"load: {{model: burst, base: {plain(base)}/s, peak: {plain(peak)}/s, "
        f"every: {plain(bursts.every_s)}s, for: {plain(for_s)}s{uneven}}}"
    )


_NAME = "production"
_DATABASE_REMEDIES = {
    LOG_BYTES_PER_WRITE: "pg_stat_wal, or the Query Store from SQL Server 2017 on",
    LOG_WRITE_BYTES: "two of pg_stat_io (PostgreSQL 18) or of dm_io_virtual_file_stats",
    DATA_READ_BYTES: "two of pg_stat_io (PostgreSQL 16) or of dm_io_virtual_file_stats",
    DATA_WRITE_BYTES: "two of pg_stat_io (PostgreSQL 16) or of dm_io_virtual_file_stats",
    PAGE_READS_PER_OPERATION: "pg_stat_statements, or avg_physical_io_reads of the Query Store",
    TEMP_BYTES_PER_OPERATION: "pg_stat_statements, or the Query Store from SQL Server 2017 on",
    LOG_WAIT_S: "two of dm_os_wait_stats; PostgreSQL keeps no sums of waits",
}


def database_section(production: Production, mix: Mix, day: LoadCourse | None) -> PlanSection:
    """The part of the plan that loads a database like production's.

    Args:
        production: the figures of the production database.
        mix: the operations of sql-mix.
        day: the course of the load; None if not known.
    """
    lines = tuple(_database_scenario(production, mix, day))
    return PlanSection({_NAME: lines}, _at_peak(production, day), _DATABASE_REMEDIES, day)


def _at_peak(production: Production, day: LoadCourse | None) -> Figures:
    """The figures with the rates of the busiest hour, which the load reproduces."""
    if day is None:
        return production.figures
    where = f", x {plain(day.peak_ratio)}: {day.busiest} ({day.source})"
    return production.figures | {
        name: ProductionFigure(
            production.figures[name].value * day.peak_ratio, production.figures[name].origin + where
        )
        for name in (WRITES_PER_S, READS_PER_S)
    }


def _database_scenario(production: Production, mix: Mix, day: LoadCourse | None) -> Iterator[str]:
    figures = production.figures
    writes, reads = figures[WRITES_PER_S].value, figures[READS_PER_S].value
    yield "use: sql-mix"
    yield from said("", [f"{plain(writes)}/s writes + {plain(reads)}/s reads ({production.sources})"])
    if day is not None:
        busiest = f"x {plain(day.peak_ratio)}: {day.busiest}, beside the time that was counted"
        yield from said("", [f"{busiest} ({day.source}: {day.what})"])
        yield from said("", day.notes)
    yield from load_lines((writes + reads) * (day.peak_ratio if day else 1.0), day)
    yield from said("", production.notes)
    yield from shortcomings(production.collected, mix.lacking)
    yield "params:"
    yield "  operations:"
    for name, rate in mix.rates.items():
        yield f"    {name}: {plain(rate)}  # a second: {mix.why[name]}"
    for name, value in mix.params.items():
        yield f"  {name}: {value}  # {mix.why[name]}"


_STORE_REMEDIES = {
    RECORD_INSERT_RATIO: "INFO all of Valkey or Redis, serverStatus of MongoDB",
    RECORD_EXPIRING_RATIO: "INFO all of Valkey or Redis",
    RECORD_LOG_BYTES_PER_WRITE: "INFO all of Valkey or Redis where it appends to a file, serverStatus",
    RECORD_DURABLE_RATIO: "CONFIG GET appendfsync beside INFO all of Valkey or Redis",
}


def store_section(records: FittedRecords) -> PlanSection:
    """The part of the plan that loads a key-value store like production's."""
    scenarios = {part.name: tuple(_store_scenario(records, part)) for part in records.parts}
    return PlanSection(scenarios, records.collected.figures, _STORE_REMEDIES, records.day)


def _store_scenario(records: FittedRecords, part: Part) -> Iterator[str]:
    """The lines of one scenario; comments that apply to all scenarios are in the first one."""
    first = part is records.parts[0]
    yield "use: nosql-burst"
    if first:
        yield from _about(records)
    if part.share < 1:
        yield from said("", [f"{part.share:.0%} of the operations"])
    yield from load_lines(records.rate_per_s * part.share, records.day)
    if first:
        yield from _durability(records)
        yield from shortcomings(records.collected, records.lacking)
    yield "params:"
    yield "  operations:"
    for name, rate in part.operations.items():
        yield f"    {name}: {plain(rate)}  # a second"
    for name, value in records.params.items():
        yield f"  {name}: {value}  # {records.why[name]}"
    if part.keys is not None:
        yield f"  keys: {part.keys[0]}  # {part.keys[1]}"
    if part.ttl_s is not None:
        yield f"  ttl: {plain(part.ttl_s)}s  # {records.why['ttl']}"


def _about(records: FittedRecords) -> Iterator[str]:
    yield from said("", [f"{records.store.product} ({records.store.source})"])
    if records.day.peak_ratio != 1:
        yield from said("", [f"x {plain(records.day.peak_ratio)}: {records.day.busiest}"])
    yield from said("", records.notes)


def _durability(records: FittedRecords) -> Iterator[str]:
    durable = records.store.durable
    if durable is None or records.store.family != "valkey":
        return
    worth = "is on the disk" if durable.value else "is not yet on the disk"
    sentence = (
        f"An acknowledged write {worth} in production ({durable.origin}); the server decides that, not the "
        "plan: configure the test server in the same way. The embedded farm always flushes"
    )
    yield from said("", [sentence])


def plan_text(sections: Sequence[PlanSection]) -> str:
    """The text of the plan with comments; each production server has its own section."""
    lines: list[str] = []
    figures: Figures = {}
    for section in sections:
        figures |= section.figures
        for name, scenario in section.scenarios.items():
            lines += indented([f"{name}:", *indented(scenario)])
    return "\n".join(
        [
            "# Fitted to production's statistics. After a run the figures at the end of this file are",
            "# compared with those of the run.",
            "",
            "name: fitted",
            "seed: 1",
            "",
            "scenarios:",
            *lines,
            "",
            f"phases: {{warm_up: 10s, measure: {measure_s(section.day for section in sections)}s}}",
            "",
            *_figures(figures),
            *(line for section in sections for line in _missing(section)),
            "",
        ]
    )


def _figures(figures: Figures) -> Iterator[str]:
    yield "# Production's own figures."
    yield "production:"
    for name in FIGURES:
        if name in figures:
            yield f"  {name}: {plain(figures[name].value)}  # {FIGURES[name]}; {figures[name].origin}"


def _missing(section: PlanSection) -> Iterator[str]:
    """Comments about figures that are missing, with the source that would report each."""
    by_need: dict[str, list[str]] = {}
    for name, need in section.remedies.items():
        if name not in section.figures:
            by_need.setdefault(need, []).append(FIGURES[name])
    yield from said(
        "Not reported: ", (f"{', '.join(names)}; needed: {need}" for need, names in by_need.items())
    )
