r"""Finds the Windows disk of a farm.yaml entry: drives, mount points, volumes, disks.

``LogicalDisk`` has an instance per volume: its letter (``L:``), or else its mount folder (``C:\mnt\log``), or
else ``HarddiskVolume5``. ``PhysicalDisk`` has one per disk: its number and its letters (``1 L: M:``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pinchpoint_collectors.common.powershell import Line

_LETTER = re.compile(r"[A-Za-z]:")
_NUMBERED = re.compile(r"(\d+)(?:\s|$)")
_LUN = re.compile(r"\bLUN (\d+)")
_GIB = 1 << 30
_SOLID_STATE, _HARD_DISK = 4, 3
"""Values of ``MediaType`` of MSFT_PhysicalDisk."""
_UNLETTERED = re.compile(r"HarddiskVolume\d+")


def is_watched(instance: str, devices: Collection[str | None]) -> bool:
    """Return whether a volume is watched.

    Volumes without letter, folder and role are not watched: Windows starts from them.
    """
    return not _UNLETTERED.fullmatch(instance) or instance in devices


@dataclass(frozen=True, slots=True)
class WindowsPlace:
    """The device of a disk role.

    Attributes:
        given: device or path in farm.yaml.
        device: instance of ``LogicalDisk`` or ``PhysicalDisk``; None: not found.
        volume: name of the volume; None if unknown.
        mount_point: letter or mount folder; None if unknown.
        why: why ``device`` is None.
    """

    given: str
    device: str | None
    volume: str | None = None
    mount_point: str | None = None
    why: str | None = None


@dataclass(slots=True)
class Storage:
    """The storage of a machine, from the lines of the script.

    Attributes:
        logical: instances of ``LogicalDisk``.
        physical: instances of ``PhysicalDisk``.
        volumes: volume -> line of the script.
        mounts: folder or letter without the last backslash, and volume.
        disks: number -> line of the script.
        media: number -> ``MediaType``.
        caches: number -> whether the write cache of the disk is on; None: not reported.
        cloud: lines ``cloud_disk``: data disks that the cloud attached to the machine.
        below: letter, folder or volume without the last backslash -> numbers of its disks.
    """

    logical: tuple[str, ...] = ()
    physical: tuple[str, ...] = ()
    volumes: dict[str, Line] = field(default_factory=dict)
    mounts: list[tuple[str, str]] = field(default_factory=list)
    disks: dict[int, Line] = field(default_factory=dict)
    media: dict[int, int] = field(default_factory=dict)
    caches: dict[int, bool | None] = field(default_factory=dict)
    cloud: list[Line] = field(default_factory=list)
    below: dict[str, set[int]] = field(default_factory=dict)

    def take(self, line: Line) -> None:
        """Process one line of the script. Lines of other kinds are ignored."""
        kind = line["kind"]
        if kind == "volume":
            self.volumes[line["volume"]] = line
            if line.get("letter"):
                self._mount(line["letter"], line["volume"])
        elif kind == "mount":
            self._mount(line["path"], line["volume"])
        elif kind == "disk":
            self.disks[int(line["number"])] = line
        elif kind == "media" and str(line["number"]).isdecimal():
            self.media[int(line["number"])] = int(line["media"])
        elif kind == "cache" and str(line["number"]).isdecimal():
            self.caches[int(line["number"])] = line.get("enabled")
        elif kind == "cloud_disk":
            self.cloud.append(line)
        elif kind == "access":
            self.below.setdefault(_plain(line["path"]), set()).add(int(line["number"]))

    def place(self, given: str) -> WindowsPlace:
        """Find a disk by its letter, by a folder on it, or by the name of its instance."""
        named = _same(given, (*self.logical, *self.physical))
        if named is not None and not _LETTER.match(given):
            return WindowsPlace(given, named)
        path = given.replace("/", "\\").rstrip("\\")
        if not _LETTER.match(path):
            return WindowsPlace(given, None, why=f"there is no such disk; there are {_listed(self._all())}")
        at, volume = self._volume(path)
        names = [at, *(mount for mount, one in self.mounts if one == volume)] if volume else [at]
        device = next((one for name in names if (one := _same(name, self.logical))), None)
        if device is None:
            why = f"Windows counts no disk {at!r}; there are {_listed(self.logical)}"
            return WindowsPlace(given, None, volume, at, why)
        return WindowsPlace(given, device, volume, at)

    def members(self, logical: str) -> list[str]:
        """Return the physical disks of a logical one; empty if unknown."""
        numbers = set(self._numbers(logical))
        return [one for one in self.physical if _number(one) in numbers or _has_letter(one, logical)]

    def facts(self, device: str) -> dict[str, Any]:
        """Return facts about a device for the inventory; null means unknown."""
        if device in self.physical:
            number = _number(device)
            answer = self.disks.get(number) if number is not None else None
            return self._facts(number, answer.get("size_bytes") if answer else None, [])
        members = self.members(device)
        volume = self.volumes.get(self._volume(device)[1] or "")
        only = _number(members[0]) if len(members) == 1 else None
        return self._facts(only, volume.get("size_bytes") if volume else None, members)

    def _facts(self, number: int | None, size_bytes: int | None, members: list[str]) -> dict[str, Any]:
        answer = self.disks.get(number) if number is not None else None
        media = self.media.get(number) if number is not None else None
        return {
            "size_bytes": size_bytes,
            "model": answer.get("model") if answer else None,
            "rotational": {_HARD_DISK: True, _SOLID_STATE: False}.get(media) if media is not None else None,
            "scheduler": None,
            "write_cache": _cache(self.caches.get(number)) if number is not None else None,
            "members": members,
            **self._cloud(answer or {}),
        }

    def _cloud(self, line: Line) -> dict[str, Any]:
        """Return the type of a disk in the cloud: that of the data disk with its LUN, if the sizes are equal.

        The system's own disks have LUNs of another controller.
        """
        lun = _LUN.search(str(line.get("location") or ""))
        if lun is None:
            return {}
        for one in self.cloud:
            if (int(one["lun"]), int(one["size_gib"]) * _GIB) == (int(lun[1]), line.get("size_bytes")):
                return {"cloud_type": one["type"], "cloud_size_gib": int(one["size_gib"])}
        return {}

    def _mount(self, path: str, volume: str) -> None:
        mount = path.rstrip("\\")
        if (mount, volume) not in self.mounts:
            self.mounts.append((mount, volume))

    def _volume(self, path: str) -> tuple[str, str | None]:
        """Return the longest mount point above a path and its volume; the letter if none is known."""
        within = [(mount, volume) for mount, volume in self.mounts if _is_within(path, mount)]
        if within:
            return max(within, key=lambda one: len(one[0]))
        known = () if self.mounts else self.logical
        names = [name for name in known if _is_within(path, name)]
        return (max(names, key=len) if names else path[:2].upper()), None

    def _numbers(self, logical: str) -> Iterator[int]:
        yield from self.below.get(_plain(logical), ())
        volume = self._volume(logical)[1]
        if volume is not None:
            yield from self.below.get(_plain(volume), ())

    def _all(self) -> tuple[str, ...]:
        return (*self.logical, *self.physical)


def _same(name: str, instances: Iterable[str]) -> str | None:
    return next((one for one in instances if _plain(one) == _plain(name)), None)


def _is_within(path: str, mount: str) -> bool:
    return f"{_plain(path)}\\".startswith(f"{_plain(mount)}\\")


def _plain(path: str) -> str:
    """Return a path in the form for comparison on Windows."""
    return path.rstrip("\\").casefold()


def _number(physical: str) -> int | None:
    match = _NUMBERED.match(physical)
    return int(match[1]) if match else None


def _has_letter(physical: str, logical: str) -> bool:
    return _plain(logical) in map(_plain, _LETTER.findall(physical))


def _cache(enabled: bool | None) -> str | None:
    """Return the write cache in the words of Linux' ``queue/write_cache``."""
    return None if enabled is None else "write back" if enabled else "write through"


def _listed(names: Collection[str]) -> str:
    return ", ".join(names) or "none"
