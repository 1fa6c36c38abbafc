"""``pinchpoint farm``: the embedded farm alone."""

from __future__ import annotations

from pathlib import Path

import click
from pinchpoint_infra.embedded import FarmStatus

from pinchpoint.embedded import up as start
from pinchpoint.errors import ExitStatus, InputError
from pinchpoint.interrupts import Interrupts
from pinchpoint.plan import load_farm
from pinchpoint_infra import embedded

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
        _show(start(wanted, lambda sentence: click.echo(sentence, err=True), lifeline=False))


@farm.command()
@FARM_FILE
def down(farm_file: Path) -> None:
    """Stop the farm and remove everything it made, also what a killed one left behind."""
    # The farm's identity is its file's path: a file that was broken or removed since must not keep it up.
    done = embedded.down(farm_file.resolve())
    for sentence in done or ["nothing was up, nothing was left behind"]:
        click.echo(sentence)


@farm.command()
@FARM_FILE
def status(farm_file: Path) -> int:
    """Show every tier: state, process, port, log."""
    found = embedded.status(farm_file.resolve())
    _show(found)
    return ExitStatus.ENVIRONMENT if found.state == "broken" else ExitStatus.FINE


def _show(found: FarmStatus) -> None:
    click.echo(f"farm {found.farm_id}: {found.state}")
    for tier in found.tiers:
        where = f"process {tier.pid}, port {tier.port}" if tier.port else f"process {tier.pid}"
        click.echo(f"  {tier.name:<7} {tier.state:<9} {where}, log {tier.log}")
        if tier.state == "crashed":
            click.echo(f"          exit status {tier.exit_status}; the end of its log:")
            click.echo("\n".join(f"          {line}" for line in tier.log_tail.splitlines()))
    for warning in found.warnings:
        click.echo(f"  warning: {warning}")
