"""``pinchpoint report``: a run, a comparison, or a probe, for people who were not there."""

from __future__ import annotations

from pathlib import Path

import click

from pinchpoint.cli.arguments import RUN_OR_COMPARISON
from pinchpoint.comparison import saved
from pinchpoint.conclude import verdict_of, write_reports
from pinchpoint.probe.compared import are_of_a_probe
from pinchpoint.report import registry


@click.command()
@RUN_OR_COMPARISON
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
    help="Where to write; the directory itself by default.",
)
def report(directory: Path, formats: str, out: Path | None) -> None:
    """Write the report of RUN, a comparison or a probe, from the saved files; prints each file's path."""
    wanted = list(dict.fromkeys(name.strip() for name in formats.split(",")))
    if are_of_a_probe(directory):
        from pinchpoint.probe.reports import write_reports as of_a_probe  # noqa: PLC0415 -- its charts take a second

        for path in of_a_probe(directory, wanted, out or directory):
            click.echo(path)
        return
    for name in wanted:
        registry.format_named(name)  # every unknown name is refused before the first file is written
    if saved.is_comparison(directory):
        written = saved.write_reports(saved.load(directory), wanted, out or directory)
    else:
        run, verdict = verdict_of(directory)
        written = write_reports(run, verdict.to_json(), wanted, out or directory)
    for path in written:
        click.echo(path)
