"""Defines the figures for comparing runs: their names, and which direction is better.

The full name of a figure is ``ABOUT.THING.FIGURE``. A plan's ``compare.metrics`` and ``--metric`` use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Better = Literal["higher", "lower"]
About = Literal["source", "disk", "cpu", "scenario", "burst", "effort", "cost"]

CHANGED = frozenset({"better", "worse", "changed"})
"""The words for a figure that has changed."""

MOST_METRICS = 6
"""Largest number of judged figures. With more figures, some are likely to change by chance."""

FIGURES: Mapping[str, Mapping[str, Better | None]] = {
    "source": {
        "count": None,
        "failures": "lower",
        "duration_s": "lower",
        "rate_per_s": "higher",
        "repository_latency_s": "lower",
    },
    "disk": {
        "write_latency_mean_s": "lower",
        "write_latency_max_s": "lower",
        "read_latency_mean_s": "lower",
        "iops_mean": None,
        "iops_max": None,
        "io_per_operation": "lower",
    },
    "cpu": {"busy_mean_ratio": None, "busy_max_ratio": None},
    "scenario": {
        "throughput_per_s": "higher",
        "response_p50_s": "lower",
        "response_p95_s": "lower",
        "service_p50_s": "lower",
        "service_p95_s": "lower",
    },
    "burst": {
        "done": "higher",
        "p50_s": "lower",
        "p99_s": "lower",
        "backlog": "lower",
        "recovery_s": "lower",
    },
    "effort": {"cpu_s": "lower", "burst_cpu_s": "lower"},
    "cost": {"worth_per_s": "higher"},
}
"""Group of figures -> figure -> better direction; None: neither (more I/O is not better by itself).

The groups and names are ``source.SOURCE``, ``disk.TIER.ROLE``, ``cpu.TIER``, ``scenario.SCENARIO``,
``burst.SCENARIO``, ``effort.SCENARIO.TIER`` and ``cost.SCENARIO``. If a tier has several hosts, its name is
``TIER.HOST``.
"""

_NAMES: Mapping[str, tuple[str, str]] = {
    "throughput_per_s": ("", "throughput"),
    "rate_per_s": ("", "crawl rate"),
    "busy_mean_ratio": ("busy, mean", "CPU busy, mean"),
    "busy_max_ratio": ("busy at most", "CPU busy, max"),
    "iops_mean": ("IOPS", "IOPS, mean"),
    "iops_max": ("IOPS at most", "IOPS, max"),
    "write_latency_mean_s": ("a write", "s/write, mean"),
    "write_latency_max_s": ("the longest writes", "s/write, max"),
    "read_latency_mean_s": ("a read", "s/read, mean"),
    "io_per_operation": ("I/O per operation", "io per operation"),
    "recovery_s": ("time to recover", "recovery"),
    "cpu_s": ("CPU time", "CPU time"),
    "burst_cpu_s": ("CPU time", "CPU time of a burst"),
}
"""Figure -> its name in a sentence that names the subject elsewhere, and its name in a table."""


def figure_names(metric: str) -> tuple[str, str]:
    """Return the name of a figure in a sentence and in a table."""
    plain = metric.removeprefix("response_").removeprefix("service_").removesuffix("_s").replace("_", " ")
    return _NAMES.get(metric, (plain, plain))


OF_SCENARIOS: frozenset[str] = frozenset({"scenario", "burst", "effort", "cost"})
"""Groups of figures whose names begin with the name of a scenario."""


def split(name: str) -> tuple[str, tuple[str, ...], str]:
    """Split the name of a figure into group, subject and figure. A subject may have several parts."""
    about, *thing, figure = name.split(".") if name.count(".") >= 2 else (name, "", "")
    return about, tuple(thing), figure


def part_of(name: str) -> tuple[str | None, str | None]:
    """Return the tier and the disk role in the name of a figure; None if it has none."""
    about, thing, _ = split(name)
    if about == "effort":
        return thing[1] if len(thing) > 1 else None, None
    if about == "cpu":
        return thing[0], None
    if about == "disk":
        return thing[0], thing[-1] if len(thing) > 1 else None
    return None, None
