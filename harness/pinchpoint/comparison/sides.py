"""Reads the two sides of a comparison: runs, verdicts, CPU time per unit of work and host pairs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pinchpoint.analysis import analyse
from pinchpoint.analysis.bursts import burst_steps
from pinchpoint.analysis.flows import READS_ONLY
from pinchpoint.analysis.proof import without_proof
from pinchpoint.analysis.resources.cpu import cores_used
from pinchpoint.analysis.stations import CRAWL_TIERS, ENDPOINT, SOURCE_TIER, find_stations
from pinchpoint.base import wording
from pinchpoint.base.clock import seconds_of
from pinchpoint.base.errors import InputError
from pinchpoint.base.objects import JsonObject, object_at
from pinchpoint.comparison.intervals import FigureCourse, Key, RatioOfSums, courses_of, joined
from pinchpoint.comparison.timelines import RunTimeline, timeline_of
from pinchpoint.data.inputs import Host, Inputs, Load, read_inputs
from pinchpoint.data.operations import Traffic
from pinchpoint.data.series import Floats, Window
from pinchpoint.forecast import predict_beside
from pinchpoint.store.read import open_run, read_manifest
from pinchpoint.store.schema import MANIFEST

# CPU time of each tier per unit of work: a document, a commit or a burst. If a plan has several scenarios,
# the CPU time is computed only for tiers that one scenario alone uses, because the CPU time of a shared tier
# cannot be attributed to a scenario.

_SQL_ONLY = ("sql-script", "sql-replay")
"""Scenarios whose operations all go to the SQL tier and which ``stations`` does not know."""
_REPORTED = frozenset({*ENDPOINT.values(), *SOURCE_TIER.values(), *CRAWL_TIERS})
"""Tiers whose users are known; any scenario may use a tier with another name."""
LEAST_SEEN = 0.5
"""The minimum share of the measured time with CPU samples."""


@dataclass(frozen=True, slots=True, eq=False)
class Effort:
    """CPU time of one tier per unit of a scenario's work, in one run.

    Attributes:
        scenario: the scenario that does the work.
        tier: the tier whose processes use the CPU time, summed over all its hosts.
        metric: ``cpu_s``, or ``burst_cpu_s`` if the unit is a burst.
        per: the unit of work: ``document``, ``commit``, ``operation`` or ``burst``.
        value: CPU seconds per unit of work; None if not known.
        why: why ``value`` is not known, one clause; None if it is known.
        course: the CPU time per step; None if there is none.
    """

    scenario: str
    tier: str
    metric: str
    per: str
    value: float | None
    why: str | None = None
    course: RatioOfSums | None = None

    @property
    def thing(self) -> tuple[str, str, str]:
        """The scenario, tier and metric, which are the same on both sides."""
        return self.scenario, self.tier, self.metric


def efforts_of(inputs: Inputs) -> tuple[Effort, ...]:
    """The CPU time per unit of work, for each scenario at each tier it uses; empty without operations."""
    if inputs.window.steps == 0:
        return ()
    return tuple(_efforts(inputs))


def _efforts(inputs: Inputs) -> Iterator[Effort]:
    tiers = list(dict.fromkeys(host.tier for host in inputs.hosts))
    at = {load.scenario: _tiers(inputs, load, tiers) for load in inputs.loads}
    used = {tier: _cores(inputs, tier) for tier in tiers}
    for load in inputs.loads:
        work = inputs.traffic.of(load.scenario).whole().ok()
        if not work.count:
            continue
        for tier in at[load.scenario]:
            others = [name for name, there in at.items() if tier in there]
            yield from _of_tier(inputs, load, work, tier, used[tier], others)


def _tiers(inputs: Inputs, load: Load, tiers: Sequence[str]) -> tuple[str, ...]:
    """The tiers that a scenario uses; all tiers if its use is not known."""
    known = {"sql"} if load.use in _SQL_ONLY else {one.tier for one in find_stations(inputs, load)}
    return tuple(tier for tier in tiers if not known or tier in known or tier not in _REPORTED)


def _of_tier(
    inputs: Inputs, load: Load, work: Traffic, tier: str, used: Floats | str, there: Sequence[str]
) -> Iterator[Effort]:
    def effort(metric: str, per: str, found: float | str, course: RatioOfSums | None = None) -> Effort:
        value, why = (None, found) if isinstance(found, str) else (found, None)
        return Effort(load.scenario, tier, metric, per, value, why, course)

    per, bursts = _unit(load, work), load.model == "burst"
    if len(there) > 1 and not isinstance(used, str):
        used = f"{wording.listed(list(there))} work there, and which of them is busy is not known"
    if isinstance(used, str):
        yield effort("cpu_s", per, used)
        if bursts:
            yield effort("burst_cpu_s", "burst", used)
        return
    seen = np.isfinite(used)
    step_s = float(inputs.window.step_s)
    done = np.where(seen, work.per_step(inputs.window) * step_s, 0.0)
    spent = np.where(seen, used, 0.0) * step_s
    if not done.sum():
        yield effort("cpu_s", per, "nothing was done while its CPU was watched")
        return
    course = RatioOfSums(joined(spent), joined(done))
    yield effort("cpu_s", per, course.value, course)
    if bursts:
        yield effort("burst_cpu_s", "burst", _of_a_burst(inputs, load, spent, seen))


def _of_a_burst(inputs: Inputs, load: Load, spent: Floats, seen: npt.NDArray[np.bool_]) -> float | str:
    """Mean CPU seconds per burst, from bursts with complete samples; else why they are not known."""
    result = burst_steps(inputs, load)
    whole = [float(spent[start:end].sum()) for start, end in result if seen[start:end].all()]
    return float(np.mean(whole)) if whole else "no burst was seen whole"


def _unit(load: Load, work: Traffic) -> str:
    """The unit of work: documents of a crawl, commits if every operation commits, else operations."""
    if load.use == "full-crawl":
        return "document"
    commits = load.use == "sql-mix" and not set(work.operation_names) & set(READS_ONLY)
    return "commit" if commits else "operation"


def _cores(inputs: Inputs, tier: str) -> Floats | str:
    """CPU cores that a tier used in each step, NaN if not measured; or why they are not known."""
    total = np.zeros(inputs.window.steps)
    for host in (one for one in inputs.hosts if one.tier == tier):
        result = _of_host(inputs, host)
        if isinstance(result, str):
            return result
        total = total + result
    if np.isfinite(total).mean() < LEAST_SEEN:
        return "its CPU was not measured for most of the time"
    return total


def _of_host(inputs: Inputs, host: Host) -> Floats | str:
    """CPU of the tier's own processes, or of the whole machine if no other tier or generator shares it."""
    own = cores_used(inputs, host)
    if np.isfinite(own).any():
        return own
    if not np.isfinite(inputs.samples.steps(host.name, "cpu.busy_ratio")).any():
        return f"no CPU samples of {host.name}"
    if len(inputs.on_machine(host.machine)) > 1 or _generates(inputs, host):
        return f"its processes on {host.name} were not watched, and it shares that machine"
    if not host.usable:
        return f"how many cores {host.name} has is not known"
    return inputs.samples.steps(host.name, "cpu.busy_ratio") * float(len(host.usable))


def _generates(inputs: Inputs, host: Host) -> bool:
    """Whether load generators run on a host's machine.

    A generator of unknown machine counts if all hosts are on one machine.
    """
    single = len({one.machine for one in inputs.hosts}) == 1
    return any(
        worker.machine == host.machine or (worker.machine is None and single) for worker in inputs.generators
    )


def courses(efforts: Sequence[Effort]) -> dict[Key, FigureCourse]:
    """The figures that have values over time, by the key of their change."""
    return {
        ("effort", f"{one.scenario}.{one.tier}", None, None, one.metric): one.course
        for one in efforts
        if one.course is not None
    }


@dataclass(frozen=True, slots=True)
class HostPair:
    """A host of the base and the corresponding host of the other side.

    Attributes:
        tier: the tier of the hosts.
        base: the host's name in the base; None if the base has no such host.
        other: the host's name in the other side; None if the other side has no such host.
    """

    tier: str
    base: str | None
    other: str | None

    @property
    def name(self) -> str:
        """``sql1``, or ``devsql1 / prodsql1`` if the names differ."""
        return " / ".join(dict.fromkeys(name for name in (self.base, self.other) if name))


@dataclass(frozen=True, slots=True)
class HostPairs:
    """The paired hosts of both sides: equal names first, the others by their order in the tier."""

    all: tuple[HostPair, ...]

    def of(self, tier: str, host: str, side: str) -> HostPair:
        """The pair of a host of one side (``base`` or ``other``); an unknown host forms a pair alone."""
        for place in self.all:
            if place.tier == tier and getattr(place, side) == host:
                return place
        return HostPair(tier, host, None) if side == "base" else HostPair(tier, None, host)

    def short(self, place: HostPair) -> str:
        """The name of a pair: ``sql``, or ``sql.sql1`` if the tier has several hosts."""
        alone = sum(one.tier == place.tier for one in self.all) <= 1
        return place.tier if alone else f"{place.tier}.{place.name.replace(' / ', '/')}"


def pair_hosts(base: JsonObject, other: JsonObject) -> HostPairs:
    """Pair the hosts of two manifests, tier by tier."""
    first, second = tiers_of(base), tiers_of(other)
    places = []
    for tier in dict.fromkeys([*first, *second]):
        ours, theirs = first.get(tier, []), second.get(tier, [])
        common = [host for host in ours if host in theirs]
        places += [HostPair(tier, host, host) for host in common]
        rest = ([host for host in hosts if host not in common] for hosts in (ours, theirs))
        places += [HostPair(tier, left, right) for left, right in zip_longest(*rest)]
    return HostPairs(tuple(places))


def tiers_of(manifest: JsonObject) -> dict[str, list[str]]:
    """Tier -> its hosts: the declared hosts, then the hosts that only a collector reports."""
    tiers: dict[str, list[str]] = {}
    for tier, spec in object_at(manifest, "farm", "tiers").items():
        tiers.setdefault(tier, []).extend(object_at(spec, "hosts"))
    known = {host for hosts in tiers.values() for host in hosts}
    for host, facts in object_at(manifest, "hosts").items():
        if host not in known and facts.get("tier"):
            tiers.setdefault(str(facts["tier"]), []).append(host)
    return tiers


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One finished run without its tables: a comparison uses the results of the analysis.

    Attributes:
        directory: the directory of the run, as the user gave it.
        manifest: the content of manifest.json.
        verdict: the verdict of the current analysis, which may be newer than the saved verdict.json.
        courses: the courses of the run's figures; empty if both sides have several runs.
        timeline: the run over time; None if not requested.
        efforts: CPU time per unit of work; empty if no operations were recorded.
        settled_per_s: scenario -> operations per second in the part of the run that the verdict uses, which
            is the basis of predicted gains.
    """

    directory: str
    manifest: JsonObject
    verdict: JsonObject
    courses: Mapping[Key, FigureCourse] = field(default_factory=dict)
    timeline: RunTimeline | None = None
    efforts: tuple[Effort, ...] = ()
    settled_per_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_evidence(self) -> bool:
        """Whether the run is valid evidence: neither a generator nor the recorder failed."""
        return bool(self.verdict["outcome"] != "invalid")


@dataclass(frozen=True, slots=True)
class Side:
    """One side: runs of one plan on one farm.

    Attributes:
        label: the name of the side: the farm's name, with the run's name if both farms have the same name.
        runs: at least one run.
    """

    label: str
    runs: tuple[ComparedRun, ...]

    @property
    def manifests(self) -> tuple[JsonObject, ...]:
        """The manifests of the side's runs."""
        return tuple(run.manifest for run in self.runs)

    @property
    def verdicts(self) -> tuple[JsonObject, ...]:
        """The verdicts of the side's runs."""
        return tuple(run.verdict for run in self.runs)


@dataclass(frozen=True, slots=True)
class Sides:
    """The base and the other side.

    Attributes:
        same_runs: directories of runs that are on both sides.
    """

    base: Side
    other: Side
    same_runs: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Side]:
        return iter((self.base, self.other))

    @property
    def named(self) -> Iterator[tuple[str, Side]]:
        """(``base``, its side) and (``other``, its side)."""
        return zip(("base", "other"), self, strict=True)

    @property
    def labels(self) -> tuple[str, str]:
        """The labels of both sides."""
        return self.base.label, self.other.label


def sides_of(
    base: Sequence[ComparedRun], other: Sequence[ComparedRun], same_runs: Sequence[str] = ()
) -> Sides:
    """Two sides, labelled by the names of their farms."""
    names = _name(base), _name(other)
    if names[0] == names[1]:
        runs = _run_words(base), _run_words(other)
        if runs[0] == runs[1]:
            runs = "first side", "second side"
        names = _label(names[0], runs[0]), _label(names[1], runs[1])
    return Sides(Side(names[0], tuple(base)), Side(names[1], tuple(other)), tuple(same_runs))


def read_sides(base: Sequence[Path], other: Sequence[Path]) -> Sides:
    """Read and analyse the runs of both sides; nothing is written into the runs' directories.

    Args:
        base: run directories of the base, or directories that contain runs (repeats).
        other: run directories of the other side, or directories that contain runs.

    Raises:
        InputError: a directory contains no run, or its run is unfinished, damaged or of another version; the
            error lists all problems.
    """
    runs = _runs_of((base, other))
    there = {path.resolve() for path in runs[1]}
    same = [str(path) for path in runs[0] if path.resolve() in there]
    first, second = _read_all(runs, timelines=True)
    return sides_of(first, second, same)


def read_several(groups: Sequence[Sequence[Path]]) -> tuple[Side, ...]:
    """Read and analyse the runs of any number of sides, without timelines; labels are the farms' names.

    Raises:
        InputError: as ``read_sides``, or a run is on two sides.
    """
    runs = _runs_of(groups)
    places = [path.resolve() for side in runs for path in side]
    twice = next((path for path in places if places.count(path) > 1), None)
    if twice is not None:
        raise InputError(f"compare: {twice} stands on two sides; name each run once")
    read = _read_all(runs, timelines=False)
    names = [_name(side) for side in read]
    labels = [
        _label(name, _run_words(side)) if names.count(name) > 1 else name
        for name, side in zip(names, read, strict=True)
    ]
    made = [
        f"{label} ({labels[:at].count(label) + 1})" if labels.count(label) > 1 else label
        for at, label in enumerate(labels)
    ]
    return tuple(Side(label, side) for label, side in zip(made, read, strict=True))


def _runs_of(groups: Sequence[Sequence[Path]]) -> list[list[Path]]:
    """The finished runs of each side, without duplicates. Raises InputError with all problems."""
    result: list[list[Path]] = [[] for _ in groups]
    problems: list[str] = []
    for place, given in enumerate(groups):
        for directory in given:
            try:
                result[place] += _finished_runs(directory)
            except InputError as error:
                problems += error.problems
    if problems:
        raise InputError(*dict.fromkeys(problems))
    # A run that is named twice on one side would count as a repeat of itself.
    return [list({path.resolve(): path for path in paths}.values()) for paths in result]


def _read_all(runs: Sequence[Sequence[Path]], *, timelines: bool) -> list[tuple[ComparedRun, ...]]:
    # Courses are needed only if a side has one run, so that the variation between runs is unknown.
    within_runs = min(map(len, runs)) < 2
    shown = {paths[0].resolve() for paths in runs} if timelines else set()
    read = {
        path.resolve(): _read(path, courses_too=within_runs, timeline_too=path.resolve() in shown)
        for paths in runs
        for path in paths
    }
    return [tuple(read[path.resolve()] for path in paths) for paths in runs]


def read_again(base: Side, again: Sequence[Path]) -> Sides:
    """The base with further runs of the same farm: an A/A pair, which shows the variation by chance.

    Raises:
        InputError: as ``read_sides``, or the runs are of another farm or are the base's own.
    """
    result = sorted({path.resolve(): path for given in again for path in _finished_runs(given)}.values())
    runs = [_read(path, courses_too=False, timeline_too=False) for path in result]
    mine = {Path(run.directory).resolve() for run in base.runs}
    own = [run.directory for run in runs if Path(run.directory).resolve() in mine]
    if own:
        raise InputError(f"--aa: {own[0]} is one of the base's own runs; give further runs of its farm")
    farms = {_name([run]) for run in (*base.runs, *runs)}
    if len(farms) > 1:
        raise InputError(
            f"--aa: found runs of {', '.join(sorted(farms))}; an A/A pair is of the base's farm alone"
        )
    return Sides(base, Side(f"{base.label} (again)", tuple(runs)))


def _label(farm: str, run: str) -> str:
    """``prod (run-1)``; only the run's name if it starts with the farm's name."""
    return run if run.startswith(farm) else f"{farm} ({run})"


def _run_words(runs: Sequence[ComparedRun]) -> str:
    """``run-1``, or ``run-1 and 2 more``."""
    first = Path(runs[0].directory).name
    return first if len(runs) == 1 else f"{first} and {len(runs) - 1} more"


def _name(runs: Sequence[ComparedRun]) -> str:
    """The name of a side's farm; different names are joined by ``+``."""
    names = dict.fromkeys(str(object_at(run.manifest, "farm").get("name") or "unnamed") for run in runs)
    return "+".join(names)


def _finished_runs(directory: Path) -> list[Path]:
    """The run of a directory, or all runs in the directory, oldest first. Raises InputError if unfinished."""
    held = sorted(path.parent for path in directory.glob(f"*/{MANIFEST}"))
    runs = held if held and not (directory / MANIFEST).exists() else [directory]
    started = {}
    problems: list[str] = []
    for run in runs:
        try:
            manifest = read_manifest(run)
        except InputError as error:
            problems += error.problems
            continue
        started[run] = str(manifest.get("started"))
        if manifest["state"] != "finished":
            problems.append(_unfinished(run, manifest["state"]))
    if problems:
        raise InputError(*problems)
    return sorted(runs, key=lambda run: (started[run], run))


def _unfinished(run: Path, state: str) -> str:
    what = {
        "running": "is still going on, or its controller was killed",
        "interrupted": "was interrupted",
    }[state]
    return (
        f"{run}: this run {what}, so its work is not whole and cannot be held against another's; "
        f"compare finished runs (`pinchpoint analyse {run}` shows what was measured)"
    )


def _read(directory: Path, *, courses_too: bool, timeline_too: bool) -> ComparedRun:
    stored = open_run(directory)
    verdict = analyse(stored).to_json()
    inputs = read_inputs(without_proof(stored))
    efforts = efforts_of(inputs)
    return ComparedRun(
        str(directory),
        stored.manifest,
        verdict,
        {**courses_of(stored, inputs, verdict), **courses(efforts)} if courses_too else {},
        timeline_of(stored) if timeline_too else None,
        efforts,
        dict(_settled(inputs, verdict)),
    )


def _settled(inputs: Inputs, verdict: JsonObject) -> Iterator[tuple[str, float]]:
    """Throughput per scenario in the part that shows the bottleneck, else at the first load level.

    The start of the load level is left out.
    """
    stages = [(one["from"], one["to"]) for one in verdict.get("stages") or ()]
    span = object_at(verdict, "bottleneck").get("window") or next(iter(stages), None)
    if span is None:
        return
    start_s, end_s = map(seconds_of, span)
    window = Window.between(start_s, end_s, float(inputs.window.step_s))
    for name in inputs.traffic.scenarios if window.steps else ():
        yield name, float(inputs.traffic.of(name).whole().ok().per_step(window).mean())


def folder_name(labels: Sequence[str]) -> str:
    """The name of the comparison's folder, ``comparison-dev-prod``, from the labels of the sides."""
    names = (Path(label.partition(" (")[0]).name for label in labels)
    joined = "-".join(re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-.") or "side" for name in names)
    return f"comparison-{joined[:80].strip('-.')}"


def predicted(sides: Sides) -> dict[str, Any]:
    """The prediction of the other side from the base, from the first run of each (see ``predict_beside``)."""
    base, other = (open_run(Path(side.runs[0].directory)) for side in sides)
    return predict_beside(base, other)
