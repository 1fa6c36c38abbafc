"""Makes a probe from result files of other storage tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path, PurePosixPath
from typing import TypeVar

from pinchpoint.base.errors import InputError
from pinchpoint.imports import HostPlaces
from pinchpoint.probe.in_run import declared_of
from pinchpoint.probe.record import LINE_S, DeclaredDisk, Options, Probe, ProbeLocation, Trial
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.common.times import iso
from pinchpoint_scenarios.storage_probe import Cell
from pinchpoint_scenarios.storage_probe.results import CellResult, ResultFile, ResultKind

_DRIVE = re.compile(r"[A-Za-z]:|#\d+|\d+:(?=[A-Za-z])")
Text = tuple[Path, str, str]
"""(file, its text, SHA-256 of its bytes)."""


def imported(files: Sequence[Text], kind: ResultKind, places: HostPlaces, zone: tzinfo | None) -> Probe:
    """A probe from files of one kind and one disk; a cell in several files has several repetitions.

    Raises InputError: a file is damaged or of another kind, or the files are of several machines or disks.
    """
    value = [_read(path, text, kind) for path, text, _ in files]
    host = _host([one for _, one in value], places)
    where, declared = _place(value, host, places)
    cells: dict[Cell, list[Trial]] = {}
    warnings = []
    for path, one in value:
        for result in one.results:
            trials = cells.setdefault(result.cell, [])
            trials.append(_trial(result, len(trials) + 1, path, zone))
        warnings += one.notes
        if len(disks := list(dict.fromkeys(map(_drive, one.paths)))) > 1:
            warnings.append(f"{path.name}: the figures are of several places together: {', '.join(disks)}")
    if any(one.started and not one.started.tzinfo for _, each in value for one in each.results) and not zone:
        warnings.append("the files name no time zone, so their times were read as UTC; give --zone")
    if any(one.started is None for _, each in value for one in each.results):
        warnings.append("the files do not report when they were measured: the times are those of the files")
    times = sorted(one.started for trials in cells.values() for one in trials)
    return Probe(
        suite=kind.suite,
        where=where,
        options=Options(
            repeat=max(map(len, cells.values())),
            time_per_cell_s=_same(
                one.seconds for trials in cells.values() for one in trials if not one.failed
            ),
            size_bytes=_same(one.size_bytes for _, one in value),
            line_s=LINE_S,
        ),
        declared=declared,
        started=times[0],
        ended=times[-1],
        state="finished",
        versions={one.tool: one.version for _, one in value if one.version},
        cells=cells,
        warnings=list(dict.fromkeys(warnings)),
        imports=[{"file": path.name, "kind": kind.name, "sha256": digest} for path, _, digest in files],
    )


def _read(path: Path, text: str, kind: ResultKind) -> tuple[Path, ResultFile]:
    try:
        return path, kind.read(text)
    except ForeignFileError as error:
        place = f"{path}:{error.line}" if error.line else str(path)
        raise InputError(f"{place}: {error}") from error


def _host(files: Sequence[ResultFile], places: HostPlaces) -> str:
    """The machine of all files; ``not reported`` if neither the files nor the options name it."""
    named = dict.fromkeys(places.host_of(one.host) for one in files if one.host)
    if len(named) > 1:
        raise InputError(
            f"the files are of several machines ({', '.join(named)}); import those of each machine separately"
        )
    return next(iter(named), places.host or "not reported")


def _place(
    value: Sequence[tuple[Path, ResultFile]], host: str, places: HostPlaces
) -> tuple[ProbeLocation, DeclaredDisk]:
    """The disk and its declared limits in farm.yaml. Raises InputError if the files are of several disks."""
    drives: dict[str, Path] = {}
    for path, file in value:
        for name in file.paths[:1]:
            drives.setdefault(_drive(name), path)
    if len(drives) > 1:
        listed = ", ".join(f"{name} in {path.name}" for name, path in drives.items())
        raise InputError(f"the files are of several disks ({listed}); import those of each disk separately")
    paths = dict.fromkeys(name for _, file in value for name in file.paths)
    names = [*paths, *map(_drive, paths)]
    role = next((one for name in names if (one := places.role_of(host, name))), None)
    if role is None and not names and len(places.roles) == 1:
        role = next(iter(places.roles.values()))
    if role is None and places.named:
        raise InputError(
            f"--disk: the files measured {', '.join(names) or 'a disk that they do not name'} of {host}, "
            f"which no --disk names; allowed: --disk '{host}:{next(iter(drives), 'DISK')}=sql.log'"
        )
    disk = f"{role.tier}.{role.role}" if role else None
    farm = str(places.farm["name"]) if places.farm and disk else None
    folder = ", ".join(paths) or value[0][0].stem
    return ProbeLocation(folder, host, farm=farm, disk=disk), declared_of(places.farm, disk)


def _drive(name: str) -> str:
    r"""``E:`` of ``E:\probe.dat``, ``/srv`` of ``/srv/probe.dat``; for a device its name."""
    if match := _DRIVE.match(name):
        return match[0]
    path = PurePosixPath(name)
    return str(path.parent) if path.is_absolute() and path.suffix and path.parts[1] != "dev" else name


def _trial(result: CellResult, number: int, path: Path, zone: tzinfo | None) -> Trial:
    at = result.started or datetime.fromtimestamp(path.stat().st_mtime, UTC)
    started = iso((at if at.tzinfo else at.replace(tzinfo=zone or UTC)).timestamp())
    if result.measured is None:
        return Trial(number, started, failed=result.failed)
    return Trial.of(number, started, result.measured)


_Value = TypeVar("_Value")


def _same(values: Iterable[_Value]) -> _Value | None:
    """The common value; None if the values differ."""
    result = set(values)
    return result.pop() if len(result) == 1 else None
