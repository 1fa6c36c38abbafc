"""Where the disk roles of a host lie, which processes are its tier's, and how the inventory tells it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux.data_io import DataIo
from pinchpoint_collectors.linux.disks import Disks, Place
from pinchpoint_collectors.record import NotMeasured, Watch


def process_names(watch: Watch, kind: str) -> tuple[str, ...] | None:
    """The names that the option ``process`` gives; None where it does not. Raises ``CollectorError``."""
    name = watch.options.get("process")
    if name is None:
        return None
    names = [name] if isinstance(name, str) else name
    if not (isinstance(names, list | tuple) and names and all(n and isinstance(n, str) for n in names)):
        raise CollectorError(
            f"host {watch.host!r}, collector {kind!r}: process: found {name!r}; "
            "allowed: a name or a list of names"
        )
    return tuple(names)


def no_process(tier: str, names: Iterable[str]) -> NotMeasured:
    """What is not measured where no process of those names runs."""
    return NotMeasured(
        "cpu.busy_ratio",
        f"tier:{tier}",
        f"no process named {', '.join(names)} runs there",
        "start it before the run, or give `process:` a name as `ps -e -o comm` shows it",
    )


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
