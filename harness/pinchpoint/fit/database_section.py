"""A database server's part of a fitted plan: sql-mix, with the origin of each figure beside it."""

from __future__ import annotations

from collections.abc import Iterator

from pinchpoint.fit.course import Course
from pinchpoint.fit.figures import Figure, Figures, plain
from pinchpoint.fit.load import load_lines
from pinchpoint.fit.mix import Mix
from pinchpoint.fit.production import Production
from pinchpoint.fit.section import Section, said, shortcomings
from pinchpoint.plan.production import (
    DATA_READ_BYTES,
    DATA_WRITE_BYTES,
    LOG_BYTES_PER_WRITE,
    LOG_WAIT_S,
    LOG_WRITE_BYTES,
    PAGE_READS_PER_OPERATION,
    READS_PER_S,
    TEMP_BYTES_PER_OPERATION,
    WRITES_PER_S,
)

_NAME = "production"
_TELLS = {
    LOG_BYTES_PER_WRITE: "pg_stat_wal, or the Query Store from SQL Server 2017 on",
    LOG_WRITE_BYTES: "two of pg_stat_io (PostgreSQL 18) or of dm_io_virtual_file_stats",
    DATA_READ_BYTES: "two of pg_stat_io (PostgreSQL 16) or of dm_io_virtual_file_stats",
    DATA_WRITE_BYTES: "two of pg_stat_io (PostgreSQL 16) or of dm_io_virtual_file_stats",
    PAGE_READS_PER_OPERATION: "pg_stat_statements, or avg_physical_io_reads of the Query Store",
    TEMP_BYTES_PER_OPERATION: "pg_stat_statements, or the Query Store from SQL Server 2017 on",
    LOG_WAIT_S: "two of dm_os_wait_stats; PostgreSQL keeps no sums of waits",
}


def database_section(production: Production, mix: Mix, day: Course | None) -> Section:
    """The part of the plan that loads a database as production's is loaded.

    Args:
        production: what is known of it.
        mix: what sql-mix is to do.
        day: the course of its load; None: not known.
    """
    lines = tuple(_scenario(production, mix, day))
    return Section({_NAME: lines}, _at_peak(production, day), _TELLS, day)


def _at_peak(production: Production, day: Course | None) -> Figures:
    """The rates of the busiest hour, which is what the load is."""
    if day is None:
        return production.figures
    where = f", x {plain(day.peak_ratio)}: {day.busiest} ({day.source})"
    return production.figures | {
        name: Figure(production.figures[name].value * day.peak_ratio, production.figures[name].origin + where)
        for name in (WRITES_PER_S, READS_PER_S)
    }


def _scenario(production: Production, mix: Mix, day: Course | None) -> Iterator[str]:
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
    yield from shortcomings(production.told, mix.lacking)
    yield "params:"
    yield "  operations:"
    for name, rate in mix.rates.items():
        yield f"    {name}: {plain(rate)}  # a second: {mix.why[name]}"
    for name, value in mix.params.items():
        yield f"  {name}: {value}  # {mix.why[name]}"
