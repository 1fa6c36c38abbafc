"""``pinchpoint schema``: prints the JSON Schema of farm.yaml or plan.yaml for editors."""

from __future__ import annotations

import json

import click


@click.command()
@click.argument("kind", metavar="farm|plan", type=click.Choice(["farm", "plan"]))
def schema(kind: str) -> None:
    """Print the JSON Schema of farm.yaml or plan.yaml: editors then complete and check the file.

    `pinchpoint init` writes it beside both files. `pinchpoint check` finds what depends on several fields.
    """
    from pinchpoint.plan.schema import schema as made  # noqa: PLC0415 -- it imports every scenario

    click.echo(json.dumps(made(kind), indent=1, ensure_ascii=False))
