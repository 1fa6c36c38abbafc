"""The runs of a set, one after the other, and the comparison of its farms."""

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
from pinchpoint.comparison.several import compare_sides
from pinchpoint.comparison.several import exit_status as several_status
from pinchpoint.comparison.sides import predicted, read_several
from pinchpoint.plan import Farm, Plan
from pinchpoint.plan.compare import disks_of, unfit, unfit_of_farm
from pinchpoint.report.files import write_comparison, write_sides
from pinchpoint.report.several_page import text as several_text
from pinchpoint.report.terminal import comparison_text
from pinchpoint.run.run_set import RunSet, SetFolder, turns
from pinchpoint.store.read import read_manifest

RunOne = Callable[[Farm, Plan, Path], tuple[Path, ExitStatus]]

GO_ON = (ExitStatus.FINE, ExitStatus.OBJECTIVES_MISSED, ExitStatus.NOT_EVIDENCE)
"""How a run that was made whole may end, whatever it shows."""


def conduct(made: RunSet, members: Sequence[tuple[Farm, Plan]], run_one: RunOne) -> list[ExitStatus]:
    """Make the runs of a set; one that fails ends it, and what was measured stays.

    Args:
        made: the set.
        members: farm and plan of each of its farms, in the set's order, A/A repetition left out.
        run_one: makes a run of a farm and a plan in a folder.

    Returns:
        The exit status of each run.

    Raises:
        InputError: a figure that is to be judged is none of such runs.
    """
    check_names(made.metrics, members)
    by_identity = {str(farm.identity): (farm, plan) for farm, plan in members}
    made.save()
    statuses: list[ExitStatus] = []
    whole = False
    try:
        for number, place in turns(made.places, made.repeat):
            click.echo(f"{place.folder}, round {number} of {made.repeat}:")
            status, ended_well = _one(made, place, number, *by_identity[place.identity], run_one)
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
        made.end(whole=whole)
    return statuses


def check_names(metrics: Sequence[str], members: Sequence[tuple[Farm, Plan]]) -> None:
    """Before hours of load: whether runs of these farms and plans have such figures. Raises InputError."""
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
    """Whether a run measured all that was planned, so that others may follow and be compared with it.

    Its status alone does not say: a run whose generator died has the one of a run that was measured whole
    and is no evidence. Raises InputError.
    """
    return status in GO_ON and read_manifest(directory)["state"] == "finished"


def _one(
    made: RunSet, place: SetFolder, number: int, farm: Farm, plan: Plan, run_one: RunOne
) -> tuple[ExitStatus, bool]:
    """One run of a set: (its status, whether it came to its end).

    An error is reported and becomes its status: the runs before it are kept.
    """
    try:
        directory, status = run_one(farm, plan, made.directory / place.folder)
    except PinchpointError as error:
        click.echo(str(error), err=True)
        return error.exit_status, False
    made.note(place, number, directory, status)
    return status, came_to_its_end(directory, status)


def compare_farms(made: RunSet, notes: Sequence[str] = ()) -> tuple[list[Path], ExitStatus]:
    """Hold the farms of a set against each other: (the comparisons' directories, exit status).

    Three and more are on one page; with an A/A repetition the first one against each of the others. A set of
    one farm with an A/A repetition is held against that: it should show no change. ``notes`` are added to the
    warnings.
    """
    base, *others = made.sides
    again = made.again
    if len(others) > 1 and again is None:
        several = compare_sides(
            read_several([[side] for side in made.sides]), made.factors, metrics=made.metrics
        )
        several = replace(several, warnings=(*several.warnings, *notes))
        click.echo(several_text(several))
        return [write_sides(several, made.directory)], several_status(several)
    if not others and again is not None:
        others, again = [again], None
    written, statuses = [], []
    for other in others:
        sides = read_sides([base], [other])
        aa = read_again(sides.base, [again]) if again else None
        found = compare(
            sides,
            made.factors,
            metrics=made.metrics,
            again=aa,
            what_if=predicted(sides),
        )
        found = replace(found, notes=tuple(notes))
        written.append(write_comparison(found, made.directory))
        statuses.append(exit_status(found))
        click.echo(comparison_text(found.to_json()))
    return written, gravest(statuses)


_SHOWN = ("throughput_per_s", "response_p95_s", "service_p95_s")


def spread_text(made: RunSet) -> str:
    """How much the runs of each farm differ from one another, by scenario: median, smallest and largest."""
    lines = []
    for folder in made.sides:
        verdicts = _verdicts(made, folder)
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


def _verdicts(made: RunSet, folder: Path) -> list[dict[str, Any]]:
    names = [str(run["run"]) for run in made.runs if run["folder"] == folder.name]
    return [saved_verdict(folder / name) for name in names]


def _plain(metric: str) -> str:
    return metric.removesuffix("_per_s").removesuffix("_s").replace("_", " ")


def _spread(metric: str, values: Sequence[float]) -> str:
    ends = " to ".join(units.of_metric(metric, value) for value in (min(values), max(values)))
    return f"{units.of_metric(metric, median(values))} ({ends})"
