"""Applies settings to the parts and loads of a model, and lists the assumptions.

A setting that cannot be predicted raises an error with a sentence. A value that the run did not measure
becomes an assumption and widens the interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pinchpoint.analysis.model.measured import Measured
from pinchpoint.analysis.model.network import OPEN_USERS, Users, is_open
from pinchpoint.analysis.model.parts import UNQUEUED_S, Bound, CoresPart, DiskPart, Part, Wait
from pinchpoint.analysis.model.probed import DiskMix, Exchanged, Swap, swapped
from pinchpoint.analysis.model.settings import LIMITS, Known, Setting, What
from pinchpoint.analysis.resources.disk.types import caps_words, limits_words, profile
from pinchpoint.base import units
from pinchpoint.base.errors import InputError
from pinchpoint.data.inputs import Limits

ASSUMED_LATENCY = (
    "{target} was measured only at its limit: {seconds} is assumed for an I/O without a queue; --set "
    "{target}.latency=... gives another value"
)
MAYBE_QUEUED = (
    "the limits of {target} are unknown and its I/Os queue: {seconds} is assumed for its latency. If "
    "part of that is queue time, a faster disk gains up to the upper end of the interval"
)
OTHER_TYPE = (
    "the catalogue has no latency for {target}: {seconds}, as in this run, is assumed. A disk type with "
    "a lower latency gains up to the upper end of the interval; --set {target}.latency=... gives "
    "another value"
)
INDEX_COMMITS = (
    "one index commit serves all users: the time spent waiting for {target} is estimated from its "
    "utilisation and may be far off"
)
FROM_PROBE = (
    "the disk serves the I/O of the run as it served that of the probe; the mix of I/Os is that of the run"
)
LOG_STRIPES = (
    "consecutive writes of {target} go to one disk of the stripe: striping raises its limit in bytes "
    "per second, but not in I/Os per second"
)


def uncertain(
    before: Sequence[Part], after: Sequence[Part], settings: Sequence[Setting]
) -> tuple[list[str], list[tuple[Part, ...]]]:
    """(assumptions about the changed disks as sentences, the parts with each assumption at an extreme).

    An assumed latency ranges from 0 to twice its value, at most to the measured latency with its queue. A
    latency that may include queue time, or that belongs to another disk type, may be as short as
    ``UNQUEUED_S``. A striped log may spread its I/Os evenly over its disks. The share of time spent waiting
    for an index commit is an estimate.
    """
    set_: dict[str, set[What]] = {}
    for one in settings:
        set_.setdefault(one.target, set()).add(one.what)
    disks = [part for part in after if isinstance(part, DiskPart) and part.target in set_]
    types = {part.key: part.profile for part in before if isinstance(part, DiskPart)}
    undeclared = [disk for disk in disks if "latency_s" not in set_[disk.target]]
    assumed = [disk for disk in disks if disk.assumed]
    queued = [disk for disk in undeclared if _perhaps_a_queue(disk, set_[disk.target])]
    others = [
        disk
        for disk in undeclared
        if disk.profile not in (None, types[disk.key])
        and (disk.waits or disk.commits)
        and disk not in (*assumed, *queued)
    ]
    logs = [disk for disk in disks if "stripes" in set_[disk.target] and one_after_another(disk)]
    texts = [(ASSUMED_LATENCY, disk, disk.each_s) for disk in assumed]
    texts += [(MAYBE_QUEUED, disk, disk.seen_s) for disk in queued]
    texts += [(OTHER_TYPE, disk, disk.each_s) for disk in others]
    texts += [(LOG_STRIPES, disk, None) for disk in logs]
    words = [text.format(target=disk.target, seconds=units.seconds(each_s)) for text, disk, each_s in texts]
    words += [INDEX_COMMITS.format(target=target) for target in set_ if target.endswith(".index")]
    ends: tuple[tuple[list[DiskPart], Callable[[DiskPart], DiskPart]], ...] = (
        (assumed, lambda disk: replace(disk, each_s=0.0)),
        (assumed, lambda disk: replace(disk, each_s=min(2 * (disk.each_s or 0.0), disk.seen_s or math.inf))),
        (queued, _unqueued),
        (others, _unqueued),
        (logs, _spread_evenly),
    )
    return words, [
        tuple(end(part) if isinstance(part, DiskPart) and part in group else part for part in after)
        for group, end in ends
        if group
    ]


def _unqueued(disk: DiskPart) -> DiskPart:
    """The disk with an I/O time of at most ``UNQUEUED_S``, as if no I/O queued."""
    return replace(disk, each_s=min(disk.seen_s or 0.0, UNQUEUED_S))


def _perhaps_a_queue(disk: DiskPart, changed: set[What]) -> bool:
    """Whether a setting raises the limits of the disk while its measured latency may include queue time."""
    return bool(changed & {"profile", "iops", "bytes_per_s"}) and disk.queued and bool(disk.waits)


def one_after_another(disk: DiskPart) -> bool:
    """Whether consecutive small log writes go to one disk of the stripe for a while."""
    return bool(disk.commits) and disk.small


def _spread_evenly(log: DiskPart) -> DiskPart:
    """A striped log with its IOPS limit multiplied by its number of disks, as if its I/Os spread evenly."""
    return replace(log, caps=replace(log.caps, iops=log.caps.iops and log.caps.iops * log.stripes))


@dataclass(frozen=True, slots=True)
class Changed:
    """The effect of one setting, in words.

    Attributes:
        name: name of the setting, such as ``sql.log.latency``.
        before: value in the run; None if unknown.
        after: value after the change.
    """

    name: str
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class Applied:
    """A changed farm: its parts, its loads, and the assumptions behind the change.

    Attributes:
        parts: parts of the changed farm.
        loads: loads of the scenarios after the change.
        changed: effect of each setting.
        assumes: assumptions, as sentences.
        uncertain: alternative versions of ``parts``, each with one assumption at its lower or upper extreme.
        exchanged: probed disks that replace disks of the run.
    """

    parts: tuple[Part, ...]
    loads: tuple[Users, ...]
    changed: tuple[Changed, ...]
    assumes: tuple[str, ...]
    uncertain: tuple[tuple[Part, ...], ...]
    exchanged: tuple[Exchanged, ...] = ()


def known_in(measured: Measured) -> Known:
    """The settings that a run allows.

    Resources that were not measured are listed too: ``apply`` refuses them with a reason.
    """
    disks = [part.target for part in measured.parts if isinstance(part, DiskPart)]
    unmeasured = [name for name in measured.unmeasured if not name.endswith(".cpu")]
    cpus = [tier for part in measured.parts if isinstance(part, CoresPart) for tier in part.tiers]
    cpus += [name.removesuffix(".cpu") for name in measured.unmeasured if name.endswith(".cpu")]
    machines = [
        tier for part in measured.parts if isinstance(part, Bound) and part.machine for tier in part.tiers
    ]
    return Known(
        disks=tuple(dict.fromkeys([*disks, *unmeasured])),
        tiers=tuple(dict.fromkeys(cpus)),
        machines=tuple(dict.fromkeys(machines)),
        limits=tuple(
            part.target for part in measured.parts if isinstance(part, Bound | Wait) and part.target
        ),
        scenarios={one.name: one.is_rate for one in measured.seen},
    )


def apply(measured: Measured, settings: Sequence[Setting], mix: Mapping[str, DiskMix]) -> Applied:
    """Apply all settings to the parts and loads of a run.

    Args:
        measured: parts and loads of the run.
        settings: the changes.
        mix: by disk name (``sql.log``), the I/O of one operation; needed for each disk that a probed disk
            replaces.

    Raises:
        InputError: a setting names something that was not measured in this run; one sentence for each
            setting.
    """
    parts, loads = list(measured.parts), list(measured.loads)
    changed: dict[str, Changed] = {}
    problems: list[str] = []
    swaps: dict[int, Swap] = {}
    # last: the number of stripes multiplies the limits of the other settings
    for one in sorted(settings, key=lambda one: one.what == "stripes"):
        try:
            if one.what in _LOADS:
                place = next(place for place, load in enumerate(loads) if load.scenario == one.target)
                loads[place], changed[one.name] = _of_load(loads[place], one)
            else:
                changed[one.name] = _change(parts, one, measured, mix, swaps)
        except InputError as error:
            problems.append(f"--set {one.name}={one.text}: {error}")
    if problems:
        raise InputError(*dict.fromkeys(problems))
    words, ends = uncertain(measured.parts, parts, [one for one in settings if one.what != "probe"])
    others = ((*parts[:at], other, *parts[at + 1 :]) for at, swap in swaps.items() for other in swap.others)
    assumes = [text for swap in swaps.values() for text in swap.assumes]
    return Applied(
        parts=tuple(parts),
        loads=tuple(loads),
        changed=tuple(changed[one.name] for one in settings),
        assumes=(
            *words,
            *_assumed(parts, settings),
            *assumes,
            *([FROM_PROBE] if swaps else []),
        ),
        uncertain=(*ends, *others),
        exchanged=tuple(swap.exchanged for swap in swaps.values()),
    )


def _assumed(parts: Sequence[Part], settings: Sequence[Setting]) -> Iterator[str]:
    """Assumptions behind changed limits other than those of disks and CPUs."""
    names = {one.name for one in settings}
    yield from (part.assumes for part in parts if isinstance(part, Bound | Wait) and part.target in names)


_LOADS = ("users", "rate_per_s", "think_s")


def _key(setting: Setting) -> str:
    return f"{setting.target}.cpu" if setting.what == "cores" else setting.target


def _of_load(load: Users, setting: Setting) -> tuple[Users, Changed]:
    if setting.what == "users":
        return replace(load, users=setting.number), Changed(setting.name, f"{load.users:,g}", setting.text)
    if setting.what == "think_s":
        return replace(load, think_s=setting.number), Changed(
            setting.name, units.seconds(load.think_s), setting.text
        )
    # the run did not keep up this rate: the model has its users in flight, and the rate as their maximum
    if not is_open(load):
        return replace(load, most_per_s=setting.number), Changed(
            setting.name, units.per_second(load.most_per_s), setting.text
        )
    # The solver adds the waiting time, which is negligible beside the think time of ``OPEN_USERS`` users.
    think_s = OPEN_USERS / setting.number - load.rest_s
    before = OPEN_USERS / (load.think_s + load.rest_s)
    return replace(load, think_s=think_s), Changed(setting.name, units.per_second(before), setting.text)


def _change(
    parts: list[Part],
    setting: Setting,
    measured: Measured,
    mix: Mapping[str, DiskMix],
    swaps: dict[int, Swap],
) -> Changed:
    """Change each part that a setting names. Returns the change of the first part. Raises InputError."""
    if _key(setting) in measured.unmeasured:
        raise InputError(f"{_key(setting)} is not in the model: {measured.unmeasured[_key(setting)]}")
    changeds: list[Changed] = []
    for place, part in _meant(parts, setting):
        if isinstance(part, DiskPart) and not isinstance(setting.value, str | float | int):
            swaps[place] = swapped(part, setting.value, mix[setting.target])
            parts[place] = swaps[place].part
            seen = f"{units.seconds(part.seen_s)} an I/O" if part.seen_s is not None else None
            changeds.append(Changed(setting.name, seen, swaps[place].after))
            continue
        if isinstance(part, DiskPart):
            parts[place] = DISK_CHANGES[setting.what](part, setting)
        elif isinstance(part, CoresPart):
            parts[place] = replace(part, cores=setting.number)
        elif isinstance(part, Wait):
            parts[place] = replace(part, each_s=setting.number)
        else:
            parts[place] = (
                _machine(part, setting) if setting.what == "machine" else part.sized(setting.number)
            )
        # With several settings of one disk, each setting is compared with the value in the run.
        changeds.append(
            Changed(setting.name, _was(measured.parts[place], setting), _is(parts[place], setting))
        )
    if not changeds:
        raise InputError(f"{_key(setting)} is not in the model: it was not measured")
    return changeds[0]


def _meant(parts: Sequence[Part], setting: Setting) -> list[tuple[int, Part]]:
    """(index, part) of each part that a setting changes.

    For a tier with a CPU allowance, ``cores`` changes the allowance alone.
    """

    def means(part: Part) -> bool:
        if setting.what == "cores":
            return isinstance(part, CoresPart) and setting.target in part.tiers
        if setting.what == "machine":
            return isinstance(part, Bound) and bool(part.machine) and setting.target in part.tiers
        if setting.what in LIMITS:
            return isinstance(part, Bound | Wait) and part.target == setting.name
        return isinstance(part, DiskPart) and part.target == setting.target

    result = [(at, part) for at, part in enumerate(parts) if means(part)]
    return [(at, part) for at, part in result if isinstance(part, CoresPart) and part.allowance] or result


def _profile(disk: DiskPart, setting: Setting) -> DiskPart:
    """The disk with the limits of one disk of the catalogue type; ``stripes`` is a separate setting."""
    entry = profile(str(setting.value))
    caps = Limits(entry.iops, entry.bytes_per_s, entry.io_unit_bytes)
    return replace(disk, profile=entry.name, stripes=1, caps=caps)


def _striped(disk: DiskPart, setting: Setting) -> DiskPart:
    if not disk.caps.known:
        raise InputError(
            f"the limits of {disk.target} are unknown, so those of {setting.text} disks are as well; declare "
            f"them in farm.yaml, or set {disk.target}.iops or {disk.target}.bytes"
        )
    factor = setting.number / disk.stripes
    caps = disk.caps.times(factor)
    if one_after_another(disk):
        caps = replace(caps, iops=disk.caps.iops)
    return replace(disk, stripes=int(setting.number), caps=caps)


def _latency(disk: DiskPart, setting: Setting) -> DiskPart:
    return replace(disk, each_s=setting.number, curve=None, assumed=False)


def _capped(disk: DiskPart, setting: Setting) -> DiskPart:
    """The disk with a new limit in I/Os or bytes per second. Limits measured on the old disk are dropped."""
    caps = Limits() if disk.seen else disk.caps
    return replace(disk, profile=None, caps=replace(caps, **{setting.what: setting.number}), seen=False)


DISK_CHANGES: Mapping[str, Callable[[DiskPart, Setting], DiskPart]] = {
    "profile": _profile,
    "stripes": _striped,
    "latency_s": _latency,
    "iops": _capped,
    "bytes_per_s": _capped,
}


def _machine(bound: Bound, setting: Setting) -> Bound:
    entry = profile(str(setting.value))
    cached = bound.key.endswith(":cached")
    caps = (
        Limits(entry.cached_iops, entry.cached_bytes_per_s)
        if cached
        else Limits(entry.iops, entry.bytes_per_s)
    )
    return replace(bound, machine=entry.name, caps=caps)


def _was(part: Part, setting: Setting) -> str | None:
    """The value of a part before the change, in words; None if unknown."""
    if isinstance(part, CoresPart):
        return f"{part.cores:g}"
    if isinstance(part, Wait):
        return units.seconds(part.each_s)
    if isinstance(part, Bound):
        return part.machine if setting.what == "machine" else _sized_words(part, setting.what)
    if setting.what == "latency_s":
        return units.seconds(part.seen_s) if part.seen_s is not None else None
    if setting.what == "stripes":
        return str(part.stripes)
    return _disk_words(part)


def _sized_words(bound: Bound, what: What) -> str:
    return f"{units.bytes_(bound.size)}/s" if what == "network" else f"{bound.size:g}"


def _is(part: Part, setting: Setting) -> str:
    if isinstance(part, DiskPart) and setting.what == "profile":
        entry = profile(str(setting.value))
        times = f"{part.stripes} x " if part.stripes > 1 else ""
        return f"{times}{entry.name} ({caps_words(entry, part.stripes)})"
    if isinstance(part, Bound) and setting.what == "machine":
        return f"{part.machine} ({caps_words(profile(str(setting.value)))})"
    return setting.text


def _disk_words(disk: DiskPart) -> str | None:
    caps = limits_words(disk.caps.iops, disk.caps.bytes_per_s)
    if disk.profile:
        times = f"{disk.stripes} x " if disk.stripes > 1 else ""
        return f"{times}{disk.profile} ({caps})"
    return caps or None
