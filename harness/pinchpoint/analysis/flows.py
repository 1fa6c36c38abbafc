"""Computes each scenario's throughput, and whether it loaded the farm: only a loaded farm shows a limit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pinchpoint.analysis.objectives import missed_scenarios
from pinchpoint.analysis.resources.disk.rate_response import COUNT_ERROR
from pinchpoint.analysis.stages import offered_per_s
from pinchpoint.analysis.stations import Station, find_stations, waiting_downstream
from pinchpoint.analysis.thresholds import MANY_REFUSED, PRESSED, REGULATOR_FLAT, STARTED
from pinchpoint.data.inputs import Inputs, Load
from pinchpoint.data.operations import Latency, Traffic
from pinchpoint.data.series import mean, spread
from pinchpoint.store.schema import PAUSE

REFUSED = ("too_many_connections",)
"""Outcomes of operations that got no free connection."""
EVENER = 0.5
"""The counts of an even schedule vary at most by this share of the variation of random arrivals."""
READS_ONLY = ("point_read", "range_scan", "spill")
"""Operations without a commit; every other operation ends with a commit in the scenario's commit tier."""


@dataclass(frozen=True, slots=True)
class Flow:
    """The operations of one scenario in the measured window.

    Attributes:
        finished: number of operations with any outcome.
        ok: number of successful operations.
        failures: number of failed operations.
        refused: number of operations that failed because no connection was free.
        dropped: number of operations that could not start.
        started_ratio: started ÷ scheduled operations; None for closed load, or if not counted.
        service: service time of all operations; None if no operation ended.
        commits: service time of commits (an operation's, or a crawl's statements); None without any.
        in_flight: mean number of operations in flight (throughput x service time).
        stations: where the scenario's operations spend their time, one station per tier or source.
        pressed: whether the farm, not the schedule, limited the load, or was slower than an objective allows.
        think_s: mean pause of a user after an operation, in seconds: the plan's think time plus recorded
            pauses.
        missed: whether ``pressed`` is due to a missed objective alone, while the farm served the whole load.
        even: whether the schedule was kept and is as even as a rate limiter, so that the disk load is even as
            well.
    """

    load: Load
    finished: int
    ok: int
    failures: int
    refused: int
    dropped: int
    started_ratio: float | None
    service: Latency | None
    commits: Latency | None
    in_flight: float
    stations: tuple[Station, ...]
    pressed: bool
    even: bool = False
    missed: bool = False
    think_s: float = 0.0
    _there: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Earlier results of ``going_on``, which is called for every resource and in every resample."""

    def going_on(self, tier: str) -> float:
        """Mean number of the scenario's operations, or steps of them, that wait for a tier or its network.

        Includes operations at another tier that waits for ``tier``.
        """
        if tier not in self._there:
            self._there[tier] = self._going_on(tier)
        return self._there[tier]

    def _going_on(self, tier: str) -> float:
        own = sum(station.going_on for station in self.stations if station.tier == tier)
        behind = (station.downstream[tier] for station in self.stations if tier in station.downstream)
        return own + sum(float(held.mean()) for held in behind)

    def share(self, tier: str) -> float:
        """The share of the users' time, without think time, that operations spend at a tier."""
        total = self.in_flight if self.think_s else self.load.users or self.in_flight
        return min(1.0, self.going_on(tier) / total) if total else 0.0

    def visits(self, tier: str) -> bool:
        """Whether the scenario uses a tier; True for any tier if the scenario's tiers are unknown."""
        known = any(station.going_on for station in self.stations)
        return not known or self.going_on(tier) > 0

    @property
    def all_failed(self) -> bool:
        """Whether all operations of the scenario failed."""
        return self.ok == 0 and self.failures > 0


Flows = tuple[Flow, ...]


def find_flows(inputs: Inputs) -> Flows:
    """One flow per planned scenario, in the plan's order."""
    missed = missed_scenarios(inputs)
    flows = [_flow(inputs, load, missed=load.scenario in missed) for load in inputs.loads]
    held = iter(waiting_downstream(inputs, [station for flow in flows for station in flow.stations]))
    return tuple(
        replace(flow, stations=tuple(replace(one, downstream=next(held)) for one in flow.stations))
        for flow in flows
    )


def _flow(inputs: Inputs, load: Load, *, missed: bool) -> Flow:
    everything = inputs.traffic.of(load.scenario)
    traffic = everything.whole()
    service = traffic.service()
    started = _started_ratio(inputs, load, traffic)
    length = inputs.window.seconds
    refused = sum(traffic.outcomes().get(name, 0) for name in REFUSED)
    turned_away = traffic.count > 0 and refused / traffic.count >= MANY_REFUSED.value
    think_s = load.think_s + _paused_s(everything) / max(1, traffic.count)
    waits = turned_away or _waits(load, service, started, think_s)
    return Flow(
        load=load,
        finished=traffic.count,
        ok=traffic.ok().count,
        failures=traffic.failures,
        refused=refused,
        dropped=traffic.dropped,
        started_ratio=started,
        service=service,
        commits=_commits(load, everything),
        in_flight=traffic.count / length * service.mean_s if service and length else 0.0,
        stations=find_stations(inputs, load),
        pressed=waits or missed,
        missed=missed and not waits,
        even=_is_even(inputs, load, traffic),
        think_s=think_s,
    )


def _paused_s(traffic: Traffic) -> float:
    """Total time for which the scenario's sessions paused by themselves, in seconds."""
    paused = traffic.operations(PAUSE).service()
    return paused.count * paused.mean_s if paused else 0.0


def _is_even(inputs: Inputs, load: Load, traffic: Traffic) -> bool:
    """Whether the scenario's schedule is even and was kept.

    Random arrivals vary from step to step by the square root of their number, and bursts have two levels:
    neither is even. At a high rate random arrivals vary as little as a rate limiter, so an even schedule may
    vary by at most half of what random arrivals would. If no generator recorded the schedule, the plan says
    whether arrivals are evenly spaced.
    """
    if not load.scheduled or load.peak_per_s is not None:
        return False
    offered = offered_per_s(inputs, load.scenario)
    flat, usual = spread(offered), mean(offered)
    if usual is None and load.arrivals == "constant":
        flat, usual = 0.0, load.base_per_s
    if flat is None or not usual or traffic.ok().count < STARTED.value * usual * inputs.window.seconds:
        return False
    count = usual * inputs.window.step_s
    return flat <= max(min(REGULATOR_FLAT.value, EVENER / math.sqrt(count)), COUNT_ERROR / count)


def _commits(load: Load, traffic: Traffic) -> Latency | None:
    if load.use == "full-crawl":
        return traffic.ending("/crawl_db").ok().service()
    return traffic.whole().without(*READS_ONLY).ok().service()


def _started_ratio(inputs: Inputs, load: Load, traffic: Traffic) -> float | None:
    """Started ÷ scheduled operations by the generators' counts, else by the ended and dropped operations.

    The generators' counts are samples, some of which may be lost; operations are never lost. So at least the
    ended operations were started, and at least the ended and dropped operations were scheduled.
    """
    if not load.scheduled:
        return None
    totals = {}
    for metric in ("generator.scheduled_per_s", "generator.started_per_s"):
        series = [
            inputs.samples.series(*key)
            for key in inputs.samples.keys(metric)
            if key.instance == load.scenario
        ]
        totals[metric] = sum(one.sum() for one in series if one is not None) if series else None
    scheduled, started = totals.values()
    offered = traffic.count + traffic.dropped
    if scheduled and started is not None:
        return min(1.0, max(started, traffic.count) / max(scheduled, offered))
    return traffic.count / offered if offered else None


def _waits(load: Load, service: Latency | None, started: float | None, think_s: float) -> bool:
    """Whether the farm limits the load: users wait rather than think, or scheduled operations do not start.

    A farm that crawls by itself always works as fast as it can.
    """
    if load.native:
        return True
    if load.scheduled:
        return started is not None and started < STARTED.value
    if service is None:
        return False
    return service.mean_s >= PRESSED.value * (service.mean_s + think_s)


def in_flight(flows: Iterable[Flow], *tiers: str) -> float:
    """Mean number of operations in flight at these tiers, as their clients see it.

    The mean covers the whole window, because an operation counts in the second in which it ends and may have
    waited for a lock for many seconds.
    """
    return sum(flow.going_on(tier) for flow in flows for tier in tiers)


def only_probes(flows: Sequence[Flow]) -> bool:
    """Whether the plan has storage probes and nothing else: no application was measured in that case."""
    return all(flow.load.use == "storage-probe" for flow in flows)


def pressed_words(flows: Iterable[Flow]) -> str:
    """A sentence about the scenarios that waited for the farm or missed an objective; "" if none did."""
    pressed = [flow for flow in flows if flow.pressed]
    parts = {
        "{} waited for the farm": [one.load.scenario for one in pressed if not one.missed],
        "{} missed an objective": [one.load.scenario for one in pressed if one.missed],
    }
    return " and ".join(text.format(" and ".join(names)) for text, names in parts.items() if names)
