"""What a generator process is told to do, and how a load model becomes starts."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pinchpoint.loadgen.arrivals import Bursts, Constant, arrival_times
from pinchpoint.loadgen.locustfile import scenario_class
from pinchpoint.loadgen.shares import SLOTS, slot
from pinchpoint.plan import Plan, expand
from pinchpoint_scenarios.contract import Context, Scenario

_SESSIONS_MIN, _SESSIONS_MAX = 4, 64
_SESSION_S = 0.1  # an open load's sessions carry its peak rate at up to this service time
_WORKERS_MAX = 1000  # in one run, those that died included


@dataclass(frozen=True, slots=True)
class Assignment:
    """One generator process's part of a run; travels as JSON, ``${ENV}`` unexpanded.

    Attributes:
        name: the worker's name (``generator1``).
        worker: its number from 0, which no other has in this run.
        workers: how many generators share its scenarios at first.
        cores: the cores it runs on; empty: wherever the system puts it.
        beat_s: how far into each second it writes down what the last one measured.
        journal: the run's journal folder; empty where what is measured is sent (another machine).
        seed: the plan's seed.
        endpoints: as in farm.yaml.
        scenarios: plan name -> ``use``, ``params``, ``load`` (base units), ``repeat_s``.
        slots: plan name -> the slots of its load that are done here (``loadgen.shares``).
        clock_offset_ns: the controller's UTC clock minus this machine's.
    """

    name: str
    worker: int
    workers: int
    cores: list[int]
    beat_s: float
    journal: str
    seed: int
    endpoints: dict[str, dict[str, str]]
    scenarios: dict[str, dict[str, Any]]
    slots: dict[str, list[int]]
    clock_offset_ns: int = 0

    def to_json(self) -> dict[str, Any]:
        """The assignment as a JSON-ready dictionary."""
        return asdict(self)


def planned_scenarios(plan: Plan) -> dict[str, dict[str, Any]]:
    """The plan's scenarios in the form that travels: see ``Assignment.scenarios``."""
    return {
        name: {
            "use": planned.use,
            "params": dict(planned.params),
            "load": planned.load.to_json(),
            # Work that ends is done over and over, or, where the plan measures until it is done, as often as
            # the least time to measure asks for.
            "repeat_s": plan.phases.measure.at_least_s if plan.phases.measure.until else None,
        }
        for name, planned in plan.scenarios.items()
    }


def scenario_seed(seed: int, name: str) -> int:
    """A scenario's own random streams: adding one to a plan must not change another's schedule."""
    return seed * 2**32 + zlib.crc32(name.encode())


def make_scenario(
    name: str,
    given: Mapping[str, Any],
    endpoints: Mapping[str, Mapping[str, str]],
    seed: int,
    worker: int,
    workers: int,
    event: Callable[..., None],
) -> Scenario:
    """The driver of one of the plan's scenarios (``Assignment.scenarios``), with secrets expanded."""
    use = scenario_class(given["use"])
    return use(
        Context(
            name=name,
            endpoints={key: expand(key, value) for key, value in endpoints.items()},
            params=use.params_model.model_validate(given["params"]),
            seed=scenario_seed(seed, name),
            worker=worker,
            workers=workers,
            repeat_s=given["repeat_s"],
            event=event,
        )
    )


def starts(load: Mapping[str, Any], seed: int) -> Iterator[float] | None:
    """Intended starts of the whole load, in seconds from its begin; None for closed load, which has none."""
    match load:
        case {"model": "closed"}:
            return None
        case {"model": "open", "rate_per_s": rate, "arrivals": arrivals}:
            return arrival_times(Constant(rate), arrivals, seed)
        case {"model": "burst", "base_per_s": base, "peak_per_s": peak, "every_s": every, "for_s": length}:
            return arrival_times(Bursts(base, peak, every, length), load.get("arrivals", "poisson"), seed)
        case _:
            raise ValueError(f"no such load model: {load!r}")


def user_start_s(load: Mapping[str, Any], number: int) -> float:
    """When the user of a closed load with session ``number`` starts working, in seconds from the begin."""
    del load, number
    return 0.0


def session_numbers(
    load: Mapping[str, Any], worker: int, slots: frozenset[int], before: frozenset[int] = frozenset()
) -> list[int]:
    """The numbers, unique over all workers, of the sessions a worker opens when its slots grow.

    Closed load has as many sessions as users, each in its slot. Open load has enough for its peak rate at a
    service time of 0.1 s, so that a short stall queues operations instead of losing them; any worker's serve
    any arrival, so they are numbered by worker.

    Args:
        load: the load model as it travels.
        worker: the worker's number.
        slots: what it owns now.
        before: what it owned until now.
    """
    if load["model"] == "closed":
        gained = slots - before
        return [number for number in range(int(load["users"])) if slot(number) in gained]
    peak = float(load.get("peak_per_s") or load["rate_per_s"])
    total = min(_SESSIONS_MAX, max(_SESSIONS_MIN, math.ceil(peak * _SESSION_S)))
    have, wanted = (math.ceil(total * len(owned) / SLOTS) for owned in (before, slots))
    return [worker + number * _WORKERS_MAX for number in range(have, wanted)]
