"""Computes the tiers and sources that operations of a scenario go to, and the number of operations at each.

By Little's law the mean number of operations at a station is their rate times their time at the station. This
mean ÷ the number of users is the share of users that wait at the station (docs/rules.md).

A client sees how long the web tier takes, but not that the web tier waits for sql. The database, however,
counts its sessions: those beyond the scenarios' own belong to the upstream tiers (docs/rules.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pinchpoint.analysis.sessions import active_sessions
from pinchpoint.analysis.thresholds import HARDLY_WAITED_FOR
from pinchpoint.data.inputs import Inputs, Load
from pinchpoint.data.operations import Traffic
from pinchpoint.data.series import Floats, added, mean

ENDPOINT = {"sql-mix": "sql", "nosql-burst": "nosql"}
"""Scenario -> the tier whose endpoint all of the scenario's operations go to."""

DEPTH = {"web": 1, "search": 1, "files": 1, "sql": 2, "nosql": 2}
"""Tier -> depth on the call path. A saturated resource makes upstream tiers wait, so the deepest of several
saturated tiers is the cause. A tier that a user named counts as called first."""

SOURCE_TIER = {"sharepoint": "web", "profiles": "web", "files": "files"}
"""Kind of a crawled source -> the tier that serves the source, if the farm has this tier."""
CRAWL_TIERS = {"search": ("/index",), "sql": ("/crawl_db",)}
"""Tier -> the stages of a crawled document that go to the tier."""
WHOLE_CRAWL = ("crawl/reset", "crawl/commit")
"""Operations of one user at the search tier while all other users wait."""


@dataclass(frozen=True, slots=True)
class Station:
    """One tier or source that a scenario's operations go to.

    Attributes:
        name: name of the source, else of the tier.
        tier: the tier that serves the station.
        source: whether the station is a content source that is crawled.
        going_on: mean number of users, or of operations, at the station.
        per_step: number of users, or of operations, at the station in each step of the window.
        mean_s: mean time of a request to the station, in seconds; None without requests.
        downstream: deeper tier -> operations at the station that wait for that tier, one number per step.
    """

    name: str
    tier: str
    source: bool
    going_on: float
    per_step: Floats
    mean_s: float | None
    downstream: Mapping[str, Floats] = field(default_factory=dict)


def find_stations(inputs: Inputs, load: Load) -> tuple[Station, ...]:
    """The stations of one scenario; empty if the scenario's tiers are unknown."""
    traffic = inputs.traffic.of(load.scenario)
    if load.native:
        return ()
    if load.use == "full-crawl":
        return tuple(_crawl(inputs, load, traffic))
    tier = ENDPOINT.get(load.use)
    return (_station(inputs, tier, tier, traffic.whole()),) if tier else ()


def _crawl(inputs: Inputs, load: Load, traffic: Traffic) -> Iterator[Station]:
    for name in sorted({_source(operation) for operation in traffic.operation_names} - {""}):
        stages = [f"document:{name}/{stage}" for stage in ("fetch", "enumerate")]
        tier = SOURCE_TIER.get(load.sources.get(name, name), name)
        yield _station(inputs, name, tier, traffic.operations(*stages), source=True)
    for tier, ends in CRAWL_TIERS.items():
        station = _station(inputs, tier, tier, traffic.ending(*ends))
        if tier == "search":
            whole = _station(inputs, tier, tier, traffic.operations(*WHOLE_CRAWL))
            users = load.users or 1.0
            station = Station(
                tier,
                tier,
                source=False,
                going_on=station.going_on + users * whole.going_on,
                per_step=station.per_step + users * whole.per_step,
                mean_s=station.mean_s,
            )
        yield station


def _source(operation: str) -> str:
    """The source of a crawl's operation; "" for an operation without a source."""
    return operation.removeprefix("document:").split("/")[0] if operation.startswith("document:") else ""


def _station(inputs: Inputs, name: str, tier: str, traffic: Traffic, *, source: bool = False) -> Station:
    service = traffic.service()
    mean_s = service.mean_s if service else None
    per_step = traffic.per_step(inputs.window) * (mean_s or 0.0)
    going_on = float(per_step.mean()) if len(per_step) else 0.0
    return Station(name, tier, source, going_on, per_step, mean_s)


MOST = 1.2
"""Most sessions, or reads, per operation; if there are more, some of them belong to another tier."""


def waiting_downstream(inputs: Inputs, stations: Sequence[Station]) -> tuple[Mapping[str, Floats], ...]:
    """For each station, the operations that wait for each deeper tier: tier -> one value per step."""
    values: list[dict[str, Floats]] = [{} for _ in stations]
    for tier in dict.fromkeys(host.tier for host in inputs.hosts):
        before = [one for one in stations if calls(inputs, one.tier, tier)]
        there = sum(one.going_on for one in before)
        own = sum(one.going_on for one in stations if one.tier == tier)
        more = np.maximum(0.0, at_work(inputs, tier) - own)
        usual = mean(more)
        if usual is None or not HARDLY_WAITED_FOR.value * there <= usual <= MOST * there or not there:
            continue
        more = np.minimum(np.where(np.isfinite(more), more, usual), there)
        for waiting, station in zip(values, stations, strict=True):
            if station in before:
                waiting[tier] = more * station.going_on / there
    return tuple(values)


def calls(inputs: Inputs, tier: str, deeper: str) -> bool:
    """Whether one tier of the farm may call another: the called tier lies deeper on the call path."""
    known = {host.tier for host in inputs.hosts}
    return {tier, deeper} <= known and DEPTH.get(tier, 1) < DEPTH.get(deeper, 1)


def at_work(inputs: Inputs, tier: str) -> Floats:
    """Per step, sessions of a tier's databases whose statement runs or waits; NaN if not measured."""
    return added(active_sessions(inputs, host.name) for host in inputs.hosts if host.tier == tier)
