"""Finds the knee of throughput over load (step 2), or reports that there are too few load levels.

Two straight lines that meet are fitted to throughput over load. Their meeting point is a knee if the second
line rises by less than a tenth of the first while response times rise. The Universal Scalability Law (Gunther
2007) is fitted to the same points as a cross-check: its growth must end as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # loads its parts on first use; most verdicts need no part

from pinchpoint.analysis.thresholds import KNEE_RISE, KNEE_SLOPE, MIN_LEVELS, USL_SLOPE
from pinchpoint.base import units
from pinchpoint.data.series import Floats, mean

EDGE = 2
"""Fewest points on either side of the meeting point."""


@dataclass(frozen=True, slots=True)
class Knee:
    """The result of the search for a knee.

    Attributes:
        found: whether there is a knee; None if there are too few load levels.
        levels: number of load levels.
        needed: fewest load levels for a fit.
        why: the result as a sentence.
        level: the load level at which the two lines meet: operations per second, or users.
        throughput_per_s: throughput at ``level``, operations per second.
        slope_ratio: slope of the second line ÷ slope of the first.
        usl: coefficients of the Universal Scalability Law for load in multiples of the first level: ``sigma``
            (contention), ``kappa`` (coherency), and ``slope_ratio``, the slope at the last level ÷ the slope
            at the first; None if the law cannot be fitted.
    """

    found: bool | None
    levels: int
    needed: int
    why: str
    level: float | None = None
    throughput_per_s: float | None = None
    slope_ratio: float | None = None
    usl: Mapping[str, float] | None = None


def no_knee(count: int) -> Knee:
    """The result if there are too few load levels."""
    needed = int(MIN_LEVELS.value)
    noun = {0: "no load level", 1: "one load level"}.get(count, f"{count} load levels")
    return Knee(None, count, needed, f"{noun}, and at least {needed} are needed to find the knee")


def find_knee(rows: Sequence[Mapping[str, Any]]) -> Knee:
    """The knee of one scenario's levels: rows of ``levels.level_table``, from low to high."""
    count, needed = len(rows), int(MIN_LEVELS.value)
    if count < needed:
        return no_knee(count)
    columns = ("level", "throughput_per_s")
    load, done = (np.array([row[name] for row in rows], dtype=float) for name in columns)
    times = np.array([_time_s(row) for row in rows], dtype=float)
    at, before, after = _two_lines(load, done)
    ratio = after / before if before > 0 else float("inf")
    usl = _usl(load, done)
    meet = units.load_level(float(load[at]), rows[at].get("unit", "per_s"))
    flat = ratio < KNEE_SLOPE.value
    then, first = mean(times[at + 1 :]), mean(times[: at + 1])
    rises = then is not None and first is not None and then > KNEE_RISE.value * first
    agrees = usl is None or usl["slope_ratio"] < USL_SLOPE.value
    return Knee(
        found=flat and rises and agrees,
        levels=count,
        needed=needed,
        why=_why(meet, flat=flat, rises=rises, agrees=agrees),
        level=float(load[at]),
        throughput_per_s=float(done[at]),
        slope_ratio=float(ratio) if np.isfinite(ratio) else None,
        usl=usl,
    )


def _time_s(row: Mapping[str, Any]) -> float:
    """Median response time, which includes waiting for a session; for closed load the service time."""
    times = (row.get("response_p50_s"), row["service_p50_s"])
    return next((float(one) for one in times if one is not None), np.nan)


def _why(level: str, *, flat: bool, rises: bool, agrees: bool) -> str:
    if not flat:
        return "throughput follows the load up to the last level"
    if not rises:
        return f"throughput stops following at {level}, but response times do not rise"
    if not agrees:
        return f"throughput stops following at {level}, but the scalability law fitted to it still grows"
    return f"throughput stops following the load at {level}, and response times rise"


def _two_lines(load: Floats, done: Floats) -> tuple[int, float, float]:
    """(index of the point at which the lines meet, slope before, slope after) of the best fit."""
    best: tuple[float, int, float, float] | None = None
    for at in range(EDGE - 1, len(load) - EDGE):
        terms = np.column_stack([np.ones_like(load), load, np.maximum(0, load - load[at])])
        result, *_ = np.linalg.lstsq(terms, done, rcond=None)
        _, slope, bend = result
        error = float(np.sum((terms @ result - done) ** 2))
        if best is None or error < best[0]:
            best = error, at, float(slope), float(slope + bend)
    assert best is not None  # noqa: S101 -- at least six points
    return best[1:]


def _usl(load: Floats, done: Floats) -> dict[str, float] | None:
    """The coefficients of the Universal Scalability Law; None if it cannot be fitted.

    X(N) = unit N / (1 + sigma (N - 1) + kappa N (N - 1)), with N in multiples of the first level.
    """
    n = load / load[0]

    def law(n: Floats, unit: float, sigma: float, kappa: float) -> Floats:
        return unit * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))

    guess = (float(done[0]) or 1.0, 0.05, 0.0)
    try:
        (unit, sigma, kappa), _ = scipy.optimize.curve_fit(
            law, n, done, guess, bounds=([0, 0, 0], [np.inf, 1, 1])
        )
    except (RuntimeError, scipy.optimize.OptimizeWarning):
        return None  # without a fit there is no cross-check
    ends = np.array([n[0], n[-1]])
    slopes = (law(ends + 1e-4, unit, sigma, kappa) - law(ends, unit, sigma, kappa)) / 1e-4
    return {"sigma": float(sigma), "kappa": float(kappa), "slope_ratio": float(slopes[1] / slopes[0])}
