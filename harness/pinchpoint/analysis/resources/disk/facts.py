"""Facts about a suspected disk, as sentences with their number, metric and threshold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pinchpoint.analysis.resources.base import (
    DiskMeasures,
    DiskState,
    Resource,
    Suspicion,
)
from pinchpoint.analysis.resources.disk.measures import slow_way, slowness, too_long, write_and_flush_s
from pinchpoint.analysis.thresholds import (
    BY_SIZE,
    DISK_SHIFT,
    FLAT,
    MOSTLY_READS,
    NO_LATENCY_S,
    PRESSURE,
    REGULATOR_FLAT,
    UTILISATION,
    WAIT_SHARE,
    WAITING_IO,
    Threshold,
    at_least,
    at_most,
)
from pinchpoint.analysis.verdict import Fact
from pinchpoint.base import units

SHARE_WORDS = {
    "db.aof.wait_ratio": "the working time of its only thread was spent writing and flushing its log",
    "db.journal.sync_s_per_s": "the time of a write was spent waiting for the journal",
}
"""Metric of a store -> words for its share."""
AS_COUNTED = ", as counted by the database: the disk itself was not measured"
OF_DATA = ("disk.writes_per_s", "disk.write_latency_s")
"""Metrics that count data I/O alone, if it can be separated from flushes (docs/metrics.md)."""
SPREADS = (REGULATOR_FLAT, BY_SIZE, DISK_SHIFT)
"""Rules about how a rate varies; their thresholds do not apply to the rate itself."""


def standing_fact(resource: Resource, measures: DiskMeasures) -> Fact:
    """The rate and latency of a disk that is not suspected."""
    way = "read" if at_least(measures.reads_ratio, MOSTLY_READS) else "write"
    each_s = measures.read_s if way == "read" else write_and_flush_s(resource, measures)
    took = f"how long a {way} took was {units.NOT_MEASURED}"
    if each_s is not None:
        took = f"a {way} took {units.seconds(each_s)}"
    did = f"did {units.per_second(measures.io)}" if measures.io is not None else "(I/O rate not measured)"
    text = f"{_name(resource)} {did}, {took}"
    return _fact(resource, text, f"disk.{way}_latency_s", each_s, "context", slowness(resource))


def room_fact(resource: Resource, measures: DiskMeasures) -> Fact:
    """How near an unsaturated disk is to its limit, if a limit is known."""
    if measures.io is None:
        return Fact("its I/O was not measured", "", None, resource.hosts[0], resource.instance)
    if measures.utilisation is not None:
        text = share_words(measures, "its declared limit")
        fact = _fact(resource, text, rate_metric(measures), measures.mean, "context", UTILISATION)
        return replace(fact, threshold=declared(resource, measures), source="declared")
    flat = "" if measures.spread is None else f", spread {units.percent(measures.spread)}"
    text = f"{units.per_second(measures.io)} I/Os{flat}: not constant, so no cap shows; no limit is declared"
    return _fact(resource, text, rate_metric(measures), measures.level, "context", REGULATOR_FLAT)


def _fact(
    resource: Resource,
    text: str,
    metric: str,
    value: float | None,
    evidence: str,
    limit: Threshold | None = None,
    instance: str | None = None,
) -> Fact:
    of_limit = limit.value if limit and limit not in SPREADS else None
    series = None if resource.whole is not None else resource.instance
    key, metric = resource.reported_by.get(metric), as_recorded(resource, metric)
    return Fact(
        fact=f"{text}{AS_COUNTED}" if resource.by_database and metric.startswith("disk.") else text,
        metric=key.metric if key else metric,
        value=value,
        host=key.host if key else resource.hosts[0],
        instance=key.instance if key else series if instance is None else instance,
        evidence=evidence,
        threshold=of_limit,
        source=limit.source if limit else None,
        rule=limit.says if limit else None,
    )


def disk_facts(suspicion: Suspicion, measures: DiskMeasures) -> Iterator[Fact]:
    """Facts that show how a disk limits, the strongest first."""
    resource, state = suspicion.resource, suspicion.disk
    assert state is not None  # noqa: S101 -- a disk's suspicion always carries its answers
    rate = rate_metric(measures)
    shifted = state.fell or state.rose
    if suspicion.kind == "disk_cap" or (
        suspicion.kind in {"disk", "disk_burst_exhausted"} and not shifted and state.near_cap
    ):
        yield _at_cap(resource, measures, state)
    if suspicion.kind in {"disk_burst_exhausted", "disk_warm_up"} and shifted:
        yield _shifted(resource, measures)
    if state.spent:
        text = f"the platform reports {units.percent(measures.credits_used)} of its burst credits used"
        yield _fact(resource, text, "", measures.credits_used, "context")
    if suspicion.contradicted:
        text = f"{share_words(measures, 'the declared limit')}, so that declaration is wrong"
        fact = _fact(resource, text, rate, measures.mean, "context")
        yield replace(fact, threshold=declared(resource, measures), source="declared")
    if suspicion.kind in {"disk", "disk_device", "disk_latency"}:
        yield from sorted(_slow_facts(suspicion, measures), key=lambda fact: fact.evidence)  # ``E1`` first
    if suspicion.kind == "disk_concurrency":
        text = f"reads took no more than their limit ({units.seconds(measures.read_s)}), "
        text += "and the disk is below its limits: more I/Os at the same time would raise the rate"
        yield _fact(resource, text, "disk.read_latency_s", measures.read_s, "E1", slowness(resource))
    yield from disk_witnesses(suspicion, measures)


def _shifted(resource: Resource, measures: DiskMeasures) -> Fact:
    """The change of the disk's level; the figure is the later level."""
    shift = resource.shift
    rate = way_metric(measures, shift.of if shift else "io")
    return _fact(resource, shift_words(resource), rate, shift.after if shift else None, "E1", DISK_SHIFT)


def _slow_facts(suspicion: Suspicion, measures: DiskMeasures) -> Iterator[Fact]:
    device = suspicion.kind == "disk_device"
    yield _latency(suspicion.resource, measures, device=device)
    if device and measures.outstanding is not None:
        text, count = _queue_words(measures), measures.outstanding
        yield _fact(suspicion.resource, text, "disk.outstanding", count, "E1", WAITING_IO)


def _latency(resource: Resource, measures: DiskMeasures, *, device: bool) -> Fact:
    """The time of the disk's I/Os, compared with the limit by which the disk was found slow.

    Operations may wait for a disk that is within the latency limit of its role. PAL's rule applies to a
    device whose rate response is unknown. A disk with a constant rate need not be slow.
    """
    times = {"write": write_and_flush_s(resource, measures), "read": measures.read_s}
    slow, limit = slow_way(resource, measures), slowness(resource)
    way: str = slow or "write"
    if slow is None and device:
        way, limit = max(times, key=lambda name: times[name] or 0.0), too_long(measures)
    elif slow is None:
        limit = NO_LATENCY_S
    holds = at_least(times[way], limit)
    own = " with its flush" if times["write"] != measures.write_s else ""
    texts = {"write": f"a write{own} took {units.seconds(times['write'])}"}
    texts["read"] = f"a read took {units.seconds(measures.read_s)}"
    text = ", ".join(texts[name] for name in dict.fromkeys([way, *texts]) if times[name] is not None)
    kind = "E1" if holds else "context"
    return _fact(resource, text, f"disk.{way}_latency_s", times[way], kind, limit if holds else None)


def _queue_words(measures: DiskMeasures) -> str:
    count = units.count(measures.outstanding or 0.0)
    if measures.responses["io"].stays:
        return f"{count} I/Os were outstanding; more did not raise the rate"
    return f"{count} I/Os were outstanding all the time; the effect of more was not measured"


def _at_cap(resource: Resource, measures: DiskMeasures, state: DiskState) -> Fact:
    """The evidence that a disk is limited: a declared limit, constant bytes or I/Os per second."""
    rate = rate_metric(measures)
    if state.near_cap:
        text = share_words(measures, _limit_words(resource))
        used = units.percent(state.used)
        if used != units.percent(measures.utilisation):
            text += f", {used} while it had I/O to do"
        if measures.spread is not None:
            text += f"; spread {units.percent(measures.spread)}"
        fact = _fact(resource, text, rate, measures.mean, "E1", UTILISATION)
        return replace(fact, threshold=declared(resource, measures), source="declared")
    if not measures.responses[measures.binding].flat and resource.service_time is not None:
        most = units.percent(resource.service_time.follows_at_most)
        text = f"{held_words(resource, measures)}: bytes change by at most {most} of a change in I/O size"
        return _fact(resource, text, rate, measures.level, "E1", BY_SIZE)
    spread = units.percent(measures.spread)
    text = f"{level_words(measures)}, {spread} spread: a rate this constant indicates a cap"
    return _fact(resource, text, rate, measures.level, "E1", REGULATOR_FLAT)


def as_recorded(resource: Resource, metric: str) -> str:
    """The recorded metric of a disk; for writes, the metric of data I/O if that was analysed."""
    of_data = any(role.data_io == "writes-flushes" for role in resource.roles)
    return metric.replace("disk.write", "disk.data_write") if of_data and metric in OF_DATA else metric


def rate_metric(measures: DiskMeasures) -> str:
    """The metric of the binding rate, for reads or for writes, whichever are more frequent."""
    return way_metric(measures, measures.binding)


def way_metric(measures: DiskMeasures, of: str) -> str:
    """The metric of ``io`` or ``bytes``, for reads or for writes, whichever are more frequent."""
    way = "read" if (measures.reads_ratio or 0.0) > 1 / 2 else "write"
    return f"disk.{way}s_per_s" if of == "io" else f"disk.{way}_bytes_per_s"


def shift_words(resource: Resource) -> str:
    """The change of a disk's level in words: ``I/O fell from 3,500/s to 500/s at the same queue depth``."""
    shift = resource.shift
    if shift is None:
        return ""
    way = "fell" if shift.after < shift.before else "rose"
    of_bytes = shift.of == "bytes"
    levels = [
        f"{units.bytes_(level)} per second" if of_bytes else units.per_second(level)
        for level in (shift.before, shift.after)
    ]
    of = "data" if of_bytes else "I/O"
    return f"{of} {way} from {levels[0]} to {levels[1]} at the same queue depth"


def _limit_words(resource: Resource) -> str:
    if resource.whole is None:
        return "the declared limit" if resource.baseline is None else "the limit of its burst"
    return f"what the machine ({resource.instance}) can do for all its disks together"


def declared(resource: Resource, measures: DiskMeasures) -> float | None:
    """The declared limit of the binding rate, in I/Os or bytes per second; None if none is declared."""
    if resource.limits is None:
        return None
    return resource.limits.iops if measures.binding == "io" else resource.limits.bytes_per_s


def disk_witnesses(suspicion: Suspicion, measures: DiskMeasures) -> Iterator[Fact]:
    """Facts on the operations that wait for a disk, and on how often it was busy."""
    resource, state = suspicion.resource, suspicion.disk
    if state is not None and state.waited_for:
        text = f"{units.percent(state.wait_ratio)} of the time of {state.waiting} is spent waiting for it"
        fact = _fact(resource, text, "operations.service", state.wait_ratio, "E4", WAIT_SHARE)
        yield replace(fact, host="", instance=state.waiting)
    yield from _reported(suspicion, measures)
    if measures.pressure is not None:
        text = f"processes waited for I/O, of any disk, {units.percent(measures.pressure)} of the time"
        kind = "E4" if measures.pressure >= PRESSURE.value else "context"
        yield _fact(resource, text, "pressure.io_ratio", measures.pressure, kind, PRESSURE, "")
    if measures.busy is not None:
        text = f"it was busy {units.percent(measures.busy)} of the time"
        yield _fact(resource, text, "disk.busy_ratio", measures.busy, "context")


def _reported(suspicion: Suspicion, measures: DiskMeasures) -> Iterator[Fact]:
    """Facts that a NoSQL store reports: for each figure, the first of its series."""
    kind = "E4" if suspicion.disk is not None and suspicion.disk.waited_for else "context"
    left = {True: measures.log_waits, False: measures.sessions}
    for view in suspicion.resource.views:
        value = left.pop(view.metric in SHARE_WORDS, None)
        if value is None:
            continue
        text, limit = f"{units.count(value)} operations waited for it at any time", None
        if view.metric in SHARE_WORDS:
            text, limit = f"{units.percent(value)} of {SHARE_WORDS[view.metric]}", WAIT_SHARE
        text = f"{text}, as reported by the store"
        fact = _fact(suspicion.resource, text, view.metric, value, kind, limit, view.instance)
        yield replace(fact, host=view.host)


def level_words(measures: DiskMeasures) -> str:
    """The limited rate: ``I/O limited to 500/s`` or ``data limited to 100 MB per second``."""
    return _held_at(measures, measures.level)


def held_words(resource: Resource, measures: DiskMeasures) -> str:
    """The limited rate in words, with the evidence that it is limited."""
    if measures.responses[measures.binding].flat or resource.service_time is None:
        return f"{level_words(measures)}; a rate this constant indicates a cap"
    small, large = (
        units.bytes_(resource.service_time.small_bytes),
        units.bytes_(resource.service_time.large_bytes),
    )
    return f"{level_words(measures)}, whether an I/O was of {small} or of {large}"


def share_words(measures: DiskMeasures, limit: str) -> str:
    """The share of a declared limit in words: ``I/O limited to 499/s, 99.8 % of the declared limit``."""
    held = at_most(measures.spread, FLAT) or measures.responses[measures.binding].any_size
    return f"{_held_at(measures, measures.mean, held=held)}, {units.percent(measures.utilisation)} of {limit}"


def _held_at(measures: DiskMeasures, rate: float | None, *, held: bool = True) -> str:
    """The binding rate in words. ``held``: whether the rate was constant, rather than a mean."""
    at = "limited to" if held else "at"
    if measures.binding == "bytes":
        return f"data {at} {units.bytes_(rate)} per second"
    return f"I/O {at} {units.per_second(rate)}"


def _name(resource: Resource) -> str:
    if resource.whole is not None:
        return f"all disks of {resource.hosts[0]} ({resource.instance})"
    first = resource.roles[0]
    return f"the {first.role} disk of {first.tier} ({first.host}, {resource.instance})"
