"""The two sides of a comparison: their runs, the pairs of hosts, their verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pinchpoint.analysis import analyse
from pinchpoint.analysis.proof import without_proof
from pinchpoint.base.clock import seconds_of
from pinchpoint.base.errors import InputError
from pinchpoint.comparison.courses import FigureCourse, Key, courses_of
from pinchpoint.comparison.efforts import Effort, courses, efforts_of
from pinchpoint.comparison.timelines import RunTimeline, timeline_of
from pinchpoint.data.inputs import Inputs, read_inputs
from pinchpoint.data.series import Window
from pinchpoint.forecast import predict_beside
from pinchpoint.store.read import open_run, read_manifest
from pinchpoint.store.schema import MANIFEST


@dataclass(frozen=True, slots=True)
class HostPair:
    """A host's place in the farm, on both sides.

    Attributes:
        tier: its tier.
        base: the host's name in the base, None where the base has no such host.
        other: likewise.
    """

    tier: str
    base: str | None
    other: str | None

    @property
    def name(self) -> str:
        """``sql1``, or ``devsql1 / prodsql1`` where the names differ."""
        return " / ".join(dict.fromkeys(name for name in (self.base, self.other) if name))


@dataclass(frozen=True, slots=True)
class HostPairs:
    """The hosts of both sides, paired: those of one name first, the others by their order in their tier."""

    all: tuple[HostPair, ...]

    def of(self, tier: str, host: str, side: str) -> HostPair:
        """The place of a host of one side (``base`` or ``other``); an unknown host has one of its own."""
        for place in self.all:
            if place.tier == tier and getattr(place, side) == host:
                return place
        return HostPair(tier, host, None) if side == "base" else HostPair(tier, None, host)

    def short(self, place: HostPair) -> str:
        """``sql``, or ``sql.sql1`` where its tier has several hosts."""
        alone = sum(one.tier == place.tier for one in self.all) <= 1
        return place.tier if alone else f"{place.tier}.{place.name.replace(' / ', '/')}"


def pair_hosts(base: Mapping[str, Any], other: Mapping[str, Any]) -> HostPairs:
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


def tiers_of(manifest: Mapping[str, Any]) -> dict[str, list[str]]:
    """Tier -> its hosts: those declared, then those only a collector knows."""
    tiers: dict[str, list[str]] = {}
    for tier, spec in ((manifest.get("farm") or {}).get("tiers") or {}).items():
        tiers.setdefault(tier, []).extend((spec or {}).get("hosts") or {})
    known = {host for hosts in tiers.values() for host in hosts}
    for host, facts in (manifest.get("hosts") or {}).items():
        if host not in known and facts.get("tier"):
            tiers.setdefault(str(facts["tier"]), []).append(host)
    return tiers


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One finished run, without its tables: what is compared is what was concluded from them.

    Attributes:
        directory: where it lies, as it was given.
        manifest: manifest.json's content.
        verdict: verdict.json's content, as the analysis reaches it now (the saved one may be older than it).
        courses: of its figures, step by step; empty where there are other runs to compare it with.
        timeline: what happened when; None where it was not asked for.
        efforts: CPU time for each unit of work; none where no operations were recorded.
        settled_per_s: by scenario, what was done per second in that part of the run which its verdict is
            drawn from: what it promises is reckoned from there.
    """

    directory: str
    manifest: Mapping[str, Any]
    verdict: Mapping[str, Any]
    courses: Mapping[Key, FigureCourse] = field(default_factory=dict)
    timeline: RunTimeline | None = None
    efforts: tuple[Effort, ...] = ()
    settled_per_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_evidence(self) -> bool:
        """Whether it says anything of its farm: neither generator nor recorder failed."""
        return bool(self.verdict["outcome"] != "invalid")


@dataclass(frozen=True, slots=True)
class Side:
    """One side: repeats of one plan on one farm.

    Attributes:
        label: what people read: the farm's name, with the run's where both farms have the same one.
        runs: at least one.
    """

    label: str
    runs: tuple[ComparedRun, ...]

    @property
    def manifests(self) -> tuple[Mapping[str, Any], ...]:
        """The runs' manifests."""
        return tuple(run.manifest for run in self.runs)

    @property
    def verdicts(self) -> tuple[Mapping[str, Any], ...]:
        """The runs' verdicts."""
        return tuple(run.verdict for run in self.runs)


@dataclass(frozen=True, slots=True)
class Sides:
    """Base and other.

    Attributes:
        same_runs: directories that stand on both sides.
    """

    base: Side
    other: Side
    same_runs: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Side]:
        return iter((self.base, self.other))


def sides_of(
    base: Sequence[ComparedRun], other: Sequence[ComparedRun], same_runs: Sequence[str] = ()
) -> Sides:
    """Two sides, labelled by their farms."""
    names = _name(base), _name(other)
    if names[0] == names[1]:
        runs = _run_words(base), _run_words(other)
        if runs[0] == runs[1]:
            runs = "first side", "second side"
        names = _label(names[0], runs[0]), _label(names[1], runs[1])
    return Sides(Side(names[0], tuple(base)), Side(names[1], tuple(other)), tuple(same_runs))


def read_sides(base: Sequence[Path], other: Sequence[Path]) -> Sides:
    """Read and analyse the runs of both sides; nothing is written into them.

    Args:
        base: run directories, or directories that hold runs (repeats).
        other: likewise.

    Raises:
        InputError: what is given is no run, not finished, damaged or of another version; all at once.
    """
    runs = _runs_of((base, other))
    there = {path.resolve() for path in runs[1]}
    same = [str(path) for path in runs[0] if path.resolve() in there]
    first, second = _read_all(runs, timelines=True)
    return sides_of(first, second, same)


def read_several(groups: Sequence[Sequence[Path]]) -> tuple[Side, ...]:
    """Likewise of any number of sides, each labelled by its farm; no timelines.

    Raises:
        InputError: as ``read_sides``; or a run stands on two sides.
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
    """The finished runs of each side, each once. Raises InputError with all problems."""
    found: list[list[Path]] = [[] for _ in groups]
    problems: list[str] = []
    for place, given in enumerate(groups):
        for directory in given:
            try:
                found[place] += _finished_runs(directory)
            except InputError as error:
                problems += error.problems
    if problems:
        raise InputError(*dict.fromkeys(problems))
    # Named twice on one side, it would count as a repeat of itself.
    return [list({path.resolve(): path for path in paths}.values()) for paths in found]


def _read_all(runs: Sequence[Sequence[Path]], *, timelines: bool) -> list[tuple[ComparedRun, ...]]:
    # Only where runs cannot be held against each other does chance within them stand in.
    alone = min(map(len, runs)) < 2
    shown = {paths[0].resolve() for paths in runs} if timelines else set()
    read = {
        path.resolve(): _read(path, alone=alone, shown=path.resolve() in shown)
        for paths in runs
        for path in paths
    }
    return [tuple(read[path.resolve()] for path in paths) for paths in runs]


def read_again(base: Side, again: Sequence[Path]) -> Sides:
    """The base beside further runs of the same farm: an A/A pair, which shows what differs by chance.

    Raises:
        InputError: as ``read_sides``; or the runs are of another farm, or are the base's own.
    """
    found = sorted({path.resolve(): path for given in again for path in _finished_runs(given)}.values())
    runs = [_read(path, alone=False, shown=False) for path in found]
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
    """``prod (run-1)``; a run that bears its farm's name is enough."""
    return run if run.startswith(farm) else f"{farm} ({run})"


def _run_words(runs: Sequence[ComparedRun]) -> str:
    """``run-1``, or ``run-1 and 2 more``."""
    first = Path(runs[0].directory).name
    return first if len(runs) == 1 else f"{first} and {len(runs) - 1} more"


def _name(runs: Sequence[ComparedRun]) -> str:
    """The farms of a side, in one word where they are one."""
    names = dict.fromkeys(str((run.manifest.get("farm") or {}).get("name") or "unnamed") for run in runs)
    return "+".join(names)


def _finished_runs(directory: Path) -> list[Path]:
    """The run, or the runs in the directory, oldest first; every one of them finished."""
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


def _read(directory: Path, *, alone: bool, shown: bool) -> ComparedRun:
    stored = open_run(directory)
    verdict = analyse(stored).to_json()
    inputs = read_inputs(without_proof(stored))
    efforts = efforts_of(inputs)
    return ComparedRun(
        str(directory),
        stored.manifest,
        verdict,
        {**courses_of(stored, inputs, verdict), **courses(efforts)} if alone else {},
        timeline_of(stored) if shown else None,
        efforts,
        dict(_settled(inputs, verdict)),
    )


def _settled(inputs: Inputs, verdict: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Of a bottleneck the stretch that shows it, else the first load level, its transient left out."""
    stages = [(one["from"], one["to"]) for one in verdict.get("stages") or ()]
    span = (verdict.get("bottleneck") or {}).get("window") or next(iter(stages), None)
    if span is None:
        return
    start_s, end_s = map(seconds_of, span)
    window = Window.between(start_s, end_s, float(inputs.window.step_s))
    for name in inputs.traffic.scenarios if window.steps else ():
        yield name, float(inputs.traffic.of(name).whole().ok().per_step(window).mean())


def predicted(sides: Sides) -> dict[str, Any]:
    """A comparison's ``what_if``, from the first run of each side (``forecast.predict_beside``)."""
    base, other = (open_run(Path(side.runs[0].directory)) for side in sides)
    return predict_beside(base, other)
