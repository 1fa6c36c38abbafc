"""``pinchpoint report``: a run, a comparison, or a probe, for people who were not there."""

from __future__ import annotations

from pathlib import Path

import click

from pinchpoint.cli.arguments import RUN_OR_COMPARISON
from pinchpoint.report.files import write_saved


@click.command()
@RUN_OR_COMPARISON
@click.option(
    "--format",
    "formats",
    default="html",
    show_default=True,
    help="html, json or md, or several with commas.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=None,
    help="The folder to write to. [default: the run's own]",
)
def report(directory: Path, formats: str, out: Path | None) -> None:
    """Write the report of a run, a comparison or a probe from its files; prints the path of each."""
    wanted = list(dict.fromkeys(name.strip() for name in formats.split(",")))
    for path in write_saved(directory, wanted, out or directory):
        click.echo(path)
