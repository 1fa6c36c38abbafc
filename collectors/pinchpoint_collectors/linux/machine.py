"""Converts the files of a Linux machine to samples and inventory of its hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux import mountinfo
from pinchpoint_collectors.linux.data_io import DataIo
from pinchpoint_collectors.linux.disks import DiskPlace, Disks
from pinchpoint_collectors.linux.files import HostFiles
from pinchpoint_collectors.linux.inventory import interfaces, machine_facts, usable_cores
from pinchpoint_collectors.linux.sources import GrowingFile, SourceReading, machine_sources
from pinchpoint_collectors.linux.tiers import Tiers
from pinchpoint_collectors.record import NotMeasured, Sample, Watch


class LinuxMachine:
    """One Linux machine, local or remote, whose files are converted to samples.

    Args:
        files: small files of the machine.
        watches: hosts of the farm on this machine.
        page_bytes: page size of the machine in bytes.
        tiers: tiers of hosts that are only a part of the machine.
        why_missing: returns why the machine lacks the file of a source; None if it has the file.
        verify: tests which operations count as writes to a device through a folder, if requested.

    Attributes:
        sources: all possible sources in the order of reading.
        missing: path -> metrics that are not measured because the file is missing.

    Raises:
        CollectorError: a disk in farm.yaml does not exist; the message names host and role.
    """

    def __init__(
        self,
        files: HostFiles,
        watches: Sequence[Watch],
        page_bytes: int,
        tiers: Tiers,
        why_missing: Callable[[GrowingFile], NotMeasured | None],
        verify: Callable[[Path, str], DataIo] | None = None,
    ) -> None:
        self._files = files
        self._watches = tuple(watches)
        self._tiers = tiers
        self._disks = Disks(mountinfo.parse(files.fact("/proc/self/mountinfo") or ""), files=files)
        self._places = {watch.host: _places(self._disks, watch) for watch in watches}
        self._data_io = self._verified(verify) if verify else {}
        named = {place.device for places in self._places.values() for place in places.values()}
        self._devices = sorted({*self._disks.whole(), *(device for device in named if device)})
        """All whole disks, and any other device with a role of a host."""
        lines = {device: self._disks.lines(device) for device in self._devices}
        self._uncounted = [device for device, found in lines.items() if not found]
        self._speeds = interfaces(files)
        self.sources = machine_sources(
            usable_cores(files),
            {device: found for device, found in lines.items() if found},
            self._flushes_are_writes(),
            self._speeds,
            page_bytes,
        )
        missing = {source.path: why_missing(source) for source in self.sources}
        self.missing = {path: what for path, what in missing.items() if what is not None}

    def samples(self, reading: SourceReading) -> list[Sample]:
        """Return a reading under the names of all hosts."""
        return [
            Sample(reading.time_ns, reading.interval_s, watch.host, *value)
            for watch in self._watches
            for value in reading.values
        ]

    def facts(self, watch: Watch) -> dict[str, Any]:
        """Return the facts of one host for the inventory (docs/metrics.md, "Inventory")."""
        places, data_io = self._places[watch.host], self._data_io.get(watch.host, {})
        return {
            "tier": watch.tier,
            **machine_facts(self._files),
            **self._tiers.facts(watch.host),
            "disks": {device: self._disks.facts(device) for device in self._devices},
            "roles": {role: _role(place, data_io.get(role)) for role, place in places.items()},
            "not_measured": [asdict(missing) for missing in self._not_measured(watch)],
        }

    def _verified(self, verify: Callable[[Path, str], DataIo]) -> dict[str, dict[str, DataIo]]:
        """Return what counts as a write by host and role, if testing is allowed; one test per file system."""
        tried: dict[tuple[str, str], DataIo] = {}
        ios: dict[str, dict[str, DataIo]] = {}
        for watch in self._watches:
            for role, place in self._places[watch.host].items():
                folder = Path(place.given)
                if not watch.options.get("verify") or place.device is None or place.mount is None:
                    continue
                if not folder.is_dir():
                    continue
                where = place.device, place.mount.mount_point
                if where not in tried:
                    tried[where] = verify(folder, place.device)
                ios.setdefault(watch.host, {})[role] = tried[where]
        return ios

    def _flushes_are_writes(self) -> set[str]:
        """Return the devices for which every tested role confirmed that flushes count as writes."""
        answers: dict[str, set[str]] = {}
        for host, by_role in self._data_io.items():
            for role, answer in by_role.items():
                answers.setdefault(self._places[host][role].device or "", set()).add(answer.counted)
        return {device for device, counted in answers.items() if counted == {"writes-flushes"}}

    def _not_measured(self, watch: Watch) -> Iterator[NotMeasured]:
        yield from self.missing.values()
        for name, speed in self._speeds.items():
            if speed is None:
                yield NotMeasured("net.speed_bytes_per_s", name, "the interface reports no speed", None)
        for role, place in self._places[watch.host].items():
            if place.device is None:
                remedy = "say `device:` for this disk if it has one"
                yield NotMeasured("disk.*", role, f"{place.given}: {place.why}", remedy)
        yield from map(self._disks.not_counted, self._uncounted)
        why = self._tiers.missing(watch.host)
        if why is not None:
            yield NotMeasured("cpu.busy_ratio", f"tier:{watch.tier}", why.why, why.remedy)


def _places(disks: Disks, watch: Watch) -> dict[str, DiskPlace]:
    places = {}
    for role, given in watch.disks.items():
        try:
            places[role] = disks.place(given)
        except CollectorError as error:
            raise CollectorError(f"host {watch.host!r}, role {role!r}: {error}") from error
    return places


def _role(place: DiskPlace, data_io: DataIo | None) -> dict[str, Any]:
    """Return the entry of a role in the inventory, with ``data_io`` if it was tested."""
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
