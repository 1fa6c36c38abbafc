"""Memory of capped tiers and of machines: how little is available, and how much is read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pinchpoint.analysis.flows import Flows
from pinchpoint.analysis.resources.base import (
    Least,
    LimitMode,
    Resource,
    Resources,
    ShareMeasures,
    Suspicion,
    placed,
)
from pinchpoint.analysis.resources.disk.measures import measure_disk
from pinchpoint.analysis.resources.disk.waits import reads_are_waited_for
from pinchpoint.analysis.resources.gain import advise
from pinchpoint.analysis.resources.shared import Figure, Shared
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import MEMORY_LOW, MEMORY_WAIT, PAGING, READ_AGAIN, at_least
from pinchpoint.analysis.verdict import Advice, Kind
from pinchpoint.base import units
from pinchpoint.data.inputs import Host, Inputs
from pinchpoint.data.series import Floats

if TYPE_CHECKING:
    from pinchpoint.analysis.advice_inputs import AdviceInputs


class Memory(Shared):
    """The memory of one tier with a cap of its own, or of one machine.

    The kernel counts file cache as available or not by how recently it was used, so reads of evicted data are
    better evidence than available memory. Available memory and waits for memory are the second sources.
    """

    type = "memory"
    kind = "memory"
    limit_modes: Mapping[Kind, LimitMode] = {"memory": "time"}
    explains_disks = True
    short = "the memory of {host}"
    placed = "the memory of {host}"
    least = Least("witness", READ_AGAIN)
    called = "the memory{where}"
    shown = "{witness} of the reads are of data that was evicted from memory before"
    relieved = "give it twice as much"

    def discover(self, inputs: Inputs, flows: Flows, disks: Resources) -> Iterator[Resource]:
        """The memory of every tier with a limit of its own, and the memory of every machine once."""
        machines: set[str] = set()
        for host in inputs.hosts:
            instance = f"tier:{host.tier}"
            left = inputs.samples.steps(host.name, "mem.available_ratio", instance)
            if np.isfinite(left).any():
                again = inputs.samples.steps(host.name, "mem.refaulted_bytes_per_s", instance)
                yield _memory(inputs, (host,), instance, left, _again(again, _read(disks, host)))
            everyone = inputs.on_machine(host.machine)
            names = [one.name for one in everyone]
            whole = inputs.samples.first_of(names, "mem.available_ratio")
            if host.machine not in machines and np.isfinite(whole).any():
                machines.add(host.machine)
                paged = inputs.samples.first_of(names, "mem.paged_in_bytes_per_s")
                # A few pages are paged in on any system.
                paging = np.where(paged < PAGING.value, 0.0, paged)
                yield _memory(inputs, everyone, "", whole, _again(paging, _read(disks, host)))

    def figures(self, resource: Resource) -> tuple[Figure, ...]:
        """Figures: reads of evicted data, available memory, and the time in which processes waited."""
        again = "mem.refaulted_bytes_per_s" if resource.instance else "mem.paged_in_bytes_per_s"
        waited = "processes waited for memory {} of the time"
        return (
            Figure(
                lambda found: found.witness,
                "{} of the reads were of data evicted from memory before",
                again,
                READ_AGAIN,
                "E1",
                required=True,
                instance=resource.instance,
            ),
            Figure(
                lambda found: None if found.used is None else 1 - found.used,
                "{} of memory was available",
                "mem.available_ratio",
                MEMORY_LOW,
                "E4",
                below=True,
                instance=resource.instance,
            ),
            Figure(lambda found: found.pressure, waited, "pressure.memory_ratio", MEMORY_WAIT, "E4"),
        )

    def felt(
        self,
        suspicion: Suspicion,
        measures: ShareMeasures,
        disks: Iterable[Resource],
        rows: Rows,
        flows: Flows,
    ) -> bool:
        """Whether processes wait for memory, or operations wait for a disk that reads evicted data again.

        If waits for memory are not measured, little available memory counts instead.
        """
        waits = (
            "E4" in suspicion.evidence
            if measures.pressure is None
            else at_least(measures.pressure, MEMORY_WAIT)
        )
        own = (disk for disk in disks if set(disk.hosts) & set(suspicion.resource.hosts))
        return waits or any(reads_are_waited_for(disk, measure_disk(disk, rows), flows) for disk in own)

    def advise(self, basis: AdviceInputs, measures: ShareMeasures) -> Iterator[Advice]:
        """Advice to add memory."""
        resource = basis.first.resource
        place = next(iter(resource.tiers), resource.hosts[0])
        again = units.percent(measures.witness)
        what = f"Give {place} more memory ({again} of its disk reads were of data evicted from memory before)"
        why = "only a run with more memory shows how much less is read"
        yield advise("memory", place, what, basis.unknown(why))

    def name(self, resource: Resource, measures: ShareMeasures) -> str:
        """Name of the memory of a tier or of a machine."""
        if resource.instance:
            return super().name(resource, measures)
        return f"the memory of {resource.hosts[0]}'s machine"


def _memory(inputs: Inputs, hosts: tuple[Host, ...], instance: str, left: Floats, again: Floats) -> Resource:
    names, tiers = placed(hosts)
    return Resource(
        key=f"memory:{names[0] if instance else hosts[0].machine}:{instance}",
        type="memory",
        machine=hosts[0].machine,
        hosts=names,
        tiers=tiers,
        instance=instance,
        columns={
            "used": 1.0 - left,
            "witness": again,
            "pressure": inputs.samples.first_of(names, "pressure.memory_ratio"),
        },
    )


def _read(disks: Resources, host: Host) -> Floats:
    """Bytes per second that the disks with a role read on the machine of this host."""
    read = [disk.columns["read_bytes"] for disk in disks if disk.machine == host.machine]
    return np.sum([np.nan_to_num(one) for one in read], axis=0) if read else np.zeros(0)


def _again(again: Floats, read: Floats) -> Floats:
    """The share of the read data that had been in memory before."""
    if len(read) != len(again):
        return np.full_like(again, np.nan)
    most = np.fmax(read, np.nan_to_num(again))
    share = np.divide(again, most, out=np.zeros_like(again), where=most > 0)
    return np.where(np.isfinite(again), share, np.nan)
