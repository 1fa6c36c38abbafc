"""Formats the state of a run in Prometheus' text format 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pinchpoint.base.objects import JsonObject

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_UNITS = (("_bytes_per_s", "_bytes_per_second"), ("_per_s", "_per_second"), ("_s", "_seconds"))

_Row = tuple[Mapping[str, str], float | None]


def text(state: JsonObject) -> str:
    """Return all figures of the state as text. A figure that was not measured has no line."""
    return "".join(
        line for name, kind, meaning, rows in families(state) for line in _family(name, kind, meaning, rows)
    )


def families(state: JsonObject) -> Iterator[tuple[str, str, str, list[_Row]]]:
    """Yield name, ``gauge`` or ``counter``, meaning, and (labels, value or None) of each figure."""
    run = {"plan": state["plan"], "farm": state["farm"]}
    scenarios = state["scenarios"]
    yield "run_info", "gauge", "The run that is going on.", [({**run, "phase": state["phase"]}, 1.0)]
    yield "time_left_seconds", "gauge", "Time left of this phase, at most.", [({}, state["left_s"])]
    yield "operations_total", "counter", "Operations since the load began.", [
        ({"scenario": one["name"], "outcome": outcome}, count)
        for one in scenarios
        for outcome, count in one["totals"].items()
    ]  # fmt: skip
    yield "operations_per_second", "gauge", "Operations of the last second that ended well.", [
        ({"scenario": one["name"]}, one["ok"]) for one in scenarios
    ]  # fmt: skip
    yield "p95_seconds", "gauge", "95th percentile of the last second, of the slowest load process.", [
        ({"scenario": one["name"]}, one["p95_s"]) for one in scenarios
    ]  # fmt: skip
    yield "limit_used_ratio", "gauge", "Use of a resource as a share of its limit.", [
        ({"resource": one["what"]}, one["ratio"]) for one in state["limits"]
    ]  # fmt: skip
    yield "objective_met", "gauge", "1: the newest figures meet the objective; 0: they miss it.", [
        (one["labels"], one["met"]) for one in state["objectives"]
    ]  # fmt: skip
    by_metric: dict[str, list[_Row]] = {}
    for host, metric, instance, value in state["samples"]:
        labels = {"host": host, "tier": state["tiers"].get(host, ""), "instance": instance}
        by_metric.setdefault(metric, []).append((labels, value))
    for metric in sorted(by_metric):
        yield _name(metric), "gauge", f"{metric}, see docs/metrics.md.", by_metric[metric]


def _name(metric: str) -> str:
    """Return the Prometheus name of a metric: ``disk_write_latency_seconds`` for ``disk.write_latency_s``."""
    base = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in metric)
    return next((base.removesuffix(ours) + theirs for ours, theirs in _UNITS if base.endswith(ours)), base)


def _family(name: str, kind: str, meaning: str, rows: Iterable[_Row]) -> Iterator[str]:
    measured = [(labels, value) for labels, value in rows if value is not None]
    if not measured:
        return
    yield f"# HELP pinchpoint_{name} {meaning}\n# TYPE pinchpoint_{name} {kind}\n"
    for labels, value in measured:
        answer = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield (
            f"pinchpoint_{name}{{{answer}}} {float(value)!r}\n"
            if answer
            else f"pinchpoint_{name} {float(value)!r}\n"
        )


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
