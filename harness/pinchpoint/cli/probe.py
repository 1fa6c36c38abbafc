"""``pinchpoint probe``: runs a storage suite on one disk and names the kind of limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pinchpoint.cli.arguments import OUT
from pinchpoint_scenarios.storage_probe import SUITES

_PATH = click.Path(path_type=Path)


def _given(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[Path, ...]:  # noqa: ARG001 -- click's
    """Refuse an empty path: it would mean the current folder, but may come from an unset variable."""
    if "" in value:
        raise click.BadParameter("is empty; give a folder, . for the current one")
    return tuple(map(Path, value))


_SUITES = "".join(f"\n\n{each.name}: {each.about}." for each in SUITES.values())


@click.command(
    help="Measure one disk with a suite of I/O, and find what limits it.\n\n"
    "DIR is a folder on that disk. A new folder is created in it and removed at the end. "
    "The last line is the folder with probe.json and report.html. Several disks (2 to 12) are measured one "
    "after the other and compared on one page; then the last line is its folder.\n\n"
    "`pinchpoint what-if RUN --set sql.log=FOLDER` predicts the throughput of a run on this disk."
    f"\n\nSuites:{_SUITES}"
)
@click.argument("folders", metavar="[DIR]...", type=str, callback=_given, nargs=-1)
@click.option(
    "--farm",
    "farm_files",
    type=_PATH,
    multiple=True,
    help="Measure a disk of this farm.yaml instead of DIR. May be repeated.",
)
@click.option(
    "--disk",
    "disks",
    metavar="TIER.ROLE",
    multiple=True,
    help="Which disk of the farm: sql.log, for example. May be repeated.",
)
@click.option("--suite", metavar="NAME", help=f"One of {', '.join(SUITES)}.")
@click.option(
    "--profile", metavar="NAME", help="The disk type of DIR in the catalogue: azure/p10, for example."
)
@click.option("--repeat", type=click.IntRange(1, 1000), help="Number of repetitions. [default: as the suite]")
@click.option(
    "--time-per-cell",
    metavar="DURATION",
    help="Time for each measurement: 5s, for example. [default: as the suite]",
)
@click.option(
    "--size", metavar="SIZE", help="Size of the test file: 4GiB, for example. [default: as the suite]"
)
@click.option(
    "--line",
    metavar="DURATION",
    help="Find the largest number of outstanding I/Os with a mean latency below this. [default: 20ms]",
)
@click.option(
    "--threads",
    type=click.IntRange(1, 64),
    help="Number of threads of fio or DiskSpd, each with the queue depth of the suite; a log has one. "
    "[default: 1]",
)
@click.option("--resume", type=_PATH, help="Continue the interrupted probe in this folder.")
@click.option(
    "--calibrate",
    is_flag=True,
    help="Print the disk's measured limits as a line for farm.yaml: caps, and latency by outstanding I/Os.",
)
@click.option(
    "--copy-tool",
    type=_PATH,
    help="Use this diskspd.exe on a Windows host that has none: it is copied to the probe's own folder "
    "there, and removed with it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@OUT
def probe(**given: Any) -> int:
    """See ``help`` above."""
    from pinchpoint.cli.probe_run import ProbeOptions, execute  # noqa: PLC0415 -- help waits for no charts, no servers' drivers

    return int(execute(ProbeOptions(**given)))
