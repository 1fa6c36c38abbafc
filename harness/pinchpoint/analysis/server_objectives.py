"""Judges the plan's objectives of servers: met, missed, or not measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pinchpoint.analysis.levels import Level
from pinchpoint.base import units
from pinchpoint.base.wording import of_servers
from pinchpoint.data.inputs import Host, Inputs
from pinchpoint.data.series import Key
from pinchpoint.plan.metrics import SERVER_FIGURES, at_least

NAMED = ("host", "tier", "role", "device")
SEEN = 0.9
"""A figure that was measured for less than this share of the time has a note (design value)."""


def server_table(inputs: Inputs, levels: tuple[Level, ...] = ()) -> tuple[dict[str, Any], ...]:
    """One row per objective: the fields of a scenario's objective, ``figure``, and the place.

    ``scenario`` is None. ``where`` is the deciding series, such as ``sql2 nvme1n1``: the worst of all series
    that must meet the objective. For a load in steps, the objective is met up to the level before the first
    that misses it.
    """
    return tuple(_row(inputs, objective, levels) for objective in inputs.server_objectives)


class _Measured(NamedTuple):
    """The result of one objective over one window.

    Attributes:
        value: value of the deciding series; None without one.
        where: host and instance of the deciding series.
        met: whether the objective was met; None if it was not measured.
        why: why the objective was not measured, or a note about the value.
    """

    value: float | None
    where: str
    met: bool | None
    why: str = ""


class _Place(NamedTuple):
    """A series that must meet the objective; without one ``key`` is None and ``why`` the reason."""

    host: str
    key: Key | None
    why: str = ""


def _row(inputs: Inputs, objective: Mapping[str, Any], levels: tuple[Level, ...]) -> dict[str, Any]:
    figure = next(name for name in SERVER_FIGURES if objective.get(name) is not None)
    about = {
        "scenario": None,
        "metric": objective["metric"],
        "figure": figure,
        "at_least": at_least(objective["metric"], figure),
        **{name: objective.get(name) for name in NAMED},
        "target": objective[figure],
    }
    climbing = [level for level in levels if level.scenario == levels[0].scenario]
    if not climbing:
        value, holds = _measured_value(inputs, about), ""
        result = _result(value)
    else:
        value, result, holds = _over_levels(inputs, about, climbing)
    return {
        **about,
        "value": value.value,
        "where": value.where,
        "met": value.met,
        "result": result,
        "holds": holds or ("not measured" if value.met is None else result),
    }


def _result(measured: _Measured) -> str:
    if measured.met is None:
        return f"not measured: {measured.why}"
    word = "met" if measured.met else "missed"
    return f"{word}; {measured.why}" if measured.why else word


def _over_levels(inputs: Inputs, about: Mapping[str, Any], levels: list[Level]) -> tuple[_Measured, str, str]:
    """(deciding value, result, load up to which the objective is met), over all levels."""
    each = [_measured_value(_during(inputs, level), about) for level in levels]
    measured = [at for at, found in enumerate(each) if found.met is not None]
    if not measured:
        return each[0], _result(each[0]), ""
    first = measured[0]
    missed = next((at for at in measured if not each[at].met), None)
    if missed is None:
        last = measured[-1]
        return each[last], f"met up to {levels[last].words}", "met at every level"
    if missed == first:
        words = levels[first].words
        return each[first], f"missed, from {words} on", f"whether it is met below {words} is not known"
    held = max(at for at in measured if at < missed)
    return each[held], f"met up to {levels[held].words}", f"not met at {levels[missed].words}"


def _during(inputs: Inputs, level: Level) -> Inputs:
    window = level.window(inputs.window.step_s)
    return replace(inputs, window=window, samples=inputs.samples.during(window))


def _measured_value(inputs: Inputs, about: Mapping[str, Any]) -> _Measured:
    """The worst value of all series that must meet the objective."""
    lower = about["at_least"]
    missing: list[_Place] = []
    idle: list[_Place] = []
    result: list[tuple[float, Key]] = []
    places = list(_places(inputs, about))
    if about["device"] is not None and any(place.key for place in places):
        places = [place for place in places if place.key]  # the other hosts have no such device
    for place in places:
        value = _value(inputs, place.key, about["figure"]) if place.key else None
        if value is not None and place.key is not None:
            result.append((value, place.key))
        elif place.key is not None and place.key.metric.endswith("_latency_s"):
            idle.append(place)
        else:
            missing.append(place)
    if not result:
        without = [*missing, *(one._replace(why=f"{one.why}: there was no such I/O") for one in idle)]
        why = without[0].why if without else f"no host or disk of the farm fits: {of_servers(about)}"
        return _Measured(None, "", None, why)
    value, key = (min if lower else max)(result)
    met = value >= about["target"] if lower else value <= about["target"]
    where = " ".join(filter(None, (key.host, key.instance)))
    if met and missing:
        return _Measured(value, where, None, f"{missing[0].why}; met on {where}")
    return _Measured(value, where, met, _partly(inputs, key))


def _partly(inputs: Inputs, key: Key) -> str:
    """A note if a series covers only part of the time; "" for a latency, which has no value without I/O."""
    series = inputs.samples.series(*key)
    seen = inputs.samples.seen_ratio(*key)
    if series is None or series.weighted or seen >= SEEN:
        return ""
    return f"measured for {units.percent(seen)} of the time"


def _value(inputs: Inputs, key: Key, figure: str) -> float | None:
    series = inputs.samples.series(*key)
    if series is None or not series.measured:
        return None
    if figure == "mean":
        return series.mean()
    if figure == "max":
        return series.maximum()
    steps = inputs.samples.steps(*key)
    steps = steps[np.isfinite(steps)]
    if not len(steps):
        return None
    return float(steps.min() if figure == "min" else np.percentile(steps, float(figure.removeprefix("p"))))


def _places(inputs: Inputs, about: Mapping[str, Any]) -> Iterator[_Place]:
    """Every series that must meet the objective, and each host of the objective without such a series."""
    for host in inputs.hosts:
        if about["tier"] not in (None, host.tier) or about["host"] not in (None, host.name):
            continue
        if about["role"] is not None:
            yield from _disks(inputs, host, about)
        else:
            yield from _of_host(inputs, host, about)


def _disks(inputs: Inputs, host: Host, about: Mapping[str, Any]) -> Iterator[_Place]:
    """The series of the disk with the objective's role; hosts of one machine have the same series."""
    metric = about["metric"]
    for disk in inputs.disks:
        if (disk.host, disk.tier, disk.role) != (host.name, host.tier, about["role"]):
            continue
        if disk.device is None:
            yield _Place(host.name, None, f"the {disk.role} disk of {host.name}: {disk.why or 'not found'}")
            continue
        names = [host.name, *inputs.names_on(host.machine)]
        there = [name for name in names if inputs.samples.series(name, metric, disk.device) is not None]
        key = Key(there[0], metric, disk.device) if there else None
        yield _Place(host.name, key, _silent(metric, host.name, f", disk {disk.device}"))


def _of_host(inputs: Inputs, host: Host, about: Mapping[str, Any]) -> Iterator[_Place]:
    metric, device = about["metric"], about["device"]
    there = [key for key in inputs.samples.keys(metric) if key.host == host.name]
    if metric.startswith(("cpu.", "mem.", "pressure.")):
        own = f"tier:{host.tier}" if about["tier"] else ""
        instances = {key.instance for key in there}
        there = [key for key in there if key.instance == (own if own in instances else "")]
    elif device is not None:
        there = [key for key in there if key.instance == device]
    why = _silent(metric, host.name, f", {device}" if device else "")
    if not there:
        yield _Place(host.name, None, why)
    yield from (_Place(host.name, key, why) for key in there)


def _silent(metric: str, host: str, more: str) -> str:
    return f"no value of {metric} on {host}{more}"
