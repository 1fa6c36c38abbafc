"""``pinchpoint farm``: starts and stops an embedded farm without a run."""

from __future__ import annotations

import re
from pathlib import Path

import click

from pinchpoint.base.errors import ExitStatus, InputError
from pinchpoint.base.interrupts import Interrupts
from pinchpoint.farm.ready import embedded
from pinchpoint.plan import load_farm

FARM_ID = re.compile("[0-9a-f]{12}")
FARM_FILE = click.argument("farm_file", metavar="FARM", type=click.Path(path_type=Path))


@click.group()
def farm() -> None:
    """Start, stop or show the embedded farm of a farm.yaml."""


@farm.command()
@FARM_FILE
def up(farm_file: Path) -> None:
    """Start the farm and leave it running. Does nothing if it runs already."""
    wanted = load_farm(farm_file)
    if wanted.embedded is None:
        raise InputError(f"{farm_file}: has no embedded: section, so there is nothing to start")
    with Interrupts():
        started = embedded().up(wanted, lambda said: click.echo(said, err=True), lifeline=False)
    click.echo(embedded().describe(started))


@farm.command()
@FARM_FILE
def down(farm_file: Path) -> None:
    """Stop the farm and remove everything it created, also after it was killed.

    FARM may also be the id that `farm status` shows.
    """
    by_id = FARM_ID.fullmatch(str(farm_file)) and not farm_file.exists()
    # The path of the file identifies the farm, so that a farm can be stopped after its file was removed.
    done = embedded().down_by_id(str(farm_file)) if by_id else embedded().down(farm_file.resolve())
    if not done and not by_id:
        _refuse_unknown(farm_file)
    for sentence in done or ["nothing was up, nothing was left behind"]:
        click.echo(sentence)


@farm.command()
@click.argument("farm_file", metavar="[FARM]", type=click.Path(path_type=Path), required=False)
def status(farm_file: Path | None) -> int:
    """Show the state, process, port, log and disks of each tier. Without FARM: every farm on this machine."""
    if farm_file is None:
        click.echo(embedded().describe_known())
        return ExitStatus.FINE
    result = embedded().status(farm_file.resolve())
    if result.state == "down":
        _refuse_unknown(farm_file)
    click.echo(embedded().describe(result))
    return ExitStatus.ENVIRONMENT if result.state == "broken" else ExitStatus.FINE


def _refuse_unknown(farm_file: Path) -> None:
    """Raises InputError for an unknown farm, because a mistyped name must not look like a stopped farm."""
    if not farm_file.exists():
        raise InputError(
            f"{farm_file}: there is no such file, and nothing of a farm made of it; `pinchpoint farm status` "
            "lists every farm on this machine"
        )
