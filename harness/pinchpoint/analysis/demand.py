"""Step 3: the farm's resources, each once, with the columns that say how much of it is used.

Hosts that share a machine read the same counters, so a pool of cores and a device are built once per
machine, whoever reports them. With one load level a resource's use is its busy fraction; the split into a
fixed part and a part per operation needs several levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

import numpy as np

from pinchpoint.analysis.changes import find_shift
from pinchpoint.analysis.inputs import DiskRole, Host, Inputs, Limits
from pinchpoint.analysis.series import Floats, Samples, spread

COMMIT_ROLES = ("log", "wal", "journal")
ROLE_ORDER = (*COMMIT_ROLES, "data", "tempdb", "index", "content", "os")
"""A device with several roles is named after the one that operations wait for first."""


@dataclass(frozen=True, slots=True)
class DiskShift:
    """A disk's I/O rate before and after a change of level, and what was outstanding meanwhile.

    Attributes:
        spread: of the rate after the change.
    """

    before: float
    after: float
    spread: float | None
    outstanding_before: float
    outstanding_after: float


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that can be used up.

    Attributes:
        key: unique in the run.
        type: ``cpu`` a pool of cores, ``allowance`` a tier's own share of cores, ``thread``, ``disk``.
        machine: where it is.
        hosts: the hosts that use it, the reporting one first.
        tiers: the tiers that use it, in the same order.
        instance: cores ("0,1"), thread name, device.
        cores: how many cores a pool has; None where that is not known.
        roles: a device's roles, the first as in ``ROLE_ORDER``.
        limits: the declared caps, None where withheld.
        commit_path: whether commits wait for this device: it holds a log, or the data of a tier without one.
        shift: how a disk's I/O changed its level within the window; None where it did not.
        columns: one value per step of the window, NaN = not measured.
    """

    key: str
    type: Literal["cpu", "allowance", "thread", "disk"]
    machine: str
    hosts: tuple[str, ...]
    tiers: tuple[str, ...]
    instance: str
    cores: int | None = None
    roles: tuple[DiskRole, ...] = ()
    limits: Limits | None = None
    commit_path: bool = False
    shift: DiskShift | None = None
    columns: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def role(self) -> str | None:
        """The first role of a device."""
        return self.roles[0].role if self.roles else None


def find_resources(inputs: Inputs) -> tuple[Resource, ...]:
    """Every resource the run tells something about (METHOD step 3, at one load level)."""
    return (*_cpu_pools(inputs), *_allowances(inputs), *_threads(inputs), *_disks(inputs))


def _cpu_pools(inputs: Inputs) -> Iterator[Resource]:
    """The distinct sets of cores that tiers may use, per machine.

    Where the processes of some tiers are known, a host without any (a folder of files) uses no cores; where
    those of none are, the machine is one pool.
    """
    known = {host.machine for host in inputs.hosts if host.cores}
    users = [host for host in inputs.hosts if host.cores or host.machine not in known]

    def pool(host: Host) -> tuple[str, tuple[int, ...]]:
        return host.machine, host.cores or host.usable

    for (machine, cores), group in groupby(sorted(users, key=pool), key=pool):
        hosts = list(group)
        everyone = [host.name for host in inputs.on_machine(machine)]
        used = {f"use:{host.tier}": _cores_used(inputs, host) for host in hosts}
        name = ",".join(map(str, cores))
        yield Resource(
            key=f"cpu:{machine}:{name}",
            type="cpu",
            machine=machine,
            hosts=tuple(host.name for host in hosts),
            tiers=tuple(dict.fromkeys(host.tier for host in hosts)),
            instance=name,
            cores=len(cores) or None,
            columns={
                "busy": pool_busy(inputs.samples, everyone, cores),
                "pressure": inputs.samples.first_of(everyone, "pressure.cpu_ratio"),
                "use:generator": _generator_use(inputs, machine, cores),
                **used,
            },
        )


def _cores_used(inputs: Inputs, host: Host) -> Floats:
    """Cores' worth of CPU a tier uses: its ratio times the cores that ratio is of (a quota may be lower)."""
    instance = f"tier:{host.tier}"
    ratio = inputs.samples.steps(host.name, "cpu.busy_ratio", instance)
    of = inputs.samples.steps(host.name, "cpu.cores", instance)
    return ratio * np.where(np.isfinite(of), of, float(len(host.cores or host.usable)) or np.nan)


def pool_busy(samples: Samples, hosts: list[str], cores: tuple[int, ...]) -> Floats:
    """The mean busy ratio of a set of cores; the machine's own where no core was measured."""
    columns = [samples.first_of(hosts, "cpu.busy_ratio", str(core)) for core in cores]
    if columns and all(np.isfinite(column).any() for column in columns):
        return np.asarray(np.mean(columns, axis=0), dtype=np.float64)
    return samples.first_of(hosts, "cpu.busy_ratio")


def _generator_use(inputs: Inputs, machine: str, cores: tuple[int, ...]) -> Floats:
    """Cores' worth of CPU the load generators took out of this pool; 0 where they have cores of their own.

    A worker that does not say where it ran is on the farm's machine only if the farm has just one.
    """
    total = np.zeros(inputs.window.steps)
    single = len({host.machine for host in inputs.hosts}) == 1
    for worker in inputs.generators:
        here = worker.machine == machine or (worker.machine is None and single)
        shared = set(worker.cores) & set(cores)
        if here and shared:
            used = inputs.samples.steps(worker.name, "generator.cpu_ratio")
            total += used * len(shared) / len(worker.cores)
    return total


def _allowances(inputs: Inputs) -> Iterator[Resource]:
    """A tier's own allowance of CPU, which may be lower than its cores (a container's quota)."""
    for host in inputs.hosts:
        used = inputs.samples.steps(host.name, "cpu.busy_ratio", f"tier:{host.tier}")
        if np.isfinite(used).any():
            yield _own(inputs, host, "allowance", f"tier:{host.tier}", used)


def _threads(inputs: Inputs) -> Iterator[Resource]:
    """Single threads, where the pool has more than one core: else the thread's limit is the pool's."""
    for host in inputs.hosts:
        if len(host.cores or host.usable) == 1:
            continue
        for key in inputs.samples.keys("cpu.busy_ratio"):
            if key.host == host.name and key.instance.startswith("thread:"):
                yield _own(inputs, host, "thread", key.instance, inputs.samples.steps(*key))


def _own(
    inputs: Inputs, host: Host, kind: Literal["allowance", "thread"], instance: str, used: Floats
) -> Resource:
    everyone = [other.name for other in inputs.on_machine(host.machine)]
    return Resource(
        key=f"{kind}:{host.name}:{instance}",
        type=kind,
        machine=host.machine,
        hosts=(host.name,),
        tiers=(host.tier,),
        instance=instance,
        cores=len(host.cores or host.usable) or None,
        columns={
            "busy": used,
            "pool": pool_busy(inputs.samples, everyone, host.cores or host.usable),
            "pressure": inputs.samples.first_of(everyone, "pressure.cpu_ratio"),
        },
    )


def _disks(inputs: Inputs) -> Iterator[Resource]:
    """Every device with a role, once per machine."""
    known = [disk for disk in inputs.disks if disk.device is not None]
    order = sorted(known, key=lambda disk: (disk.machine, disk.device or "", role_rank(disk.role)))
    for (machine, device), group in groupby(order, key=lambda disk: (disk.machine, disk.device or "")):
        roles = tuple(group)
        hosts = [host.name for host in inputs.on_machine(machine)]
        columns = disk_columns(inputs.samples, hosts, device)
        yield Resource(
            key=f"disk:{machine}:{device}",
            type="disk",
            machine=machine,
            hosts=tuple(dict.fromkeys(role.host for role in roles)),
            tiers=tuple(dict.fromkeys(role.tier for role in roles)),
            instance=device,
            roles=roles,
            limits=next((role.limits for role in roles if role.limits), None),
            commit_path=any(_on_commit_path(role, inputs.disks) for role in roles),
            shift=_disk_shift(columns["reads"] + columns["writes"], columns["outstanding"]),
            columns=columns,
        )


def _disk_shift(rate: Floats, outstanding: Floats) -> DiskShift | None:
    usable = np.isfinite(rate) & np.isfinite(outstanding)
    rate, outstanding = rate[usable], outstanding[usable]
    shift = find_shift(rate)
    if shift is None:
        return None
    return DiskShift(
        before=shift.before,
        after=shift.after,
        spread=spread(rate[shift.at :]),
        outstanding_before=float(outstanding[: shift.at].mean()),
        outstanding_after=float(outstanding[shift.at :].mean()),
    )


def _on_commit_path(role: DiskRole, disks: tuple[DiskRole, ...]) -> bool:
    if role.role in COMMIT_ROLES:
        return True
    logged = {disk.host for disk in disks if disk.role in COMMIT_ROLES}
    return role.role == "data" and role.host not in logged


def role_rank(role: str) -> int:
    """Where a role stands in ``ROLE_ORDER``; unknown ones come last."""
    return ROLE_ORDER.index(role) if role in ROLE_ORDER else len(ROLE_ORDER)


def disk_columns(samples: Samples, hosts: list[str], device: str) -> dict[str, Floats]:
    """A device's columns; writes are data I/O where the collector verified that (METHOD section 2)."""

    def column(metric: str) -> Floats:
        return samples.first_of(hosts, f"disk.{metric}", device)

    def weight(metric: str) -> Floats:
        weights = [samples.weights(host, f"disk.{metric}", device) for host in hosts]
        return max(weights, key=lambda weight: float(weight.sum()))

    verified = bool(np.isfinite(column("data_writes_per_s")).any())
    prefix = "data_" if verified else ""
    writes, latency = f"{prefix}writes_per_s", f"{prefix}write_latency_s"
    return {
        "reads": column("reads_per_s"),
        "writes": column(writes),
        "bytes": column("read_bytes_per_s") + column("write_bytes_per_s"),
        "read_latency": column("read_latency_s"),
        "read_weight": weight("read_latency_s"),
        "write_latency": column(latency),
        "write_weight": weight(latency),
        "flush_latency": column("flush_latency_s"),
        "flush_weight": weight("flush_latency_s"),
        "outstanding": column("outstanding"),
        "busy": column("busy_ratio"),
        "pressure": samples.first_of(hosts, "pressure.io_ratio"),
    }
