"""``pinchpoint pack``: packs a finished run into one file."""

from __future__ import annotations

from pathlib import Path

import click

from pinchpoint.cli.arguments import RUN
from pinchpoint.store import archive


@click.command()
@RUN
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help=f"The archive's file, or the folder for it. [default: beside RUN, as RUN{archive.ENDING}]",
)
@click.option(
    "--sign",
    "key",
    metavar="KEY",
    type=click.Path(path_type=Path),
    help="Sign it with this ssh key: the private key's file, or the public one's if an agent holds the key.",
)
def pack(directory: Path, out: Path | None, key: Path | None) -> None:
    """Pack RUN into one file with a checksum of each part, to send or to keep.

    It holds the run's measurements, its verdict and its reports, no passwords, and nothing else from the
    folder. The last line is the archive.
    """
    path, left = archive.pack(directory, out, key)
    if left:
        click.echo(f"not packed, as no part of a run: {', '.join(left)}", err=True)
    click.echo(path)
