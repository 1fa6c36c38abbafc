"""Finds the disk to probe, a folder or a disk of a farm, and its declared limits."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pinchpoint.base.errors import FarmUnavailable, GuardError, InputError
from pinchpoint.base.objects import JsonObject
from pinchpoint.comparison.costs import disk_cost
from pinchpoint.data.inputs import Limits
from pinchpoint.farm.ready import claimed, embedded
from pinchpoint.plan import Farm, FarmDisk
from pinchpoint.plan.farm import FarmHost
from pinchpoint.probe.record import DeclaredDisk, DiskPrice, ProbeLocation
from pinchpoint_collectors.common.names import nearest_name
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux import mountinfo
from pinchpoint_collectors.linux.disks import Disks
from pinchpoint_collectors.remote.ssh import OPTIONS, Address
from pinchpoint_infra.catalogue import Profile, UnknownProfile, profile
from pinchpoint_scenarios.errors import EndpointUnreachable
from pinchpoint_scenarios.storage_probe import remote
from pinchpoint_scenarios.storage_probe.folder import ForeignFolder, NoRoom, NotRemoved
from pinchpoint_scenarios.storage_probe.place import LocalFacts, ProbedMachine, here


@contextmanager
def explained() -> Iterator[None]:
    """Turn failures on the probed machine into the errors of a command."""
    try:
        yield
    except remote.DiskNotThere as error:
        raise InputError(str(error)) from error
    except ForeignFolder as error:
        raise GuardError(str(error)) from error
    except (EndpointUnreachable, remote.HostUnreachable, NoRoom, NotRemoved) as error:
        raise FarmUnavailable(str(error)) from error


def check(folder: Path) -> Path:
    """The folder, resolved.

    Raises GuardError for a device or file, InputError if it is no writable folder.
    """
    if folder.is_block_device() or folder.is_char_device():
        raise GuardError(
            f"{folder}: is a raw device; a probe writes, so its content would be lost. Create a file "
            "system on it, mount it, and give a folder there"
        )
    if folder.is_file():
        raise GuardError(
            f"{folder}: is a file that Pinchpoint did not create, so it is not overwritten; give the "
            "folder that contains it"
        )
    if not folder.is_dir():
        raise InputError(f"{folder}: is not a folder; give an existing folder on the disk to be probed")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: no write permission; give a folder on that disk that you may write to")
    return folder.resolve()


def described(folder: Path, farm: str | None = None, disk: str | None = None) -> ProbeLocation:
    """The disk that contains a folder, with its facts from the kernel."""
    disks = Disks(mountinfo.parse(Path("/proc/self/mountinfo").read_text(encoding="utf-8")))
    try:
        result = disks.place(str(folder))
    except CollectorError as error:
        raise InputError(f"{folder}: {error}") from error
    return ProbeLocation(
        folder=str(folder),
        host=socket.gethostname(),
        device=result.device,
        file_system=result.mount.file_system if result.mount else None,
        model=disks.facts(result.device)["model"] if result.device else None,
        farm=farm,
        disk=disk,
        read_ahead_bytes=_read_ahead(result.device) if result.device else None,
    )


def _read_ahead(device: str) -> int | None:
    """The read-ahead of a local disk in bytes; None if the kernel reports none."""
    try:
        text = Path(f"/sys/class/block/{device}/queue/read_ahead_kb").read_text(encoding="ascii")
        return int(text) * 1024
    except (OSError, ValueError):
        return None


def mount_of_device(device: str) -> Path | None:
    """The local mount point of a device; None if it is not mounted."""
    disks = Disks(mountinfo.parse(Path("/proc/self/mountinfo").read_text(encoding="utf-8")))
    try:
        mount = disks.place(device).mount
    except CollectorError as error:
        raise InputError(str(error)) from error
    return Path(mount.mount_point) if mount else None


def of_profile(entry: Profile, stripes: int) -> DeclaredDisk:
    """The declared limits of ``stripes`` striped disks of a catalogue entry."""

    def times(value: float | None) -> float | None:
        return value and value * stripes

    burst = entry.burst
    return DeclaredDisk(
        profile=entry.name,
        stripes=stripes,
        limits=Limits(times(entry.iops), times(entry.bytes_per_s), entry.io_unit_bytes),
        burst=Limits(times(burst.iops), times(burst.bytes_per_s), entry.io_unit_bytes) if burst else None,
    )


def of_disk(disk: FarmDisk | None) -> DeclaredDisk:
    """The declared limits of a disk in farm.yaml; empty limits for None."""
    if disk is None:
        return DeclaredDisk()
    if disk.profile:
        return of_profile(profile(disk.profile), disk.stripes or 1)
    limits = disk.resolved_limits
    if limits is None or (limits.iops is None and limits.bytes_per_s is None):
        return DeclaredDisk()
    return DeclaredDisk(limits=Limits(limits.iops, limits.bytes_per_s, limits.io_unit_bytes))


def priced(farm: Farm, target: str, disk: FarmDisk | None) -> DeclaredDisk:
    """The declared limits of a disk in farm.yaml, with its price if the farm's ``prices`` contain one."""
    answer, prices = of_disk(disk), farm.prices
    if prices is None:
        return answer
    tier, *_, role = target.split(".")
    result = disk_cost(f"{tier}.{role}", disk.to_json() if disk else {}, prices)
    if result.per_month is None:
        return answer
    return replace(answer, price=DiskPrice(prices.currency, result.per_month))


_HERE, _THERE, _WINDOWS = "local", "ssh", "windows"
"""Kinds of collectors whose hosts' disks can be probed; their options contain the connection."""


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """One disk to probe.

    Attributes:
        where: the disk and its machine.
        declared: the declared limits of the disk.
        memory_bytes: memory of the disk's machine in bytes.
        opened: given the needed bytes, returns a context manager for the probe's folder on the disk.
    """

    where: ProbeLocation
    declared: DeclaredDisk
    memory_bytes: int
    opened: Callable[[int], AbstractContextManager[ProbedMachine]]


def of_folder(folder: Path, profile_name: str | None) -> ProbeTarget:
    """A folder on a disk, with an optional catalogue type. Raises InputError, GuardError."""
    result = check(folder)
    try:
        answer = of_profile(profile(profile_name), 1) if profile_name else DeclaredDisk()
    except UnknownProfile as error:
        raise InputError(f"--profile: {error}") from error
    if profile_name and profile(profile_name).kind != "disk":
        raise InputError(f"--profile: {profile_name!r} is a machine; a disk's type is needed")
    return _here(result, described(result), answer)


@contextmanager
def of_farm(
    farm: Farm, name: str | None, say: Callable[[str], None], copied: Path | None = None
) -> Iterator[ProbeTarget]:
    """Find a disk of a farm; an embedded farm runs in the meantime, with its limits in force.

    Args:
        farm: a farm that is not in production.
        name: ``tier.role``, or ``tier.host.role`` if the tier has several hosts; None if there is only one
            disk.
        say: receives a sentence for the user.
        copied: path of a local diskspd.exe for a Windows machine; None to use the one on that machine.

    Raises:
        InputError: there is no such disk, or it cannot be reached.
        GuardError: the farm is in production.
        FarmUnavailable: another process uses the farm.
    """
    if farm.environment == "production":
        raise GuardError(
            f"farm {farm.name} is production, and a probe writes at the full speed of the disk; nothing "
            "was started. Probe a disk of the same type, or a farm whose farm.yaml says environment: "
            "staging or test"
        )
    if farm.embedded is None:
        with claimed(farm, say):
            yield _declared_disk(farm, name, copied)
        return
    with claimed(farm, say), embedded().embedded_farm(farm, say) as status:
        folders = {
            f"{server}.{role}": path for server, roles in status.disks.items() for role, path in roles.items()
        }
        chosen = _chosen(farm, name, folders)
        emulated = status.emulated.get(chosen)
        folder = Path(emulated["mount"] if emulated else folders[chosen])
        tier, *own, role = chosen.split(".")
        hosts = farm.tiers[tier].hosts if tier in farm.tiers else {}
        declared = (host for name, host in hosts.items() if role in host.disks and own in ([], [name]))
        host = next(declared, None)
        answer = host.disks[role] if host else None
        embedded().limit(farm.identity, hold=True)
        try:
            where = described(folder, farm.name, chosen)
            built = emulated["way"] if emulated else None
            where = replace(where, machine=host.machine if host else None, emulated=built)
            yield _here(folder, where, priced(farm, chosen, answer))
        finally:
            embedded().limit(farm.identity, hold=False)


def _declared_disk(farm: Farm, name: str | None, copied: Path | None) -> ProbeTarget:
    disks = {
        f"{tier}.{role}" if len(found.hosts) == 1 else f"{tier}.{name_of}.{role}": (host, disk)
        for tier, found in farm.tiers.items()
        for name_of, host in found.hosts.items()
        for role, disk in host.disks.items()
    }
    chosen = _chosen(farm, name, disks)
    host, disk = disks[chosen]
    there = next((each for each in host.collect if each.kind == _THERE), None)
    if there is not None:
        return _on(host, _remote(farm, chosen, disk, there.options))
    on_windows = next((each for each in host.collect if each.kind == _WINDOWS), None)
    if on_windows is not None:
        return _on(host, _windows(farm, chosen, disk, on_windows.options, copied))
    if not any(each.kind == _HERE for each in host.collect):
        raise InputError(
            f"{farm.identity}: {chosen} is on another machine, and its host has no collector of kind "
            f"{_THERE} or {_WINDOWS} (to probe it from here) or {_HERE}; add one, or log on to that host "
            "and give `pinchpoint probe` a folder on the disk"
        )
    given = Path(disk.path) if disk.path else mount_of_device(str(disk.device)) if disk.device else None
    if given is None:
        raise InputError(
            f"{farm.identity}: {chosen} has no path, and its device is not mounted here; give a folder on "
            "it instead"
        )
    folder = check(given)
    where = described(folder, farm.name, chosen)
    return _on(host, _here(folder, where, priced(farm, chosen, disk)))


def _on(host: FarmHost, target: ProbeTarget) -> ProbeTarget:
    """The target with the machine type of its host."""
    return replace(target, where=replace(target.where, machine=host.machine))


def _here(folder: Path, where: ProbeLocation, disk: DeclaredDisk) -> ProbeTarget:
    return ProbeTarget(where, disk, LocalFacts(folder).memory_bytes, partial(here, folder))


def _remote(farm: Farm, chosen: str, disk: FarmDisk, options: JsonObject) -> ProbeTarget:
    """A disk on a machine that is reached over ssh with the options of the host's collector."""
    if not (disk.path or disk.device):
        raise InputError(
            f"{farm.identity}: {chosen} has neither path nor device; give one of them under tiers"
        )
    try:
        address = Address.of({key: value for key, value in options.items() if key in OPTIONS})
    except CollectorError as error:
        raise InputError(f"{farm.identity}: {chosen}: {error}") from error
    with explained():
        result = remote.look(address, disk.path, disk.device, chosen)
    where = ProbeLocation(
        folder=str(result.folder),
        host=result.host,
        device=result.device,
        file_system=result.file_system,
        model=result.model,
        farm=farm.name,
        disk=chosen,
    )
    answer = priced(farm, chosen, disk)
    return ProbeTarget(where, answer, result.memory_bytes, partial(remote.there, address, result))


def _windows(
    farm: Farm, chosen: str, disk: FarmDisk, options: JsonObject, copied: Path | None
) -> ProbeTarget:
    """A disk on a Windows machine that is reached with the options of the host's collector."""
    if not (disk.path or disk.device):
        raise InputError(
            f"{farm.identity}: {chosen} has neither path nor device; give one of them under tiers"
        )
    from pinchpoint.probe import windows  # noqa: PLC0415 -- its libraries take half a second to import

    looked = windows.look(options, disk.path, disk.device, farm.name, chosen)
    opened = partial(windows.there, options, looked, copied)
    return ProbeTarget(looked.where, priced(farm, chosen, disk), looked.memory_bytes, opened)


def _chosen(farm: Farm, name: str | None, disks: Iterable[str]) -> str:
    """The disk of a name, or the only disk. Raises InputError that lists all disks."""
    names = sorted(disks)
    if name is None and len(names) == 1:
        return names[0]
    if name is not None and name in names:
        return name
    listed = ", ".join(names) or "none"
    if name is None:
        raise InputError(f"{farm.identity}: which disk? Give --disk with one of: {listed}")
    near = nearest_name(name, names)
    hint = f"; nearest: {near}" if near else ""
    raise InputError(f"--disk: {farm.identity} has no disk {name!r}; allowed: {listed}{hint}")
