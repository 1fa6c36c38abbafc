"""Resources that take turns at their limit within a step: work on one after the other waits for both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from pinchpoint.analysis.case import Case
from pinchpoint.analysis.resources.base import Resource
from pinchpoint.analysis.resources.kinds import KINDS, measure
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import OFTEN, UTILISATION
from pinchpoint.base import units
from pinchpoint.base.wording import listed
from pinchpoint.data.series import Floats

Steps = npt.NDArray[np.bool_]


def taking_turns(case: Case) -> list[tuple[Resource, float]]:
    """The resources that take turns, with their shares of the time, the largest first.

    A turn begins and ends within a step: of one in which none is at its limit each has the share that is used
    of it. Each is often at its limit while the others are not, and together they leave hardly any time: what
    works on one after the other takes the sum of both. So they are at their limits at once less than half as
    often as two that have nothing to do with each other would be.
    """
    if case.stage is None:
        return []
    full = list(_at_limit(case.resources, case.stage.rows))
    # What a tier may use of its cores is a limit of its own only where it is less than they are.
    full.sort(key=lambda item: (-item[1].mean(), item[0].type != KINDS[item[0].type].kind, item[0].key))
    turns: list[tuple[Resource, Steps]] = []
    for one, steps in full:
        others = _any(turns, steps)
        alone, together = float((steps & ~others).mean()), float((steps & others).mean())
        if alone < OFTEN.value or together > float(steps.mean() * others.mean()) / 2:
            continue
        if not any(_of_the_same_cores(one, other) for other, _ in turns):
            turns.append((one, steps))
    if len(turns) < 2:
        return []
    at_limit = np.array([steps for _, steps in turns])
    parts = np.where(at_limit.any(axis=0), at_limit, [_used(one, case.stage.rows) for one, _ in turns])
    shares = (parts / np.maximum(1.0, parts.sum(axis=0))).mean(axis=1)
    if shares.sum() < UTILISATION.value:
        return []
    result = [(one, float(share)) for (one, _), share in zip(turns, shares, strict=True)]
    return sorted(result, key=lambda item: (-item[1], item[0].key))


def alternating_words(case: Case) -> str:
    """Which resources take turns at their limit, with their shares of the time; "" where none do."""
    turns = taking_turns(case)
    if case.stage is None or not turns:
        return ""
    rows = case.stage.rows
    shares = [
        f"{KINDS[one.type].name(one, measure(one, rows))} for {units.percent(share)} of the time"
        for one, share in turns
    ]
    return f"They took turns at their limit: {listed(shares)}."


def _at_limit(resources: Sequence[Resource], rows: Rows) -> Iterator[tuple[Resource, Steps]]:
    """Each resource with the steps in which it is at its limit."""
    for one in resources:
        least = KINDS[one.type].full_now
        if least is not None and one.whole is None:
            yield one, one.columns[least.column][rows] >= least.limit.value


def _of_the_same_cores(resource: Resource, other: Resource) -> bool:
    """Whether one is the other's cores, or what a tier may use of them."""
    limit = KINDS[resource.type].kind == KINDS[other.type].kind
    return limit and resource.type != other.type and resource.machine == other.machine


def _used(resource: Resource, rows: Rows) -> Floats:
    """How much of it is used in each step; nothing where that was not measured."""
    least = KINDS[resource.type].full_now
    return np.nan_to_num(resource.columns[least.column][rows]) if least else np.zeros(len(rows))


def _any(turns: Sequence[tuple[Resource, Steps]], like: Steps) -> Steps:
    """The steps in which one of them is at its limit."""
    there: Steps = np.any([*(steps for _, steps in turns), np.zeros_like(like)], axis=0)
    return there
