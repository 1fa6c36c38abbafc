"""Makes the runs of a set one after the other, and compares the farms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import click

from pinchpoint.analysis.saved import saved_verdict
from pinchpoint.base import units
from pinchpoint.base.errors import ExitStatus, InputError, PinchpointError, gravest
from pinchpoint.comparison import compare, exit_status, read_again, read_sides
from pinchpoint.comparison.several_sides import compare_sides
from pinchpoint.comparison.several_sides import exit_status as several_status
from pinchpoint.comparison.sides import predicted, read_several
from pinchpoint.plan import Farm, Plan
from pinchpoint.plan.compare import disks_of, unfit, unfit_of_farm
from pinchpoint.report.files import write_comparison
from pinchpoint.report.several_page import text as several_text
from pinchpoint.report.terminal import comparison_text
from pinchpoint.run.run_set import RunSet, SetFolder, turns
from pinchpoint.store.read import read_manifest

RunOne = Callable[[Farm, Plan, Path], tuple[Path, ExitStatus]]

GO_ON = (ExitStatus.FINE, ExitStatus.OBJECTIVES_MISSED, ExitStatus.NOT_EVIDENCE)
"""Exit statuses of complete runs with any result."""


def run_members(run_set: RunSet, members: Sequence[tuple[Farm, Plan]], run_one: RunOne) -> list[ExitStatus]:
    """Make the runs of a set. A failed run ends the set, and earlier results are kept.

    Args:
        run_set: set of runs; each run is recorded in it.
        members: farm and plan of each farm in the order of the set, without the A/A repetition.
        run_one: makes a run of a farm and a plan in a folder.

    Returns:
        The exit status of each run.

    Raises:
        InputError: a figure that was to be judged does not exist in these runs.
    """
    check_names(run_set.metrics, members)
    by_identity = {str(farm.identity): (farm, plan) for farm, plan in members}
    run_set.save()
    statuses: list[ExitStatus] = []
    whole = False
    try:
        for number, place in turns(run_set.places, run_set.repeat):
            click.echo(f"{place.folder}, round {number} of {run_set.repeat}:")
            status, ended_well = _one(run_set, place, number, *by_identity[place.identity], run_one)
            statuses.append(status)
            click.echo("")
            if not ended_well:
                click.echo(
                    f"{place.folder}: this run did not come to its end, so the set ends here; what was "
                    "measured is kept",
                    err=True,
                )
                return statuses
        whole = True
    finally:
        run_set.end(whole=whole)
    return statuses


def check_names(metrics: Sequence[str], members: Sequence[tuple[Farm, Plan]]) -> None:
    """Raises InputError if the farms and plans lack a figure. It is called before hours of load."""
    problems: list[str] = []
    for name in metrics:
        for farm, plan in members:
            described = farm.to_json()
            why = unfit(name, plan.to_json()["scenarios"])
            if why is None:
                lacks = unfit_of_farm(name, disks_of(described))
                if lacks is not None:
                    problems.append(f"--metric {name}: farm {farm.name} has no {lacks}")
            else:
                problems.append(f"--metric {name}: {why}")
    if problems:
        raise InputError(*dict.fromkeys(problems))


def came_to_its_end(directory: Path, status: ExitStatus) -> bool:
    """Return whether a run measured everything planned. Only then may later runs follow and be compared.

    The exit status does not show this: a run with a dead generator has the same status as a complete run that
    is no evidence. Raises InputError.
    """
    return status in GO_ON and read_manifest(directory)["state"] == "finished"


def _one(
    run_set: RunSet, place: SetFolder, number: int, farm: Farm, plan: Plan, run_one: RunOne
) -> tuple[ExitStatus, bool]:
    """Make one run of a set. Return its exit status and whether it is complete.

    An error is reported and becomes the status, so that earlier runs are kept.
    """
    try:
        directory, status = run_one(farm, plan, run_set.directory / place.folder)
    except PinchpointError as error:
        click.echo(str(error), err=True)
        return error.exit_status, False
    run_set.note(place, number, directory, status)
    return status, came_to_its_end(directory, status)


def compare_farms(run_set: RunSet, notes: Sequence[str] = ()) -> tuple[list[Path], ExitStatus]:
    """Compare the farms of a set. Return the directories of the comparisons and the exit status.

    Three and more farms are compared on one page. With an A/A repetition, the first farm is compared with
    each other farm. A set of one farm is compared with its A/A repetition, which should show no change.
    ``notes`` are added to the warnings.
    """
    base, *others = run_set.sides
    again = run_set.again
    if len(others) > 1 and again is None:
        several = compare_sides(
            read_several([[side] for side in run_set.sides]), run_set.factors, metrics=run_set.metrics
        )
        several = replace(several, warnings=(*several.warnings, *notes))
        click.echo(several_text(several))
        return [write_comparison(several, run_set.directory)], several_status(several)
    if not others and again is not None:
        others, again = [again], None
    written, statuses = [], []
    for other in others:
        sides = read_sides([base], [other])
        aa = read_again(sides.base, [again]) if again else None
        result = compare(
            sides,
            run_set.factors,
            metrics=run_set.metrics,
            again=aa,
            what_if=predicted(sides),
        )
        result = replace(result, notes=tuple(notes))
        written.append(write_comparison(result, run_set.directory))
        statuses.append(exit_status(result))
        click.echo(comparison_text(result.to_json()))
    return written, gravest(statuses)


_SHOWN = ("throughput_per_s", "response_p95_s", "service_p95_s")


def spread_text(run_set: RunSet) -> str:
    """Return the spread of each farm's runs by scenario: median, smallest and largest value."""
    lines = []
    for folder in run_set.sides:
        verdicts = _verdicts(run_set, folder)
        if not verdicts:
            continue
        lines.append(f"{len(verdicts)} run{'s'[: len(verdicts) > 1]} of {folder.name}:")
        for name in dict.fromkeys(name for verdict in verdicts for name in verdict["scenarios"]):
            for metric in _SHOWN:
                values = [verdict["scenarios"].get(name, {}).get(metric) for verdict in verdicts]
                known = [value for value in values if value is not None]
                if known:
                    lines.append(f"  {name} {_plain(metric)}: {_spread(metric, known)}")
    return "\n".join(lines)


def _verdicts(run_set: RunSet, folder: Path) -> list[dict[str, Any]]:
    names = [str(run["run"]) for run in run_set.runs if run["folder"] == folder.name]
    return [saved_verdict(folder / name) for name in names]


def _plain(metric: str) -> str:
    return metric.removesuffix("_per_s").removesuffix("_s").replace("_", " ")


def _spread(metric: str, values: Sequence[float]) -> str:
    ends = " to ".join(units.of_metric(metric, value) for value in (min(values), max(values)))
    return f"{units.of_metric(metric, median(values))} ({ends})"
