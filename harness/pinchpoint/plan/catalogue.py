"""The catalogue of disks and machines, as farm.yaml names its entries."""

from __future__ import annotations


def limits_of(name: str) -> dict[str, float | int | None]:
    """The limits of a catalogue entry by the names of ``Limits``. Raises ``Unfit`` for an unknown one."""
    from pinchpoint_infra.catalogue import profile

    entry = profile(name)
    return {"iops": entry.iops, "bytes_per_s": entry.bytes_per_s, "io_unit_bytes": entry.io_unit_bytes}
