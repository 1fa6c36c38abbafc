"""``pinchpoint runs``: what was run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from pinchpoint.errors import InputError
from pinchpoint.store.read import read_manifest
from pinchpoint.store.schema import MANIFEST, VERDICT
from pinchpoint.store.write import is_being_written


@click.command()
@click.argument("directory", metavar="[DIR]", type=click.Path(path_type=Path), default=Path("runs"))
def runs(directory: Path) -> None:
    """List the runs in DIR (default: runs), oldest first."""
    if not directory.is_dir():
        raise InputError(f"{directory}: is no directory; `pinchpoint run` makes runs/ where it is called")
    found = sorted(directory.glob(f"*/{MANIFEST}"))
    if not found:
        click.echo(f"no runs in {directory}")
        return
    rows = sorted((_row(path.parent) for path in found), key=lambda row: row[1])
    table = Table("run", "started", "state", "outcome", "what gives way first", box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    # Lines are for pipes as much as for people: a name is never cut, also where there is no terminal.
    for column in table.columns:
        column.no_wrap, column.overflow = True, "ignore"
    Console(width=None if sys.stdout.isatty() else 240, soft_wrap=True).print(table)


def _row(directory: Path) -> tuple[str, str, str, str, str]:
    try:
        manifest = read_manifest(directory)
    except InputError as error:
        return directory.name, "", "unreadable", "", str(error)
    state = manifest["state"]
    if state == "running" and not is_being_written(directory):
        state = "killed (analyse recovers it)"
    verdict = directory / VERDICT
    if not verdict.exists():
        return directory.name, manifest["started"], state, "", ""
    try:
        content = json.loads(verdict.read_text(encoding="utf-8"))
    except ValueError:
        return directory.name, manifest["started"], state, "unreadable verdict", ""
    limit = content.get("bottleneck") or {}
    words = " ".join(str(limit[key]) for key in ("tier", "role", "resource", "kind") if limit.get(key))
    return directory.name, manifest["started"], state, content.get("outcome", ""), words
