"""Judges a host's memory in a recording: available memory, paging, and work that waits for memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from pinchpoint.analysis.recordings.measures import (
    Measure,
    RecordedResource,
    Rows,
    Steps,
    common,
    contexts,
    database,
    figure,
    inside,
    measure,
    named,
    servers,
)
from pinchpoint.analysis.thresholds import (
    MEMORY_LOW,
    MEMORY_WAIT,
    PAGING,
    READ_AGAIN,
    Threshold,
)
from pinchpoint.base import units
from pinchpoint.data.inputs import Host, Inputs

LEFT, LEFT_BYTES = "mem.available_ratio", "mem.available_bytes"
PAGED, BOTH_WAYS = "mem.paged_in_bytes_per_s", "mem.paged_bytes_per_s"
PAGED_WAYS = (PAGED, "mem.paged_out_bytes_per_s")
MOVED = ("disk.read_bytes_per_s", "disk.write_bytes_per_s")
GRANTS = "db.memory_grants_pending"
CONTEXT = (
    ("mem.paged_out_bytes_per_s", "paged out"),
    ("db.buffer_hit_ratio", "pages that were in the database server's buffer"),
    ("db.lazy_writes_per_s", "pages the database server wrote for want of room"),
)

PAGE_LIFE, COMMITTED = "db.page_life_s", "mem.committed_ratio"
SHORT_LIFE = Threshold(300.0, "PAL", "Page life expectancy: pages stay for less than 300 seconds")
COMMITTED_LIMIT = Threshold(0.95, "design", "95 % of what can be committed is in use: allocations fail soon")
_PAGE_BYTES = 4096.0
FEW = Threshold(100.0 * 1024**2, "MS", "Available Mbytes: less than 100 MB, whatever the memory's size")
SMALL = Threshold(2.0 * 1024**3, "design", "less than 2 GiB: below a tenth of what most servers have")
_LACKING = (
    (
        "mem.demand_ratio",
        Threshold(1.0, "MS", "Hyper-V memory pressure: above 100 the machine demands more than it has"),
        "memory that was demanded, of the memory assigned:",
        "virtual machine",
    ),
    (
        "mem.ballooned_bytes",
        Threshold(1e8, "design", "the hypervisor took 100 MB or more of the machines' memory back"),
        "memory that the hypervisor took back:",
        "virtual machine",
    ),
    (
        "mem.collecting_ratio",
        Threshold(0.5, "MS", "% Time in GC: with more than half, look at what is allocated"),
        "of the time between collections of garbage was spent in them:",
        "process",
    ),
    (
        "db.evicted_keys_per_s",
        Threshold(10.0, "design", "keys are evicted for want of room all the time: ten a second, or more"),
        "keys that were evicted for want of room:",
        "database server",
    ),
    (
        "db.buffer_waits_per_s",
        Threshold(1.0, "design", "work waits for a free page of the buffer: once a second, or more"),
        "waits for a free page of the buffer:",
        "database server",
    ),
)
GRANTS_PENDING = Threshold(1.0, "MS", "Memory Grants Pending: 0 is healthy; queries wait from 1 on")


def memories(inputs: Inputs, host: Host) -> Iterator[RecordedResource]:
    """The memory of a host, and of its database servers: memory grants that queries wait for, and buffers."""
    yield _of_host(inputs, host)
    yield from _of_parts(inputs, host)
    for server in servers(inputs, host.name, GRANTS):
        grants = figure(inputs, host.name, GRANTS, server)
        noun = "queries that waited for a memory grant:"
        waiting = measure(inputs, grants, GRANTS_PENDING, "saturation", noun)
        if waiting is not None:
            yield RecordedResource(
                kind="memory",
                tier=host.tier,
                host=host.name,
                instance=f"{server}memory grants",
                name=f"query memory of the database server{named(server)} on {host.name}",
                metric=GRANTS,
                measures=(waiting,),
                has_room=not waiting.at_limit,
            )
    for server in servers(inputs, host.name, PAGE_LIFE):
        yield from _buffer(inputs, host, server)


def _of_parts(inputs: Inputs, host: Host) -> Iterator[RecordedResource]:
    """Virtual machines, processes and database servers that lack memory, by signs such as ballooning."""
    for metric, limit, noun, kind in _LACKING:
        for key in inputs.samples.keys(metric):
            rows = figure(inputs, *key) if key.host == host.name else None
            one = measure(inputs, rows, limit, "saturation", noun, above=True)
            if one is not None and one.at_limit:
                of = f"the {kind} {key.instance}" if key.instance else f"{kind}s"
                yield RecordedResource(
                    kind="memory",
                    tier=host.tier,
                    host=host.name,
                    instance=key.instance,
                    name=f"memory of {of} on {host.name}",
                    metric=metric,
                    measures=(one,),
                    has_room=False,
                    doubt="whether work inside waited for memory was not recorded",
                    remedy=f"record available memory and paging inside {of}",
                )


def _buffer(inputs: Inputs, host: Host, server: str) -> Iterator[RecordedResource]:
    """The buffer of a database server, judged by the time that a page stays in the buffer."""
    life = figure(inputs, host.name, PAGE_LIFE, server)
    if life is None:
        return
    turned = replace(life, values=SHORT_LIFE.value / np.maximum(life.values, 1.0))
    one = measure(inputs, turned, Threshold(1.0, SHORT_LIFE.source, SHORT_LIFE.says), "saturation", "")
    assert one is not None  # noqa: S101 -- it was measured
    least = units.seconds(float(np.nanmin(life.values)))
    words = f"a page stayed in the buffer for {units.seconds(life.mean)} on average, {least} at least"
    yield RecordedResource(
        kind="memory",
        tier=host.tier,
        host=host.name,
        instance=f"{server}buffer",
        name=f"buffer of the database server{named(server)} on {host.name}",
        metric=PAGE_LIFE,
        measures=(replace(one, value=life.mean, limit=SHORT_LIFE, words=words),),
        has_room=not one.at_limit,
        doubt="whether work waited for pages to be read was not recorded",
        remedy=f"record how long {database(server, host.name)} waits for reads (PAGEIOLATCH)",
    )


def _of_host(inputs: Inputs, host: Host) -> RecordedResource:
    """The memory of a host; at its limit if little is available while the host pages.

    Without paging little available memory is no limit (docs/other-rules.md).
    """
    left = figure(inputs, host.name, LEFT)
    paged = figure(inputs, host.name, PAGED) or figure(inputs, host.name, BOTH_WAYS)
    paged = paged or _faults(inputs, host.name)
    waits = figure(inputs, host.name, "pressure.memory_ratio")
    paging = measure(inputs, paged, PAGING, "saturation", "paged")
    noun = "work waited for memory"
    waited = measure(inputs, waits, MEMORY_WAIT, "saturation", noun, above=True)
    doubt = remedy = ""
    room: bool | None = None
    measures: list[Measure] = []
    if left is not None:
        free = measure(inputs, _used(left), _USED_LIMIT, "utilisation", "")
        assert free is not None  # noqa: S101 -- it was measured
        reported = paging is not None or waited is not None
        low = _available(free, left, paging if reported else None)
        measures = [low, *([paging] if paging and low.at_limit else [])]
        room = not low.at_limit
        if low.at_limit and not reported:
            doubt, remedy = (
                "whether the host was paging was not recorded",
                f"record the paging of {host.name}",
            )
    else:
        measures, room, doubt, remedy = _without_size(inputs, host.name, paging)
    if waited is not None:
        measures.append(waited)
        room = False if waited.at_limit else room
    noun = "of the memory that can be committed was in use:"
    committed = measure(inputs, figure(inputs, host.name, COMMITTED), COMMITTED_LIMIT, "errors", noun)
    if committed is not None and committed.at_limit:
        if not any(one.at_limit for one in measures):
            doubt = "whether allocations failed, or work waited, was not recorded"
        measures.append(committed)
        room = False
    missing = "" if measures or room is not None else f"the memory of {host.name} was not measured"
    return RecordedResource(
        kind="memory",
        tier=host.tier,
        host=host.name,
        name=f"memory of {host.name}",
        metric=LEFT,
        measures=tuple(measures),
        has_room=room,
        missing=missing,
        doubt=doubt,
        remedy=remedy or (f"record available memory and paging of {host.name}" if missing else ""),
        context=contexts(inputs, host.name, CONTEXT),
    )


def _without_size(
    inputs: Inputs, host: str, paging: Measure | None
) -> tuple[list[Measure], bool | None, str, str]:
    """(measures, has room, doubt, remedy) of memory without a recorded share of available memory."""
    size = f"say how much memory {host} has (--memory {host}=SIZE), and import again"
    if paging is not None and paging.at_limit and (small := _least(inputs, host)):
        doubt = f"{small} was available at least; the size of its memory was not recorded"
        return [paging], None, doubt, size
    if paging is not None and paging.at_limit and figure(inputs, host, LEFT_BYTES) is None:
        doubt = "pages are read in for files as well, and the available memory was not recorded"
        return [paging], None, doubt, f"record the available memory of {host}"
    if few := _few(inputs, host):
        return [few], None, "the size of its memory was not recorded", size
    return [], None if paging is None else True, "", ""


_USED_LIMIT = Threshold(1 - MEMORY_LOW.value, MEMORY_LOW.source, MEMORY_LOW.says)


def _used(rows: Rows) -> Rows:
    """Used memory in place of available memory, so that higher is worse."""
    return replace(rows, values=1 - rows.values)


def _available(free: Measure, left: Rows, paging: Measure | None) -> Measure:
    """The measure of available memory; at its limit only while the host paged, if paging was recorded."""
    low = tuple(each for each in free.stretches if each.seconds >= free.least_s)
    both = low if paging is None else common(low, paging.stretches)
    lowest = float(np.nanmin(left.values))
    words = f"{units.percent(left.mean)} of memory was available on average, {units.percent(lowest)} at least"
    return replace(
        free,
        value=left.mean,
        limit=MEMORY_LOW,
        words=f"{words}, while paging" if both and paging else words,
        stretches=both,
        over_s=sum(each.seconds for each in both),
    )


def pages_to(inputs: Inputs, memory: RecordedResource, disk: RecordedResource) -> bool:
    """Whether half or more of a disk's I/O, while disk and memory were saturated, was paging."""
    if disk.resource != "disk" or disk.host != memory.host:
        return False
    during = inside(inputs.window, common(memory.stretches, disk.stretches))
    moved = _bytes(inputs, disk.host, MOVED, disk.instance, during)
    paged = _bytes(inputs, disk.host, PAGED_WAYS, "", during) or _bytes(
        inputs, disk.host, (BOTH_WAYS,), "", during
    )
    return moved > 0 and paged >= READ_AGAIN.value * moved


def _bytes(inputs: Inputs, host: str, metrics: Sequence[str], instance: str, during: Steps) -> float:
    rows = [figure(inputs, host, metric, instance) for metric in metrics]
    return sum(float(np.nansum((one.values * one.covered_s)[during])) for one in rows if one)


def _faults(inputs: Inputs, host: str) -> Rows | None:
    """The least number of bytes paged in per second: a page of 4 KiB for each major fault."""
    faults = figure(inputs, host, "mem.major_faults_per_s")
    return faults and replace(faults, values=_PAGE_BYTES * faults.values, metric=PAGED)


def _few(inputs: Inputs, host: str) -> Measure | None:
    """Available memory in bytes, if it is too little for a memory of any size; else None."""
    left = figure(inputs, host, LEFT_BYTES)
    if left is None:
        return None
    turned = replace(left, values=FEW.value / np.maximum(left.values, 1.0))
    one = measure(inputs, turned, Threshold(1.0, FEW.source, FEW.says), "saturation", "", above=True)
    words = f"{units.bytes_(left.mean)} was available on average"
    return replace(one, value=left.mean, limit=FEW, words=words) if one and one.at_limit else None


def _least(inputs: Inputs, host: str) -> str:
    """The least available memory in words, if it was little; "" otherwise, or if not measured."""
    left = figure(inputs, host, LEFT_BYTES)
    lowest = float(np.nanmin(left.values)) if left is not None else SMALL.value
    return units.bytes_(lowest) if lowest < SMALL.value else ""
