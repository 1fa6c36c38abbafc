"""The other side of a comparison, predicted from this one, beside what was measured there.

The other side's disks, cores and machine are put into this side's model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from pinchpoint.analysis.model.applied import known_in
from pinchpoint.analysis.model.measured import Measured
from pinchpoint.analysis.model.parts import Bound, CoresPart, DiskPart
from pinchpoint.analysis.model.prediction import ModelledRun, Prediction, predict_change
from pinchpoint.analysis.model.settings import Setting, What
from pinchpoint.base import units
from pinchpoint.base.errors import InputError, NotEvidenceError
from pinchpoint.forecast.predict import read_modelled_run
from pinchpoint.forecast.text import binds_words
from pinchpoint.store.read import StoredRun

DIFFERS = 0.02
"""Figures that are nearer to each other are the same."""

_T = TypeVar("_T")
_Settings: TypeAlias = Iterator[Setting | str]
"""Settings, and in words what differs, or may, and is none."""


@dataclass(frozen=True, slots=True)
class SideSettings:
    """The settings that make one side the same as the other.

    Attributes:
        settings: what has to be set.
        unset: what differs, or may differ, and cannot be set: each what it is, and why.
    """

    settings: tuple[Setting, ...]
    unset: tuple[str, ...]


def between(ours: Measured, theirs: Measured) -> SideSettings:
    """The settings that would make this side the same as the other, as far as both were measured.

    A setting is one of all hosts of a tier: where these do not differ in the same way from those on the other
        side,
    nothing is set, and it is said.

    Args:
        ours: the base.
        theirs: the other side.
    """
    result = [*_disks(ours, theirs), *_cores(ours, theirs), *_machines(ours, theirs), *_loads(ours, theirs)]
    return SideSettings(
        settings=tuple(one for one in result if isinstance(one, Setting)),
        unset=tuple(one for one in result if isinstance(one, str)),
    )


# ---- hosts ----------------------------------------------------------------------------------------


def _paired(here: Mapping[str, _T], there: Mapping[str, _T]) -> list[tuple[_T, _T]]:
    """Hosts of the same name in pairs, then the others in order; empty if one side has more hosts."""
    if len(here) != len(there):
        return []
    named = [(one, there[host]) for host, one in here.items() if host in there]
    own = [one for host, one in here.items() if host not in there]
    other = [one for host, one in there.items() if host not in here]
    return named + list(zip(own, other, strict=True))


def _all_equal(by_host: Sequence[Sequence[Setting]]) -> bool:
    """Whether the same would be set for every host."""
    first = by_host[0]
    return all(len(each) == len(first) and all(map(_equal, each, first)) for each in by_host)


def _equal(setting: Setting, other: Setting) -> bool:
    if isinstance(setting.value, str) or isinstance(other.value, str):
        return setting.value == other.value
    return setting.name == other.name and math.isclose(setting.number, other.number, rel_tol=DIFFERS)


def _unlike(name: str, here: Mapping[str, object], there: Mapping[str, object]) -> str:
    if len(here) != len(there):
        return f"{name} ({len(here)} in the base, {len(there)} on the other side)"
    return f"{name} (several hosts that differ in different ways)"


def _unmeasured(name: str, ours: Measured, theirs: Measured) -> str | None:
    """The figures that a host of either side does not report: those of other hosts do not replace them."""
    for side, words in ((ours, "the base"), (theirs, "the other side")):
        if name in side.unmeasured:
            return f"{name} (a host of {words}: {side.unmeasured[name]})"
    return None


# ---- disks ----------------------------------------------------------------------------------------


def _disks(ours: Measured, theirs: Measured) -> _Settings:
    for target in dict.fromkeys([*_targets(theirs), *_targets(ours)]):
        here, there = _disks_of(ours, target), _disks_of(theirs, target)
        if not any(map(_waited_for, (*here.values(), *there.values()))):
            continue
        unset = _unmeasured(target, ours, theirs)
        if unset:
            yield unset
        elif here and there:
            yield from _of_disks(target, here, there)


def _targets(measured: Measured) -> list[str]:
    return [part.target for part in measured.parts if isinstance(part, DiskPart)]


def _disks_of(measured: Measured, target: str) -> dict[str, DiskPart]:
    """Host -> its disk."""
    disks = (part for part in measured.parts if isinstance(part, DiskPart))
    return {disk.host: disk for disk in disks if disk.target == target}


def _waited_for(disk: DiskPart) -> bool:
    return bool(disk.waits or disk.commits)


def _of_disks(target: str, here: Mapping[str, DiskPart], there: Mapping[str, DiskPart]) -> _Settings:
    """The limits of every disk, and the latency of each disk that operations wait for."""
    pairs = _paired(here, there)
    caps = [tuple(_caps(*pair)) for pair in pairs]
    latencies = [tuple(_latency(*pair)) for pair in pairs if any(map(_waited_for, pair))]
    if pairs and _all_equal(caps) and _all_equal(latencies):
        yield from (*caps[0], *latencies[0])
    else:
        yield _unlike(target, here, there)


def _caps(here: DiskPart, there: DiskPart) -> Iterator[Setting]:
    """As they are known there."""
    figures: tuple[tuple[str, What, float | None, float | None, Callable[[float], str]], ...] = (
        ("iops", "iops", here.caps.iops, there.caps.iops, units.iops),
        ("bytes", "bytes_per_s", here.caps.bytes_per_s, there.caps.bytes_per_s, _byte_rate),
    )
    for name, what, own, other, words in figures:
        if other and _differ(own, other):
            yield Setting(f"{here.target}.{name}", here.target, what, other, words(other))
        elif own and other is None and not there.at_limit:
            yield Setting(f"{here.target}.{name}", here.target, what, math.inf, "no limit found")


def _latency(here: DiskPart, there: DiskPart) -> Iterator[Setting]:
    """As it was measured there, unless it was that of a queue."""
    if there.each_s is not None and _shows(here, there) and _differ(here.each_s, there.each_s):
        text = units.seconds(there.each_s)
        yield Setting(f"{here.target}.latency", here.target, "latency_s", there.each_s, text)


def _shows(here: DiskPart, there: DiskPart) -> bool:
    """Whether its latency is known there: at its limit only that it is less than that of its queue."""
    return not there.at_limit or (here.each_s or 0.0) > (there.seen_s or 0.0)


def _byte_rate(value: float) -> str:
    return units.of_metric("_bytes_per_s", value)


# ---- cores, machines, loads -----------------------------------------------------------------------


def _put(
    name: str, here: Mapping[str, object], there: Mapping[str, object], by_host: Sequence[Sequence[Setting]]
) -> _Settings:
    """The figure of all hosts, if it is the same on all of them."""
    if by_host and _all_equal(by_host):
        yield from by_host[0]
    else:
        yield _unlike(name, here, there)


def _cores(ours: Measured, theirs: Measured) -> _Settings:
    """A tier's allowance if it has one, else the pool it is in, once."""
    seen: set[str] = set()
    for tier in known_in(ours).tiers:
        name = f"{tier}.cpu"
        here, there = _cores_of(ours, tier), _cores_of(theirs, tier)
        keys = {part.key for part in here.values()}
        unset = _unmeasured(name, ours, theirs)
        if unset and (here or there):
            yield unset
        elif _allowed_there_alone(here, there):
            yield (
                f"{name} (a CPU limit of the tier on the other side, a CPU shared by several tiers in "
                "the base)"
            )
        elif here and there and not keys <= seen:
            by_host = [
                (Setting(name, tier, "cores", other.cores, f"{other.cores:g}"),)
                if _differ(own.cores, other.cores)
                else ()
                for own, other in _paired(here, there)
            ]
            result = tuple(_put(name, here, there, by_host))
            seen |= keys if result else set()
            yield from result


def _cores_of(measured: Measured, tier: str) -> dict[str, CoresPart]:
    """The first host that has them -> what the tier is allowed of them; where it has no allowance, pools."""
    result = [part for part in measured.parts if isinstance(part, CoresPart) and tier in part.tiers]
    return {part.host: part for part in [part for part in result if part.allowance] or result}


def _allowed_there_alone(here: Mapping[str, CoresPart], there: Mapping[str, CoresPart]) -> bool:
    """Whether what is a tier's own there would here be set of a pool that is of others, too."""
    shared = any(not part.allowance and len(part.tiers) > 1 for part in here.values())
    return shared and any(part.allowance for part in there.values())


def _machines(ours: Measured, theirs: Measured) -> _Settings:
    bounds = (part for part in ours.parts if isinstance(part, Bound) and part.machine)
    for tier in dict.fromkeys(part.tiers[0] for part in bounds):
        name = f"{tier}.machine"
        here, there = _machines_of(ours, tier), _machines_of(theirs, tier)
        if here and there:
            by_host = [
                (Setting(name, tier, "machine", other, other),) if own != other else ()
                for own, other in _paired(here, there)
            ]
            yield from _put(name, here, there, by_host)


def _machines_of(measured: Measured, tier: str) -> dict[str, str]:
    """Host -> the type of its machine, which may have caps of two kinds."""
    bounds = (part for part in measured.parts if isinstance(part, Bound))
    return {part.hosts[0]: part.machine for part in bounds if part.machine and tier in part.tiers}


def _loads(ours: Measured, theirs: Measured) -> _Settings:
    """Where the other plan has another number of users, another pause of theirs, or another rate."""
    here, there = ({one.name: one for one in side.seen} for side in (ours, theirs))
    yield from (f"{name} (measured on one side only)" for name in sorted(here.keys() ^ there.keys()))
    for name, one in there.items():
        same = here.get(name)
        if same is None:
            continue
        if same.is_rate != one.is_rate:
            kinds = ["a rate" if side.is_rate else "users" for side in (same, one)]
            yield f"the load of {name} ({kinds[0]} in the base, {kinds[1]} on the other side)"
            continue
        if one.is_rate and _differ(same.asked_per_s, one.asked_per_s):
            text = units.per_second(one.asked_per_s)
            yield Setting(f"{name}.rate", name, "rate_per_s", one.asked_per_s, text)
        if not one.is_rate and same.flow.load.users and _differ(same.users, one.users):
            yield Setting(f"{name}.users", name, "users", one.users, f"{one.users:g}")
        there_s = one.flow.load.think_s
        if not one.is_rate and there_s != same.flow.load.think_s:
            yield Setting(f"{name}.think", name, "think_s", there_s, units.seconds(there_s))


def _differ(here: float | None, there: float) -> bool:
    return here is None or abs(there - here) > DIFFERS * max(here, there)


def predict_beside(base: StoredRun, other: StoredRun) -> dict[str, Any]:
    """A comparison's ``what_if``: plain JSON.

    Args:
        base: a run of the one side.
        other: a run of the other.

    Returns:
        ``rows`` (scenario, base_per_s, predicted_per_s, interval_per_s, measured_per_s, error_ratio:
        predicted ÷ measured - 1), ``notes`` (sentences: what was put into the base's model, what was not,
        what limits then), ``why_none`` (a sentence where nothing could be predicted, else null),
        ``prediction`` (``Prediction.to_json``, or null).
    """
    try:
        ours, theirs = read_modelled_run(base), read_modelled_run(other)
        differing = between(ours.measured, theirs.measured)
        result = predict_change(ours, differing.settings)
    except (InputError, NotEvidenceError) as error:
        return {"rows": [], "notes": [], "why_none": str(error), "prediction": None}
    return {
        "rows": list(_rows(result, theirs)),
        "notes": list(_notes(differing, result)),
        "why_none": None,
        "prediction": result.to_json(),
    }


def _rows(prediction: Prediction, theirs: ModelledRun) -> Iterator[dict[str, Any]]:
    measured = {one.name: one.now_per_s for one in theirs.measured.seen}
    for one in prediction.scenarios:
        done = measured.get(one.scenario)
        yield {
            "scenario": one.scenario,
            "base_per_s": one.now_per_s,
            "predicted_per_s": one.then_per_s,
            "interval_per_s": [one.low_per_s, one.high_per_s],
            "measured_per_s": done,
            "error_ratio": one.then_per_s / done - 1 if done else None,
        }


def _notes(differing: SideSettings, prediction: Prediction) -> Iterator[str]:
    settings, unset = differing.settings, differing.unset
    if settings:
        what = ", ".join(f"{one.name} = {one.text}" for one in settings)
        yield f"Set in the model of the base, as measured on the other side: {what}."
    elif not unset:
        yield "The measured disks, cores and loads are the same on both sides."
    if unset:
        yield f"Not set in the model of the base: {'; '.join(unset)}."
    if settings:
        yield binds_words("Predicted", prediction.binds_then)
        yield f"Assumed: {'; '.join(prediction.assumes)}."
