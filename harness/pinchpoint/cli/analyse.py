"""``pinchpoint analyse``: the verdict on a run."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pinchpoint.cli.arguments import RUN
from pinchpoint.conclude import verdict_of
from pinchpoint.report.terminal import verdict_text


@click.command()
@RUN
@click.option("--json", "as_json", is_flag=True, help="Print verdict.json's content and nothing else.")
def analyse(directory: Path, *, as_json: bool) -> None:
    """Say which resource of RUN gives way first, from what was measured.

    A run whose controller was killed is recovered first.
    """
    _, verdict = verdict_of(directory)
    content = verdict.to_json()
    click.echo(json.dumps(content, indent=1) if as_json else verdict_text(content))
