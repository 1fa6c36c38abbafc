"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

OUT = click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="The folder in which the run's directory is made.",
)
FARM = click.option(
    "--farm",
    "farm_file",
    type=click.Path(path_type=Path),
    required=True,
    help="The farm's farm.yaml.",
)
PLAN = click.argument("plan_file", metavar="PLAN", type=click.Path(path_type=Path))
RUN_OR_COMPARISON = click.argument("directory", metavar="RUN|COMPARISON", type=click.Path(path_type=Path))
RUN = click.argument("directory", metavar="RUN", type=click.Path(path_type=Path))
