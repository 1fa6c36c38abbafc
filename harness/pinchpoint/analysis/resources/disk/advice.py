"""Advice about a disk, by the kind of its limit (docs/rules.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pinchpoint.analysis.resources.base import DiskMeasures, Resource
from pinchpoint.analysis.resources.disk.classify import fell
from pinchpoint.analysis.resources.disk.facts import level_words
from pinchpoint.analysis.resources.disk.measures import (
    kind_unknown,
    measure_disk,
    slowness,
    write_and_flush_s,
)
from pinchpoint.analysis.resources.disk.types import (
    AT_LEAST,
    Profile,
    Rates,
    caps_words,
    cited,
    known,
    larger,
    limits_words,
    stripes_for,
)
from pinchpoint.analysis.resources.gain import SAME, Gain, advise
from pinchpoint.analysis.thresholds import HARDLY_WAITED_FOR, MOSTLY_READS, STARTED, at_least
from pinchpoint.analysis.verdict import Advice, Kind
from pinchpoint.base import units
from pinchpoint.base.wording import SOURCES, capitalised, listed
from pinchpoint.data.curve import most_per_s
from pinchpoint.data.inputs import COMMIT_ROLES

if TYPE_CHECKING:
    from pinchpoint.analysis.advice_inputs import AdviceInputs

FARM = "farm.yaml"


@dataclass(frozen=True, slots=True)
class LimitedDisk:
    """A limiting disk: its declared type and its measured rates.

    Attributes:
        target: name of the disk, such as ``sql.log``, with all roles of a device; for all disks of a machine,
            the host.
        profile: declared catalogue type; None without one. ``stripes`` is the number of striped disks of that
            type.
        rates: present rates of the disk.
    """

    target: str
    profile: Profile | None
    stripes: int
    rates: Rates


def about_disk(basis: AdviceInputs, measures: DiskMeasures) -> Iterator[Advice]:
    """Advice about the disk that is the bottleneck."""
    first = basis.first
    held = _held(first.resource, measures)
    if first.resource.whole is not None:
        yield from _machine(basis, held)
        return
    yield from BY_KIND[first.kind](basis, measures, held)
    if first.contradicted:
        yield _wrong(first.kind, measures, held)
    elif first.resource.limits is None and first.kind in NEEDS_A_CAP:
        yield measure_it(first.kind, held.target, first.resource.role or "")


def measure_it(kind: Kind, target: str, role: str) -> Advice:
    """Advice to declare or to probe the limits of a disk whose limits are not known."""
    suite = "database" if role in (*COMMIT_ROLES, "data", "tempdb") else "iometer"
    what = (
        f"Declare the limits of {target} in {FARM} (profile or limits), or measure them: "
        f"`pinchpoint probe --farm {FARM} --suite {suite}` shows its rate and latency over outstanding I/Os"
    )
    why = f"the limits of {target} are not known"
    return advise(kind, target, what, Gain(None, None, why), text=f"{capitalised(why)}. {what}.")


def _held(resource: Resource, measures: DiskMeasures) -> LimitedDisk:
    role = resource.roles[0] if resource.roles else None
    name = resource.whole or (role.profile if role else None)
    names = [f"{one.tier}.{one.role}" for one in resource.roles if resource.whole is None]
    target = listed(list(dict.fromkeys(names))) or resource.hosts[0]
    return LimitedDisk(
        target=target,
        profile=known(name),
        stripes=role.stripes if role and resource.whole is None else 1,
        rates=Rates(measures.io or 0.0, measures.bytes or 0.0),
    )


def _wrong(kind: Kind, measures: DiskMeasures, held: LimitedDisk) -> Advice:
    what = f"Correct the limit of {held.target} in {FARM} (measured: {level_words(measures)})"
    gain = Gain(None, None, "a correction changes no throughput")
    return advise(kind, held.target, what, gain, text=f"{what}.")


# ---- advice for a disk at a cap ------------------------------------------------------------------


def _cap(basis: AdviceInputs, measures: DiskMeasures, held: LimitedDisk) -> Iterator[Advice]:
    """Advice for a disk at its cap: a larger type, or the same type striped; else figures without a type."""
    if held.profile is None or basis.first.contradicted:
        yield _faster(basis, measures, held)
        return
    need = basis.need or AT_LEAST * basis.now
    better = larger(held.profile, held.rates, need, held.stripes)
    if better is not None:
        yield _put_on(basis, held, better, 1)
    count = stripes_for(held.profile, held.rates, need, held.stripes)
    if count is not None:
        yield _put_on(basis, held, held.profile, count)
    if better is None and count is None:
        yield _faster(basis, measures, held)


def _put_on(basis: AdviceInputs, held: LimitedDisk, entry: Profile, count: int) -> Advice:
    assert held.profile is not None  # noqa: S101 -- only a declared disk has another type
    room = held.rates.room(entry, count)
    now = _named(held.profile, held.stripes)
    how = f"Stripe {held.target} over" if count > 1 else f"Put {held.target} on"
    what = f"{how} {_named(entry, count)} instead of {now}{_beyond(basis)}"
    assumes = (
        f"{SAME}; a stripe spreads I/O evenly; striping lifts no cap of the machine" if count > 1 else ""
    )
    gain = _as_type(basis, entry, count) or basis.until(room, f"{_named(entry, count)} itself", assumes)
    return advise(basis.first.kind, held.target, what, gain, cited([held.profile, entry]))


def _as_type(basis: AdviceInputs, entry: Profile, count: int = 1) -> Gain | None:
    """The predicted gain from a disk of that type, or from several of them striped."""
    striped = [f"{basis.disk_target}.stripes={count}"] if count > 1 else []
    return basis.by(f"{basis.disk_target}={entry.name}", *striped)


def _named(entry: Profile, count: int) -> str:
    times = f"{count} x " if count > 1 else ""
    return f"{times}{entry.name} ({caps_words(entry, count)})"


def _beyond(basis: AdviceInputs) -> str:
    """Words for the next limit, that of the machine for all its disks; "" if unknown."""
    machine = basis.machine
    limits = machine.resource.limits if machine else None
    if machine is None or limits is None:
        return ""
    caps = limits_words(limits.iops, limits.bytes_per_s)
    return f" (the machine {machine.resource.instance} is limited to {caps} for all its disks)"


def _faster(basis: AdviceInputs, measures: DiskMeasures, held: LimitedDisk) -> Advice:
    """Advice in figures, because no type was declared or the declared one is wrong."""
    limits = basis.first.resource.limits
    more, gain = _as_fast(basis, measures, held)
    answer = limits_words(limits.iops, limits.bytes_per_s) if limits and not basis.first.contradicted else ""
    now = f"now {answer}" if answer else level_words(measures)
    what = f"Put {held.target} on a faster disk{more} ({now}){_beyond(basis)}"
    return advise(basis.first.kind, held.target, what, gain)


def _as_fast(basis: AdviceInputs, measures: DiskMeasures, held: LimitedDisk) -> tuple[str, Gain]:
    """(needed rate in words, gain).

    The rate carries the load to the next limit; if that limit is unknown, the rate is twice the present one.
    """
    bound = basis.until()
    # ``bound.ratio`` counts from the load that saturates this disk; ``now`` is that load ÷ the present load.
    times = (1 + bound.ratio) * basis.now if bound.ratio else AT_LEAST
    if measures.binding == "io":
        io = float(f"{held.rates.io * times:.3g}")
        words, gain = limits_words(io, None), basis.by(f"{basis.disk_target}.iops={io:g}")
    else:
        size = float(f"{held.rates.bytes_per_s * times:.3g}")
        words, gain = limits_words(None, size), basis.by(f"{basis.disk_target}.bytes={size / 1e6:g}MB/s")
    if gain is not None:
        return f", for {words}", gain
    return f", for {words}" if bound.ratio else "", bound


def _twice_as_fast(basis: AdviceInputs, measures: DiskMeasures) -> Gain | None:
    """The gain from halving the time of each I/O, which doubles the rate; None if that time is unknown."""
    each_s, name = _each_s(basis.first.resource, measures)[1], basis.disk_target
    if each_s is None or measures.io is None:
        return None
    halved = f"{name}.latency={each_s * 1000 / AT_LEAST:.3g}ms"
    return basis.by(f"{name}.iops={measures.io * AT_LEAST:.3g}", halved)


def _each_s(resource: Resource, measures: DiskMeasures) -> tuple[str, float | None]:
    """(``read`` or ``write``, whichever is more frequent; seconds per I/O of that kind)."""
    if at_least(measures.reads_ratio, MOSTLY_READS):
        return "read", measures.read_s
    return "write", write_and_flush_s(resource, measures)


def _machine(basis: AdviceInputs, held: LimitedDisk) -> Iterator[Advice]:
    """Advice for a machine's limit for all its disks: the next machine of its series, not other disks."""
    entry, cached = held.profile, basis.first.resource.instance.endswith("(cached)")
    if entry is None:
        return
    need = basis.need or AT_LEAST * basis.now
    better = larger(entry, held.rates, need, cached=cached)
    caps = caps_words(entry, cached=cached)
    if better is None:
        series = f"{entry.name} ({caps}) is the largest of its series"
        what = f"Spread the disks of {held.target} over two machines: {series}"
        yield advise(basis.first.kind, held.target, what, basis.until(), cited([entry]))
        return
    room = held.rates.room(better, cached=cached)
    what = (
        f"Make {held.target} an {better.name} ({caps_words(better, cached=cached)} for all its disks) "
        f"instead of {entry.name} ({caps}); faster or more disks alone do not help"
    )
    asked = (basis.by(f"{tier}.machine={better.name}") for tier in basis.first.resource.tiers)
    gain = next(filter(None, asked), None) or basis.until(room, f"the machine again, as {better.name}")
    yield advise(basis.first.kind, held.target, what, gain, cited([entry, better]))


# ---- advice for other kinds of limit -------------------------------------------------------------


def _device(basis: AdviceInputs, measures: DiskMeasures, held: LimitedDisk) -> Iterator[Advice]:
    """Advice for a device at its own maximum: another device, or several devices striped."""
    rate = units.per_second(measures.io)
    does = f"this one does {rate} at any queue depth"
    gain = _twice_as_fast(basis, measures) or basis.until()
    what = f"Put {held.target} on a faster device, or stripe several: {does}"
    yield advise("disk_device", held.target, what, gain)


def _burst(basis: AdviceInputs, measures: DiskMeasures, held: LimitedDisk) -> Iterator[Advice]:
    """Advice after burst credits ran out: a type whose baseline is the burst rate.

    If the disk's rate did not fall, the advice is that for a cap.
    """
    shift = basis.first.resource.shift
    if shift is None or not fell(shift):
        yield from _cap(basis, measures, held)
        return
    ratio = shift.before / shift.after
    if shift.of == "bytes":
        rates, carried = Rates(shift.other_before, shift.before), f"{units.bytes_(shift.before)} per second"
    else:
        rates, carried = Rates(shift.before, shift.other_before), units.per_second(shift.before)
    wanted = f"{carried}, the rate it reached on burst credits"
    again, assumes = "the rate while the credits lasted", f"{SAME}; the load stays as it was then"
    bound = basis.until(ratio * basis.now, again, assumes)
    if held.profile is None:
        what = f"Put {held.target} on a disk with a baseline of {wanted}"
        set_ = f"bytes={shift.before / 1e6:.4g}MB/s" if shift.of == "bytes" else f"iops={shift.before:.4g}"
        gain = basis.by(f"{basis.disk_target}.{set_}") or bound
        yield advise("disk_burst_exhausted", held.target, what, gain)
        return
    better = larger(held.profile, rates, 1.0, held.stripes)
    worth = _credits(held.profile) if shift.of == "io" else ""
    if better is not None:
        what = f"Put {held.target} on {_named(better, 1)}, with a baseline of at least {wanted}{worth}"
        gain = _as_type(basis, better) or bound
        yield advise("disk_burst_exhausted", held.target, what, gain, cited([held.profile, better]))
    count = stripes_for(held.profile, rates, 1.0, held.stripes)
    if count is not None:
        what = f"Stripe {held.target} over {_named(held.profile, count)}, with a baseline of {wanted}"
        gain = _as_type(basis, held.profile, count) or bound
        yield advise("disk_burst_exhausted", held.target, what, gain, cited([held.profile]))


def _credits(entry: Profile) -> str:
    """Words for the I/Os of full credits: (burst - baseline) x the duration of the credits; "" if unknown."""
    burst = entry.burst
    if burst is None or burst.credit_s is None or entry.iops is None:
        return ""
    worth = (burst.iops - entry.iops) * burst.credit_s
    return f" (full credits of {entry.name} are {worth:,.0f} I/Os above its {units.iops(entry.iops)})"


def _warm_up(basis: AdviceInputs, _found: DiskMeasures, held: LimitedDisk) -> Iterator[Advice]:
    what = (
        f"Warm {held.target} up until its rate no longer rises, then run the same plan again; "
        f"`pinchpoint probe --farm {FARM} --suite stability` shows when that is"
    )
    why = "its rate when warm was not measured"
    yield advise("disk_warm_up", held.target, what, Gain(None, basis.until().limit, why))


def _concurrency(basis: AdviceInputs, measures: DiskMeasures, held: LimitedDisk) -> Iterator[Advice]:
    """Advice: more I/Os at the same time; for a log, which writes one at a time, lower latency."""
    resource = basis.first.resource
    if resource.commit_path or resource.role in COMMIT_ROLES:
        yield from _latency(basis, measures, held)
        return
    way = "reads" if at_least(measures.reads_ratio, MOSTLY_READS) else "writes"
    outstanding = (
        f"{measures.outstanding:.2g} outstanding now" if measures.outstanding is not None else "few now"
    )
    what = f"Have {resource.tiers[0]} issue more {way} to {held.target} at the same time ({outstanding})"
    own, whose = (
        (1 / measures.utilisation if measures.utilisation else None),
        "the declared limit of that disk",
    )
    if own is None and resource.roles and measures.io:
        probed = most_per_s(resource.roles[0].curve)
        own, whose = (
            (max(1.0, probed / measures.io) if probed else None),
            "the rate that a probe measured on that disk",
        )
    if own is None:
        why = f"the limits of {held.target} are not known"
        yield advise("disk_concurrency", held.target, what, Gain(None, None, why))
    else:
        gain = basis.until(own, whose, f"{SAME}; the disk's latency stays as it is")
        yield advise("disk_concurrency", held.target, what, gain)


def _unclear(basis: AdviceInputs, _: DiskMeasures, held: LimitedDisk) -> Iterator[Advice]:
    """Advice to find out first how the disk limits, because the remedy depends on that."""
    disk, stage = basis.first.resource, basis.case.stage
    if stage is not None:
        unknown = kind_unknown(disk, stage.rows)
        gain = Gain(None, basis.until().limit, f"how it limits is not known: {unknown.why}")
        yield advise(
            "disk", held.target, f"{unknown.experiment[:-1]}, before {held.target} is replaced", gain
        )


def _latency(basis: AdviceInputs, measures: DiskMeasures, held: LimitedDisk) -> Iterator[Advice]:
    """Advice: a disk with lower latency, which shortens the share of the time spent waiting for this disk."""
    resource, kind = basis.first.resource, basis.first.kind
    each, now_s = _each_s(resource, measures)
    named = _unpublished(held.profile)
    for name, latency_s in _other_latencies(basis, now_s):
        what = (
            f"Put {held.target} on a disk with lower latency: {units.seconds(latency_s)} a {each} ({name}) "
            f"instead of {units.seconds(now_s)}{named}"
        )
        left = _left(basis, latency_s, now_s)
        gain = basis.by(f"{basis.disk_target}.latency={latency_s * 1000:.3g}ms")
        what = f"{what}{_at_its_rate(basis, left)}"
        yield advise(kind, held.target, what, gain or _recomputed(basis, left))


def _left(basis: AdviceInputs, latency_s: float, now_s: float | None) -> float | None:
    """Share of the operations' present time that is left with that latency; None if unknown."""
    share = basis.first.disk.wait_ratio if basis.first.disk else None
    return None if share is None or not now_s else 1 - share * (1 - latency_s / now_s)


def _at_its_rate(basis: AdviceInputs, left: float | None) -> str:
    """Words for a load that kept its schedule: only its response times fall, not its throughput; else ""."""
    waiting = basis.first.disk.waiting if basis.first.disk else None
    flow = next((one for one in basis.case.flows if one.load.scenario == waiting), None)
    if left is None or flow is None or not flow.load.scheduled or (flow.started_ratio or 1) < STARTED.value:
        return ""
    return f"; at the rate of its schedule {waiting} then takes {units.percent(left)} of its time"


def _recomputed(basis: AdviceInputs, left: float | None) -> Gain:
    state = basis.first.disk
    if left is None or state is None:
        return Gain(None, basis.until().limit, "the share of operation time that waits for it is not known")
    waits = units.percent(state.wait_ratio)
    assumes = f"{SAME}; the {waits} of the operations' time that waits for it shrinks with its latency"
    times = basis.rounds(state.waiting, left)
    return basis.until(times, "the rest of the operations' time", assumes)


def _other_latencies(basis: AdviceInputs, now_s: float | None) -> Iterator[tuple[str, float]]:
    """(source, seconds) of latencies to compare with.

    They are the latency limit of the disk's role (half of the present latency if the disk is faster than
    that), and the latency of the farm's fastest other disk if it is lower.
    """
    first, stage = basis.first.resource, basis.case.stage
    limit = slowness(first)
    if now_s is not None and now_s * (1 - HARDLY_WAITED_FOR.value) > limit.value:
        yield f"recommended for its role, {SOURCES[limit.source]}", limit.value
    elif now_s is not None:
        yield "half the latency", now_s / 2
    if stage is None or now_s is None:
        return
    others = {}
    for one in basis.case.resources:
        if one.is_device and one.key != first.key:
            result = measure_disk(one, stage.rows)
            taken = write_and_flush_s(one, result)
            if taken is not None and taken < now_s and result.io:
                role = one.roles[0]
                same_kind = (role.tier, role.role) == (first.roles[0].tier, first.role)
                others[f"{role.tier}.{role.role} {f'on {role.host}' if same_kind else 'here'}"] = taken
    if others:
        name = min(others, key=others.__getitem__)
        yield name, others[name]


def _unpublished(entry: Profile | None) -> str:
    """Words that say that no latency is published for a type: the catalogue has only its caps."""
    return f" (no latency is published for {entry.name})" if entry else ""


NEEDS_A_CAP = ("disk_cap", "disk_device", "disk_latency", "disk_concurrency")
"""Kinds that a known cap would distinguish with more confidence."""

BY_KIND: Mapping[str, Callable[[AdviceInputs, DiskMeasures, LimitedDisk], Iterator[Advice]]] = {
    "disk": _unclear,
    "disk_cap": _cap,
    "disk_device": _device,
    "disk_burst_exhausted": _burst,
    "disk_warm_up": _warm_up,
    "disk_concurrency": _concurrency,
    "disk_latency": _latency,
}
