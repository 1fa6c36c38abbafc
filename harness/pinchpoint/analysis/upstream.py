"""Upstream tiers: which tier a database works for if no scenario asked it (METHOD step 6).

A client sees how long the web tier takes, and not that this waits for sql. But the database counts its
sessions: those beyond the scenarios' own belong to the upstream tiers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pinchpoint.analysis.sessions import active_sessions
from pinchpoint.analysis.stations import DEPTH, Station
from pinchpoint.analysis.thresholds import HARDLY
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.series import Floats, added, mean

MOST = 1.2
"""Sessions, or reads, per operation: more than that belong (also) to another tier."""


def waiting_downstream(inputs: Inputs, stations: Sequence[Station]) -> tuple[Mapping[str, Floats], ...]:
    """Of each station, how many of its operations wait for which deeper tier: tier -> one value per step."""
    found: list[dict[str, Floats]] = [{} for _ in stations]
    for tier in dict.fromkeys(host.tier for host in inputs.hosts):
        before = [one for one in stations if calls(inputs, one.tier, tier)]
        there = sum(one.going_on for one in before)
        own = sum(one.going_on for one in stations if one.tier == tier)
        more = np.maximum(0.0, at_work(inputs, tier) - own)
        usual = mean(more)
        if usual is None or not HARDLY.value * there <= usual <= MOST * there or not there:
            continue
        more = np.minimum(np.where(np.isfinite(more), more, usual), there)
        for waiting, station in zip(found, stations, strict=True):
            if station in before:
                waiting[tier] = more * station.going_on / there
    return tuple(found)


def calls(inputs: Inputs, tier: str, deeper: str) -> bool:
    """Whether one tier of the farm may call another one: that lies deeper on the call path."""
    known = {host.tier for host in inputs.hosts}
    return {tier, deeper} <= known and DEPTH.get(tier, 1) < DEPTH.get(deeper, 1)


def at_work(inputs: Inputs, tier: str) -> Floats:
    """Sessions of a tier's databases whose statement runs or waits; NaN where none was asked."""
    return added(active_sessions(inputs, host.name) for host in inputs.hosts if host.tier == tier)
