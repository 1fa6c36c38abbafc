"""What is probed: a folder, or the disk that plays a role in a farm; and what that disk is declared to be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pinchpoint.analysis.inputs import Limits
from pinchpoint.errors import GuardError, InputError
from pinchpoint.live import embedded
from pinchpoint.plan import Disk, Farm
from pinchpoint.plan.problems import nearest
from pinchpoint.probe import place
from pinchpoint.probe.record import Declared, Where
from pinchpoint_infra.catalogue import Profile, UnknownProfile, profile

_HERE = "local"


@dataclass(frozen=True, slots=True)
class Target:
    """One disk.

    Attributes:
        folder: on it; where the probe's own folder is made.
        where: the disk, described.
        declared: what it is said to be able to do.
    """

    folder: Path
    where: Where
    declared: Declared


def of_folder(folder: Path, profile_name: str | None) -> Target:
    """A folder, with the type that is named for it. Raises InputError, GuardError."""
    found = place.check(folder)
    try:
        said = declared(profile(profile_name), 1) if profile_name else Declared()
    except UnknownProfile as error:
        raise InputError(f"--profile: {error}") from error
    if profile_name and profile(profile_name).kind != "disk":
        raise InputError(f"--profile: {profile_name!r} is a machine; a disk's type is needed")
    return Target(found, place.described(found), said)


@contextmanager
def of_farm(farm: Farm, name: str | None, say: Callable[[str], None]) -> Iterator[Target]:
    """The disk of a farm; an embedded farm is up meanwhile, with its limits in force.

    Args:
        farm: any but a production one.
        name: ``tier.role``; ``tier.host.role`` where the tier has several hosts; None: the only disk.
        say: takes a sentence.

    Raises:
        InputError: there is no such disk, or it is not on this machine.
        GuardError: the farm is production.
    """
    if farm.environment == "production":
        raise GuardError(
            f"farm {farm.name} is production, and a probe writes as much as its disks take; nothing was "
            "started. Probe a disk of the same type, or a farm whose farm.yaml says environment: staging or "
            "test"
        )
    if farm.embedded is None:
        yield _declared_disk(farm, name)
        return
    with embedded().embedded_farm(farm, say) as status:
        folders = {
            f"{tier}.{role}": path for tier, roles in status.disks.items() for role, path in roles.items()
        }
        chosen = _chosen(farm, name, folders)
        emulated = status.emulated.get(chosen)
        folder = Path(emulated["mount"] if emulated else folders[chosen])
        tier, _, role = chosen.partition(".")
        hosts = farm.tiers[tier].hosts if tier in farm.tiers else {}
        said = next((host.disks[role] for host in hosts.values() if role in host.disks), None)
        embedded().limit(farm.identity, hold=True)
        try:
            yield Target(folder, place.described(folder, farm.name, chosen), _declared(said))
        finally:
            embedded().limit(farm.identity, hold=False)


def declared(entry: Profile, stripes: int) -> Declared:
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


def _declared_disk(farm: Farm, name: str | None) -> Target:
    disks = {
        f"{tier}.{role}" if len(found.hosts) == 1 else f"{tier}.{name_of}.{role}": (host, disk)
        for tier, found in farm.tiers.items()
        for name_of, host in found.hosts.items()
        for role, disk in host.disks.items()
    }
    chosen = _chosen(farm, name, disks)
    host, disk = disks[chosen]
    if not any(each.kind == _HERE for each in host.collect):
        raise InputError(
            f"{farm.identity}: {chosen} is on another machine (its host has no collector of kind {_HERE}), "
            "and a probe runs where the disk is; log on there and give `pinchpoint probe` a folder on it"
        )
    given = Path(disk.path) if disk.path else place.mount_of_device(str(disk.device)) if disk.device else None
    if given is None:
        raise InputError(
            f"{farm.identity}: {chosen} has no path, and its device is not mounted here; give a folder on "
            "it instead"
        )
    folder = place.check(given)
    return Target(folder, place.described(folder, farm.name, chosen), _declared(disk))


def _declared(disk: Disk | None) -> Declared:
    if disk is None:
        return Declared()
    if disk.profile:
        return declared(profile(disk.profile), disk.stripes or 1)
    limits = disk.resolved_limits
    if limits is None:
        return Declared()
    return Declared(limits=Limits(limits.iops, limits.bytes_per_s, limits.io_unit_bytes))


def _chosen(farm: Farm, name: str | None, disks: Iterable[str]) -> str:
    """The disk of that name; without a name the only one. Raises InputError that lists all."""
    names = sorted(disks)
    if name is None and len(names) == 1:
        return names[0]
    if name is not None and name in names:
        return name
    listed = ", ".join(names) or "none"
    if name is None:
        raise InputError(f"{farm.identity}: which disk? Give --disk with one of: {listed}")
    near = nearest(name, names)
    hint = f"; nearest: {near}" if near else ""
    raise InputError(f"--disk: {farm.identity} has no disk {name!r}; allowed: {listed}{hint}")
