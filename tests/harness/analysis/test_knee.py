"""The knee of throughput over load is found where growth ends, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pinchpoint.analysis.knee import find_knee, no_knee


def levels(
    law: Callable[[float], tuple[float, float]], count: int = 10, noise: float = 0.0
) -> list[dict[str, Any]]:
    """Return ten levels, 10 to 100; ``law`` maps a load to (throughput per second, seconds)."""
    random, rows = np.random.default_rng(1), []
    for number in range(1, count + 1):
        done, takes_s = law(number * 10.0)
        done *= 1 + noise * random.standard_normal()
        rows.append({"level": number * 10.0, "throughput_per_s": done, "service_p50_s": takes_s})
    return rows


def capped(cap: float) -> Callable[[float], tuple[float, float]]:
    return lambda load: (min(load, cap), 0.01 * max(1.0, load / cap))


@pytest.mark.parametrize("cap", [30, 45, 70])
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_knee_is_found_where_a_cap_begins(cap: float, noise: float) -> None:
    """The knee is found within one level of the cap, also with 2 % of noise."""
    knee = find_knee(levels(capped(cap), noise=noise))
    assert knee.found
    assert knee.level == pytest.approx(cap, abs=10)
    assert knee.throughput_per_s == pytest.approx(cap, rel=0.35)


def test_throughput_that_falls_again_has_a_knee() -> None:
    """Throughput that falls beyond a load of 40 has its knee at 40."""
    knee = find_knee(levels(lambda n: (min(n, 40) - 0.1 * max(0, n - 40), 0.01 if n <= 40 else 0.05)))
    assert knee.found
    assert knee.level == 40


@pytest.mark.parametrize(
    "law",
    [
        lambda n: (n, 0.01),  # all operations are served
        lambda n: (n / (1 + 0.05 * (n / 10 - 1)), 0.01 * (1 + 0.005 * n)),  # growth declines but continues
        lambda n: (min(n, 50.0), 0.01),  # flat without longer times: the load is not offered
    ],
)
def test_growth_has_no_knee(law: Callable[[float], tuple[float, float]]) -> None:
    """Linear growth, a gentle bend, and flat throughput with constant times have no knee."""
    assert find_knee(levels(law)).found is False


def test_too_few_levels_are_said_not_guessed() -> None:
    """Five levels are too few for a knee; the answer is None with the reason."""
    assert find_knee(levels(capped(30), count=5)).found is None
    none = no_knee(1)
    assert none.found is None
    assert none.why == "one load level, and at least 6 are needed to find the knee"
