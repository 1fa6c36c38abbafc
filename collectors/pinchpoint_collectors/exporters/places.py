"""Finds the disk of a role from an exporter's devices, file systems and mapped devices. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pinchpoint_collectors.exporters.means import NAME, Exporter, Labels, is_part, whole_disks

MAPPED = ("dm-", "md", "loop", "ram", "zram", "sr", "fd")
"""Name prefixes of devices that consist of other devices, or are not disks of the machine."""

FILE_SYSTEMS, MAPPER = "node_filesystem_size_bytes", "node_disk_device_mapper_info"
UNAME, SYSTEM, DISK, MACHINE = "node_uname_info", "node_os_info", "node_disk_info", "node_dmi_info"
HOSTNAME, WINDOWS_SYSTEM = "windows_cs_hostname", "windows_os_info"
INFORMS = (FILE_SYSTEMS, MAPPER, UNAME, SYSTEM, DISK, MACHINE, HOSTNAME, WINDOWS_SYSTEM)
"""Series whose labels contain facts."""


@dataclass(frozen=True, slots=True)
class StorageLayout:
    """The storage of a machine, as its exporter reports it.

    Attributes:
        devices: devices with counters.
        mounts: mount point -> device as mounted, and file system.
        mapped: name below /dev/mapper -> device (``dm-0``).
    """

    devices: tuple[str, ...]
    mounts: Mapping[str, tuple[str, str]]
    mapped: Mapping[str, str]


def layout(exporter: Exporter, value: Iterable[Labels]) -> StorageLayout:
    """Return the layout from the labels of all series of one machine."""
    label = exporter.means[exporter.disks].label
    devices, mounts, mapped = set(), {}, {}
    for labels in value:
        if labels.get(NAME) == exporter.disks and label in labels:
            devices.add(labels[label])
        elif labels.get(NAME) == FILE_SYSTEMS:
            mounts[labels.get("mountpoint", "")] = labels.get("device", ""), labels.get("fstype", "")
        elif labels.get(NAME) == MAPPER:
            mapped[labels.get("name", "")] = labels.get("device", "")
    return StorageLayout(tuple(sorted(devices)), mounts, mapped)


def role(there: StorageLayout, given: str) -> dict[str, Any]:
    """Return the inventory's entry of a role that is given as a device, a drive or a path."""
    mount, file_system, why = None, None, None
    if given.startswith("/dev/") or ("/" not in given and "\\" not in given):
        device = _device(there, given)
        why = None if device else f"the exporter counts no device {given}; it has {_shown(there.devices)}"
    elif "\\" in given:
        device = mount = _volume(there.devices, given)
        why = None if device else f"the exporter counts no volume of {given}; it has {_shown(there.devices)}"
    else:
        mount = _mount(there.mounts, given)
        mounted, file_system = there.mounts.get(mount or "", (None, None))
        device = _device(there, mounted) if mounted else None
        if mount is None:
            why = f"the exporter reports no file system that holds {given}"
        elif device is None:
            why = f"{given} lies on {mounted}, which has no counters"
    return {
        "given": given,
        "device": device,
        "mount_point": mount,
        "file_system": file_system,
        "mount_options": None,
        "data_io": "not verified",
        "why": why,
    }


def disks(
    there: StorageLayout, roles: Iterable[Mapping[str, Any]], value: Iterable[Labels]
) -> dict[str, Any]:
    """Return the whole disks of the machine, and disks with a role.

    An exporter does not report the members of a mapped device. If a role is on one, the disks below count the
    same I/O again, so only disks with a role are listed.
    """
    used = {place["device"] for place in roles if place["device"]}
    own = [name for name in whole_disks(there.devices) if not name.startswith(MAPPED)]
    listed = used if any(name.startswith(MAPPED) for name in used) else used | set(own)
    models = {labels.get("device", ""): labels.get("model") for labels in value if labels.get(NAME) == DISK}
    unknown = dict.fromkeys(("size_bytes", "rotational", "scheduler", "write_cache"))
    return {name: {**unknown, "model": models.get(name) or None, "members": []} for name in sorted(listed)}


def machine(found: Iterable[Labels]) -> dict[str, Any]:
    """Return name, system and vendor of the machine, as far as they are reported."""
    facts: dict[str, Any] = {}
    for labels in found:
        name = labels.get(NAME)
        if name == UNAME:
            facts |= {"hostname": labels.get("nodename"), "kernel": labels.get("release")}
        elif name == SYSTEM:
            facts["os"] = labels.get("pretty_name") or labels.get("name")
        elif name == MACHINE:
            facts["virtualisation"] = labels.get("system_vendor") or None
        elif name == HOSTNAME:
            facts["hostname"] = labels.get("hostname")
        elif name == WINDOWS_SYSTEM:
            facts |= {"os": labels.get("product"), "kernel": labels.get("version")}
    return {key: value for key, value in facts.items() if value}


def _device(there: StorageLayout, given: str) -> str | None:
    """Return the whole disk, or the mapped device, of a device's name."""
    name = given.removeprefix("/dev/")
    if name.startswith("mapper/"):
        name = there.mapped.get(name.removeprefix("mapper/"), "")
    folded = {device.casefold(): device for device in there.devices}
    disk = next((each for each in there.devices if is_part(name, each)), None)
    return disk or folded.get(name.replace("/", "!").casefold())


def _mount(mounts: Collection[str], path: str) -> str | None:
    holding = [each for each in mounts if path == each or path.startswith(each.rstrip("/") + "/")]
    return max(holding, key=len, default=None)


def _volume(volumes: Iterable[str], path: str) -> str | None:
    """Return the drive, or the mount folder of a volume, with a Windows path."""
    asked = path.casefold().rstrip("\\") + "\\"
    holding = [each for each in volumes if asked.startswith(each.casefold().rstrip("\\") + "\\")]
    return max(holding, key=len, default=None)


def _shown(names: Collection[str]) -> str:
    return ", ".join(_first(sorted(names))) or "none"


def _first(names: list[str], most: int = 10) -> Iterator[str]:
    yield from names[:most]
    if len(names) > most:
        yield "..."
