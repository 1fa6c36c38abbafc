"""Where the disk roles of a host lie, which processes are its tier's, and how the inventory tells it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux.data_io import DataIo
from pinchpoint_collectors.linux.disks import Disks, Place
from pinchpoint_collectors.record import NotMeasured, Watch


def places(disks: Disks, watch: Watch) -> dict[str, Place]:
    """By role, where it lies. Raises ``CollectorError`` that names host and role."""
    found = {}
    for role, given in watch.disks.items():
        try:
            found[role] = disks.place(given)
        except CollectorError as error:
            raise CollectorError(f"host {watch.host!r}, role {role!r}: {error}") from error
    return found


def devices(disks: Disks, with_role: Mapping[str, Mapping[str, Place]]) -> list[str]:
    """What is to be watched: all whole disks, and any other device that a role of a host lies on."""
    named = {place.device for roles in with_role.values() for place in roles.values()}
    return sorted({*disks.whole(), *(device for device in named if device)})


def counted(disks: Disks, watched: Iterable[str]) -> dict[str, list[str]]:
    """Those of the devices whose I/O the kernel counts, with the lines of /proc/diskstats it is in."""
    found = {device: disks.lines(device) for device in watched}
    return {device: lines for device, lines in found.items() if lines}


def not_counted(disks: Disks, watched: Iterable[str]) -> Iterator[NotMeasured]:
    """The other ones: the zeros that the kernel has of them say nothing."""
    for device in watched:
        if not disks.lines(device):
            files = disks.switched_off(device)
            yield NotMeasured(
                "disk.*",
                device,
                f"the kernel does not count its I/O: 0 is in {', '.join(files)}",
                f"run there as root: {'; '.join(f'echo 1 > {file}' for file in files)}",
            )


def role_facts(place: Place, data_io: DataIo | None = None) -> dict[str, Any]:
    """One role as the inventory has it; ``data_io`` where it was tried out."""
    mount = place.mount
    return {
        "given": place.given,
        "device": place.device,
        "mount_point": mount.mount_point if mount else None,
        "file_system": mount.file_system if mount else None,
        "mount_options": f"{mount.options},{mount.super_options}" if mount else None,
        "data_io": data_io.counted if data_io else "not verified",
        "why": data_io.why if data_io else place.why,
    }


def not_measured(found: Mapping[str, Place], speeds: Mapping[str, float | None]) -> Iterator[NotMeasured]:
    """Roles without a device, and interfaces without a speed."""
    for name, speed in speeds.items():
        if speed is None:
            yield NotMeasured("net.speed_bytes_per_s", name, "the interface tells no speed", None)
    for role, place in found.items():
        if place.device is None:
            yield NotMeasured(
                "disk.*", role, f"{place.given}: {place.why}", "say `device:` for this disk if it has one"
            )
