"""The two sides of a comparison: which runs each has, what they were run on, what they proved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pinchpoint.analysis import analyse
from pinchpoint.errors import InputError
from pinchpoint.store.read import open_run, read_manifest
from pinchpoint.store.schema import MANIFEST


@dataclass(frozen=True, slots=True)
class Run:
    """One finished run, without its tables: what is compared is what was concluded from them.

    Attributes:
        directory: where it lies, as it was given.
        manifest: manifest.json's content.
        verdict: verdict.json's content, as the analysis reaches it now (the saved one may be older than it).
    """

    directory: str
    manifest: Mapping[str, Any]
    verdict: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Side:
    """One side: repeats of one plan on one farm.

    Attributes:
        label: what people read: the farm's name, or ``prod (base)`` where both farms have the same one.
        runs: at least one.
    """

    label: str
    runs: tuple[Run, ...]

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


def sides_of(base: Sequence[Run], other: Sequence[Run], same_runs: Sequence[str] = ()) -> Sides:
    """Two sides, labelled by their farms."""
    names = _name(base), _name(other)
    if names[0] == names[1]:
        names = f"{names[0]} (base)", f"{names[1]} (other)"
    return Sides(Side(names[0], tuple(base)), Side(names[1], tuple(other)), tuple(same_runs))


def read_sides(base: Sequence[Path], other: Sequence[Path]) -> Sides:
    """Read and analyse the runs of both sides; nothing is written into them.

    Args:
        base: run directories, or directories that hold runs (repeats).
        other: likewise.

    Raises:
        InputError: what is given is no run, not finished, damaged or of another version; all at once.
    """
    found: list[list[Path]] = [[], []]
    problems: list[str] = []
    for place, given in enumerate((base, other)):
        for directory in given:
            try:
                found[place] += _finished_runs(directory)
            except InputError as error:
                problems += error.problems
    if problems:
        raise InputError(*dict.fromkeys(problems))
    # Named twice on one side, it would count as a repeat of itself.
    runs = [list({path.resolve(): path for path in paths}.values()) for paths in found]
    there = {path.resolve() for path in runs[1]}
    same = [str(path) for path in runs[0] if path.resolve() in there]
    read = {path.resolve(): _read(path) for path in (*runs[0], *runs[1])}
    first, second = ([read[path.resolve()] for path in paths] for paths in runs)
    return sides_of(first, second, same)


def _name(runs: Sequence[Run]) -> str:
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


def _read(directory: Path) -> Run:
    stored = open_run(directory)
    return Run(str(directory), stored.manifest, analyse(stored).to_json())
