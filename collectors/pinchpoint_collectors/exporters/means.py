"""Converts series of counters and gauges into samples, by an exporter's table. Pure.

Counters become rates from one scrape to the next, without smoothing; an interval in which a counter fell (a
restart) is "not measured". Two scrapes far apart have a gap between them, which is not measured.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pinchpoint_collectors import bounds
from pinchpoint_collectors.record import Sample

GAP = 2.5
"""Factor of the usual interval. Two scrapes further apart have a gap between them, which no value covers."""

Labels = Mapping[str, str]
Points = Mapping[float, float]
"""UTC seconds -> value."""
Series = tuple[Labels, Points]
Key = tuple[str, str, str]
"""Identity of a figure: name of the metric, instance (such as a CPU core), mode of a CPU."""
NAME = "__name__"


@dataclass(frozen=True, slots=True)
class SeriesMeans:
    """The metric for a series.

    Attributes:
        metric: name of the metric.
        label: label with the instance; "": there is only one.
        kind: ``counter``: its rate; ``gauge``: its value; ``latency``: its increase ÷ that of ``per``;
            ``idle``: 1 - its rate.
        scale: factor to base units.
        per: for a latency, counter of its operations.
        plus: for a counter, another counter that is added.
    """

    metric: str
    label: str = ""
    kind: Literal["counter", "gauge", "latency", "idle"] = "counter"
    scale: float = 1.0
    per: str = ""
    plus: str = ""


@dataclass(frozen=True, slots=True)
class CoreSeconds:
    """The series with the seconds of each core by mode.

    Attributes:
        name: name of the series.
        core: label with the name of the core.
        modes: modes that add up to all time; empty: all except ``guest`` modes, which are part of others.
        shares: mode -> metric of its share. Busy time is all modes except these and ``idle``.
    """

    name: str
    core: str
    modes: frozenset[str] = frozenset()
    shares: Mapping[str, str] = field(default_factory=dict)

    def counts(self, mode: str) -> bool:
        """Return whether the time of a mode is part of all time."""
        return mode in self.modes if self.modes else not mode.startswith("guest")


@dataclass(frozen=True, slots=True)
class Exporter:
    """The series of one kind of exporter.

    Attributes:
        name: name of the exporter.
        system: operating system that the exporter measures.
        means: series -> metric. CPUs and the size of memory are combined separately.
        cpu: series of its CPUs.
        memory: names of the memory size in different versions; the first existing one counts.
        available: series of available memory.
        disks: series that every disk has; ``means`` has its label.
    """

    name: str
    system: str
    means: Mapping[str, SeriesMeans]
    cpu: CoreSeconds
    memory: tuple[str, ...]
    available: str
    disks: str

    @property
    def names(self) -> frozenset[str]:
        """Return all series that the query requests."""
        more = {each.plus for each in self.means.values() if each.plus}
        return frozenset({*self.means, *more, self.cpu.name, *self.memory})


def increases(
    pieces: Sequence[Points], usual_s: float | None = None
) -> Iterator[tuple[float, float, float | None]]:
    """Yield time, seconds since the last scrape, and the increase of a counter, or None if it fell.

    Intervals longer than ``GAP`` usual ones are left out, because the time of the increase within them is
    unknown. So is the interval between two pieces, in which another counter may have begun.

    Args:
        pieces: pieces of one series, as returned by ``joined``.
        usual_s: scrape interval in seconds; None: derived from the points.
    """
    steps = [step for points in pieces for step in itertools.pairwise(sorted(points))]
    if usual_s is None:
        lengths = sorted(later - earlier for earlier, later in steps)
        usual_s = lengths[len(lengths) // 2] if lengths else 0.0
    value_at = _level(pieces)
    for earlier, later in steps:
        if later - earlier <= GAP * usual_s:
            more = value_at[later] - value_at[earlier]
            yield later, later - earlier, more if more >= 0 else None


def joined(exporter: Exporter, series: Iterable[Series]) -> dict[Key, list[Points]]:
    """Return series by what they measure, each as pieces in order of time that do not overlap.

    One counter has several series if a label changed: the series of an exporter's old pod ends, and another
    begins. If two overlap (two jobs scrape one exporter), the later one is used.
    """
    result: dict[Key, list[Points]] = {}
    for labels, points in sorted((each for each in series if each[1]), key=lambda each: min(each[1])):
        key, begin_s, end_s = _key(exporter, labels), min(points), max(points)
        before = [{at: one[at] for at in one if at < begin_s} for one in result.get(key, ())]
        after = [{at: one[at] for at in one if at > end_s} for one in result.get(key, ())]
        result[key] = [piece for piece in (*before, points, *after) if piece]
    return result


def samples(
    exporter: Exporter, host: str, series: Sequence[Series], usual_s: float | None = None
) -> Iterator[Sample]:
    """Yield one sample per value and scrape, except the first scrape, at the times of the scrapes.

    Args:
        exporter: exporter of the series.
        host: host of the samples.
        series: series of one host. Those of other exporters are left out.
        usual_s: scrape interval in seconds; None: derived from the points.
    """
    named = joined(exporter, series)
    disk = exporter.means[exporter.disks].label
    partitions = _partitions({labels[disk] for labels, _ in series if disk in labels})
    for (name, instance, _), pieces in named.items():
        means = exporter.means.get(name)
        if means is None or (means.metric.startswith("disk.") and instance in partitions):
            continue
        other = named.get((means.per or means.plus, instance, ""), ())
        for time_s, interval_s, value, weight in _values(means, pieces, other, usual_s):
            yield Sample(round(time_s * 1e9), interval_s, host, means.metric, instance, value, weight)
    yield from _cpus(exporter.cpu, host, named, usual_s)
    yield from _memory(exporter, host, named, usual_s)


def facts(exporter: Exporter, series: Iterable[Series]) -> dict[str, Any]:
    """Return the facts of the machine for the inventory, from its series."""
    result: dict[str, Any] = {"os": exporter.system}
    cores, sizes = set(), []
    for labels, points in series:
        if labels.get(NAME) == exporter.cpu.name:
            cores.add(core_of(labels.get(exporter.cpu.core, "")))
        if labels.get(NAME) in exporter.memory:
            sizes += list(points.values())
    numbers = sorted(int(core) for core in cores if core.isdecimal())
    if numbers:
        result |= {"cores": len(numbers), "usable_cores": numbers}
    if sizes:
        result["memory_bytes"] = round(max(sizes))
    return result


def core_of(label: str) -> str:
    """Return the number of a core: 0 of ``cpu0``, and without the group 0 that Windows puts before it."""
    group, comma, core = label.partition(",")
    return (core if comma and group == "0" else label).removeprefix("cpu")


def whole_disks(devices: Collection[str]) -> list[str]:
    """Return the disks without partitions: ``sda1`` beside ``sda``, ``nvme0n1p1`` beside ``nvme0n1``."""
    return sorted(set(devices) - _partitions(devices))


def _partitions(devices: Collection[str]) -> set[str]:
    return {each for each in devices if any(is_part(each, disk) for disk in devices)}


def is_part(device: str, disk: str) -> bool:
    """Return whether a device is a partition of a disk, by the names that the kernel gives."""
    rest = device.removeprefix(disk)
    if rest == device or not rest:
        return False
    # If the name of a disk ends in a digit, a p separates the number of the partition.
    return rest.isdecimal() if not disk[-1].isdecimal() else rest[0] == "p" and rest[1:].isdecimal()


def _key(exporter: Exporter, labels: Labels) -> Key:
    name, cpu = labels.get(NAME, ""), exporter.cpu
    if name == cpu.name:
        return name, core_of(labels.get(cpu.core, "")), labels.get("mode", "")
    return name, _instance(exporter, name, labels), ""


def _instance(exporter: Exporter, name: str, labels: Labels) -> str:
    means = exporter.means.get(name)
    if means is None:  # a counter that is only added to another
        means = next((each for each in exporter.means.values() if each.plus == name), None)
    return labels.get(means.label, "") if means is not None and means.label else ""


def _level(pieces: Iterable[Points]) -> Points:
    """Yield the values at each time."""
    return {at: value for points in pieces for at, value in points.items()}


def _values(
    means: SeriesMeans, pieces: Sequence[Points], other: Sequence[Points], usual_s: float | None
) -> Iterator[tuple[float, float, float | None, float | None]]:
    """Yield time, interval, value and weight of every scrape except the first of a piece."""
    more_of = {time_s: more for time_s, _, more in increases(other, usual_s)}
    level = _level(pieces)
    for time_s, interval_s, more in increases(pieces, usual_s):
        if means.kind == "gauge":
            # An exporter reports -1 for an unknown speed.
            yield time_s, interval_s, level[time_s] * means.scale if level[time_s] >= 0 else None, None
        elif means.kind == "latency":
            count = more_of.get(time_s)
            mean = more * means.scale / count if more is not None and count else None
            yield time_s, interval_s, mean, count
        elif means.kind == "idle":
            yield time_s, interval_s, None if more is None else bounds.share(1 - more / interval_s), None
        else:
            added = more_of.get(time_s) if means.plus else 0.0
            total = None if more is None or added is None else more + added
            yield time_s, interval_s, None if total is None else total / interval_s * means.scale, None


def _cpus(
    cpu: CoreSeconds, host: str, named: Mapping[Key, Sequence[Points]], usual_s: float | None
) -> Iterator[Sample]:
    """Yield busy shares of each core and of all cores, from the times of all CPU states."""
    spent: dict[str, dict[str, dict[float, tuple[float, float | None]]]] = {}
    for (name, core, mode), pieces in named.items():
        if name == cpu.name:
            result = {at: (step, more) for at, step, more in increases(pieces, usual_s)}
            spent.setdefault(core, {})[mode] = result
    whole: dict[float, list[dict[str, float]]] = {}
    steps: dict[float, float] = {}
    for core, modes in spent.items():
        for time_s in modes.get("idle", {}):
            known = {mode: at[time_s] for mode, at in modes.items() if time_s in at}
            steps[time_s] = known["idle"][0]
            each = {mode: more for mode, (_, more) in known.items() if more is not None}
            if len(each) == len(known):
                whole.setdefault(time_s, []).append(each)
            own = [each] if len(each) == len(known) else []
            yield from _ratios(cpu, host, core, time_s, steps[time_s], own)
    for time_s, step in steps.items():
        yield from _ratios(cpu, host, "", time_s, step, whole.get(time_s, []))


def _ratios(
    cpu: CoreSeconds,
    host: str,
    instance: str,
    time_s: float,
    interval_s: float,
    cores: Sequence[Mapping[str, float]],
) -> Iterator[Sample]:
    own = [{mode: more for mode, more in core.items() if cpu.counts(mode)} for core in cores]
    all_s = sum(sum(core.values()) for core in own)
    result: dict[str, float | None] = dict.fromkeys(("cpu.busy_ratio", *cpu.shares.values()))
    if all_s > 0:
        share = {mode: sum(core.get(mode, 0.0) for core in own) / all_s for mode in ("idle", *cpu.shares)}
        result |= {metric: share[mode] for mode, metric in cpu.shares.items()}
        result["cpu.busy_ratio"] = bounds.share(1.0 - sum(share.values()))
    for metric, value in result.items():
        yield Sample(round(time_s * 1e9), interval_s, host, metric, instance, value)


def _memory(
    exporter: Exporter, host: str, named: Mapping[Key, Sequence[Points]], usual_s: float | None
) -> Iterator[Sample]:
    sizes = next((result for name in exporter.memory if (result := named.get((name, "", "")))), ())
    pieces = named.get((exporter.available, "", ""), ())
    total, left = _level(sizes), _level(pieces)
    for time_s, interval_s, _ in increases(pieces, usual_s):
        if total.get(time_s):
            ratio = left[time_s] / total[time_s]
            yield Sample(round(time_s * 1e9), interval_s, host, "mem.available_ratio", "", ratio)
