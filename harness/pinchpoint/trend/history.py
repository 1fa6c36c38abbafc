"""Reads the runs of a plan in a folder, oldest first, with the figures whose trend is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pinchpoint.analysis.saved import saved_verdict
from pinchpoint.base.errors import InputError
from pinchpoint.base.figures import Better
from pinchpoint.base.objects import object_at
from pinchpoint.plan.compare import NO_WORK
from pinchpoint.plan.problems import listed
from pinchpoint.store.read import read_manifest
from pinchpoint.store.schema import MANIFEST
from pinchpoint_collectors.common.names import nearest

FOLLOWED: tuple[tuple[str, Better], ...] = (
    ("throughput_per_s", "higher"),
    ("response_p95_s", "lower"),
    ("service_p95_s", "lower"),
)
"""The figures of a scenario whose trend is shown.

Service time is used only for scenarios without a response time.
"""
CRAWLED: tuple[tuple[str, Better], ...] = (("rate_per_s", "higher"), ("repository_latency_s", "lower"))
"""The figures of a crawled source whose trend is shown."""

DEEPEST = 3
"""The depth of folders that are searched: a set of runs has a folder for each farm, with run folders in
it."""


@dataclass(frozen=True, slots=True)
class FigureKey:
    """Identifies a series of figures.

    Attributes:
        farm: name of the farm; runs on different farms form different series.
        about: name of the scenario or of the crawled source.
        metric: name of the figure, which ends with its unit.
        better: direction of an improvement: ``higher`` or ``lower``.
    """

    farm: str
    about: str
    metric: str
    better: Better


@dataclass(frozen=True, slots=True)
class Entry:
    """One run's value in a series.

    Attributes:
        run: name of the run directory.
        started: start of the run, ISO text in UTC.
        value: value in the base unit of the figure.
    """

    run: str
    started: str
    value: float


@dataclass(frozen=True, slots=True)
class Histories:
    """The series of a plan's figures over its runs.

    Attributes:
        plan: name of the plan.
        series: values of each series, oldest run first.
        zero_since: first of the newest runs with the value 0, for series that ended so; a series never
            contains 0.
        left_out: runs that are not counted, each with the reason.
        warnings: sentences about differences that make runs less comparable.
    """

    plan: str
    series: Mapping[FigureKey, tuple[Entry, ...]]
    zero_since: Mapping[FigureKey, Entry]
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]


def read_histories(directory: Path, plan: str) -> Histories:
    """The series of a plan's finished runs in a folder, including runs in sets.

    Args:
        directory: folder that contains run directories.
        plan: name of the plan.

    Raises:
        InputError: the directory does not exist, or contains no run of that plan.
    """
    if not directory.is_dir():
        raise InputError(f"{directory}: is not a directory; `pinchpoint run` writes its runs to ./runs")
    result, names, left_out = [], set(), []
    for place in _run_directories(directory):
        try:
            manifest = read_manifest(place)
        except InputError as error:
            left_out.append(str(error))
            continue
        name = str(object_at(manifest, "plan").get("name"))
        names.add(name)
        if name == plan:
            result.append((str(manifest["started"]), place, manifest))
    if not result:
        raise InputError(
            f"--trend {plan}: {directory} contains no run of this plan; it contains runs of: "
            f"{listed(sorted(names))}{nearest(plan, names)}"
        )
    result.sort(key=lambda one: (one[0], str(one[1])))
    return _gathered(plan, [(place, manifest) for _, place, manifest in result], left_out)


def _run_directories(directory: Path) -> Iterator[Path]:
    for depth in range(1, DEEPEST + 1):
        pattern = f"{'*/' * depth}{MANIFEST}"
        yield from (path.parent for path in sorted(directory.glob(pattern)))


def _gathered(plan: str, runs: Iterable[tuple[Path, Mapping[str, Any]]], left_out: list[str]) -> Histories:
    series: dict[FigureKey, list[Entry]] = {}
    zero_since: dict[FigureKey, Entry] = {}
    plans: dict[str, tuple[str, Any]] = {}
    warnings: list[str] = []
    for place, manifest in runs:
        if manifest["state"] != "finished":
            left_out.append(f"{place.name}: the run is not complete ({manifest['state']})")
            continue
        try:
            verdict = saved_verdict(place)
        except InputError as error:  # one damaged run must not hide all others
            left_out.append(str(error))
            continue
        if verdict["outcome"] == "invalid":
            left_out.append(f"{place.name}: invalid run")
            continue
        farm = str(object_at(manifest, "farm").get("name"))
        before = plans.get(farm)
        work = {key: value for key, value in manifest["plan"].items() if key not in NO_WORK}
        if before is not None and before[1] != work:
            warnings.append(
                f"{farm}: the plan changed between {before[0]} and {place.name}: a change of level there "
                "may come from the plan"
            )
        plans[farm] = (place.name, work)
        for key, value in _figures(farm, verdict):
            entry = Entry(place.name, str(manifest["started"]), value)
            if value > 0:
                series.setdefault(key, []).append(entry)
                zero_since.pop(key, None)
            else:  # 0 has no logarithm, so the value is reported but is not part of the series
                warnings.append(
                    f"{place.name}: {key.metric} of {key.about} on {farm} was 0; it is not part of the trend"
                )
                zero_since.setdefault(key, entry)
    return Histories(
        plan,
        {key: tuple(entries) for key, entries in series.items()},
        zero_since,
        tuple(left_out),
        tuple(warnings),
    )


def _figures(farm: str, verdict: Mapping[str, Any]) -> Iterator[tuple[FigureKey, float]]:
    """(key, value) of each measured figure of a verdict."""
    for scenario, figures in object_at(verdict, "scenarios").items():
        timed = figures.get("response_p95_s") is not None
        for metric, better in FOLLOWED:
            if metric == "service_p95_s" and timed:
                continue  # response time includes service time, so it is enough
            if figures.get(metric) is not None:
                yield FigureKey(farm, scenario, metric, better), float(figures[metric])
    for row in verdict.get("crawl") or ():
        for metric, better in CRAWLED:
            if row.get(metric) is not None:
                yield FigureKey(farm, str(row["source"]), metric, better), float(row[metric])
