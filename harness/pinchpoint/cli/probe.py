"""``pinchpoint probe``: a storage suite on one disk, and what kind of limit it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pinchpoint.cli.arguments import OUT
from pinchpoint_scenarios.storage_probe import SUITES

_PATH = click.Path(path_type=Path)


def _given(context: click.Context, parameter: click.Parameter, value: str | None) -> Path | None:  # noqa: ARG001 -- click's
    """An empty text would be the current folder: a variable that is not set is no such wish."""
    if value == "":
        raise click.BadParameter("is empty; give a folder, . for the current one")
    return None if value is None else Path(value)


_SUITES = "".join(f"\n\n{each.name}: {each.about}." for each in SUITES.values())


@click.command(
    help="Measure one disk with a suite of I/O, and say what kind of limit it shows.\n\n"
    "DIR is a folder on that disk; a folder of Pinchpoint's own is made in it and removed at the end. "
    "The last line is the directory with probe.json and report.html.\n\n"
    "`pinchpoint what-if RUN --set sql.log=THAT` says what the load of a run would get done on the disk."
    f"\n\nSuites:{_SUITES}"
)
@click.argument("folder", metavar="[DIR]", type=str, callback=_given, required=False)
@click.option(
    "--farm", "farm_file", type=_PATH, help="Instead of DIR: a farm.yaml, one of whose disks is measured."
)
@click.option("--disk", metavar="TIER.ROLE", help="Which of the farm's disks, such as sql.log.")
@click.option("--suite", metavar="NAME", help=f"One of {', '.join(SUITES)}.")
@click.option("--profile", metavar="NAME", help="What the disk of DIR is sold as, such as azure/p10.")
@click.option("--repeat", type=click.IntRange(1, 1000), help="Repetitions; else as the suite has it.")
@click.option("--time-per-cell", metavar="DURATION", help="Such as 5s; else as the suite.")
@click.option("--size", metavar="SIZE", help="Size of the file, such as 4GiB.")
@click.option(
    "--line",
    metavar="DURATION",
    help="Up to how many outstanding I/Os does this mean latency hold? Else 20ms.",
)
@click.option("--resume", type=_PATH, help="Go on with a probe that was interrupted: its directory.")
@click.option(
    "--calibrate",
    is_flag=True,
    help="Print what was found as the disk's limits, to paste into the farm.yaml: caps, and latency over "
    "outstanding I/Os.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@OUT
def probe(**given: Any) -> int:
    """See ``help`` above."""
    from pinchpoint.cli.probing import ProbeOptions, execute  # noqa: PLC0415 -- help waits for no charts, no servers' drivers

    return int(execute(ProbeOptions(**given)))
