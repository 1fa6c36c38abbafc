"""``pinchpoint farm``: the embedded farm alone."""

from __future__ import annotations

from pathlib import Path

import click

from pinchpoint.errors import ExitStatus, InputError
from pinchpoint.interrupts import Interrupts
from pinchpoint.live import embedded
from pinchpoint.plan import load_farm

FARM_FILE = click.argument("farm_file", metavar="FARM", type=click.Path(path_type=Path))


@click.group()
def farm() -> None:
    """Start, stop and look at the embedded farm of a farm.yaml."""


@farm.command()
@FARM_FILE
def up(farm_file: Path) -> None:
    """Start the farm and leave it up; safe when it is up already."""
    wanted = load_farm(farm_file)
    if wanted.embedded is None:
        raise InputError(f"{farm_file}: has no embedded: section, so there is nothing to start")
    with Interrupts():
        started = embedded().up(wanted, lambda said: click.echo(said, err=True), lifeline=False)
    click.echo(embedded().describe(started))


@farm.command()
@FARM_FILE
def down(farm_file: Path) -> None:
    """Stop the farm and remove everything it made, also what a killed one left behind."""
    # The farm's identity is its file's path: a file that was broken or removed since must not keep it up.
    for sentence in embedded().down(farm_file.resolve()) or ["nothing was up, nothing was left behind"]:
        click.echo(sentence)


@farm.command()
@FARM_FILE
def status(farm_file: Path) -> int:
    """Show every tier: state, process, port, log."""
    found = embedded().status(farm_file.resolve())
    click.echo(embedded().describe(found))
    return ExitStatus.ENVIRONMENT if found.state == "broken" else ExitStatus.FINE
