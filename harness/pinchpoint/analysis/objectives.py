"""Judges the plan's objectives: met, missed, or not measured.

Objectives count from the user's request: an operation that never started is an error with an infinite time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pinchpoint.base import units, wording
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.operations import Traffic

PERCENTILES = ("p50_s", "p95_s", "p99_s")
THROUGHPUT = "throughput_per_s"


def objective_table(inputs: Inputs) -> tuple[dict[str, Any], ...]:
    """One row per objective: ``{scenario, metric, target, value, met, result, holds}``.

    ``met`` is None if the objective was not measured. ``value`` is None if not measured or infinite.
    ``holds`` describes the load up to which the objective is met, as far as one level shows this load.
    """
    return tuple(row for objective in inputs.objectives for row in _rows(inputs, objective))


def missed_scenarios(inputs: Inputs) -> frozenset[str]:
    """The scenarios whose times or errors missed an objective.

    Throughput objectives are left out: throughput also depends on the offered load.
    """
    rows = (row for row in objective_table(inputs) if row["metric"] != THROUGHPUT)
    return frozenset(row["scenario"] for row in rows if row["met"] is False)


def not_measured_words(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A warning for each objective that was not measured, and so was not met."""
    for row in rows:
        if row["met"] is None and row["scenario"] is None:
            name, of = wording.objective_name(row), wording.objective_of(row)
            why = row["result"].removeprefix("not measured: ")
            yield f"the objective of {of} ({name}) was not measured, so it is neither met nor missed: {why}"
        elif row["met"] is None:
            name = row["metric"].removesuffix("_per_s").removesuffix("_s").removesuffix("_ratio")
            yield f"the {name} objective of {row['scenario']} was not measured, so it is not met"


def _rows(inputs: Inputs, objective: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    scenario = objective["scenario"]
    traffic = inputs.traffic.of(scenario).whole()
    for metric, target in objective.items():
        if metric == "scenario" or target is None:
            continue
        value = _measured(traffic, metric, inputs.window.seconds)
        met = None
        if value is not None:
            met = value >= target if metric == THROUGHPUT else value <= target
        yield {
            "scenario": scenario,
            "metric": metric,
            "target": target,
            "value": None if value is None or math.isinf(value) else value,
            "met": met,
            "result": _result(traffic, metric, met),
            "holds": _holds(inputs, scenario, met),
        }


def _result(traffic: Traffic, metric: str, met: bool | None) -> str:
    """``met``, ``missed`` or ``not measured``, with the share of unstarted operations if missed."""
    if met is None:
        return "not measured"
    if met or metric == THROUGHPUT or not traffic.dropped:
        return "met" if met else "missed"
    return f"missed; {units.percent(traffic.dropped / _wanted(traffic))} of its operations never started"


def _wanted(traffic: Traffic) -> int:
    return traffic.count + traffic.dropped


def _holds(inputs: Inputs, scenario: str, met: bool | None) -> str:
    """The load at which the objective was met or missed, in words."""
    if met is None:
        return "not measured"
    load = inputs.load(scenario)
    amount = (load.users or load.base_per_s) if load and load.model != "burst" else None
    unit = "users" if load and load.users else "per_s"
    at = f" ({units.load_level(amount, unit)})" if amount else ""
    if met:
        return f"held at this load{at}"
    return f"not held at this load{at}; a load in steps shows the highest load at which it is met"


def _measured(traffic: Traffic, metric: str, length_s: int) -> float | None:
    """The measured value of an objective; latencies are response times for a scheduled load.

    Latencies of other loads are service times (DESIGN section 9).
    """
    if metric in PERCENTILES:
        done = traffic.ok()
        latency = done.response(traffic.dropped) or done.service(traffic.dropped)
        if latency is None:
            # No operation was served: all operations failed or never started.
            return math.inf if traffic.dropped or traffic.failures else None
        return float(getattr(latency, metric))
    if length_s == 0:
        return None
    if metric == THROUGHPUT:
        return traffic.ok().count / length_s
    if metric == "errors_ratio":
        wanted = _wanted(traffic)
        return (traffic.failures + traffic.dropped) / wanted if wanted else None
    return None
