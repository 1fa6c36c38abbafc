"""Predicts one side of a comparison from the other side, for comparison with the measurement.

The model of the base gets the other side's disks, cores, machines and loads.
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
"""Figures that differ by less than this share count as the same."""

_T = TypeVar("_T")
_Settings: TypeAlias = Iterator[Setting | str]
"""Settings, and sentences about differences that cannot be set."""


@dataclass(frozen=True, slots=True)
class SideSettings:
    """The settings that make the base the same as the other side.

    Attributes:
        settings: the settings to apply to the base.
        unset: differences, or possible differences, that cannot be set, each with the reason.
    """

    settings: tuple[Setting, ...]
    unset: tuple[str, ...]


def between(ours: Measured, theirs: Measured) -> SideSettings:
    """The settings that make the base the same as the other side, as far as both were measured.

    A setting applies to all hosts of a tier. If the hosts differ from the other side in different ways,
    nothing is set and ``unset`` has a sentence.

    Args:
        ours: measured figures of the base.
        theirs: measured figures of the other side.
    """
    result = [*_disks(ours, theirs), *_cores(ours, theirs), *_machines(ours, theirs), *_loads(ours, theirs)]
    return SideSettings(
        settings=tuple(one for one in result if isinstance(one, Setting)),
        unset=tuple(one for one in result if isinstance(one, str)),
    )


# ---- hosts ----------------------------------------------------------------------------------------


def _paired(here: Mapping[str, _T], there: Mapping[str, _T]) -> list[tuple[_T, _T]]:
    """Pairs of hosts: first those of the same name, then the others in order; empty if the numbers differ."""
    if len(here) != len(there):
        return []
    named = [(one, there[host]) for host, one in here.items() if host in there]
    own = [one for host, one in here.items() if host not in there]
    other = [one for host, one in there.items() if host not in here]
    return named + list(zip(own, other, strict=True))


def _all_equal(by_host: Sequence[Sequence[Setting]]) -> bool:
    """Whether the settings of all hosts are the same."""
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
    """A sentence if a host of either side lacks the figures, because other hosts' cannot replace them."""
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
    """Host -> its disk with this role (``TIER.ROLE``)."""
    disks = (part for part in measured.parts if isinstance(part, DiskPart))
    return {disk.host: disk for disk in disks if disk.target == target}


def _waited_for(disk: DiskPart) -> bool:
    return bool(disk.waits or disk.commits)


def _of_disks(target: str, here: Mapping[str, DiskPart], there: Mapping[str, DiskPart]) -> _Settings:
    """Settings of a disk's limits, and of its latency if operations wait for the disk."""
    pairs = _paired(here, there)
    caps = [tuple(_caps(*pair)) for pair in pairs]
    latencies = [tuple(_latency(*pair)) for pair in pairs if any(map(_waited_for, pair))]
    if pairs and _all_equal(caps) and _all_equal(latencies):
        yield from (*caps[0], *latencies[0])
    else:
        yield _unlike(target, here, there)


def _caps(here: DiskPart, there: DiskPart) -> Iterator[Setting]:
    """Settings of the limits that differ on the other side."""
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
    """A setting of the latency measured on the other side, unless queueing at a limit hides it."""
    if there.each_s is not None and _shows(here, there) and _differ(here.each_s, there.each_s):
        text = units.seconds(there.each_s)
        yield Setting(f"{here.target}.latency", here.target, "latency_s", there.each_s, text)


def _shows(here: DiskPart, there: DiskPart) -> bool:
    """Whether the latency of the other side is usable.

    At its limit a disk's latency is only known to be below the measured latency, which includes the queue.
    """
    return not there.at_limit or (here.each_s or 0.0) > (there.seen_s or 0.0)


def _byte_rate(value: float) -> str:
    return units.of_metric("_bytes_per_s", value)


# ---- cores, machines, loads -----------------------------------------------------------------------


def _put(
    name: str, here: Mapping[str, object], there: Mapping[str, object], by_host: Sequence[Sequence[Setting]]
) -> _Settings:
    """The settings of all hosts if they are the same, else a sentence."""
    if by_host and _all_equal(by_host):
        yield from by_host[0]
    else:
        yield _unlike(name, here, there)


def _cores(ours: Measured, theirs: Measured) -> _Settings:
    """Settings of each tier's CPU limit, or of the shared pool of cores of a tier without a limit."""
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
    """First host of the cores -> the tier's CPU limit there; without a limit, its pool of cores."""
    result = [part for part in measured.parts if isinstance(part, CoresPart) and tier in part.tiers]
    return {part.host: part for part in [part for part in result if part.allowance] or result}


def _allowed_there_alone(here: Mapping[str, CoresPart], there: Mapping[str, CoresPart]) -> bool:
    """Whether a tier has a CPU limit on the other side only, and shares its cores in the base."""
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
    """Host -> the type of its machine."""
    bounds = (part for part in measured.parts if isinstance(part, Bound))
    return {part.hosts[0]: part.machine for part in bounds if part.machine and tier in part.tiers}


def _loads(ours: Measured, theirs: Measured) -> _Settings:
    """Settings for loads that differ in users, think time or rate."""
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
    """The ``what_if`` part of a comparison, as JSON types.

    Args:
        base: a run of the base.
        other: a run of the other side.

    Returns:
        ``rows`` (scenario, base_per_s, predicted_per_s, interval_per_s, measured_per_s, error_ratio:
        predicted ÷ measured - 1), ``notes`` (sentences: settings of the base's model, differences not set,
        the predicted bottleneck), ``why_none`` (a sentence if no prediction is possible, else null),
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
