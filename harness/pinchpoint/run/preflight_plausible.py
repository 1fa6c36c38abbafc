"""Is a reading what its metrics' names promise? Pure: samples and an inventory in, sentences out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pinchpoint.base.units import of_metric
from pinchpoint_collectors.record import Sample

_ROUNDING = 0.05
"""A ratio of two counters that are read one after the other, over a second: a few ticks above 1."""
_LONGEST_LATENCY_S = 60.0
"""Kernels give an operation on a disk up after 30 s (Linux) or 60 s (Windows)."""
_MOST_BYTES_PER_S = 1e12
_MOST_PER_S = 1e9
"""Beyond what machines of today do in a second: such a figure is in another unit, or no rate at all."""
_LARGEST_IO_BYTES = 64 << 20
"""Linux' largest request is far smaller (max_hw_sectors_kb); a larger mean has sectors or KiB for bytes."""
_FEWEST = 10.0
"""A mean over fewer operations a second says little."""
_NEGATIVE = ("collector.clock_offset_s",)


def implausible(samples: Sequence[Sample], facts: Mapping[str, Any]) -> list[str]:
    """What no machine can have measured, a sentence each.

    Args:
        samples: one reading of one host.
        facts: the host's inventory: its memory, and how many cores its tier may use.
    """
    found = [sentence for sample in samples if (sentence := _beyond(sample))]
    return [*found, *_beside(samples, facts)]


def _beyond(sample: Sample) -> str | None:
    """Whether one value is outside of what its name allows."""
    value = sample.value
    if value is None:
        return None
    lowest, highest = _bounds(sample.metric)
    if math.isfinite(value) and lowest <= value <= highest:
        return None
    name = f"{sample.metric} {sample.instance}".strip()
    shown = of_metric(sample.metric, value) if math.isfinite(value) else str(value)
    edge = f"from {of_metric(sample.metric, lowest)} on" if value < lowest else _up_to(sample.metric, highest)
    return f"{name} is {shown}; plausible: {edge}"


def _bounds(metric: str) -> tuple[float, float]:
    if metric in _NEGATIVE:
        return -math.inf, math.inf
    if metric.endswith("_ratio"):
        return 0.0, 1.0 + _ROUNDING
    if metric.endswith("_latency_s"):
        return 0.0, _LONGEST_LATENCY_S
    if metric.endswith("_bytes_per_s"):
        return 0.0, _MOST_BYTES_PER_S
    if metric.endswith("_per_s"):
        return 0.0, _MOST_PER_S
    return 0.0, math.inf


def _up_to(metric: str, highest: float) -> str:
    return f"up to {of_metric(metric, highest)}" if math.isfinite(highest) else "a finite number"


def _beside(samples: Sequence[Sample], facts: Mapping[str, Any]) -> Iterator[str]:
    """Values that contradict another value, or the inventory."""
    values = {(each.metric, each.instance): each.value for each in samples if each.value is not None}
    memory = facts.get("memory_bytes")
    available = values.get(("mem.available_bytes", ""))
    if memory and available is not None and available > memory:
        yield (
            f"mem.available_bytes is {of_metric('_bytes', available)}; "
            f"the machine has {of_metric('_bytes', memory)}"
        )
    for (metric, instance), value in values.items():
        if metric in ("disk.reads_per_s", "disk.writes_per_s") and value >= _FEWEST:
            which = metric.removeprefix("disk.").removesuffix("s_per_s")
            moved = values.get((f"disk.{which}_bytes_per_s", instance))
            if moved is not None and moved / value > _LARGEST_IO_BYTES:
                yield f"a {which} on {instance} is {of_metric('_bytes', moved / value)} in the mean"
        if metric in ("net.received_bytes_per_s", "net.sent_bytes_per_s"):
            speed = values.get(("net.speed_bytes_per_s", instance))
            if speed and value > speed * (1 + _ROUNDING):
                yield (
                    f"{metric} {instance} is {of_metric(metric, value)}; "
                    f"the interface does {of_metric(metric, speed)}"
                )


def moved(samples: Iterable[Sample]) -> tuple[int, int]:
    """How many of the rates and shares were above 0, and how many were measured."""
    rates = [
        each.value
        for each in samples
        if each.value is not None and each.metric.endswith(("_per_s", "_ratio")) and each.interval_s > 0
    ]
    return sum(value > 0 for value in rates), len(rates)


def unread(samples: Iterable[Sample]) -> list[str]:
    """Metrics without a value, as ``disk.reads_per_s (sda, sdb)``; a mean of no operations lacks none."""
    lacking: dict[str, list[str]] = {}
    for each in samples:
        if each.value is None and each.weight != 0:
            lacking.setdefault(each.metric, []).append(each.instance)
    return [
        metric if instances == [""] else f"{metric} ({', '.join(instances)})"
        for metric, instances in lacking.items()
    ]


def absent(samples: Iterable[Sample], facts: Mapping[str, Any]) -> list[str]:
    """What any machine shows, and each disk that has a role, but this reading has not."""
    names = {(each.metric, each.instance) for each in samples}
    if not any(metric.startswith(("cpu.", "mem.", "disk.")) for metric, _ in names):
        return []  # it watches no machine, but a server from within
    said = {each["metric"] for each in facts.get("not_measured", ())}
    wanted = [("cpu.busy_ratio", ""), ("mem.available_bytes", "")]
    for role in facts.get("roles", {}).values():
        if role.get("device"):
            wanted += [(f"disk.{what}", role["device"]) for what in _OF_A_DISK]
    lacking = [each for each in dict.fromkeys(wanted) if each not in names and each[0] not in said]
    return [f"{metric} {instance}".strip() for metric, instance in lacking]


_OF_A_DISK = (
    "reads_per_s",
    "writes_per_s",
    "read_bytes_per_s",
    "write_bytes_per_s",
    "read_latency_s",
    "write_latency_s",
)
