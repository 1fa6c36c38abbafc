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
from pinchpoint.forecast.predict import read_base
from pinchpoint.plan import load_farm
from pinchpoint.plan.problems import Unfit
from pinchpoint.plan.units import duration, size
from pinchpoint.probe import conduct, target
from pinchpoint.probe.bridge.disk import probed_disk
from pinchpoint.probe.bridge.forecast import forecast
from pinchpoint.probe.bridge.told import forecast_text
from pinchpoint.probe.calibrate import calibration
from pinchpoint.probe.record import LINE_S, Probe, load
from pinchpoint.probe.target import Target
from pinchpoint.probe.text import probe_text
from pinchpoint.probe.verdict import Verdict
from pinchpoint.store.read import open_run
from pinchpoint_scenarios.storage_probe import SUITES

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Asked:
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
    predict: Path | None
    also: tuple[Path, ...]
    calibrate: bool
    as_json: bool
    out: Path


def execute(asked: Asked) -> ExitStatus:
    """Do it. Raises InputError, GuardError, FarmUnavailable, Interrupted."""
    if asked.predict is not None:
        return _predict(asked, asked.predict)
    _check(asked)
    return _measure(asked)


def _measure(asked: Asked) -> ExitStatus:
    """One disk, measured."""
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
        verdict = conduct.run(chosen, made, directory, interrupts)
        # Before the farm is stopped: what was measured is told whatever comes of that.
        _print(made, verdict, directory, asked)
    return conduct.status(made)


def _predict(asked: Asked, run: Path) -> ExitStatus:
    """A run carried over to the disks of probes that were made before."""
    given = {
        "--farm": asked.farm_file,
        "--suite": asked.suite,
        "--resume": asked.resume,
        "--calibrate": asked.calibrate,
        **_how(asked),
    }
    unfit = [name for name, value in given.items() if value]
    if unfit or asked.folder is None:
        said = ", ".join(unfit) or "no probe"
        raise InputError(
            f"--predict: found {said}; needed: `pinchpoint probe PROBE --predict RUN --disk TIER.ROLE`, "
            "PROBE being the directory of a probe that was made"
        )
    probed = [(asked.disk, probed_disk(load(asked.folder)))]
    probed += [(None, probed_disk(load(other))) for other in asked.also]
    found = forecast(read_base(open_run(run)), probed)
    click.echo(json.dumps(found.to_json(), indent=1) if asked.as_json else forecast_text(found))
    return ExitStatus.FINE


def _how(asked: Asked) -> dict[str, object]:
    """What says how to measure, and what to look for."""
    return {
        "--profile": asked.profile,
        "--repeat": asked.repeat,
        "--time-per-cell": asked.time_per_cell,
        "--size": asked.size,
        "--line": asked.line,
    }


def _read(option: str, text: str, read: Callable[[object], Number]) -> Number:
    """A duration or size as people write it, in base units; more than 0."""
    try:
        found = read(text)
    except Unfit as error:
        raise InputError(f"{option}: {error.found}; {error.allowed}") from error
    if not found:
        raise InputError(f"{option}: {text!r} is nothing; give more than 0")
    return found


def _check(asked: Asked) -> None:
    """What belongs together, said before anything is looked at."""
    if asked.resume is None and (asked.folder is None) == (asked.farm_file is None):
        raise InputError("probe: give either DIR, a folder on the disk, or --farm with a farm.yaml")
    if asked.also:
        raise InputError("--also: names further probes for a prediction; give it with --predict")
    if asked.folder is not None and asked.disk is not None:
        raise InputError("--disk: names a disk of a farm; give it with --farm, or with --predict")
    if asked.farm_file is not None and asked.profile is not None:
        raise InputError("--profile: of a farm's disk the farm.yaml says it, under tiers")
    if (asked.suite is None) == (asked.resume is None):
        raise InputError(f"--suite: needed, one of {', '.join(SUITES)}; or --resume with a probe's directory")
    if asked.suite is not None:
        conduct.named(asked.suite)
    settled = [name for name, value in _how(asked).items() if value is not None]
    if asked.resume is not None and settled:
        raise InputError(
            f"--resume: goes on as it was begun, so {', '.join(settled)} cannot be given with it; leave that "
            "out, or begin another probe with --suite"
        )
    if asked.calibrate and asked.farm_file is None:
        raise InputError("--calibrate: prints the limits of a disk of a farm.yaml; give it with --farm")


@contextmanager
def _target(asked: Asked) -> Iterator[Target]:
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
    with target.of_farm(farm, asked.disk, lambda said: click.echo(said, err=True)) as chosen:
        yield chosen


def _print(made: Probe, verdict: Verdict, directory: Path, asked: Asked) -> None:
    if asked.as_json:
        click.echo(json.dumps(conduct.content(made, verdict), indent=1))
    else:
        click.echo(probe_text(made, verdict))
    if asked.calibrate:
        click.echo(calibration(made, verdict), err=asked.as_json)
    click.echo(directory, err=asked.as_json)
