"""The gain from a change of a resource, and the sentence of advice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pinchpoint.analysis.verdict import Advice, Kind
from pinchpoint.base import wording

if TYPE_CHECKING:
    from pinchpoint.analysis.model.prediction import Throughput

SAME = "the same mix of operations and the same cache ratio"
NOTHING = 0.005
"""Gains below this ratio count as none."""


@dataclass(frozen=True, slots=True)
class Gain:
    """The effect of removing a limit.

    Attributes:
        ratio: relative increase of throughput, at most; None if unknown.
        limit: the next limit, in words; None if unknown.
        assumes: what must stay the same, or why the gain is unknown.
        at_most: whether the ratio is an upper bound; with one load level it is an estimate.
        throughput: prediction for the scenario that gains most, if the model made one.
        set: settings of ``what-if`` that give this gain.
    """

    ratio: float | None
    limit: str | None
    assumes: str
    at_most: bool = False
    throughput: Throughput | None = None
    set: tuple[str, ...] = ()


def advise(
    kind: Kind,
    target: str,
    what: str,
    gain: Gain,
    source: Mapping[str, str] | None = None,
    text: str = "",
) -> Advice:
    """One piece of advice, with its full sentence (``Add CPUs to search: up to +38 %; then ...``)."""
    one = gain.throughput
    return Advice(
        kind,
        target,
        what,
        gain.ratio,
        gain.limit,
        gain.assumes,
        source,
        text or _text(what, gain),
        gain.at_most,
        gain.set,
        interval_ratio=(one.low_ratio - 1, one.high_ratio - 1) if one else None,
        scenario=one.scenario if one else None,
    )


def _text(what: str, gain: Gain) -> str:
    if gain.ratio is None:
        return f"{what}. Gain: not known: {gain.assumes}."
    if gain.throughput is not None:
        one = gain.throughput
        more = wording.gains(one.ratio - 1, one.low_ratio - 1, one.high_ratio - 1)
        rest = f"{gain.limit} is the bottleneck" if gain.limit else "the whole offered load is served"
        setting = f"what-if --set {' --set '.join(gain.set)}"
        return f"{what}: {more} in the throughput of {one.scenario}; then {rest} ({setting})."
    if gain.ratio < NOTHING:
        by = f": {gain.limit} is saturated as well" if gain.limit else ""
        return f"{what}: alone it gains nothing{by}."
    then = f"; then {gain.limit} is the bottleneck" if gain.limit else ""
    return f"{what}: {wording.up_to(gain.ratio, bound=gain.at_most)}{then}."
