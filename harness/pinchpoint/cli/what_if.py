"""``pinchpoint what-if``: what another disk, machine or load would do, before anything is bought."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pinchpoint.cli.arguments import RUN
from pinchpoint.forecast import predict
from pinchpoint.forecast.text import prediction_text
from pinchpoint.probe.disk import probed_disk
from pinchpoint.store.read import open_run


@click.command(name="what-if")
@RUN
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="What would differ: sql.log=azure/p30, sql.log=PROBE (the directory of a kept probe: that disk as "
    "it was measured), sql.log.latency=2ms (also .iops, .bytes, .stripes), search.cpu=4, "
    "sql.machine=azure/ds13, orders.users=64 (also .think, .rate). May be given again.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the prediction as JSON and nothing else.")
def what_if(directory: Path, settings: tuple[str, ...], *, as_json: bool) -> None:
    """Predict the throughput of RUN's load if something were different, and what would limit then.

    The model is made of what RUN measured: what an operation takes of each disk and of the CPUs. Without
    --set it shows the run as the model sees it.
    """
    found = predict(open_run(directory), settings, probed_disk)
    click.echo(json.dumps(found.to_json(), indent=1) if as_json else prediction_text(found))
