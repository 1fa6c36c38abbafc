"""Measured and predicted effect of a change, from windows of known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pinchpoint.analysis.proof import (
    CONTROL,
    SLOWER,
    Effect,
    PredictedEffect,
    answer,
    find_effects,
    predicted,
)
from pinchpoint.run.prove import ORDER, ORDER_WITH_CONTROL

SAYS = PredictedEffect(0.75, "all of it is used")


def windows(
    order: tuple[str, ...], effect: float, drift: float = 0.0, noise: float = 0.0, seed: int = 1
) -> list[tuple[str, float, float]]:
    """Return windows at 500/s, times the effect where slower, with a drift and random noise."""
    random = np.random.default_rng(seed)
    found = []
    for number, kind in enumerate(order):
        rate = 500 * (effect if kind == SLOWER else 1.0) * (1 + drift * number / len(order))
        found.append((kind, 8.0 * number, rate * math.exp(random.normal(0, noise))))
    return found


@pytest.mark.parametrize("order", [ORDER, ORDER_WITH_CONTROL])
@pytest.mark.parametrize("drift", [0.0, 0.3, -0.3])
def test_a_load_that_drifts_favours_no_window(order: tuple[str, ...], drift: float) -> None:
    """The effect is exact within 1 %, whatever drift the load has over the test."""
    found = find_effects(windows(order, 0.75, drift))
    assert found[SLOWER].ratio == pytest.approx(0.75, rel=0.01)
    if CONTROL in order:
        assert found[CONTROL].ratio == pytest.approx(1.0, rel=0.01)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """With autocorrelated noise (0.8) in windows of 6 s, the interval holds the truth as often as stated."""
    held = 0
    for seed in range(400):
        random = np.random.default_rng(seed)
        shocks = random.normal(0, 0.1 * math.sqrt(1 - 0.8**2), 8 * len(ORDER))
        wave = np.zeros(len(shocks))
        for second in range(1, len(shocks)):
            wave[second] = 0.8 * wave[second - 1] + shocks[second]
        seconds = [wave[8 * number : 8 * number + 6] for number in range(len(ORDER))]
        left = [0.75 if kind == SLOWER else 1.0 for kind in ORDER]
        rows = [
            (kind, 8.0 * number, left[number] * float((1 + seconds[number]).mean()))
            for number, kind in enumerate(ORDER)
        ]
        effect = find_effects(rows)[SLOWER]
        assert effect.low is not None
        assert effect.high is not None
        held += effect.low <= 0.75 <= effect.high
    assert 0.91 <= held / 400 <= 0.99


def test_too_few_windows_have_an_effect_and_no_interval() -> None:
    """Two windows give an effect without an interval, and one kind alone gives neither."""
    two = find_effects(windows(ORDER[:2], 0.75))
    assert two[SLOWER].ratio == pytest.approx(0.75)
    assert (two[SLOWER].low, two[SLOWER].high) == (None, None)
    assert answer(two[SLOWER], SAYS)[0] == "undecided"
    assert find_effects([("as_is", 0.0, 500.0)]) == {}
    assert answer(None, SAYS)[0] == "undecided"


@pytest.mark.parametrize(
    ("effect", "model", "result", "words"),
    [
        (Effect(0.76, 0.73, 0.79), 0.75, "agrees", "76 % (73 % to 79 %) of what it was; the model says 75 %"),
        (Effect(0.99, 0.96, 1.02), 0.75, "contradicts", "99 %"),
        (Effect(0.92, 0.88, 0.96), 0.75, "contradicts", "92 %"),
        (Effect(0.80, 0.62, 1.03), 0.75, "undecided", "differ too much"),
        (Effect(0.50, 0.45, 0.55), 0.75, "undecided", "more than this was made slower"),
        (Effect(1.00, 0.99, 1.01), 0.97, "undecided", "hardly anything changes"),
    ],
)
def test_what_is_said_of_an_effect(effect: Effect, model: float, result: str, words: str) -> None:
    """The answer follows from the share of the predicted effect that was measured, beyond chance."""
    found, why = answer(effect, PredictedEffect(model, "all of it is used"))
    assert found == result
    assert words in why


def test_a_control_that_answers_likewise_leaves_it_open() -> None:
    """If a resource with spare capacity shows the same effect, the proof is undecided."""
    found, why = answer(Effect(0.76, 0.73, 0.79), SAYS, also="the CPU of search")
    assert found == "undecided"
    assert "the CPU of search" in why


def test_what_the_model_says_of_resources_of_which_only_the_name_is_known() -> None:
    """Prediction by name alone: proportional if saturated, at most proportional if waited for."""
    change = {"what": "x", "ratio": 0.75, "of": "capacity"}
    assert predicted(None, "cpu", change).ratio == pytest.approx(0.75)
    assert predicted(None, "disk_latency", change).ratio == pytest.approx(0.75)
