"""``pinchpoint report``: a run for people who were not there."""

from __future__ import annotations

from pathlib import Path

import click

from pinchpoint.cli.arguments import RUN
from pinchpoint.conclude import saved_verdict, write_reports
from pinchpoint.report import registry


@click.command()
@RUN
@click.option(
    "--format",
    "formats",
    default="html",
    show_default=True,
    help="One or several of html, json, md; with commas.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=None,
    help="Where to write; the run directory by default.",
)
def report(directory: Path, formats: str, out: Path | None) -> None:
    """Write RUN's report from the saved files alone; prints the path of each file."""
    wanted = [name.strip() for name in formats.split(",") if name.strip()]
    for name in wanted:
        registry.format_named(name)  # every unknown name is refused before the first file is written
    run, verdict = saved_verdict(directory)
    for path in write_reports(run, verdict, wanted, out or directory):
        click.echo(path)
