"""Turns load models into sessions and start times."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from pinchpoint.base.objects import JsonObject
from pinchpoint.loadgen.slots import SLOTS, slot
from pinchpoint.plan.arrivals import (
    Constant,
    RampRate,
    RateProfile,
    StepRates,
    arrival_times,
    bursts,
)
from pinchpoint.plan.load_model import Steps

_SESSIONS_MIN, _SESSIONS_MAX = 4, 64
_SESSION_S = 0.1  # longest service time at which an open load's sessions carry the peak rate
_WORKERS_MAX = 1000  # most workers in one run, those that died included


def starts(
    load: JsonObject, seed: int, held: Callable[[], float] = lambda: math.inf
) -> Iterator[float] | None:
    """Intended starts of the whole load, in seconds since the load began; None for closed load.

    Args:
        load: the load model in its JSON form.
        seed: the seed of the scenario.
        held: returns the time in seconds at which a load in steps stops climbing (``StepRates``).
    """
    profile = _profile(load, held, seed)
    return arrival_times(profile, load.get("arrivals", "poisson"), seed) if profile else None


def _profile(
    load: JsonObject, held: Callable[[], float] = lambda: math.inf, seed: int = 0
) -> RateProfile | None:
    """The rate over time; None for closed load."""
    match load:
        case {"model": "open" | "soak", "rate_per_s": rate}:
            return Constant(rate)
        case {"model": "burst"}:
            return bursts(load, seed)
        case {"model": "ramp", "start": {"per_s": start}, "to": {"per_s": to}, "over_s": over}:
            return RampRate(start, to, over)
        case {"model": "steps", "start": {"per_s": _}, "each_s": each}:
            return StepRates(levels(load), each, held)
        case {"model": "closed" | "ramp" | "steps"}:
            return None
        case _:
            raise ValueError(f"no such load model: {load!r}")


def expected_starts(load: JsonObject, seed: int, length_s: float) -> float | None:
    """The mean number of operations that begin within ``length_s`` seconds; None for closed load."""
    profile = _profile(load, seed=seed)
    if profile is None:
        return None
    result, left_s = 0.0, length_s
    for piece in profile.pieces():
        here_s = min(left_s, piece.length_s)
        slope = (piece.last_per_s - piece.first_per_s) / piece.length_s
        result += piece.first_per_s * here_s + slope * here_s**2 / 2
        left_s -= here_s
        if left_s <= 0:
            break
    return result


def is_closed(load: JsonObject) -> bool:
    """Whether users start their next operation when they are free instead of by a schedule."""
    return _profile(load) is None


def levels(load: JsonObject) -> tuple[float, ...]:
    """The levels of a load in steps: rates, or numbers of users."""
    return Steps.from_json(load).levels


def user_start_s(load: JsonObject, number: int) -> float:
    """When the user with session ``number`` of a closed load starts, in seconds since the load began."""
    match load:
        case {"model": "ramp", "start": {"users": first}, "to": {"users": last}, "over_s": over}:
            return float(max(0, number + 1 - first) * over / (last - first))
        case {"model": "steps", "start": {"users": first}, "step": {"users": step}, "each_s": each}:
            return float(math.ceil(max(0, number + 1 - first) / step) * each)
        case _:
            return 0.0


def most(load: JsonObject) -> float:
    """The highest level a load reaches: its users, or its rate per second."""
    match load:
        case {"model": "steps"}:
            return levels(load)[-1]
        case {"model": "ramp", "start": start, "to": to}:
            return float(max(*start.values(), *to.values()))
        case _:
            return float(load.get("users") or load.get("peak_per_s") or load["rate_per_s"])


def session_numbers(load: JsonObject, worker: int, slots: frozenset[int]) -> list[int]:
    """The numbers of a worker's sessions, unique over all workers; more slots only add sessions.

    Closed load has one session for each user, in the user's slot. Open load has enough sessions for its peak
    rate at a service time of 0.1 s, so that a short stall queues operations instead of losing them. Sessions
    of any worker can serve any arrival, so these sessions are numbered by worker.

    Args:
        load: the load model in its JSON form.
        worker: number of the worker.
        slots: numbers of the slots that the worker owns.
    """
    if is_closed(load):
        return [number for number in range(int(most(load))) if slot(number) in slots]
    total = min(_SESSIONS_MAX, max(_SESSIONS_MIN, math.ceil(most(load) * _SESSION_S)))
    return [worker + number * _WORKERS_MAX for number in range(math.ceil(total * len(slots) / SLOTS))]
