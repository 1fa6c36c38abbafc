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
"""Smaller gains count as none."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What lifting a limit brings.

    Attributes:
        ratio: at most this much more throughput; None if that is not known.
        limit: what limits then, in words; None if that is not known.
        assumes: what must stay as it is, or why it is not known.
        at_most: whether the ratio is a bound: by one load level it is an estimate.
        throughput: the scenario that gains most, where the model was asked.
        set: the setting of ``what-if`` that gives it.
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
    """One piece of advice, with all of it as a sentence (``Add CPUs to search: up to +38 %; then ...``)."""
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
