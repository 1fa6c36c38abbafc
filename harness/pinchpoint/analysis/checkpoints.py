"""Compares response times while a database writes a checkpoint with those of the other times.

PostgreSQL counts a checkpoint's buffers while it writes them; so the seconds in which this counter grows
belong to a checkpoint. Slow operations in these seconds do not prove that the checkpoint is the cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pinchpoint.analysis.thresholds import CHECKPOINT_SHOWS, MIN_SECONDS, at_least
from pinchpoint.base import units
from pinchpoint.data.inputs import Inputs

WRITTEN = "db.checkpoint_buffers_per_s"
BEGUN = "db.checkpoints_per_s"


def checkpoint_table(inputs: Inputs) -> tuple[dict[str, Any], ...]:
    """One row per scenario and database server that wrote a checkpoint; empty without checkpoints.

    ``{host, scenario, timed, requested, read_every_s, written_s, written_ratio, p95_during_s, p95_between_s,
    p95_ratio, throughput_during_per_s, throughput_between_per_s}``. ``timed`` and ``requested`` are numbers
    of checkpoints that began in the measure phase. ``written_s`` is the time of all readings in which a
    checkpoint was being written; a reading covers ``read_every_s``. The latencies and rates are None if fewer
    than ten seconds had, or lacked, a checkpoint: too few to compare.
    """
    return tuple(
        row for host in dict.fromkeys(host.name for host in inputs.hosts) for row in _rows(inputs, host)
    )


def checkpoint_words(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for every scenario whose operations took clearly longer during checkpoints."""
    for row in rows:
        if at_least(row["p95_ratio"], CHECKPOINT_SHOWS):
            yield (
                f"while {row['host']} wrote checkpoints "
                f"({_most(row)}{units.percent(row['written_ratio'])} of the time{_seldom(row)}; "
                f"{row['timed']} scheduled, {row['requested']} requested, for example by a full log) "
                f"the p95 of {row['scenario']} was {units.seconds(row['p95_during_s'])}, "
                f"{row['p95_ratio']:.2g} times that of the rest ({units.seconds(row['p95_between_s'])})"
            )


def _most(row: Mapping[str, Any]) -> str:
    return "at most " if _seldom(row) else ""


def _seldom(row: Mapping[str, Any]) -> str:
    """The interval of the readings in words if it exceeds one second, else "".

    A long reading with a checkpoint also covers time without one.
    """
    each_s = row["read_every_s"]
    return f", as known every {units.seconds(each_s)}" if each_s > 1.5 else ""


def _rows(inputs: Inputs, host: str) -> Iterator[dict[str, Any]]:
    written = inputs.samples.steps(host, WRITTEN)
    known, window = np.isfinite(written), inputs.window
    during = known & (np.nan_to_num(written) > 0)
    if not during.any():
        return
    begun = {why: _begun(inputs, host, why) for why in ("timed", "requested")}
    for scenario in dict.fromkeys(load.scenario for load in inputs.loads):
        there, between = (_load(inputs, scenario, rows) for rows in (during, known & ~during))
        comparable = there["p95_s"] and between["p95_s"]
        yield {
            "host": host,
            "scenario": scenario,
            **{why: round(count) for why, count in begun.items()},
            "read_every_s": max(float(window.step_s), inputs.samples.reading_s([host], WRITTEN)),
            "written_s": int(during.sum()) * window.step_s,
            "written_ratio": float(during.sum() / known.sum()),
            "p95_during_s": there["p95_s"],
            "p95_between_s": between["p95_s"],
            "p95_ratio": there["p95_s"] / between["p95_s"] if comparable else None,
            "throughput_during_per_s": there["throughput_per_s"],
            "throughput_between_per_s": between["throughput_per_s"],
        }


def _begun(inputs: Inputs, host: str, why: str) -> float:
    """The number of checkpoints that began, from the raw readings: one reading may be longer than a step."""
    series = inputs.samples.series(host, BEGUN, why)
    return series.sum() if series is not None else 0.0


def _load(inputs: Inputs, scenario: str, rows: npt.NDArray[np.bool_]) -> dict[str, Any]:
    window = inputs.window
    length = int(rows.sum()) * window.step_s
    if length < MIN_SECONDS.value:
        return {"p95_s": None, "throughput_per_s": None}
    seconds = (
        window.first_s + int(step) * window.step_s + within
        for step in np.flatnonzero(rows)
        for within in range(window.step_s)
    )
    done = inputs.traffic.of(scenario).whole().at(seconds).ok()
    times = done.response() or done.service()
    return {"p95_s": times.p95_s if times else None, "throughput_per_s": done.count / length}
