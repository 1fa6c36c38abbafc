"""Finds the disks of a machine together as one resource, limited by the machine's caps (docs/rules.md).

The caps of a virtual machine apply to the I/O of all its disks over the network: striping multiplies the caps
of disks, not those of the machine. Whole devices count once. A local disk inside the machine counts to no
cap, and a disk that the host caches counts to a separate cap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pinchpoint.analysis.resources.base import Resource
from pinchpoint.analysis.resources.disk.devices import disk_columns, disk_reading_s
from pinchpoint.analysis.resources.disk.limits import MACHINE, share_columns, with_credits
from pinchpoint.analysis.resources.disk.types import Profile, known
from pinchpoint.data.inputs import Host, Inputs, Limits
from pinchpoint.data.series import Floats, added

LOCAL_MODELS = ("Microsoft NVMe Direct Disk", "Amazon EC2 NVMe Instance Storage")
"""Kernel names of local disks inside a cloud's machine (Azure: "FAQ for remote NVMe disks"; AWS: "NVMe
instance store volumes"). No cap of the machine applies to them."""

_UNDECLARED = "machine"
"""Name of a machine whose type is not declared, but whose platform recorded the utilisation of its caps."""

CAPS: Mapping[str, tuple[str, str]] = {
    "network": ("iops", "bytes_per_s"),
    "cached": ("cached_iops", "cached_bytes_per_s"),
}
"""How a disk is attached -> the two caps of the machine that count its I/O."""


def machine_profile(hosts: Sequence[Host]) -> Profile | None:
    """The catalogue entry of the machine type that these hosts declare; None without one known type."""
    names = {host.machine_type for host in hosts if host.machine_type}
    return known(names.pop()) if len(names) == 1 else None


def unknown_machines(inputs: Inputs) -> Iterator[str]:
    """Warnings about declared machines whose caps are not known."""
    for machine in dict.fromkeys(host.machine for host in inputs.hosts):
        hosts = inputs.on_machine(machine)
        names = sorted({host.machine_type for host in hosts if host.machine_type})
        if len(names) > 1:
            text = " and ".join(names)
            yield f"{hosts[0].name}: one machine, declared to be {text}: its caps are not known"
        elif names and machine_profile(hosts) is None:
            yield f"{hosts[0].name}: the catalogue has no machine {names[0]}: its caps are not known"


def find_machine_disks(inputs: Inputs, disks: Sequence[Resource]) -> Iterator[Resource]:
    """One resource for each declared or recorded cap of each machine. ``disks``: the devices with a role."""
    for machine in dict.fromkeys(host.machine for host in inputs.hosts):
        hosts = inputs.on_machine(machine)
        profile = machine_profile(hosts)
        own = {disk.instance: disk for disk in disks if disk.machine == machine}
        for way, (count, size) in CAPS.items():
            limits = Limits(getattr(profile, count), getattr(profile, size), None) if profile else None
            shares = share_columns(inputs.samples, [host.name for host in hosts], MACHINE[way], [""])
            devices = [name for name in _counted(hosts, own) if _attached(hosts, own, name) == way]
            if devices and (shares or (limits and (limits.iops or limits.bytes_per_s))):
                result = _together(inputs, hosts, [own.get(name) or name for name in devices])
                if result is not None:
                    whole_name = profile.name if profile else _UNDECLARED
                    name = whole_name if way == "network" else f"{whole_name} ({way})"
                    whole = replace(
                        result,
                        key=f"machine-disks:{machine}:{way}",
                        machine=machine,
                        instance=name,
                        limits=limits,
                        whole=whole_name,
                        columns={**result.columns, **shares},
                    )
                    yield with_credits(whole) if way == "network" else whole


def _counted(hosts: Sequence[Host], own: Mapping[str, Resource]) -> Iterator[str]:
    """The devices whose I/O is counted: each I/O once, at the device nearest to the network.

    These are the devices with a role, and other whole disks that are no part of a device with a role. A
    device made of other counted devices is left out.
    """
    members: dict[str, tuple[str, ...]] = {}
    for host in hosts:
        members.update(host.members)
    below = {part for name in own for part in members.get(name, ())}
    rest = [name for name, parts in members.items() if name not in own and not parts and name not in below]
    for name in (*own, *rest):
        if not set(members.get(name, ())) & {*own, *rest}:
            yield name


def _attached(hosts: Sequence[Host], own: Mapping[str, Resource], device: str) -> str:
    answer = {role.attached for role in own[device].roles} if device in own else {"network"}
    local = any(host.models.get(device, "").startswith(LOCAL_MODELS) for host in hosts)
    return "local" if local or "local" in answer else "cached" if "cached" in answer else "network"


def _together(inputs: Inputs, hosts: Sequence[Host], devices: Sequence[Resource | str]) -> Resource | None:
    """The sum of several devices; None if none of them was measured."""
    parts: list[Mapping[str, Floats]] = []
    roles, lengths = [], []
    for device in devices:
        if isinstance(device, Resource):
            roles += list(device.roles)
            parts.append(device.columns)
            lengths.append(device.step_s)
        else:
            names = [host.name for host in hosts]
            columns = disk_columns(inputs.samples, names, device)
            lengths.append(disk_reading_s(inputs.samples, names, device))
            unknown = np.full(inputs.window.steps, np.nan)
            parts.append({**columns, "sessions": unknown})
    parts = [part for part in parts if np.isfinite(part["reads"] + part["writes"]).any()]
    known = [device for device in devices if isinstance(device, Resource)]
    if not parts:
        return None
    return Resource(
        key="",
        type="disk",
        machine="",
        hosts=tuple(dict.fromkeys(role.host for role in roles)) or tuple(host.name for host in hosts),
        tiers=tuple(dict.fromkeys(role.tier for role in roles))
        or tuple(dict.fromkeys(host.tier for host in hosts)),
        instance="",
        roles=tuple(roles),
        commit_path=any(device.commit_path for device in known),
        step_s=max(lengths),
        columns=_sums(parts),
    )


def _sums(parts: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    """The columns of several devices together: counts add up, and a latency is the mean over all operations.

    ``busy`` is the share of the time in which any device has I/O, if the devices are independent of each
    other.
    """

    def total(name: str) -> Floats:
        return np.asarray(np.sum([part[name] for part in parts], axis=0), dtype=np.float64)

    summed = ("reads", "writes", "bytes", "read_bytes", "outstanding")
    columns = {name: total(name) for name in summed}
    for way in ("read", "write", "flush"):
        weight = total(f"{way}_weight")
        times = [np.nan_to_num(part[f"{way}_latency"]) * part[f"{way}_weight"] for part in parts]
        spent = np.sum(times, axis=0)
        latency = np.divide(spent, weight, out=np.full_like(weight, np.nan), where=weight > 0)
        columns |= {f"{way}_latency": latency, f"{way}_weight": weight}
    return {
        **columns,
        "busy": 1 - np.prod([1 - part["busy"] for part in parts], axis=0),
        "pressure": parts[0]["pressure"],
        "sessions": added(part["sessions"] for part in parts),
    }
