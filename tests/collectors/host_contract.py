"""Contract of each collector of a remote Linux host: its samples are those of ``local`` there."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from pinchpoint_collectors.local import LocalKind
from pinchpoint_collectors.record import Sample, Watch


def says_what_local_says(
    samples: Sequence[Sample], facts: Mapping[str, Any], disks: Mapping[str, str], own: set[tuple[str, str]]
) -> None:
    """Assert that the samples are those of ``local`` for this machine, watched as ``sql1``.

    Args:
        samples: samples of several readings.
        facts: inventory of the host.
        disks: the watched disks.
        own: metrics and instances of the collector itself.
    """
    here = LocalKind().connect([Watch("sql1", "sql", disks)])
    try:
        here.read()
        time.sleep(0.05)
        mine = {(each.metric, each.instance) for each in here.read()}
        ours = here.inventory()["sql1"]
    finally:
        here.close()
    said = {(each.metric, each.instance) for each in samples}
    assert said == mine | own
    assert facts.keys() - ours.keys() == {"clock"}
    assert {key: facts[key] for key in ours} == ours
