"""How the tiers took it: disks beside what their role is held to, and CPU."""

from __future__ import annotations

from pinchpoint.analysis.thresholds import latency_limit
from pinchpoint.report.tables import Column, Row, Table, duration, rate, share
from pinchpoint.store.read import StoredRun


def disks(run: StoredRun, verdict: Row) -> Table:
    """Every disk with a role, beside what its role is held to."""
    inventory = run.manifest.get("hosts", {})
    rows = []
    for row in verdict.get("disks") or ():
        limit = latency_limit(str(row["role"]))
        role = inventory.get(row["host"], {}).get("roles", {}).get(row["role"], {})
        rows.append(
            {
                **row,
                "device": role.get("device"),
                "limit_s": limit.value,
                "limit_source": limit.says if limit.source == "design" else f"{limit.source}: {limit.says}",
            }
        )
    return Table(
        "disks",
        "Disks",
        (
            Column("tier", "tier"),
            Column("host", "host"),
            Column("role", "role"),
            Column("device", "device", absent="not known"),
            duration("write_latency_mean_s", "write latency, mean"),
            duration("write_latency_max_s", "max"),
            duration("limit_s", "limit for the role"),
            rate("iops_mean", "IOPS, mean"),
            rate("iops_max", "max"),
            Column("iops_source", "which IOPS"),
            Column("limit_source", "source of the limit"),
        ),
        rows,
        note="Latency over many seconds is weighted by the number of operations. Roles with the same device "
        "on one machine show the same figures: they are one disk.",
        empty="No disk with a role was measured.",
    )


def cpus(verdict: Row) -> Table:
    """CPU by tier and by machine."""
    return Table(
        "cpus",
        "CPU",
        (
            Column("tier", "tier", absent="whole machine"),
            Column("host", "host"),
            share("busy_mean_ratio", "busy, mean"),
            share("busy_max_ratio", "max"),
        ),
        list(verdict.get("cpus") or ()),
        note="A tier's share is that of its own processes, of the cores they may use.",
        empty="No CPU was measured.",
    )
