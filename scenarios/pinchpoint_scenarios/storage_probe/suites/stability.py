"""The same I/O for hours: warm-up, credits that run out, trends, outliers (seed C ran for eight hours)."""

from __future__ import annotations

from collections.abc import Sequence

from ..cell import Cell, Job
from ..suite import Suite


def jobs(seconds: float) -> Sequence[Job]:
    """One cell: 8 KiB random writes, 8 at a time."""
    return [Job("fio", (Cell("8K random write", 8192, 0.0, 1.0, 8),), seconds)]


SUITE = Suite(
    name="stability",
    about="8 KiB random writes, 8 at a time, for eight hours (--time-per-cell): trend, warm-up, credits, "
    "outliers",
    jobs=jobs,
    repetitions=1,
    seconds=8 * 3600.0,
)
