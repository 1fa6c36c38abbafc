"""What a database's checkpoints did to the load, as people read it."""

from __future__ import annotations

from pinchpoint.report.tables import Column, Row, Table, duration, number, rate, share


def checkpoints(verdict: Row) -> Table:
    """Response times and throughput while a checkpoint was written, beside those of the rest."""
    return Table(
        "checkpoints",
        "While checkpoints were written",
        (
            Column("host", "host"),
            Column("scenario", "scenario"),
            number("timed", "begun on time"),
            number("requested", "on request"),
            share("written_ratio", "of the time"),
            duration("p95_during_s", "p95 meanwhile"),
            duration("p95_between_s", "p95 in between"),
            rate("throughput_during_per_s", "throughput meanwhile"),
            rate("throughput_between_per_s", "in between"),
        ),
        list(verdict.get("checkpoints") or ()),
        note="The seconds in which the database wrote buffers of a checkpoint, compared with all others. "
        "That things happen together proves no cause. No figure: there were less than ten such seconds.",
        empty="",  # most runs have no database that tells of checkpoints
    )
