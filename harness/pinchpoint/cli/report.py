"""``pinchpoint report``: writes a run, a comparison, a probe or a set as a document."""

from __future__ import annotations

from pathlib import Path

import click

from pinchpoint.cli.arguments import REPORTED
from pinchpoint.report.cover import cover_of
from pinchpoint.report.files import write_saved
from pinchpoint.report.registry import FORMATS


@click.command()
@REPORTED
@click.option(
    "--format",
    "formats",
    default="html",
    show_default=True,
    help=f"{', '.join(FORMATS)}, or several with commas.",
)
@click.option("--title", default=None, help="The title of the report. [default: what was tested]")
@click.option(
    "--logo",
    type=click.Path(path_type=Path),
    default=None,
    help="A PNG or SVG picture that stands above the report.",
)
@click.option(
    "--redact",
    is_flag=True,
    help="Replace the names of hosts, users and databases by host-1, user-1, database-1 everywhere.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=None,
    help="The folder to write to. [default: the run's own; of a file this one]",
)
def report(
    directory: Path,
    formats: str,
    title: str | None,
    logo: Path | None,
    out: Path | None,
    *,
    redact: bool,
) -> None:
    """Write the report of a run, a comparison, a probe or a set from its files; prints the path of each.

    It takes a YAML file with the published figures of a report, too (infra/examples).
    """
    wanted = list(dict.fromkeys(name.strip() for name in formats.split(",")))
    for path in write_saved(
        directory, wanted, out or _place(directory), cover_of(title, logo), redact=redact
    ):
        click.echo(path)


def _place(given: Path) -> Path:
    """Return the default folder for reports."""
    return Path() if given.is_file() else given
