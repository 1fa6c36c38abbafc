"""How the tiers took it: disks beside what their role is held to, and CPU."""

from __future__ import annotations

from pinchpoint.base import units
from pinchpoint.report.tables import Column, Row, Table, duration, number, rate, share

_IOPS = {"data": "data I/O", "kernel": "by kernel", "database": "by the database"}


def disks(verdict: Row) -> Table:
    """Every disk with a role, beside what its role is held to."""
    rows = [{**row, "limit": _limit(row)} for row in verdict.get("disks") or ()]
    columns = [
        Column("tier", "tier"),
        Column("host", "host"),
        Column("role", "role"),
        Column("device", "device", absent="not known"),
        duration("write_latency_mean_s", "write latency, mean"),
        duration("write_latency_max_s", "max"),
        number("limit", "limit for the role"),
        duration("read_latency_mean_s", "read latency"),
        duration("flush_latency_mean_s", "flush latency"),
        rate("iops_mean", "IOPS, mean"),
        rate("iops_max", "max"),
        Column("iops_source", "counted", lambda name: _IOPS.get(name, str(name))),
    ]
    if any(row.get("transfer_latency_mean_s") is not None for row in rows):
        columns.insert(6, duration("transfer_latency_mean_s", "of reads and writes together"))
    if any(row.get("why_not_measured") for row in rows):
        columns.append(Column("why_not_measured", "why not measured", absent=""))
    return Table(
        "disks",
        "Disks",
        columns,
        rows,
        note="Over the measure phase. Latency is weighted by the number of operations. Roles with the same "
        "device on one machine show the same figures: they are one disk. What the kernel counts may hold "
        "flushes. Limits: SP is Microsoft's capacity planning for SharePoint Server, PAL the thresholds of "
        "the PAL tool, design a value of our own.",
        empty="No disk with a role was measured.",
    )


def _limit(row: Row) -> str | None:
    limit = row.get("latency_limit_s")
    return None if limit is None else f"{units.seconds(limit)} ({row['latency_limit_source']})"


def cpus(verdict: Row) -> Table:
    """CPU by tier, beside the machine it runs on."""
    return Table(
        "cpus",
        "CPU",
        (
            Column("tier", "tier"),
            Column("host", "host"),
            Column("of", "is of the"),
            share("busy_mean_ratio", "busy, mean"),
            share("busy_max_ratio", "max"),
            share("machine_busy_mean_ratio", "whole machine, mean"),
            share("machine_busy_max_ratio", "max"),
        ),
        list(verdict.get("cpus") or ()),
        note="Over the measure phase. A tier's share is that of its processes, of the cores they may use; "
        "where these were not watched, it is the whole machine's.",
        empty="No CPU was measured.",
    )
