"""What a disk is declared to be able to do: by an entry of the catalogue, or by a farm.yaml's own figures."""

from __future__ import annotations

from pinchpoint.data.inputs import Limits
from pinchpoint.plan import Disk
from pinchpoint.probe.record import Declared
from pinchpoint_infra.catalogue import Profile, profile


def of_profile(entry: Profile, stripes: int) -> Declared:
    """An entry of the catalogue, so many of it striped."""

    def times(value: float | None) -> float | None:
        return value and value * stripes

    burst = entry.burst
    return Declared(
        profile=entry.name,
        stripes=stripes,
        limits=Limits(times(entry.iops), times(entry.bytes_per_s), entry.io_unit_bytes),
        burst=Limits(times(burst.iops), times(burst.bytes_per_s), entry.io_unit_bytes) if burst else None,
    )


def of_disk(disk: Disk | None) -> Declared:
    """A disk of a farm, as its file says; None: the file does not mention it."""
    if disk is None:
        return Declared()
    if disk.profile:
        return of_profile(profile(disk.profile), disk.stripes or 1)
    limits = disk.resolved_limits
    if limits is None or (limits.iops is None and limits.bytes_per_s is None):
        return Declared()
    return Declared(limits=Limits(limits.iops, limits.bytes_per_s, limits.io_unit_bytes))
