"""The other side of a comparison, predicted from this one: its disks, cores, machine in this side's model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from pinchpoint.report import units
from pinchpoint.store.read import StoredRun
from pinchpoint.what_if.applied import known_in
from pinchpoint.what_if.measured import Measured
from pinchpoint.what_if.parts import Bound, Cores, Disk
from pinchpoint.what_if.predict import predict_settings, read_base
from pinchpoint.what_if.prediction import Prediction
from pinchpoint.what_if.settings import Known, Setting, What

DIFFERS = 0.02
"""Figures that are nearer to each other are the same."""
FROM_OTHER = "what the disks of the other run take and let through is as it was measured there"


def predict_other(base: StoredRun, other: StoredRun) -> Prediction:
    """What the base's load would do on the other run's farm, by the base's model.

    Args:
        base: the run whose model it is.
        other: the run whose disks' latency and caps, cores, machine and load are put into it.

    Raises:
        InputError: one of them holds no measured load.
        NotEvidenceError: one of them says nothing about its farm.
    """
    ours, theirs = read_base(base), read_base(other)
    settings = tuple(settings_between(ours.measured, theirs.measured))
    return predict_settings(ours, settings, notes=(FROM_OTHER,) if settings else ())


def settings_between(ours: Measured, theirs: Measured) -> Iterator[Setting]:
    """What would have to be set here so that it is as there, as far as both were measured."""
    known = known_in(ours)
    for disk in _disks(theirs).values():
        same = _disks(ours).get(disk.target)
        if same is not None and disk.target in known.disks and (_waited_for(same) or _waited_for(disk)):
            yield from _disk(same, disk)
    yield from _cores(ours, theirs)
    yield from _machines(ours, theirs)
    yield from _loads(ours, theirs, known)


def _waited_for(disk: Disk) -> bool:
    return bool(disk.waits or disk.commits)


def _disks(measured: Measured) -> Mapping[str, Disk]:
    return {part.target: part for part in measured.parts if isinstance(part, Disk)}


def _disk(here: Disk, there: Disk) -> Iterator[Setting]:
    """Caps as they are known there, and latency as it was measured, unless it was that of a queue."""
    figures: tuple[tuple[str, What, float | None, float | None, Callable[[float], str]], ...] = (
        ("iops", "iops", here.caps.iops, there.caps.iops, units.iops),
        ("bytes", "bytes_per_s", here.caps.bytes_per_s, there.caps.bytes_per_s, _byte_rate),
    )
    for name, what, own, other, words in figures:
        if other and _differ(own, other):
            yield Setting(f"{here.target}.{name}", here.target, what, other, words(other))
        elif own and other is None and not there.at_limit:
            yield Setting(f"{here.target}.{name}", here.target, what, math.inf, "no cap seen")
    if there.each_s is not None and _tells(here, there) and _differ(here.each_s, there.each_s):
        text = units.seconds(there.each_s)
        yield Setting(f"{here.target}.latency", here.target, "latency_s", there.each_s, text)


def _tells(here: Disk, there: Disk) -> bool:
    """Whether its latency is known there: at its limit only that it is less than that of its queue."""
    return not there.at_limit or (here.each_s or 0.0) > (there.seen_s or 0.0)


def _byte_rate(value: float) -> str:
    return units.of_metric("_bytes_per_s", value)


def _cores(ours: Measured, theirs: Measured) -> Iterator[Setting]:
    """A tier's allowance where both have one, else the pool it is in, once."""
    seen: set[str] = set()
    for tier in known_in(ours).tiers:
        here, there = _of_tier(ours, tier), _of_tier(theirs, tier)
        if here is None or there is None or here.key in seen or not _differ(here.cores, there.cores):
            continue
        seen.add(here.key)
        yield Setting(f"{tier}.cpu", tier, "cores", there.cores, f"{there.cores:g}")


def _of_tier(measured: Measured, tier: str) -> Cores | None:
    found = [part for part in measured.parts if isinstance(part, Cores) and tier in part.tiers]
    return next((part for part in found if part.allowance), found[0] if found else None)


def _machines(ours: Measured, theirs: Measured) -> Iterator[Setting]:
    there = {
        tier: part.machine
        for part in theirs.parts
        if isinstance(part, Bound) and part.machine
        for tier in part.tiers
    }
    for part in ours.parts:
        if isinstance(part, Bound) and part.machine:
            tier = part.tiers[0]
            other = there.get(tier)
            if other and other != part.machine:
                yield Setting(f"{tier}.machine", tier, "machine", other, other)


def _loads(ours: Measured, theirs: Measured, known: Known) -> Iterator[Setting]:
    """Where the other plan has another number of users, another pause of theirs, or another rate."""
    for one in theirs.seen:
        same = next((here for here in ours.seen if here.name == one.name), None)
        if same is None or same.is_rate != one.is_rate:
            continue
        if one.is_rate and one.name in known.scenarios and _differ(same.asked_per_s, one.asked_per_s):
            text = units.per_second(one.asked_per_s)
            yield Setting(f"{one.name}.rate", one.name, "rate_per_s", one.asked_per_s, text)
        if not one.is_rate and same.flow.load.users and _differ(same.users, one.users):
            yield Setting(f"{one.name}.users", one.name, "users", one.users, f"{one.users:g}")
        there_s = one.flow.load.think_s
        if not one.is_rate and there_s != same.flow.load.think_s:
            yield Setting(f"{one.name}.think", one.name, "think_s", there_s, units.seconds(there_s))


def _differ(here: float | None, there: float) -> bool:
    return here is None or abs(there - here) > DIFFERS * max(here, there)
