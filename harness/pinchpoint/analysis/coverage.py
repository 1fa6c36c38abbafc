"""Finds the parts of the farm that were not measured, and the CPU time that hypervisors took."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from pinchpoint.analysis.resources.disk.managed import files_of
from pinchpoint.analysis.thresholds import STEAL, SUSTAINED, Threshold
from pinchpoint.base import units
from pinchpoint.base.wording import listed
from pinchpoint.data.inputs import Inputs

_CLOUDS = {"aws": "AWS", "azure": "Azure"}
WATCHED = 0.5
"""A host or server must have samples for this share of the time; a server's counters also cover gaps."""


READS = "disk.reads_per_s"


def _has_gap(inputs: Inputs, host: str, metric: str, instance: str = "") -> bool:
    """Whether a series has a gap of 30 s or more, or covers less than half of the window."""
    gap_s = inputs.samples.gap_s(host, metric, instance)
    return gap_s >= SUSTAINED.value or inputs.samples.seen_ratio(host, metric, instance) < WATCHED


def unseen(inputs: Inputs) -> Iterator[str]:
    """Sentences about hosts, servers and disks that were not measured, or only partly."""
    for host in dict.fromkeys(host.name for host in inputs.hosts):
        seen = inputs.samples.seen_ratio(host, "cpu.busy_ratio")
        if seen == 0:
            yield _not_seen(inputs, host)
        elif _has_gap(inputs, host, "cpu.busy_ratio"):
            yield f"{host} was only partly measured"
    yield from _disks_partly_seen(inputs)
    for kind, host in inputs.views:
        answered = inputs.samples.steps(host, "collector.ok", kind)
        if not np.isfinite(answered).any():
            yield _view_not_seen(kind, host)
        elif float((answered >= 1).mean()) < WATCHED:
            yield f"the {kind} view of {host} was only partly measured"


def _view_not_seen(kind: str, host: str) -> str:
    """The sentence about a server, or a cloud's metrics of a host, without samples."""
    if kind in _CLOUDS:
        return f"what {_CLOUDS[kind]} measures of {host} was not read"
    return f"the {kind} server on {host} was not measured"


def unseen_at(inputs: Inputs, tiers: Collection[str]) -> Iterator[str]:
    """Sentences about hosts, servers and disks of these tiers that were not measured.

    A host without a collector is left out if its database reports the I/O of its disks.
    """
    hosts = dict.fromkeys(host.name for host in inputs.hosts if host.tier in tiers)
    for host in hosts:
        if inputs.samples.seen_ratio(host, "cpu.busy_ratio") == 0 and not _is_managed(inputs, host):
            yield _not_seen(inputs, host)
    for kind, host in inputs.views:
        if host in hosts and not np.isfinite(inputs.samples.steps(host, "collector.ok", kind)).any():
            yield _view_not_seen(kind, host)
    for disk in inputs.disks:
        names = inputs.names_on(disk.machine)
        if disk.host in hosts and disk.device:
            read = inputs.samples.first_of(names, "disk.reads_per_s", disk.device)
            if not np.isfinite(read).any():
                yield f"the {disk.role} disk of {disk.host} was not measured"


def _not_seen(inputs: Inputs, host: str) -> str:
    """The sentence about a host without CPU samples, with the servers on the host that were measured."""
    if _is_managed(inputs, host):
        return f"{host} was not measured, only its database"
    servers = [
        kind
        for kind, of in inputs.views
        if of == host and np.isfinite(inputs.samples.steps(host, "collector.ok", kind)).any()
    ]
    if servers:
        return f"the CPU and the disks of {host} were not measured, only its server ({listed(servers)})"
    return f"{host} was not measured"


def _is_managed(inputs: Inputs, host: str) -> bool:
    """Whether the database reports the I/O of a host's disks, because the host has no collector."""
    return any(disk.host == host and files_of(inputs, disk) for disk in inputs.disks)


def _disks_partly_seen(inputs: Inputs) -> Iterator[str]:
    """Sentences about disks with gaps on hosts without gaps."""
    for disk in {(disk.machine, disk.device): disk for disk in inputs.disks if disk.device}.values():
        hosts = inputs.names_on(disk.machine)
        own = [name for name in hosts if inputs.samples.seen_ratio(name, READS, disk.device or "")]
        whole = any(not _has_gap(inputs, name, "cpu.busy_ratio") for name in hosts)
        if own and whole and all(_has_gap(inputs, name, READS, disk.device or "") for name in own):
            yield f"the {disk.role} disk of {disk.host} was only partly measured"


HOST_WITH_ROOM = "Run the same plan again when the host under that machine has room."
"""The remedy if the hypervisor took CPU time."""


def stolen(inputs: Inputs, least: Threshold = STEAL) -> Iterator[str]:
    """Sentences about machines from which the hypervisor took more than ``least`` of the CPU time."""
    for machine in dict.fromkeys(host.machine for host in inputs.hosts):
        names = inputs.names_on(machine)
        steal = max((inputs.samples.mean(name, "cpu.steal_ratio") or 0.0 for name in names), default=0.0)
        if steal > least.value:
            yield f"the hypervisor took {units.percent(steal)} of the CPU time of {names[0]} (steal)"
