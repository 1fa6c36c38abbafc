"""``pinchpoint what-if``: predicts the effect of another disk, machine or load before it is bought."""

from __future__ import annotations

from pathlib import Path

import click

from pinchpoint.cli.arguments import RUN, show
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
    help="What would change. A disk type: sql.log=azure/p30. A probed disk: sql.log=PROBE (its "
    "folder). One figure of a disk: sql.log.latency=2ms (also .iops, .bytes, .stripes). "
    "Cores: search.cpu=4. A machine: sql.machine=azure/ds13. Where it limits: sql.network=125MB/s, "
    "nosql.processes=2, sql.lock=0ms, web.delay=5ms. The load: orders.users=64 (also .think, "
    ".rate). May be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the prediction as JSON and nothing else.")
def what_if(directory: Path, settings: tuple[str, ...], *, as_json: bool) -> None:
    """Predict the throughput of RUN after a change, and the next bottleneck.

    The model is made of what RUN measured: what an operation takes of each disk and of the CPUs. Without
    --set it shows the run as the model sees it.
    """
    result = predict(open_run(directory), settings, probed_disk)
    show(result, prediction_text, as_json=as_json)
