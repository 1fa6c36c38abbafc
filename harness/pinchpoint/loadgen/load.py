"""What a generator process is told to do, and how a load model becomes starts."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pinchpoint.loadgen.arrivals import Bursts, Constant, arrival_times
from pinchpoint.plan import Plan, expand
from pinchpoint_scenarios import registry
from pinchpoint_scenarios.contract import Context, Scenario

_SLOTS_MIN, _SLOTS_MAX = 4, 64
_SLOT_S = 0.1  # slots carry the peak rate at up to this service time


@dataclass(frozen=True, slots=True)
class Assignment:
    """One generator process's part of a run; travels as JSON, ``${ENV}`` unexpanded.

    Attributes:
        name: the worker's name (``generator1``).
        worker: its number from 0, of ``workers``.
        workers: how many generators there are.
        cores: the cores it runs on; empty: wherever the system puts it.
        beat_s: how far into each second it writes down what the last one measured.
        journal: the run's journal folder.
        seed: the plan's seed.
        endpoints: as in farm.yaml.
        scenarios: plan name -> ``use``, ``params``, ``load`` (base units), ``repeat_s``.
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
    use = registry.scenario(given["use"])
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


def starts(load: Mapping[str, Any], seed: int, worker: int, workers: int) -> Iterator[float] | None:
    """Intended starts in seconds from the load's start; None for closed load (as soon as a user is free)."""
    match load:
        case {"model": "closed"}:
            return None
        case {"model": "open", "rate_per_s": rate, "arrivals": arrivals}:
            return arrival_times(Constant(rate), arrivals, seed, worker, workers)
        case {"model": "burst", "base_per_s": base, "peak_per_s": peak, "every_s": every, "for_s": length}:
            shape = Bursts(base, peak, every, length)
            return arrival_times(shape, load.get("arrivals", "poisson"), seed, worker, workers)
        case _:
            raise ValueError(f"no such load model: {load!r}")


def sessions(load: Mapping[str, Any], worker: int, workers: int) -> list[int]:
    """The numbers, unique over all workers, of the sessions this worker opens.

    Closed load has as many as users. Open load has slots: enough for its peak rate at a service time of
    0.1 s, so that a short stall queues operations instead of losing them.
    """
    if load["model"] == "closed":
        total = int(load["users"])
    else:
        peak = float(load.get("peak_per_s") or load["rate_per_s"])
        total = min(_SLOTS_MAX, max(_SLOTS_MIN, math.ceil(peak * _SLOT_S)))
    return list(range(worker, total, workers))
