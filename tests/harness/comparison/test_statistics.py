"""Confidence intervals and calls: compared with scipy, and with simulations of known truth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import ttest_ind

from pinchpoint.comparison.statistics import (
    ENOUGH,
    SAME,
    SIGNIFICANT,
    Estimate,
    call_of,
    combined,
    holm,
    welch,
)

DRAWS = 2000
NOMINAL = 0.93
"""Least coverage of a 95 % interval that the simulations require."""
BASE, OTHER = (10.0, 11.0, 9.5, 10.4, 10.1), (20.3, 19.0, 22.0, 20.8, 19.9)


def test_the_interval_is_that_of_welchs_test_on_logarithms() -> None:
    """The interval equals scipy's Welch test on the logarithms."""
    found = welch(BASE, OTHER)
    assert found is not None
    wanted = ttest_ind(np.log(OTHER), np.log(BASE), equal_var=False).confidence_interval(0.95)
    assert np.log(found.ci95) == pytest.approx([wanted.low, wanted.high])
    assert math.exp(found.shift) == pytest.approx(math.prod(OTHER) ** 0.2 / math.prod(BASE) ** 0.2)


def test_swapped_sides_give_the_swapped_answer() -> None:
    """Swapping the sides inverts the interval and keeps p and call."""
    there, back = welch(BASE, OTHER), welch(OTHER, BASE)
    assert there is not None
    assert back is not None
    assert back.ci95 == pytest.approx((1 / there.ci95[1], 1 / there.ci95[0]))
    assert back.p_within(1.05) == pytest.approx(there.p_within(1.05))
    assert call_of(there, 0.01, same=1.05, better="higher") == "better"
    assert call_of(back, 0.01, same=1.05, better="higher") == "worse"
    assert call_of(back, 0.01, same=1.05, better="lower") == "better"
    assert call_of(back, 0.01, same=1.05, better=None) == "changed"


@pytest.mark.parametrize("margin", [1.05, 1.5, 1.9, 2.2])
def test_p_is_small_where_the_interval_lies_outside_the_margin(margin: float) -> None:
    """The p-value is below .05 exactly where the interval lies outside the margin."""
    found = welch(BASE, OTHER)
    assert found is not None
    assert (found.p_within(margin) < SIGNIFICANT) == (found.ci95[0] > margin)


@pytest.mark.parametrize(
    ("base", "other"), [([1.0], [2.0, 3.0]), ([1.0, 0.0], [1.0, 2.0]), ([], [1.0, 2.0])], ids=str
)
def test_what_has_no_interval_has_none(base: list[float], other: list[float]) -> None:
    """A single value, a 0 or no value has no interval."""
    assert welch(base, other) is None


def test_values_that_are_all_alike_are_a_point() -> None:
    """Equal values on each side give an interval of one point, without a division by 0."""
    same, twice = welch([3.0] * 5, [3.0] * 5), welch([3.0] * 5, [6.0] * 5)
    assert same is not None
    assert twice is not None
    assert (same.ci95, same.p_within(1.05)) == ((1.0, 1.0), 1.0)
    assert twice.ci95 == pytest.approx((2.0, 2.0))
    assert twice.p_within(1.05) == 0.0
    assert call_of(same, 1.0, same=1.05, better="lower") == "equivalent"


def test_an_interval_without_end_is_still_a_number() -> None:
    """An unbounded interval is stored as a finite number in comparison.json."""
    low, high = Estimate(0.0, 50.0, 1.0).ci95
    assert 0 < low < 1e-40
    assert 1e40 < high < math.inf


def test_holm_against_a_worked_example() -> None:
    """Holm's correction: 4 x .01, 3 x .02, 2 x .03, each at least as large as the one before."""
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_nothing_is_equivalent_because_nothing_was_seen() -> None:
    """A wide interval is inconclusive, never equivalent because of a large p."""
    wide, narrow = combined(0.0, [0.01, 0.01], [4, 4]), combined(0.0, [1e-5, 1e-5], [4, 4])
    assert call_of(wide, 1.0, same=1 + SAME, better="lower") == "inconclusive"
    assert call_of(narrow, 1.0, same=1 + SAME, better="lower") == "equivalent"
    assert call_of(narrow, 1.0, same=None, better="lower") == "inconclusive", "of too few runs"


@pytest.mark.parametrize("spreads", [(0.02, 0.02), (0.1, 0.1), (0.03, 0.3)], ids=str)
def test_five_and_five_runs_cover_the_true_ratio(spreads: tuple[float, float]) -> None:
    """In 2,000 comparisons of 5 + 5 runs, the 95 % interval covers the true ratio.

    This holds also where one side's runs vary ten times as much as the other's.
    """
    chance = np.random.default_rng(11)
    ratio = 1.3
    held = 0
    for _ in range(DRAWS):
        base = np.exp(chance.normal(0, spreads[0], ENOUGH))
        other = ratio * np.exp(chance.normal(0, spreads[1], ENOUGH))
        found = welch(base.tolist(), other.tolist())
        assert found is not None
        held += found.ci95[0] <= ratio <= found.ci95[1]
    assert held / DRAWS >= NOMINAL


@pytest.mark.parametrize("ratio", [1.0, 1 + SAME], ids=["alike", "at the margin"])
def test_six_figures_that_did_not_change_are_hardly_ever_called(ratio: float) -> None:
    """In 2,000 comparisons of six unchanged figures, about 5 % at most have a call.

    A ratio at the edge of the margin is rarely called equivalent.
    """
    chance = np.random.default_rng(12)
    wrong = equivalent = 0
    for _ in range(DRAWS):
        sides = chance.normal(0, 0.03, (2, 6, ENOUGH)) + np.array([0.0, math.log(ratio)])[:, None, None]
        found = [welch(*pair) for pair in zip(*np.exp(sides).tolist(), strict=True)]
        known = [one for one in found if one is not None]
        assert len(known) == 6
        p = holm([one.p_within(1 + SAME) for one in known])
        calls = [
            call_of(one, each, same=1 + SAME, better="lower") for one, each in zip(known, p, strict=True)
        ]
        wrong += bool({"better", "worse"} & set(calls))
        equivalent += calls.count("equivalent")
    assert wrong / DRAWS <= 0.06
    if ratio > 1:
        assert equivalent / DRAWS / 6 <= 0.035


def test_a_twofold_change_is_found() -> None:
    """A twofold change is almost always found with 5 + 5 runs of 10 % spread."""
    chance = np.random.default_rng(13)
    found = 0
    for _ in range(200):
        base, other = np.exp(chance.normal(0, 0.1, (2, ENOUGH)))
        one = welch(base.tolist(), (2 * other).tolist())
        assert one is not None
        found += call_of(one, one.p_within(1.05), same=1.05, better="higher") == "better"
    assert found >= 198


def test_every_order_of_the_runs_gives_one_answer() -> None:
    """The order of the runs within a side does not change the result."""
    answers = {welch(order, OTHER) for order in itertools.islice(itertools.permutations(BASE), 6)}
    shifts = [one.shift for one in answers if one]
    assert max(shifts) == pytest.approx(min(shifts))
