"""What holds of every collector of a Linux host that is far away: it says what ``local`` says there."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from pinchpoint_collectors.local import LocalKind
from pinchpoint_collectors.record import Sample, Watch


def says_what_local_says(
    samples: Sequence[Sample], facts: Mapping[str, Any], disks: Mapping[str, str], own: set[tuple[str, str]]
) -> None:
    """Assert it of a host that is this machine, watched as ``sql1``.

    Args:
        samples: of several readings.
        facts: its inventory.
        disks: those that were watched.
        own: what it says of itself beside that: metric and instance.
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
