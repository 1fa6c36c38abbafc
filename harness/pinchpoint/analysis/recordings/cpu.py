"""Judges a host's CPU in a recording: all cores, the busiest core, waiting threads, virtual machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from pinchpoint.analysis.recordings.measures import (
    Measure,
    RecordedResource,
    Rows,
    What,
    contexts,
    figure,
    measure,
)
from pinchpoint.analysis.thresholds import PRESSURE, STOLEN, THREAD_BUSY, UTILISATION, Threshold
from pinchpoint.data.inputs import Host, Inputs
from pinchpoint.data.series import Key

_BUSY, STOLEN_CORES = "cpu.busy_ratio", "cpu.stolen_cores"
WAITING, RUNNING = "cpu.waiting_threads", "cpu.run_queue"
WAIT_FOR_CORE = Threshold(2.0, "PAL", "Processor Queue Length: more than 2 for each processor")
WAIT_FOR_CORES = Threshold(10.0, "PAL", "Processor Queue Length: more than 10, of a processor or several")
THROTTLED = Threshold(0.25, "kubernetes-mixin", "CPUThrottlingHigh: throttled in a quarter of its periods")
CONTEXT = (
    (WAITING, "threads that waited for a CPU"),
    (RUNNING, "threads that ran or waited for a CPU"),
    ("cpu.wait_ratio", "idle while I/O was outstanding"),
)
_PARTS = {"thread:": "thread", "vcpu:": "virtual processor"}
"""Prefix of an instance's name -> the type of part, other than a core, that can be busy."""
_PROCESS = "process:"
_OF_PARTS = ("tier:", _PROCESS, *_PARTS)
USED_CORES = "cpu.used_cores"
_ALL, _IDLE = f"{_PROCESS}_Total", f"{_PROCESS}Idle"
"""Windows' counters of processes that stand for all cores and for the idle cores."""
SPENT = Threshold(0.99, "AWS", "its CPU credits are spent: it gets its baseline, whatever is demanded")


def cpus(inputs: Inputs, host: Host) -> Iterator[RecordedResource]:
    """A host's CPU; also its busiest core, if that core was saturated and all cores together were not."""
    whole = _whole(inputs, host.name)
    pressure = figure(inputs, host.name, "pressure.cpu_ratio")
    cores = _number_of_cores(inputs, host)
    parts = _processes(inputs, host.name, cores) if whole is None else None
    is_share = parts is None or parts.metric == _BUSY
    what: tuple[What, str] = "utilisation", "busy"
    if not is_share:
        what = "saturation", "cores that its processes used:"
    busy = measure(inputs, whole or parts, UTILISATION, *what)
    # Short processes are not visible, so the CPU was at least as busy as the listed processes.
    is_least = parts is not None and not (busy and busy.at_limit)
    is_missing = busy is None or is_least
    waited = measure(inputs, pressure, PRESSURE, "saturation", "work waited for a CPU")
    stolen, queue = _stolen(inputs, host, cores), _queue(inputs, host, cores)
    periods = figure(inputs, host.name, "cpu.throttled_ratio")
    throttled = measure(inputs, periods, THROTTLED, "errors", "periods in which its quota was spent:")
    burst = figure(inputs, host.name, "cpu.used_burst_ratio")
    spent = measure(inputs, burst, SPENT, "saturation", "of its CPU credits were spent:")
    result = tuple(one for one in (busy, waited, stolen, throttled, spent, queue) if one)
    of_cores = stolen if stolen and stolen.metric == STOLEN_CORES else None
    by_cores = (queue, of_cores, None if is_share else busy)
    saturated = [one for one in result if one.at_limit]
    is_guess = bool(saturated) and not cores and all(one in by_cores for one in saturated)
    doubt = "how many cores it has was not recorded" if is_guess else ""
    if saturated == [spent]:
        doubt = "a machine with unlimited credits goes on without them"
    yield RecordedResource(
        kind="cpu",
        tier=host.tier,
        host=host.name,
        name=f"CPU of {host.name}",
        metric=_BUSY,
        measures=result,
        has_room=None
        if busy is None or is_least
        else busy.has_room and not any(one.at_limit for one in result),
        missing=f"the CPU of {host.name} was not measured" if is_missing else "",
        doubt=doubt,
        remedy=f"record the CPU of {host.name}" if is_missing or is_guess else "",
        context=contexts(inputs, host.name, CONTEXT),
    )
    if busy is None or not busy.at_limit:
        yield from _busiest(inputs, host)
    yield from _virtual_machines(inputs, host)


def _number_of_cores(inputs: Inputs, host: Host) -> int:
    """The number of cores of a host; 0 if not recorded."""
    logged = len(_cores(inputs, host.name))
    every = figure(inputs, host.name, USED_CORES, _ALL)
    if not host.usable and every is not None:
        return round(every.mean)
    # if a single core is logged, the log may lack others
    return len(host.usable) or (logged if logged > 1 else 0)


def _stolen(inputs: Inputs, host: Host, cores: int) -> Measure | None:
    """The share of CPU time that the hypervisor took; in cores if the number of cores is unknown."""
    rows, noun = figure(inputs, host.name, "cpu.steal_ratio"), "stolen by the hypervisor"
    taken = figure(inputs, host.name, STOLEN_CORES)
    if rows is None and taken is not None:
        rows = replace(taken, values=taken.values / cores, metric="cpu.steal_ratio") if cores else taken
        noun = noun if cores else "cores whose time the hypervisor took:"
    return measure(inputs, rows, STOLEN, "saturation", noun)


def _virtual_machines(inputs: Inputs, host: Host) -> Iterator[RecordedResource]:
    """Virtual machines of a host that waited for a CPU a fifth of the time or more."""
    for key in inputs.samples.keys(STOLEN_CORES):
        waited = figure(inputs, *key) if key.host == host.name and key.instance else None
        ran = figure(inputs, host.name, "cpu.used_cores", key.instance)
        often = None
        if waited is not None and ran is not None:
            often = waited.values >= STOLEN.value * (waited.values + np.nan_to_num(ran.values))
        noun = "cores that it waited for:"
        one = measure(inputs, waited, STOLEN, "saturation", noun, only=often)
        if one is not None and one.at_limit:
            yield RecordedResource(
                kind="cpu",
                tier=host.tier,
                host=host.name,
                instance=key.instance,
                name=f"CPU of the virtual machine {key.instance} on {host.name}",
                metric=key.metric,
                measures=(one,),
                has_room=False,
                doubt="whether its own limit, its shares or the host's cores held it back was not recorded",
                remedy=f"look at the CPU limit, the shares and the number of cores of {key.instance}",
            )


def _queue(inputs: Inputs, host: Host, cores: int) -> Measure | None:
    """Threads that waited for a core, per core if the number of cores is known."""
    rows = figure(inputs, host.name, WAITING)
    running = figure(inputs, host.name, RUNNING)
    if rows is None and running is not None and cores:
        rows = replace(running, values=np.maximum(running.values - cores, 0.0))
    if rows is None:
        return None
    each = replace(rows, values=rows.values / (cores or 1))
    noun = "threads that waited for a core, for each of them:" if cores else "threads that waited for a core:"
    return measure(inputs, each, WAIT_FOR_CORE if cores else WAIT_FOR_CORES, "saturation", noun, above=True)


def _whole(inputs: Inputs, host: str) -> Rows | None:
    """The utilisation of all cores together; the mean of the cores if only single cores were read."""
    rows = figure(inputs, host, _BUSY)
    if rows is not None:
        return rows
    every, idle = (figure(inputs, host, USED_CORES, name) for name in (_ALL, _IDLE))
    if every is not None and idle is not None:
        with np.errstate(invalid="ignore", divide="ignore"):
            return replace(every, values=1 - idle.values / every.values, metric=_BUSY)
    cores = _cores(inputs, host)
    together = inputs.samples.together([host], _BUSY, cores) if cores else None
    if together is None:
        return None
    return Rows.of(inputs.samples.series(host, _BUSY, cores[0]), Key(host, _BUSY, ",".join(cores)), together)


def _processes(inputs: Inputs, host: str, cores: int) -> Rows | None:
    """The recorded processes together: the share of the machine, or cores if their number is unknown."""
    metric = _BUSY if _parts(inputs, host, _PROCESS) else USED_CORES
    names = [name for name in _parts(inputs, host, _PROCESS, metric) if name not in (_ALL, _IDLE)]
    if not names:
        return None
    total = np.nansum([inputs.samples.steps(host, metric, name) for name in names], axis=0)
    series = inputs.samples.series(host, metric, names[0])
    if metric == USED_CORES and cores:
        metric, total = _BUSY, total / cores
    return Rows.of(series, Key(host, metric, "processes"), total)


def _parts(inputs: Inputs, host: str, kind: str, metric: str = _BUSY) -> list[str]:
    named = (key.instance for key in inputs.samples.keys(metric) if key.host == host)
    return [name for name in named if name.startswith(kind)]


def _cores(inputs: Inputs, host: str) -> list[str]:
    named = _parts(inputs, host, "")
    return [name for name in named if name and not name.startswith(_OF_PARTS)]


def _busiest(inputs: Inputs, host: Host) -> Iterator[RecordedResource]:
    """The thread, virtual processor or core that was at its limit for longest; no other can do its work."""
    parts = [name for kind in _PARTS for name in _parts(inputs, host.name, kind)]
    cores = _cores(inputs, host.name)
    busiest = _longest(inputs, host, parts) or (_longest(inputs, host, cores) if len(cores) > 1 else None)
    if busiest is None:
        return
    noun, name = _part(busiest.instance)
    is_core = noun == "core"
    unknown = (
        "which thread filled it, and whether work waited for that thread,"
        if is_core
        else f"whether work waited for that {noun}"
    )
    yield RecordedResource(
        kind="cpu_thread",
        tier=host.tier,
        host=host.name,
        instance=name,
        name=f"{noun} {name} of {host.name}",
        metric=_BUSY,
        measures=(busiest,),
        has_room=False,
        doubt=f"{unknown} is not known",
        remedy=f"record the threads of {host.name} (pidstat -t, or `% Processor Time` of Thread)"
        if is_core
        else f"record finished work, or latency, beside the {noun}s of {host.name}",
    )


def _part(instance: str) -> tuple[str, str]:
    """(type, name) of a part that can be busy: a thread, a virtual processor, or a core."""
    kind = next((kind for kind in _PARTS if instance.startswith(kind)), "")
    return _PARTS.get(kind, "core"), instance.removeprefix(kind)


def _longest(inputs: Inputs, host: Host, instances: Sequence[str]) -> Measure | None:
    """The instance that was at its limit for the longest time; None if none was at its limit."""
    result = []
    for instance in instances:
        rows = figure(inputs, host.name, _BUSY, instance)
        noun, name = _part(instance)
        busy = measure(inputs, rows, THREAD_BUSY, "utilisation", f"{noun} {name} was busy")
        if busy and busy.at_limit:
            result.append(busy)
    return max(result, key=lambda one: one.over_s, default=None)
