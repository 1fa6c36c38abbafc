"""``pinchpoint unpack``: unpacks a run from the file that ``pack`` wrote."""

from __future__ import annotations

from pathlib import Path

import click

from pinchpoint.cli.arguments import OUT
from pinchpoint.store import archive


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@OUT
@click.option(
    "--signers",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Refuse an archive that is not signed by one of these: an allowed-signers file of ssh-keygen.",
)
def unpack(file: Path, out: Path, signers: Path | None) -> None:
    """Check the archive FILE and unpack its run. The last line is the run's folder.

    A file that was changed, cut off or made to do harm is refused, and nothing is written.
    """
    result = archive.unpack(file, out, signers)
    click.echo(result.signed or "not signed", err=True)
    click.echo(result.directory)
