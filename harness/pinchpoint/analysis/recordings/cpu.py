"""CPU of a host in a recording: its cores together, its busiest core, and work that waits for a core."""

from __future__ import annotations

from collections.abc import Iterator

from pinchpoint.analysis.recordings.measures import (
    ROOM,
    Resource,
    Rows,
    contexts,
    figure,
    measure,
)
from pinchpoint.analysis.thresholds import PRESSURE, THREAD_BUSY, UTILISATION
from pinchpoint.data.inputs import Host, Inputs
from pinchpoint.data.series import Key

_BUSY = "cpu.busy_ratio"
CONTEXT = (
    ("cpu.waiting_threads", "threads that waited for a CPU"),
    ("cpu.run_queue", "threads that ran or waited for a CPU"),
    ("cpu.steal_ratio", "stolen by the hypervisor"),
    ("cpu.wait_ratio", "idle while I/O was outstanding"),
)
_OF_PARTS = ("tier:", "thread:", "process:")


def cpus(inputs: Inputs, host: Host) -> Iterator[Resource]:
    """The host's CPU; its busiest core where that was saturated and the cores together were not."""
    whole = _whole(inputs, host.name)
    pressure = figure(inputs, host.name, "pressure.cpu_ratio")
    busy = measure(inputs, whole, UTILISATION, "utilisation", "busy")
    waited = measure(inputs, pressure, PRESSURE, "saturation", "work waited for a CPU")
    yield Resource(
        kind="cpu",
        resource="cpu",
        tier=host.tier,
        host=host.name,
        instance="",
        role=None,
        name=f"CPU of {host.name}",
        metric=_BUSY,
        measures=tuple(one for one in (busy, waited) if one),
        has_room=None if busy is None else busy.highest < ROOM.value and not (waited and waited.at_limit),
        missing="" if busy else f"the CPU of {host.name} was not measured",
        remedy="" if busy else f"record the CPU of {host.name}",
        context=contexts(inputs, host.name, CONTEXT),
    )
    if busy is None or not busy.at_limit:
        yield from _busiest_core(inputs, host)


def _whole(inputs: Inputs, host: str) -> Rows | None:
    """All cores together; where only single cores were read, their mean."""
    found = figure(inputs, host, _BUSY)
    if found is not None:
        return found
    cores = _cores(inputs, host)
    together = inputs.samples.together([host], _BUSY, cores) if cores else None
    if together is None:
        return None
    return Rows.of(inputs.samples.series(host, _BUSY, cores[0]), Key(host, _BUSY, ",".join(cores)), together)


def _cores(inputs: Inputs, host: str) -> list[str]:
    named = (key.instance for key in inputs.samples.keys(_BUSY) if key.host == host)
    return [name for name in named if name and not name.startswith(_OF_PARTS)]


def _busiest_core(inputs: Inputs, host: Host) -> Iterator[Resource]:
    """The core that was at its limit for longest; other cores cannot help a single thread."""
    found, cores = [], _cores(inputs, host.name)
    for core in cores:
        rows = figure(inputs, host.name, _BUSY, core)
        busy = measure(inputs, rows, THREAD_BUSY, "utilisation", f"core {core} was busy")
        if busy and busy.at_limit:
            found.append(busy)
    if not found or len(cores) < 2:
        return
    busiest = max(found, key=lambda one: one.over_s)
    yield Resource(
        kind="cpu_thread",
        resource="thread",
        tier=host.tier,
        host=host.name,
        instance=busiest.instance,
        role=None,
        name=f"core {busiest.instance} of {host.name}",
        metric=_BUSY,
        measures=(busiest,),
        has_room=False,
        doubt="which thread filled it, and whether work waited for that thread, is not known",
        remedy=f"record the threads of {host.name} (pidstat -t, or `% Processor Time` of Thread)",
    )
