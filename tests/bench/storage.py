"""Compare commits per second when the disk is the limit: a log disk of 500 I/Os per second."""

from __future__ import annotations

import os
from collections.abc import Iterator

from bench.commits import measured, rate
from bench.rows import Row
from bench.server import slow_log

from pinchpoint_infra.disks import DiskSpec

_SPEC = DiskSpec(iops=500)
_SECONDS = 4
_NAME = "commits/s, log disk of 500 IOPS"
_GOAL = 0.98


def rows() -> Iterator[Row]:
    """Yield the one row; without root it has no value and a note with the reason."""
    if os.geteuid() != 0:
        yield Row(
            _NAME, None, "1/s", goal=_GOAL, at_most=False, met=False, note="needs root: an emulated disk"
        )
        return
    try:
        with slow_log(_SPEC) as target:
            yield rate(measured(target, _SECONDS), _NAME, _GOAL)
    except OSError as error:
        yield Row(_NAME, None, "1/s", goal=_GOAL, at_most=False, met=False, note=str(error))
