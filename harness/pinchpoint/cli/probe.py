"""``pinchpoint probe``: a storage suite on one disk, and what kind of limit it shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click

from pinchpoint.cli.arguments import OUT
from pinchpoint.errors import InputError
from pinchpoint.interrupts import Interrupts
from pinchpoint.plan import load_farm
from pinchpoint.plan.problems import Unfit
from pinchpoint.plan.units import duration, size
from pinchpoint.probe import conduct, target
from pinchpoint.probe.calibrate import calibrate as write_limits
from pinchpoint.probe.record import Probe, load
from pinchpoint.probe.target import Target
from pinchpoint.probe.text import probe_text
from pinchpoint.probe.verdict import Verdict
from pinchpoint_scenarios.storage_probe import SUITES

_PATH = click.Path(path_type=Path)
Number = TypeVar("Number", int, float)
_SUITES = "".join(f"\n\n{each.name}: {each.about}." for each in SUITES.values())


@click.command(
    help="Measure one disk with a suite of I/O, and say what kind of limit it shows.\n\n"
    "DIR is a folder on that disk; a folder of Pinchpoint's own is made in it and removed at the end. "
    f"The last line is the directory with probe.json and report.html.\n\nSuites:{_SUITES}"
)
@click.argument("folder", metavar="[DIR]", type=_PATH, required=False)
@click.option(
    "--farm", "farm_file", type=_PATH, help="Instead of DIR: a farm.yaml, one of whose disks is measured."
)
@click.option("--disk", metavar="TIER.ROLE", help="Which of the farm's disks, such as sql.log.")
@click.option("--suite", "suite_name", metavar="NAME", help=f"One of {', '.join(SUITES)}.")
@click.option("--profile", metavar="NAME", help="What the disk of DIR is sold as, such as azure/p10.")
@click.option("--repeat", type=click.IntRange(1, 1000), help="Repetitions; else as the suite has it.")
@click.option("--time-per-cell", "time_per_cell", metavar="DURATION", help="Such as 5s; else as the suite.")
@click.option("--size", "size_of_file", metavar="SIZE", help="Size of the file, such as 4GiB.")
@click.option(
    "--line",
    "line",
    metavar="DURATION",
    default="20ms",
    show_default=True,
    help="Up to how many outstanding I/Os does this mean latency hold?",
)
@click.option("--resume", type=_PATH, help="Go on with a probe that was interrupted: its directory.")
@click.option(
    "--calibrate",
    is_flag=True,
    help="Write the caps that were found into the farm.yaml, as the disk's limits.",
)
@click.option("--json", "as_json", is_flag=True, help="Print probe.json's content and nothing else.")
@OUT
def probe(  # noqa: PLR0913 - one for each option
    folder: Path | None,
    farm_file: Path | None,
    out: Path,
    *,
    disk: str | None,
    suite_name: str | None,
    profile: str | None,
    repeat: int | None,
    time_per_cell: str | None,
    size_of_file: str | None,
    line: str,
    resume: Path | None,
    calibrate: bool,
    as_json: bool,
) -> int:
    """See ``help`` above."""
    _check(folder, farm_file, disk, profile, suite_name, resume)
    if calibrate and farm_file is None:
        raise InputError("--calibrate: writes into a farm.yaml; give it with --farm")
    seconds = _read("--time-per-cell", time_per_cell, duration) if time_per_cell else None
    size_bytes = _read("--size", size_of_file, size) if size_of_file else None
    line_s = _read("--line", line, duration)
    with Interrupts() as interrupts, _target(folder, farm_file, disk, profile, resume) as chosen:
        if resume:
            made, directory = conduct.to_resume(resume, chosen), resume
        else:
            made = conduct.begun(conduct.named(str(suite_name)), chosen, repeat, seconds, size_bytes, line_s)
            directory = conduct.new_directory(out, made)
        verdict = conduct.run(chosen, made, directory, interrupts)
    _print(made, verdict, directory, as_json=as_json)
    if calibrate and farm_file:
        click.echo(write_limits(farm_file, made, verdict), err=True)
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


def _check(
    folder: Path | None,
    farm_file: Path | None,
    disk: str | None,
    profile: str | None,
    suite_name: str | None,
    resume: Path | None,
) -> None:
    """What belongs together, said before anything is looked at."""
    if resume is None and (folder is None) == (farm_file is None):
        raise InputError("probe: give either DIR, a folder on the disk, or --farm with a farm.yaml")
    if folder is not None and disk is not None:
        raise InputError("--disk: names a disk of a farm; give it with --farm")
    if farm_file is not None and profile is not None:
        raise InputError("--profile: of a farm's disk the farm.yaml says it, under tiers")
    if (suite_name is None) == (resume is None):
        raise InputError(f"--suite: needed, one of {', '.join(SUITES)}; or --resume with a probe's directory")
    if suite_name is not None:
        conduct.named(suite_name)


@contextmanager
def _target(
    folder: Path | None, farm_file: Path | None, disk: str | None, profile: str | None, resume: Path | None
) -> Iterator[Target]:
    if resume is not None and folder is None and farm_file is None:
        before = load(resume)
        if before.where.farm is not None:
            raise InputError(f"--resume: {resume} is of a farm's disk; give its --farm and --disk again")
        folder, profile = Path(before.where.folder), before.declared.profile
    if farm_file is None:
        yield target.of_folder(Path(str(folder)), profile)
        return
    with target.of_farm(load_farm(farm_file), disk, lambda said: click.echo(said, err=True)) as chosen:
        yield chosen


def _print(made: Probe, verdict: Verdict, directory: Path, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(conduct.content(made, verdict), indent=1))
    else:
        click.echo(probe_text(made, verdict))
    click.echo(directory, err=as_json)
