"""What it ran on: hosts, disks, versions."""

from __future__ import annotations

from collections.abc import Iterable

from pinchpoint.base import units
from pinchpoint.report.tables import Column, Row, Table, number
from pinchpoint.store.read import StoredRun


def hosts(run: StoredRun) -> Table:
    """The hosts, as the collectors found them."""
    rows = [
        {"host": host, **{key: value for key, value in facts.items() if not isinstance(value, dict)}}
        for host, facts in run.manifest.get("hosts", {}).items()
    ]
    return Table(
        "hosts",
        "Hosts",
        (
            Column("host", "host"),
            Column("tier", "tier", absent="-"),
            Column("hostname", "machine", absent="-"),
            Column("cpu_model", "CPU", absent="not known"),
            number("cores", "cores", absent="not known"),
            Column("tier_cores", "cores of the tier", absent="all"),
            number("memory_bytes", "memory", units.bytes_, absent="not known"),
            Column("os", "operating system", absent="not known"),
            Column("kernel", "kernel", absent="not known"),
            Column("virtualisation", "virtualisation", absent="none found"),
        ),
        rows,
        empty="No collector described a host.",
    )


def host_disks(run: StoredRun) -> Table:
    """Where each disk role lies."""
    rows = []
    for host, facts in run.manifest.get("hosts", {}).items():
        for role, place in (facts.get("roles") or {}).items():
            device = (facts.get("disks") or {}).get(place.get("device")) or {}
            rows.append({"host": host, "role": role, **device, **place})
    return Table(
        "host_disks",
        "Disk roles",
        (
            Column("host", "host"),
            Column("role", "role"),
            Column("given", "as given", absent="-"),
            Column("device", "device", absent="not known"),
            Column("model", "model", absent="-"),
            number("size_bytes", "size", units.bytes_, absent="-"),
            Column("file_system", "file system", absent="-"),
            Column("write_cache", "write cache", absent="-"),
            Column("data_io", "data I/O is", absent="-"),
            Column("why", "remark", absent=""),
        ),
        rows,
        empty="No disk has a role.",
    )


def versions(run: StoredRun) -> Table:
    """Versions of everything that took part."""
    return Table(
        "versions",
        "Versions and settings",
        (Column("what", "what"), Column("value", "version or setting")),
        [
            *_flattened("", run.manifest.get("versions") or {}),
            *_flattened("", run.manifest.get("endpoints") or {}),
        ],
        empty="None were recorded.",
    )


def content(run: StoredRun) -> Table:
    """What an embedded farm was filled with."""
    return Table(
        "content",
        "Content",
        (Column("what", "what"), Column("value", "value")),
        list(_flattened("", run.manifest.get("content") or {})),
        empty="The farm was not filled by Pinchpoint.",
    )


def _flattened(prefix: str, facts: Row) -> Iterable[Row]:
    for key, value in facts.items():
        if isinstance(value, dict):
            yield from _flattened(f"{prefix}{key} ", value)
        else:
            yield {"what": f"{prefix}{key}", "value": value}
