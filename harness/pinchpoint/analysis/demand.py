"""Step 3: the farm's resources, each once, with the columns that say how much of it is used.

Hosts that share a machine read the same counters, so a pool of cores and a device are built once per
machine, whoever reports them. With one load level a resource's use is its busy fraction; the split into a
fixed part and a part per operation needs several levels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Literal

import numpy as np

from pinchpoint.analysis.devices import find_disks
from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.machine_disks import find_machine_disks
from pinchpoint.analysis.resources.base import GENERATOR, USE, Resource, placed
from pinchpoint.analysis.resources.kinds import SHARED
from pinchpoint.data.inputs import Host, Inputs
from pinchpoint.data.series import Floats, Samples

FOLDERS = ("files",)
"""Tiers that may be a mere folder, without processes of their own."""


def find_resources(inputs: Inputs, flows: tuple[Flow, ...]) -> tuple[Resource, ...]:
    """Every resource the run tells something about (METHOD step 3, at one load level)."""
    disks = tuple(replace(disk, even=_evenly_asked(disk, flows)) for disk in find_disks(inputs))
    return (
        *_cpu_pools(inputs),
        *_allowances(inputs),
        *_threads(inputs),
        *disks,
        *find_machine_disks(inputs, disks),
        *(found for kind in SHARED.values() for found in kind.discover(inputs, flows, disks)),
    )


def _evenly_asked(disk: Resource, flows: tuple[Flow, ...]) -> bool:
    """Whether all that go to a disk's tiers come in an even schedule."""
    there = [flow for flow in flows if any(flow.share(tier) for tier in disk.tiers)]
    return bool(there) and all(flow.even for flow in there)


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
        rest = [host for host in inputs.on_machine(machine) if not host.cores]
        names, tiers = placed(hosts)
        name = ",".join(map(str, cores))
        yield Resource(
            key=f"cpu:{machine}:{name}",
            type="cpu",
            machine=machine,
            hosts=names,
            tiers=tiers,
            instance=name,
            cores=len(cores) or None,
            columns={
                "busy": pool_busy(inputs.samples, everyone, cores),
                "pressure": inputs.samples.first_of(everyone, "pressure.cpu_ratio"),
                f"{USE}{GENERATOR}": _generator_use(inputs, machine, cores),
                "running": _running(inputs, hosts),
                **{f"{USE}{tier}": _tier_use(inputs, tier, hosts) for tier in tiers},
                **{f"{USE}{tier}": _tier_use(inputs, tier, rest) for tier in _others(rest, tiers)},
            },
        )


def _others(unknown: list[Host], tiers: tuple[str, ...]) -> Iterator[str]:
    """Tiers beside those of a pool of whose processes nobody knows where they run: they may use it, too."""
    for tier in dict.fromkeys(host.tier for host in unknown):
        if tier not in (*tiers, *FOLDERS):
            yield tier


def _tier_use(inputs: Inputs, tier: str, hosts: list[Host]) -> Floats:
    """Cores' worth of CPU that all of a tier's hosts here use; NaN where one of them was not measured."""
    own = [cores_used(inputs, host) for host in hosts if host.tier == tier]
    return np.asarray(np.sum(own, axis=0), dtype=np.float64)


def _running(inputs: Inputs, hosts: list[Host]) -> Floats:
    """Sessions that are on a CPU or want one, as all servers here say; NaN where one of them does not."""
    told = [inputs.samples.steps(host.name, "db.sessions_running") for host in hosts]
    return np.asarray(np.sum(told, axis=0), dtype=np.float64)


def cores_used(inputs: Inputs, host: Host) -> Floats:
    """Cores' worth of CPU a host's tier uses: its ratio times the cores it is of (a quota may be lower)."""
    instance = f"tier:{host.tier}"
    ratio = inputs.samples.steps(host.name, "cpu.busy_ratio", instance)
    of = inputs.samples.steps(host.name, "cpu.cores", instance)
    return ratio * np.where(np.isfinite(of), of, float(len(host.cores or host.usable)) or np.nan)


def pool_busy(samples: Samples, hosts: list[str], cores: tuple[int, ...]) -> Floats:
    """The mean busy ratio of a set of cores; the machine's own where no core was measured."""
    found = samples.together(hosts, "cpu.busy_ratio", map(str, cores))
    return samples.first_of(hosts, "cpu.busy_ratio") if found is None else found


def _generator_use(inputs: Inputs, machine: str, cores: tuple[int, ...]) -> Floats:
    """Cores' worth of CPU the load generators took out of this pool; 0 where they have cores of their own.

    A worker that was not pinned may use all cores of its machine. One that does not say where it ran is on
    the farm's only if that has just one, and the worker was given cores of it.
    """
    total = np.zeros(inputs.window.steps)
    single = len({host.machine for host in inputs.hosts}) == 1
    all_cores = next((host.usable for host in inputs.on_machine(machine) if host.usable), ())
    for worker in inputs.generators:
        here = worker.machine == machine or (worker.machine is None and single and bool(worker.cores))
        may_use = worker.cores or all_cores
        shared = set(may_use) & set(cores)
        if here and shared:
            used = inputs.samples.steps(worker.name, "generator.cpu_ratio")
            total += used * len(shared) / len(may_use)
    return total


def _allowances(inputs: Inputs) -> Iterator[Resource]:
    """A tier's own allowance of CPU, which may be lower than its cores (a container's quota)."""
    for host in inputs.hosts:
        used = inputs.samples.steps(host.name, "cpu.busy_ratio", f"tier:{host.tier}")
        if np.isfinite(used).any():
            yield _own(inputs, host, "allowance", f"tier:{host.tier}", used)


def _threads(inputs: Inputs) -> Iterator[Resource]:
    """Single threads, where the pool has more than one core: else the thread's limit is the pool's.

    Of a host that nobody looked into, the thread of which its server tells itself.
    """
    for host in inputs.hosts:
        if len(host.cores or host.usable) == 1:
            continue
        keys = [key for key in inputs.samples.keys("cpu.busy_ratio") if key.host == host.name]
        threads = [key for key in keys if key.instance.startswith("thread:")]
        at_work = inputs.samples.steps(host.name, "db.main_thread.busy_ratio")
        for key in threads:
            used = inputs.samples.steps(*key)
            yield _own(inputs, host, "thread", key.instance, used, witness=at_work)
        if not keys and np.isfinite(at_work).any():
            waits = np.nan_to_num(inputs.samples.steps(host.name, "db.aof.wait_ratio"))
            yield _own(inputs, host, "thread", "thread:main", at_work - waits)


def _own(
    inputs: Inputs,
    host: Host,
    kind: Literal["allowance", "thread"],
    instance: str,
    used: Floats,
    **more: Floats,
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
            "allowed": inputs.samples.steps(host.name, "cpu.cores", f"tier:{host.tier}"),
            "pressure": inputs.samples.first_of(everyone, "pressure.cpu_ratio"),
            **more,
        },
    )
