"""Checks the options of ``pinchpoint probe`` and runs the probe."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import click

from pinchpoint.base.errors import ExitStatus, InputError
from pinchpoint.base.interrupts import Interrupts
from pinchpoint.cli.arguments import show
from pinchpoint.comparison.several_sides import check_number
from pinchpoint.plan import load_farm
from pinchpoint.plan.problems import BadValue
from pinchpoint.plan.units import duration, size
from pinchpoint.probe import suite_run, target
from pinchpoint.probe.calibrate import calibration
from pinchpoint.probe.compare import compared
from pinchpoint.probe.record import LINE_S, load
from pinchpoint.probe.several_probes import compare_probes, read_probes
from pinchpoint.probe.target import ProbeTarget
from pinchpoint.probe.verdict import probe_content
from pinchpoint.report.files import write_comparison
from pinchpoint.report.judged import renew_probe_verdict
from pinchpoint.report.probe import comparison_text, probe_text
from pinchpoint.report.several_page import text as several_text
from pinchpoint_scenarios.storage_probe import SUITES

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """Argument and options of the command, as typed (see ``cli/probe.py``).

    ``notes`` are sentences on the page about how the probe was made.
    """

    folders: tuple[Path, ...]
    farm_files: tuple[Path, ...]
    disks: tuple[str, ...]
    suite: str | None
    profile: str | None
    repeat: int | None
    time_per_cell: str | None
    size: str | None
    line: str | None
    threads: int | None
    resume: Path | None
    calibrate: bool
    copy_tool: Path | None
    as_json: bool
    out: Path
    notes: tuple[str, ...] = ()


def execute(asked: ProbeOptions) -> ExitStatus:
    """Measure one disk, or measure several disks and compare them.

    Raises:
        Raises InputError, GuardError, FarmUnavailable, Interrupted.
    """
    return run_probe(asked)[1]


def run_probe(asked: ProbeOptions) -> tuple[Path, ExitStatus]:
    """Measure and compare disks. Return the folder with the page, and the exit status."""
    _check(asked)
    disks = [
        *(_GivenDisk(folder) for folder in asked.folders),
        *(_GivenDisk(None, farm, disk) for farm in asked.farm_files for disk in asked.disks or (None,)),
    ] or [_GivenDisk()]
    if len(disks) == 1:
        return _one(asked, disks[0], notes=asked.notes)
    check_number(disks)
    made: list[Path] = []
    for number, place in enumerate(disks, 1):
        click.echo(f"disk {number} of {len(disks)}: {place.words}", err=True)
        directory, status = _one(asked, place, quiet=asked.as_json)
        made.append(directory)
        if status:
            return directory, status
    return _compared(made, asked), ExitStatus.FINE


@dataclass(frozen=True, slots=True)
class _GivenDisk:
    """One disk from the options: a folder, or a farm and its disk; empty if a probe is resumed."""

    folder: Path | None = None
    farm: Path | None = None
    disk: str | None = None

    @property
    def words(self) -> str:
        """Return the folder, or the disk and its farm, as text."""
        return str(self.folder or f"{self.disk or 'the disk'} of {self.farm}")


def _compared(made: Sequence[Path], asked: ProbeOptions) -> Path:
    """Show the probes on one page. The last printed line is the folder of the page."""
    notes = asked.notes
    if len(made) == 2:
        pair = compared(made[:1], made[1:])
        pair = replace(pair, warnings=(*pair.warnings, *notes))
        directory = write_comparison(pair, asked.out)
        show(pair, comparison_text, directory, as_json=asked.as_json)
    else:
        many = compare_probes(read_probes(made), made)
        many = replace(many, warnings=(*many.warnings, *notes))
        directory = write_comparison(many, asked.out)
        show(many, several_text, directory, as_json=asked.as_json)
    return directory


def _one(
    asked: ProbeOptions, place: _GivenDisk, *, quiet: bool = False, notes: Sequence[str] = ()
) -> tuple[Path, ExitStatus]:
    """Measure one disk. Return the directory of the probe and the exit status."""
    seconds = _read("--time-per-cell", asked.time_per_cell, duration) if asked.time_per_cell else None
    size_bytes = _read("--size", asked.size, size) if asked.size else None
    line_s = _read("--line", asked.line, duration) if asked.line else LINE_S
    with Interrupts() as interrupts, _target(asked, place) as chosen:
        if asked.resume:
            made, directory = suite_run.to_resume(asked.resume, chosen), asked.resume
        else:
            suite = suite_run.named(str(asked.suite))
            made = suite_run.begun(
                suite, chosen, asked.repeat, seconds, size_bytes, line_s, asked.threads or 1
            )
            made.warnings += notes
            directory = suite_run.new_directory(asked.out, made)
        verdict = suite_run.run(chosen, made, directory, interrupts, renew_probe_verdict)
        # Results are reported before the farm is stopped, so that they are not lost if the stop fails.
        if not quiet:
            if asked.as_json:
                click.echo(json.dumps(probe_content(made, verdict), indent=1))
            else:
                click.echo(probe_text(made, verdict))
            if asked.calibrate:
                click.echo(calibration(made, verdict), err=asked.as_json)
            click.echo(directory, err=asked.as_json)
    return directory, suite_run.status(made)


def _read(option: str, text: str, read: Callable[[object], Number]) -> Number:
    """Return a positive duration or size with a unit in base units."""
    try:
        number = read(text)
    except BadValue as error:
        raise InputError(f"{option}: {error.found}; {error.allowed}") from error
    if not number:
        raise InputError(f"{option}: {text!r} is nothing; give more than 0")
    return number


def _check(asked: ProbeOptions) -> None:
    """Check options that depend on each other, before anything else starts."""
    if asked.resume is None and bool(asked.folders) == bool(asked.farm_files):
        raise InputError("probe: give either DIR, a folder on the disk, or --farm with a farm.yaml")
    if asked.folders and asked.disks:
        raise InputError("--disk: names a disk of a farm; give it with --farm")
    if asked.farm_files and asked.profile is not None:
        raise InputError("--profile: of a farm's disk the farm.yaml says it, under tiers")
    if (asked.suite is None) == (asked.resume is None):
        raise InputError(f"--suite: needed, one of {', '.join(SUITES)}; or --resume with a probe's directory")
    if asked.suite is not None:
        suite_run.named(asked.suite)
    if asked.resume is not None:
        _check_resumed(asked)
    if asked.copy_tool is not None and not asked.farm_files:
        raise InputError("--copy-tool: is for a disk of a farm's Windows host; give it with --farm")
    if asked.copy_tool is not None and not asked.copy_tool.is_file():
        raise InputError(f"--copy-tool: {asked.copy_tool} is no file; give a diskspd.exe of this machine")
    if asked.calibrate and not asked.farm_files:
        raise InputError("--calibrate: prints the limits of a disk of a farm.yaml; give it with --farm")


def _check_resumed(asked: ProbeOptions) -> None:
    """Raises InputError for options that exclude ``--resume``."""
    how = {
        "--profile": asked.profile,
        "--repeat": asked.repeat,
        "--time-per-cell": asked.time_per_cell,
        "--size": asked.size,
        "--line": asked.line,
        "--threads": asked.threads,
    }
    settled = [name for name, value in how.items() if value is not None]
    if settled:
        raise InputError(
            f"--resume: goes on as it was begun, so {', '.join(settled)} cannot be given with it; leave that "
            "out, or begin another probe with --suite"
        )
    if max(map(len, (asked.folders, asked.farm_files, asked.disks))) > 1:
        raise InputError("--resume: continues one probe of one disk; give one DIR, or one --farm and --disk")


@contextmanager
def _target(asked: ProbeOptions, place: _GivenDisk) -> Iterator[ProbeTarget]:
    folder, profile = place.folder, asked.profile
    if asked.resume is not None and folder is None and place.farm is None:
        before = load(asked.resume)
        if before.imports:
            raise InputError(f"--resume: {asked.resume} was imported: nothing of it can be measured here")
        if before.where.farm is not None:
            raise InputError(
                f"--resume: {asked.resume} is of a farm's disk; give its --farm and --disk again"
            )
        folder, profile = Path(before.where.folder), before.declared.profile
    if place.farm is None:
        yield target.of_folder(Path(str(folder)), profile)
        return
    farm, copied = load_farm(place.farm), asked.copy_tool
    with target.of_farm(farm, place.disk, lambda said: click.echo(said, err=True), copied) as chosen:
        yield chosen
