"""What ``pinchpoint probe`` was asked for, checked, and done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from pinchpoint.base.errors import ExitStatus, InputError
from pinchpoint.base.interrupts import Interrupts
from pinchpoint.plan import load_farm
from pinchpoint.plan.problems import Unfit
from pinchpoint.plan.units import duration, size
from pinchpoint.probe import conduct, target
from pinchpoint.probe.calibrate import calibration
from pinchpoint.probe.record import LINE_S, Probe, load
from pinchpoint.probe.target import Target
from pinchpoint.probe.verdict import ProbeVerdict, probe_content
from pinchpoint.report.files import conclude_probe
from pinchpoint.report.probe import probe_text
from pinchpoint_scenarios.storage_probe import SUITES

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """The command's argument and options, as typed (``cli/probe.py`` says what each is)."""

    folder: Path | None
    farm_file: Path | None
    disk: str | None
    suite: str | None
    profile: str | None
    repeat: int | None
    time_per_cell: str | None
    size: str | None
    line: str | None
    resume: Path | None
    calibrate: bool
    copy_tool: Path | None
    as_json: bool
    out: Path


def execute(asked: ProbeOptions) -> ExitStatus:
    """Measure one disk. Raises InputError, GuardError, FarmUnavailable, Interrupted."""
    _check(asked)
    seconds = _read("--time-per-cell", asked.time_per_cell, duration) if asked.time_per_cell else None
    size_bytes = _read("--size", asked.size, size) if asked.size else None
    line_s = _read("--line", asked.line, duration) if asked.line else LINE_S
    with Interrupts() as interrupts, _target(asked) as chosen:
        if asked.resume:
            made, directory = conduct.to_resume(asked.resume, chosen), asked.resume
        else:
            suite = conduct.named(str(asked.suite))
            made = conduct.begun(suite, chosen, asked.repeat, seconds, size_bytes, line_s)
            directory = conduct.new_directory(asked.out, made)
        verdict = conduct.run(chosen, made, directory, interrupts, conclude_probe)
        # Before the farm is stopped: what was measured is reported whatever comes of that.
        _print(made, verdict, directory, asked)
    return conduct.status(made)


def _read(option: str, text: str, read: Callable[[object], Number]) -> Number:
    """A duration or size as people write it, in base units; more than 0."""
    try:
        found = read(text)
    except Unfit as error:
        raise InputError(f"{option}: {error.found}; {error.allowed}") from error
    if not found:
        raise InputError(f"{option}: {text!r} is nothing; give more than 0")
    return found


def _check(asked: ProbeOptions) -> None:
    """What belongs together, said before anything is looked at."""
    if asked.resume is None and (asked.folder is None) == (asked.farm_file is None):
        raise InputError("probe: give either DIR, a folder on the disk, or --farm with a farm.yaml")
    if asked.folder is not None and asked.disk is not None:
        raise InputError("--disk: names a disk of a farm; give it with --farm")
    if asked.farm_file is not None and asked.profile is not None:
        raise InputError("--profile: of a farm's disk the farm.yaml says it, under tiers")
    if (asked.suite is None) == (asked.resume is None):
        raise InputError(f"--suite: needed, one of {', '.join(SUITES)}; or --resume with a probe's directory")
    if asked.suite is not None:
        conduct.named(asked.suite)
    how = {
        "--profile": asked.profile,
        "--repeat": asked.repeat,
        "--time-per-cell": asked.time_per_cell,
        "--size": asked.size,
        "--line": asked.line,
    }
    settled = [name for name, value in how.items() if value is not None]
    if asked.resume is not None and settled:
        raise InputError(
            f"--resume: goes on as it was begun, so {', '.join(settled)} cannot be given with it; leave that "
            "out, or begin another probe with --suite"
        )
    if asked.copy_tool is not None and asked.farm_file is None:
        raise InputError("--copy-tool: is for a disk of a farm's Windows host; give it with --farm")
    if asked.copy_tool is not None and not asked.copy_tool.is_file():
        raise InputError(f"--copy-tool: {asked.copy_tool} is no file; give a diskspd.exe of this machine")
    if asked.calibrate and asked.farm_file is None:
        raise InputError("--calibrate: prints the limits of a disk of a farm.yaml; give it with --farm")


@contextmanager
def _target(asked: ProbeOptions) -> Iterator[Target]:
    folder, profile = asked.folder, asked.profile
    if asked.resume is not None and folder is None and asked.farm_file is None:
        before = load(asked.resume)
        if before.where.farm is not None:
            raise InputError(
                f"--resume: {asked.resume} is of a farm's disk; give its --farm and --disk again"
            )
        folder, profile = Path(before.where.folder), before.declared.profile
    if asked.farm_file is None:
        yield target.of_folder(Path(str(folder)), profile)
        return
    farm = load_farm(asked.farm_file)
    copied = asked.copy_tool
    with target.of_farm(farm, asked.disk, lambda said: click.echo(said, err=True), copied) as chosen:
        yield chosen


def _print(made: Probe, verdict: ProbeVerdict, directory: Path, asked: ProbeOptions) -> None:
    if asked.as_json:
        click.echo(json.dumps(probe_content(made, verdict), indent=1))
    else:
        click.echo(probe_text(made, verdict))
    if asked.calibrate:
        click.echo(calibration(made, verdict), err=asked.as_json)
    click.echo(directory, err=asked.as_json)
