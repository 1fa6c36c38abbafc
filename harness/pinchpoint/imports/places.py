"""Maps the machines in a recording to hosts of the farm, and the disks of the machines to roles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pinchpoint.base.errors import InputError
from pinchpoint.plan import load_farm
from pinchpoint.plan.problems import BadValue
from pinchpoint.plan.units import size

_DISK = re.compile(r"(?P<host>[^:=]+):(?P<instance>.+)=(?P<tier>[\w-]+)\.(?P<role>[\w-]+)")

_PORT = re.compile(r"(?<=[^:]):\d+$")
_IP = re.compile(r"[\d.]+|.*:.*:.*")


@dataclass(frozen=True, slots=True)
class ImportedDisk:
    """The role of a disk, and the tier that uses the disk."""

    tier: str
    role: str


@dataclass(frozen=True, slots=True)
class HostPlaces:
    """The user's facts about the machines in the files. Names of hosts and disks are compared without case.

    Attributes:
        host: name for the only host of the file; None: the file names its hosts.
        tiers: host -> tier of the host.
        roles: (host, name of the disk in the file) -> role of the disk.
        paths: (host, path in farm.yaml) -> role of the disk with this path. A file may name a disk by its
            mount point; if no disk has the path as its name, the disk with this role is unknown.
        memory: host -> memory of the host in bytes.
        names: other name of a host (see ``address_names``) -> the host.
        farm: the farm file as the manifest shows it; empty if no farm file was given.
        named: hosts that the options name.
    """

    host: str | None = None
    tiers: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[tuple[str, str], ImportedDisk] = field(default_factory=dict)
    paths: Mapping[tuple[str, str], ImportedDisk] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    farm: Mapping[str, Any] = field(default_factory=dict)
    named: frozenset[str] = frozenset()

    def host_of(self, machine: str, hosts: Iterable[str] = ()) -> str:
        """Return the host that a machine in a file is.

        Args:
            machine: name of the machine in the file; ``""`` if the file has no name.
            hosts: the hosts of the target run.

        Raises:
            InputError: the file does not name its machine, and no option names the host.
        """
        if self.host is not None:
            return self.host
        if not machine:
            raise InputError("the file does not name its machine: give --host NAME")
        known = {**{host.casefold(): host for host in (*self.tiers, *hosts)}, **self.names}
        whole = machine.casefold()
        return known.get(whole) or known.get(whole.partition(".")[0]) or machine

    def tier_of(self, host: str) -> str | None:
        """Return the tier of a host; None if no tier was given."""
        return next((tier for name, tier in self.tiers.items() if same(name, host)), None)

    def role_of(self, host: str, instance: str) -> ImportedDisk | None:
        """Return the role of a disk; None if no role was given."""
        return next(
            (
                role
                for (name, disk), role in (*self.roles.items(), *self.paths.items())
                if same(name, host) and disk_name(disk) == disk_name(instance)
            ),
            None,
        )

    def memory_of(self, host: str) -> int | None:
        """Return the memory of a host in bytes; None if no size was given."""
        return next((size_ for name, size_ in self.memory.items() if same(name, host)), None)


def same(one: str, other: str) -> bool:
    """Return whether two host names are equal, without regard to case."""
    return one.casefold() == other.casefold()


def address_names(addresses: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the names that a host may have in a file: its address, and the first part of its DNS name.

    Args:
        addresses: pairs of a host and the address of its collector, such as ``user@host.example:22``.

    Returns:
        Name in lower case -> host. The first part of a DNS name is left out if several hosts share it.
    """
    whole: dict[str, str] = {}
    first: dict[str, set[str]] = {}
    for host, address in addresses:
        name = _PORT.sub("", address.rpartition("@")[2]).casefold()
        whole[name] = host
        if not _IP.fullmatch(name):
            first.setdefault(name.partition(".")[0], set()).add(host)
    return {**{name: next(iter(hosts)) for name, hosts in first.items() if len(hosts) == 1}, **whole}


def disk_name(device: str) -> str:
    r"""Return the name of a disk for comparison: lower case, no ``/dev/``, no ``\`` at the end."""
    return device.removeprefix("/dev/").rstrip("\\").casefold()


def read_places(
    host: str | None,
    disks: Sequence[str],
    tiers: Sequence[str],
    memory: Sequence[str],
    farm_file: Path | None,
) -> HostPlaces:
    r"""Combine the options of the command line with farm.yaml, if farm.yaml is given.

    Args:
        host: value of ``--host``.
        disks: values of ``--disk HOST:INSTANCE=TIER.ROLE``, such as ``SQL1:L:=sql.log``.
        tiers: values of ``--tier HOST=TIER``.
        memory: values of ``--memory HOST=SIZE``.
        farm_file: value of ``--farm``. The options above override farm.yaml.

    Raises:
        InputError: an option is not valid, or farm.yaml has an error.
    """
    problems: list[str] = []
    roles: dict[tuple[str, str], ImportedDisk] = {}
    belongs: dict[str, str] = {}
    for text in disks:
        match = _DISK.fullmatch(text)
        if match is None:
            problems.append(
                f"--disk: found {text!r}; allowed: HOST:DISK=TIER.ROLE, such as SQL1:L:=sql.log or "
                "db1:nvme1n1=sql.data"
            )
            continue
        roles[match["host"], match["instance"]] = ImportedDisk(match["tier"], match["role"])
        belongs[match["host"]] = match["tier"]
    belongs |= _pairs("--tier", "HOST=TIER, such as APP3=search", tiers, problems)
    sizes: dict[str, int] = {}
    for name, text in _pairs("--memory", "HOST=SIZE, such as SQL1=56GB", memory, problems).items():
        try:
            sizes[name] = size(text)
        except BadValue as error:
            problems.append(f"--memory: {name}: {error}")
    if problems:
        raise InputError(*problems)
    named = frozenset({*belongs, *sizes, *(name for name, _ in roles)})
    return _with_farm(HostPlaces(host, belongs, roles, memory=sizes, named=named), farm_file)


def _pairs(option: str, allowed: str, given: Sequence[str], problems: list[str]) -> dict[str, str]:
    result = {}
    for text in given:
        name, equals, value = text.partition("=")
        if name and equals and value:
            result[name] = value
        else:
            problems.append(f"{option}: found {text!r}; allowed: {allowed}")
    return result


def _with_farm(places: HostPlaces, farm_file: Path | None) -> HostPlaces:
    if farm_file is None:
        return places
    farm = load_farm(farm_file)
    tiers, roles, paths = dict(places.tiers), dict(places.roles), {}
    addresses: list[tuple[str, str]] = []
    for tier, its in farm.tiers.items():
        for host, facts in its.hosts.items():
            tiers.setdefault(host, tier)
            given = [collect.options.get("address") for collect in facts.collect]
            addresses += [(host, str(address)) for address in given if address]
            for role, disk in facts.disks.items():
                if disk.device:
                    roles.setdefault((host, disk.device), ImportedDisk(tier, role))
                elif disk.path:
                    paths[host, disk.path] = ImportedDisk(tier, role)
    names = address_names(addresses)
    return replace(places, tiers=tiers, roles=roles, paths=paths, names=names, farm=farm.shown())
